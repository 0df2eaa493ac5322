//! A path inside a skill, checked once.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::{invisible, is_ignorable};

/// The most bytes a path has.
const MAX_PATH_BYTES: usize = 512;
/// The most segments a path has.
const MAX_SEGMENTS: usize = 32;

/// A relative path of a file inside a skill, with `/` between segments.
///
/// Safe to join below any folder on any platform: no `.` or `..`, no absolute
/// or drive path, no backslash, no invisible character, no segment that
/// Windows would rename (trailing dot or space) or take for a device (`aux.txt`),
/// none that Git would take for its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilePath(String);

impl FilePath {
    /// The path of a skill's instructions.
    pub const SKILL_MD: &'static str = "SKILL.md";

    /// `SKILL.md` at the root.
    #[must_use]
    pub fn skill_md() -> Self {
        Self(Self::SKILL_MD.to_owned())
    }

    /// It is `SKILL.md`.
    #[must_use]
    pub fn is_skill_md(&self) -> bool {
        self.as_str() == Self::SKILL_MD
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key that two paths share where some disk takes them for one file.
    #[must_use]
    pub fn collision_key(&self) -> String {
        folded(&self.0)
    }

    /// The last segment.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Media type, from the ending; `application/octet-stream` where it says
    /// nothing.
    #[must_use]
    pub fn mime_type(&self) -> &'static str {
        let ending = self.file_name().rsplit_once('.').map_or("", |(_, e)| e);
        match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => "text/markdown",
            "txt" | "log" | "rst" => "text/plain",
            "html" | "htm" => "text/html",
            "css" => "text/css",
            "csv" => "text/csv",
            "js" | "mjs" | "cjs" => "text/javascript",
            "ts" | "tsx" => "text/x-typescript",
            "py" => "text/x-python",
            "rs" => "text/x-rust",
            "go" => "text/x-go",
            "java" => "text/x-java",
            "rb" => "text/x-ruby",
            "sh" | "bash" => "text/x-shellscript",
            "sql" => "application/sql",
            "json" => "application/json",
            "yaml" | "yml" => "application/yaml",
            "toml" => "application/toml",
            "xml" | "xsd" => "application/xml",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            "pdf" => "application/pdf",
            "zip" => "application/zip",
            "gz" | "tgz" => "application/gzip",
            _ => "application/octet-stream",
        }
    }
}

/// A text is not a path inside a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is not a path inside a skill: {reason}")]
pub struct FilePathError {
    path: String,
    reason: String,
}

/// A name without the differences that disks ignore: case, folded in full (`ß` is
/// `ss`), the form of Unicode, and invisible characters, which some of them drop.
fn folded(name: &str) -> String {
    let seen = |c: &char| !is_ignorable(*c);
    let lower = name.nfkc().filter(seen).flat_map(char::to_lowercase);
    // Capitals in between, since `ß` becomes two letters there only.
    let folded = lower
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase);
    folded.nfkc().collect()
}

/// Windows takes the name for a device, whatever its ending.
#[must_use]
pub fn is_device(name: &str) -> bool {
    let folded = folded(name);
    // A device stays one with an ending or a stream behind it: `nul.txt`, `con:x`, `aux .txt`.
    let stem = folded
        .split(['.', ':'])
        .next()
        .unwrap_or_default()
        .trim_end();
    // `COM¹` is a device as well: folding has already made it `com1`.
    let numbered = |prefix: &str| {
        let rest = stem.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(stem, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || numbered("com")
        || numbered("lpt")
}

/// The reason why a segment could lead out of a folder, or into Git's.
fn unsafe_segment(segment: &str) -> Option<String> {
    if segment.is_empty() {
        return Some("it has an empty segment".to_owned());
    }
    if segment == "." || segment == ".." {
        return Some(format!("it has the segment `{segment}`"));
    }
    if segment.ends_with(['.', ' ']) {
        return Some(format!("`{segment}` ends with a dot or a space"));
    }
    if segment.starts_with(' ') {
        return Some(format!("`{segment}` starts with a space"));
    }
    let folded = folded(segment);
    // A hook in `.git` would run. HFS+ ignores invisible characters in names, NTFS has `GIT~1`
    // as a short name for it (CVE-2014-9390).
    if folded == ".git" || folded.starts_with("git~") {
        return Some(format!("`{segment}` belongs to Git"));
    }
    None
}

/// The reason why a path could lead out of the folder that it is joined to.
fn unsafe_path(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("it is empty".to_owned());
    }
    if text.len() > MAX_PATH_BYTES {
        return Some(format!(
            "it has {} bytes, at most {MAX_PATH_BYTES} are allowed",
            text.len()
        ));
    }
    if text.starts_with('/') {
        return Some("it is absolute".to_owned());
    }
    // On Windows `:` names a drive or a hidden stream of a file, and a backslash separates.
    let is_bad = |c: &char| c.is_control() || "\\:*?\"<>|".contains(*c);
    if let Some(bad) = text.chars().find(is_bad) {
        return Some(format!("it has the character {bad:?}"));
    }
    if text.split('/').count() > MAX_SEGMENTS {
        return Some(format!("it has more than {MAX_SEGMENTS} segments"));
    }
    text.split('/').find_map(unsafe_segment)
}

/// The reason why some platform has no file of that name, or shows another.
fn unportable_path(text: &str) -> Option<String> {
    if let Some((_, hidden, kind)) = invisible(text).next() {
        return Some(format!(
            "it has {}: {}",
            kind.what(),
            hidden.escape_unicode()
        ));
    }
    let device = text.split('/').find(|segment| is_device(segment))?;
    Some(format!("`{device}` is a device on Windows"))
}

fn refused(path: &str, reason: String) -> FilePathError {
    let path = super::shown(path, 120);
    FilePathError { path, reason }
}

impl FromStr for FilePath {
    type Err = FilePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match unsafe_path(text).or_else(|| unportable_path(text)) {
            None => Ok(Self(text.to_owned())),
            Some(reason) => Err(refused(text, reason)),
        }
    }
}

/// Reads the path of a stored record. It was accepted when fewer names were known that
/// are not portable, and stored paths stay readable.
impl TryFrom<String> for FilePath {
    type Error = FilePathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match unsafe_path(&text) {
            None => Ok(Self(text)),
            Some(reason) => Err(refused(&text, reason)),
        }
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0
    }
}

impl Borrow<str> for FilePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_that_leave_the_skill_or_surprise_a_platform_are_refused() {
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            "C:\\x",
            "C:x",
            "a\\b",
            "a\0b",
            "a\nb",
            ".git/config",
            "x/.GIT/hooks",
            "GIT~1/config",
            "a.",
            "a ",
            "b./c",
            " a",
            "a:b",
            "a|b",
            "NUL\u{7f}",
            "\u{ff0e}git/x",
            ".g\u{200c}it/config",
            ".git\u{200b}/hooks/x",
            "SKILL\u{200b}.md",
            "\u{202e}gpj.exe",
            "a\u{E0041}.md",
            "CON",
            "aux.txt",
            "x/com1",
            "lpt9.tar.gz",
            "nul .md",
            "COM\u{b9}",
            "conin$",
        ] {
            assert!(bad.parse::<FilePath>().is_err(), "{bad:?} was accepted");
        }
        let long = "a".repeat(MAX_PATH_BYTES + 1);
        assert!(long.parse::<FilePath>().is_err());
        let deep = vec!["a"; MAX_SEGMENTS + 1].join("/");
        assert!(deep.parse::<FilePath>().is_err());
    }

    #[test]
    fn ordinary_paths_are_kept_as_written() {
        for good in [
            "SKILL.md",
            "references/API guide.md",
            ".github/x.yml",
            "docs/日本語.md",
            "a-b_c.d/e",
            "می‌خواهم.md",
            "👩‍💻.md",
            "console.md",
            "com10.txt",
            "auxiliary/nullable.rs",
        ] {
            assert_eq!(good.parse::<FilePath>().expect("a path").as_str(), good);
        }
    }

    #[test]
    fn a_stored_path_stays_readable() {
        let stored: FilePath = serde_json::from_str("\"docs/aux.md\"").expect("a path");
        assert_eq!(stored.as_str(), "docs/aux.md");
        assert!(serde_json::from_str::<FilePath>("\"../aux.md\"").is_err());
    }

    #[test]
    fn names_that_some_disk_takes_for_one_have_one_key() {
        let key = |path: &str| path.parse::<FilePath>().expect("a path").collision_key();
        for (one, other) in [
            ("README.md", "readme.md"),
            ("ß.txt", "ss.txt"),
            ("STRASSE.txt", "Straße.txt"),
            ("\u{1e9e}.txt", "SS.txt"),
            ("ﬁle", "file"),
            ("e\u{301}.md", "\u{e9}.md"),
            ("Σ", "ς"),
            ("⚙\u{fe0f}.md", "⚙.md"),
            ("\u{1820}\u{180b}.md", "\u{1820}.md"),
        ] {
            assert_eq!(key(one), key(other), "{one} and {other}");
        }
        assert_ne!(key("a.md"), key("b.md"));
    }

    proptest! {
        #[test]
        fn a_path_that_is_accepted_stays_below_the_folder_it_is_joined_to(text in ".{0,60}|[./a~ ]{0,20}") {
            if let Ok(path) = text.parse::<FilePath>() {
                let joined = std::path::Path::new("/root/skill").join(path.as_str());
                prop_assert!(joined.components().all(|c| matches!(
                    c,
                    std::path::Component::RootDir | std::path::Component::Normal(_)
                )));
                prop_assert!(joined.starts_with("/root/skill"));
            }
        }
    }
}
