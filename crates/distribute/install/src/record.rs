//! What is kept of an installed skill.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use model::{Digest, FileEntry, FilePath, Skill, SkillId, VersionNumber};

/// How a skill comes into a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Its files are there.
    #[default]
    Copy,
    /// A link is there, to a copy that is kept elsewhere.
    Symlink,
}

impl Method {
    /// Its name, as it is stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Symlink => "symlink",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "copy" => Ok(Self::Copy),
            "symlink" => Ok(Self::Symlink),
            _ => Err(()),
        }
    }
}

/// An installed skill, as it is recorded beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The skill.
    pub id: SkillId,
    /// What it is called.
    pub name: String,
    /// Number of its version.
    pub number: VersionNumber,
    /// Semantic version.
    pub semantic: semver::Version,
    /// Digest over all its files.
    pub digest: Digest,
    /// Its files, by path.
    pub files: Vec<FileEntry>,
    /// When it was installed.
    pub installed_at: Timestamp,
    /// How it came there.
    #[serde(default)]
    pub method: Method,
    /// The server that it came from: its address, or `local` for the data of the same machine.
    #[serde(default)]
    pub server: String,
    /// What the scan came to: `passed`, `warning` or `failed`. Empty: it was not scanned.
    #[serde(default)]
    pub verdict: String,
    /// It was installed in spite of something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Nobody looked for security risks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scan_skipped: bool,
    /// Characters of its SKILL.md.
    #[serde(default)]
    pub chars: u64,
    /// Phrases that should make an agent think of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// Skills that it requires, as it names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

impl Record {
    /// The record of a version whose files are these, as an ordinary copy that passed.
    #[must_use]
    pub fn of(
        id: &SkillId,
        (number, semantic, digest): (VersionNumber, semver::Version, Digest),
        skill: &Skill,
        files: &[(FilePath, Bytes)],
        installed_at: Timestamp,
    ) -> Self {
        let mut entries: Vec<FileEntry> = files
            .iter()
            .map(|(path, content)| FileEntry {
                path: path.clone(),
                digest: Digest::of(content),
                size: content.len() as u64,
            })
            .collect();
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Self {
            id: id.clone(),
            name: skill.name.clone(),
            number,
            semantic,
            digest,
            files: entries,
            installed_at,
            method: Method::Copy,
            server: String::new(),
            verdict: String::new(),
            forced: false,
            scan_skipped: false,
            chars: skill.chars,
            triggers: skill.triggers.clone(),
            requires: requires(skill),
        }
    }

    /// These are its files, and a disk has room for them side by side.
    ///
    /// # Errors
    /// They are others; two of them collide.
    pub fn check(&self, files: &[(FilePath, Bytes)]) -> Result<(), super::Error> {
        super::directory::check(self, files)
    }

    /// The name of its folder.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.id.slug()
    }

    /// It requires this skill, by its id or by its short name.
    #[must_use]
    pub fn requires(&self, other: &SkillId) -> bool {
        self.requires.iter().any(|named| {
            named.eq_ignore_ascii_case(other.as_str()) || named.eq_ignore_ascii_case(other.slug())
        })
    }
}

/// The skills that one requires, without the versions that it asks for.
fn requires(skill: &Skill) -> Vec<String> {
    let mut named: Vec<String> = skill
        .requirements()
        .map(|named| named.split('@').next().unwrap_or(named).trim().to_owned())
        .collect();
    named.sort();
    named.dedup();
    named
}
