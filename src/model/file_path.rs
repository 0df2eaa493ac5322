//! A path inside a skill, checked once.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

/// The most bytes a path has.
const MAX_PATH_BYTES: usize = 512;
/// The most segments a path has.
const MAX_SEGMENTS: usize = 32;

/// A relative path of a file inside a skill, with `/` between segments.
///
/// Safe to join below any folder on any platform: no `.` or `..`, no absolute
/// or drive path, no backslash, no control character, no segment that Windows
/// would rename (trailing dot or space) or that Git would take for its own.
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

    /// What two paths have in common that a disk would take for one file: case
    /// folded and in one Unicode form.
    #[must_use]
    pub fn collision_key(&self) -> String {
        self.0.nfkc().flat_map(char::to_lowercase).collect()
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

fn segment_error(segment: &str) -> Option<String> {
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
    let folded: String = segment.nfkc().flat_map(char::to_lowercase).collect();
    if folded == ".git" || folded.starts_with("git~") {
        return Some(format!("`{segment}` belongs to Git"));
    }
    None
}

impl FromStr for FilePath {
    type Err = FilePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let reason = if text.is_empty() {
            Some("it is empty".to_owned())
        } else if text.len() > MAX_PATH_BYTES {
            Some(format!(
                "it has {} bytes, at most {MAX_PATH_BYTES} are allowed",
                text.len()
            ))
        } else if text.starts_with('/') {
            Some("it is absolute".to_owned())
        } else if let Some(bad) = text
            .chars()
            .find(|c| c.is_control() || "\\:*?\"<>|".contains(*c))
        {
            Some(format!("it has the character {bad:?}"))
        } else if text.split('/').count() > MAX_SEGMENTS {
            Some(format!("it has more than {MAX_SEGMENTS} segments"))
        } else {
            text.split('/').find_map(segment_error)
        };
        match reason {
            None => Ok(Self(text.to_owned())),
            Some(reason) => Err(FilePathError {
                path: text
                    .chars()
                    .take(120)
                    .flat_map(char::escape_default)
                    .collect(),
                reason,
            }),
        }
    }
}

impl TryFrom<String> for FilePath {
    type Error = FilePathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
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
        ] {
            assert_eq!(good.parse::<FilePath>().expect("a path").as_str(), good);
        }
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
