//! Texts in which `*` stands for any text: what matches, what covers what, what
//! two of them have in common. All three are exact.

/// The pattern matches the text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    walk(pattern.as_bytes(), text.as_bytes(), |pattern, text| {
        pattern == text
    })
}

/// Every text that the narrow pattern matches, the wide one matches too.
///
pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    // A `*` of the narrow one may be any text, so nothing but a `*` of the wide one takes it:
    // there are more letters than a pattern has.
    walk(wide.as_bytes(), narrow.as_bytes(), |wide, narrow| {
        wide == narrow && narrow != b'*'
    })
}

/// There is a text that both match.
pub(super) fn overlaps(a: &str, b: &str) -> bool {
    match (a.split_once('*'), b.split_once('*')) {
        (None, None) => a == b,
        (None, Some(_)) => matches(b, a),
        (Some(_), None) => matches(a, b),
        // Beginnings and ends decide: what is between them in one pattern can follow what is
        // between them in the other.
        (Some((a_begin, a_rest)), Some((b_begin, b_rest))) => {
            let a_end = a_rest.rsplit('*').next().unwrap_or_default();
            let b_end = b_rest.rsplit('*').next().unwrap_or_default();
            (a_begin.starts_with(b_begin) || b_begin.starts_with(a_begin))
                && (a_end.ends_with(b_end) || b_end.ends_with(a_end))
        }
    }
}

/// What the two begin with differs before either has a `*`, so that they have no
/// text in common.
#[inline]
pub(super) fn begin_apart(a: &str, b: &str) -> bool {
    let pairs = a.bytes().zip(b.bytes());
    let mut pairs = pairs.take_while(|(a, b)| *a != b'*' && *b != b'*');
    pairs.any(|(a, b)| a != b)
}

/// Matches from the left, and goes back to the last `*`.
fn walk(mut pattern: &[u8], mut text: &[u8], fits: impl Fn(u8, u8) -> bool) -> bool {
    // The last `*` alone, as an earlier one could take no more than it can: so the time is the
    // product of the lengths, whatever a stranger writes. By bytes: between two `*` there are
    // whole letters, and UTF-8 finds these nowhere but at letters.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern, text) {
            ([b'*'], _) | ([], []) => return true,
            ([b'*', rest @ ..], _) => {
                pattern = rest;
                retry = Some((rest, text));
                continue;
            }
            ([letter, rest @ ..], [found, after @ ..]) if fits(*letter, *found) => {
                (pattern, text) = (rest, after);
                continue;
            }
            ([_, ..], []) => return false,
            _ => {}
        }
        // The last `*` takes one byte more.
        let Some((begin, [_, skipped @ ..])) = retry else {
            return false;
        };
        (pattern, text) = (begin, skipped);
        retry = Some((begin, skipped));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                slow(rest, text) || (!text.is_empty() && slow(pattern, &text[1..]))
            }
            ([p, rest @ ..], [t, text @ ..]) => p == t && slow(rest, text),
            _ => false,
        }
    }

    /// Every text of up to five of three letters.
    fn texts() -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..5 {
            last = last
                .iter()
                .flat_map(|text| ["a", "b", "c"].map(|letter| format!("{text}{letter}")))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn beginnings_are_apart_where_they_differ_before_a_star() {
        for (a, b, apart) in [
            ("ab*", "ac*", true),
            ("a", "b", true),
            ("a*", "ab", false),
            ("a*c", "ab", false),
            ("a", "ab", false),
        ] {
            assert_eq!(
                (begin_apart(a, b), begin_apart(b, a)),
                (apart, apart),
                "{a} {b}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn globs_do_what_trying_every_text_says(a in "[ab*]{0,4}", b in "[ab*]{0,4}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let (mut shared, mut covered) = (false, true);
            for text in texts() {
                let (in_a, in_b) = (slow(&chars(&a), &chars(&text)), slow(&chars(&b), &chars(&text)));
                prop_assert_eq!(matches(&a, &text), in_a, "{} {}", &a, &text);
                shared |= in_a && in_b;
                covered &= in_a || !in_b;
            }
            // `c` is a letter that no pattern has, as an unknown one is.
            prop_assert_eq!(covers(&a, &b), covered, "{} {}", &a, &b);
            prop_assert!(!begin_apart(&a, &b) || !shared, "{} {}", &a, &b);
            if a.len() + b.len() <= 5 {
                prop_assert_eq!(overlaps(&a, &b), shared, "{} {}", &a, &b);
            }
        }
    }
}
