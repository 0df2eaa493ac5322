//! Names and tokens from outside, whatever they are.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use super::*;
use testing::fuzz;

/// What can be read is written as something that reads as the same.
fn same_again<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        let again = read.to_string().parse::<T>().ok();
        assert_eq!(again.as_ref(), Some(&read), "{text:?}");
    }
}

#[test]
fn fuzz_addresses() {
    let words = [
        "skill://", "@", "1.2.0", "^1", "sha256:", "/", "SKILL.md", "builtin", "%2F", "a/b/c", "*",
    ];
    fuzz("address", &words, |input| {
        let text = String::from_utf8_lossy(input);
        same_again::<SkillId>(&text);
        same_again::<SkillUri>(&text);
        same_again::<FilePath>(&text);
        same_again::<Digest>(&text);
        if let Some(slug) = slugify(&text) {
            assert!(slug.len() <= 64, "{slug}");
        }
        let shown = printable(&text);
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\0']), "{shown:?}");
    });
}
