//! The record of an installed skill.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Error;
use facets::Triggers;
use model::{Digest, FileEntry, FilePath, Skill, SkillId, VersionNumber, bundle_digest};

/// How a skill is installed in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Its files are there.
    #[default]
    Copy,
    /// A link is there, to a copy elsewhere.
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

/// The record of an installed skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The skill.
    pub id: SkillId,
    /// Its name.
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
    /// How it was installed.
    #[serde(default)]
    pub method: Method,
    /// The server that it came from: its address, or `local` for the data of the same machine.
    #[serde(default)]
    pub server: String,
    /// The verdict of the scan: `passed`, `warning` or `failed`. Empty: it was not scanned.
    #[serde(default)]
    pub verdict: String,
    /// It was installed by force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// It was not scanned for security risks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scan_skipped: bool,
    /// Characters of its SKILL.md.
    #[serde(default)]
    pub chars: u64,
    /// The phrases that call it up.
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
            triggers: Triggers::of(skill).texts().map(str::to_owned).collect(),
            requires: requires(skill),
        }
    }

    /// Checks that these are its files, and that they can be written next to each other.
    ///
    /// # Errors
    /// They are others; two of them collide.
    pub fn check(&self, files: &[(FilePath, Bytes)]) -> Result<(), Error> {
        let digests: BTreeMap<&FilePath, Digest> = files
            .iter()
            .map(|(path, content)| (path, Digest::of(content)))
            .collect();
        let found = bundle_digest(digests.iter().map(|(path, digest)| (*path, *digest)));
        let is_listed = |entry: &FileEntry| digests.get(&entry.path) == Some(&entry.digest);
        let are_listed = self.files.len() == files.len() && self.files.iter().all(is_listed);
        if found != self.digest || !are_listed {
            return Err(Error::DigestDiffers {
                id: self.id.clone(),
                expected: self.digest,
                found,
            });
        }
        // Names that differ in case, or in how an accent is written, are one file on macOS and
        // Windows: the second would overwrite the first.
        let mut seen = HashSet::new();
        let mut paths = files.iter().map(|(path, _)| path);
        match paths.find(|path| !seen.insert(path.collision_key())) {
            None => Ok(()),
            Some(path) => Err(Error::Unwritable {
                name: path.to_string(),
                reason: "some disks take two of its files for one".to_owned(),
            }),
        }
    }

    /// The name of its folder.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.id.slug()
    }

    /// It requires this skill, by its id or by its short name.
    #[must_use]
    pub fn requires(&self, other: &SkillId) -> bool {
        self.requires.iter().any(|name| is_named(name, other))
    }
}

/// A name is the id of a skill, or its short name.
#[must_use]
pub fn is_named(name: &str, id: &SkillId) -> bool {
    name.eq_ignore_ascii_case(id.as_str()) || name.eq_ignore_ascii_case(id.slug())
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
