//! The fingerprint by which `ClawHub`'s clients name a bundle of files.
//!
//! SHA-256 of the lines `path:sha256` of all files, joined by line feeds, in the
//! order in which `localeCompare` of JavaScript puts the paths: that of the Unicode
//! root collation, where case counts last and punctuation comes before digits.

use std::cmp::Ordering;

use contract::v1;
use model::Digest;

/// ASCII that is no letter, in the order of the root collation.
const ORDER: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";

/// The fingerprint, as 64 hex digits.
pub(super) fn fingerprint(files: &[v1::FileEntry]) -> String {
    let mut files: Vec<_> = files.iter().collect();
    files.sort_by(|a, b| compare(&a.path, &b.path));
    let lines = files.iter();
    let lines: Vec<_> = lines
        .map(|file| format!("{}:{}", file.path, hex(file)))
        .collect();
    Digest::of(lines.join("\n").as_bytes()).hex()
}

/// Returns the digest of a file without the name of its algorithm.
pub(super) fn hex(file: &v1::FileEntry) -> &str {
    file.digest.strip_prefix("sha256:").unwrap_or(&file.digest)
}

/// First without case, then lower case before upper. Letters beyond ASCII are
/// compared by number, after those of ASCII.
fn compare(a: &str, b: &str) -> Ordering {
    let letters = a.chars().map(weight).cmp(b.chars().map(weight));
    let case = || {
        let upper = |c: char| c.is_ascii_uppercase();
        a.chars().map(upper).cmp(b.chars().map(upper))
    };
    letters.then_with(case)
}

fn weight(c: char) -> (u8, u32) {
    match ORDER.chars().position(|known| known == c) {
        Some(at) => (0, u32::try_from(at).unwrap_or(u32::MAX)),
        None => (1, u32::from(c.to_ascii_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_the_order_of_javascript() {
        // As `["…"].sort((a, b) => a.localeCompare(b))` of Node.js 20 gives them.
        let expected = [
            "_a.md",
            "-a.md",
            "a_b.md",
            "a-b.md",
            "a.md",
            "a/b.md",
            "a0.md",
            "A0.md",
            "ab.md",
            "references/api.md",
            "scripts/run.sh",
            "SKILL.md",
            "z.md",
        ];
        let mut paths = expected;
        paths.reverse();
        paths.sort_by(|a, b| compare(a, b));
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_fingerprint_is_the_digest_of_the_lines() {
        let file = |path: &str, text: &str| v1::FileEntry {
            path: path.to_owned(),
            digest: Digest::of(text.as_bytes()).to_string(),
            ..Default::default()
        };
        let files = [file("SKILL.md", "x"), file("a.md", "y")];
        let lines = format!(
            "a.md:{}\nSKILL.md:{}",
            Digest::of(b"y").hex(),
            Digest::of(b"x").hex()
        );
        assert_eq!(fingerprint(&files), Digest::of(lines.as_bytes()).hex());
    }
}
