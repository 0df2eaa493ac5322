//! The look of a name, so that names which look alike are one.

use unicode_normalization::UnicodeNormalization as _;

/// Removes from a name all that can differ while it looks the same: characters that
/// look like others (Unicode Technical Standard 39), case, marks, and what is
/// neither letter nor digit.
#[must_use]
pub fn skeleton(name: &str) -> String {
    // Skeletons of small and capital letters differ: `I` is an `l`.
    let lower: String = name.nfkc().flat_map(char::to_lowercase).collect();
    unicode_security::skeleton(&lower)
        .nfkd()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_one_and_others_are_not() {
        for (a, b) in [
            ("react-testing", "React_Testing"),
            ("react-testing", "re\u{430}ct testing"),
            ("pay-pal", "paypal"),
            ("paypal", "p\u{430}yp\u{430}l"),
            ("api", "\u{430}\u{440}\u{456}"),
        ] {
            assert_eq!(skeleton(a), skeleton(b), "{a} and {b}");
        }
        assert_ne!(skeleton("react"), skeleton("preact"));
        assert_ne!(skeleton("postgres"), skeleton("postgrest"));
    }
}
