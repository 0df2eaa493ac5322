//! Words of a text, for comparing texts of different people.

/// Letters a stem keeps at least.
const STEM: usize = 4;
/// Endings that say how a word is used, longest first.
const ENDINGS: &[&str] = &[
    "ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ers", "er", "ed", "es", "s",
];

/// Words of a text in lower case, in their order: runs of letters and digits, and
/// of `+` and `#` behind them, as in `c++`.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '+' || c == '#';
    text.split(move |c: char| !is_word(c))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(str::to_lowercase)
}

/// What words of one root have in common, roughly: `implement`, `implementing`
/// and `implementation` have one stem. Only English endings are known.
#[must_use]
pub fn stem(word: &str) -> &str {
    let mut stem = word;
    loop {
        let cut = ENDINGS.iter().find_map(|ending| {
            let rest = stem.strip_suffix(ending)?;
            (rest.chars().count() >= STEM).then_some(rest)
        });
        match cut {
            Some(rest) => stem = rest,
            None => break,
        }
    }
    // `plann` of `planning`, `write` of `writes`.
    let mut letters = stem.char_indices().rev();
    match (letters.next(), letters.next()) {
        (Some((at, a)), Some((_, b))) if a == b && stem.len() < word.len() => stem.get(..at),
        (Some((at, 'e')), _) if stem.chars().count() > STEM => stem.get(..at),
        _ => None,
    }
    .unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_root_have_one_stem_and_others_do_not() {
        for family in [
            &[
                "implement",
                "implements",
                "implementing",
                "implementation",
                "implementations",
            ][..],
            &["plan", "plans", "planning", "planned", "planner"],
            &["test", "tests", "testing", "tester"],
            &["requirement", "requirements"],
        ] {
            let stems: Vec<_> = family.iter().map(|word| stem(word)).collect();
            assert!(stems.iter().all(|other| other == &stems[0]), "{stems:?}");
        }
        assert_ne!(stem("java"), stem("javascript"));
        assert_ne!(stem("spec"), stem("special"));
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let found: Vec<_> = words("Write C++ & a_b; État-1 -- #").collect();
        assert_eq!(found, ["write", "c++", "a", "b", "état", "1"]);
    }
}
