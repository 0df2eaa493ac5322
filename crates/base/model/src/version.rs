//! A version: immutable, numbered by the server.

use std::fmt;
use std::num::NonZeroU32;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, FilePath, Principal, Problem, Skill, SkillId};

/// 1, 2, 3 … Never used again, not even after a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionNumber(NonZeroU32);

impl VersionNumber {
    /// The first number.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// A number; none for 0.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The number as an integer.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The number after this one; none after the last of four thousand million.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The largest number in a semantic version that a skill may state: what a double holds
/// exactly, since clients in other languages compare versions as doubles.
pub const MAX_VERSION_PART: u64 = (1 << 53) - 1;
/// Characters of a semantic version that a skill may state.
const MAX_VERSION_CHARS: usize = 256;

/// A stated version is semantic, but cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StatedVersionError {
    /// A number of it is too large.
    #[error("has a number above {MAX_VERSION_PART}, the largest that clients compare exactly")]
    PartTooLarge,
    /// It is too long.
    #[error("has more than {MAX_VERSION_CHARS} characters")]
    TooLong,
}

/// Reads the version that a skill states as a semantic one: `1`, `1.0` and `v1.2.3` are
/// understood. None: it is no semantic version.
///
/// # Errors
/// It is one, and too large or too long.
pub fn stated_version(text: &str) -> Result<Option<semver::Version>, StatedVersionError> {
    let plain = text.trim().trim_start_matches(['v', 'V']);
    let Some(version) = read_version(plain)? else {
        return Ok(None);
    };
    if plain.len() > MAX_VERSION_CHARS {
        return Err(StatedVersionError::TooLong);
    }
    let parts = [version.major, version.minor, version.patch];
    if parts.iter().any(|part| *part > MAX_VERSION_PART) {
        return Err(StatedVersionError::PartTooLarge);
    }
    Ok(Some(version))
}

fn read_version(plain: &str) -> Result<Option<semver::Version>, StatedVersionError> {
    if let Ok(version) = plain.parse() {
        return Ok(Some(version));
    }
    let mut numbers = [0; 3];
    let mut parts = plain.split('.');
    // Parts that are left out are 0.
    for (number, part) in numbers.iter_mut().zip(&mut parts) {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(None);
        }
        *number = part.parse().map_err(|_| StatedVersionError::PartTooLarge)?;
    }
    if parts.next().is_some() {
        return Ok(None);
    }
    let [major, minor, patch] = numbers;
    Ok(Some(semver::Version::new(major, minor, patch)))
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path inside the skill.
    pub path: FilePath,
    /// Digest of the raw bytes.
    pub digest: Digest,
    /// Bytes.
    pub size: u64,
}

/// A version of a skill, with everything but the bytes of its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its number.
    pub number: VersionNumber,
    /// Its semantic version, unique in its skill.
    pub semantic: semver::Version,
    /// Digest over all its files.
    pub digest: Digest,
    /// Its SKILL.md.
    pub skill: Skill,
    /// Its files, by path.
    pub files: Vec<FileEntry>,
    /// Its warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The time of its publish.
    pub created_at: Timestamp,
    /// The publisher.
    pub created_by: Principal,
    /// The change, in the publisher's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub change_summary: String,
}

impl Version {
    /// Bytes of all its files.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The file of a path; paths are compared as they are written.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&FileEntry> {
        let at = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .ok()?;
        self.files.get(at)
    }

    /// A file looks like a test.
    #[must_use]
    pub fn has_tests(&self) -> bool {
        self.files.iter().any(|file| is_test(file.path.as_str()))
    }

    /// A file or a resource holds examples.
    #[must_use]
    pub fn has_examples(&self) -> bool {
        let says_so = |name: &str| name.to_ascii_lowercase().contains("example");
        self.files.iter().any(|file| says_so(file.path.as_str()))
            || self.skill.resource_configs.iter().any(|r| says_so(&r.name))
    }

    /// The file that holds the instructions.
    #[must_use]
    pub fn skill_md(&self) -> Option<&FileEntry> {
        self.file(self.skill.entry.as_str())
    }
}

/// Tells whether a file looks like a test, by its path.
#[must_use]
pub fn is_test(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.split('/')
        .any(|part| matches!(part, "test" | "tests" | "__tests__" | "evals"))
        || path.rsplit('/').next().is_some_and(|name| {
            name.starts_with("test_")
                || name.contains(".test.")
                || name.contains("_test.")
                || name.contains(".spec.")
        })
}

/// The withdrawal of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Yank {
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// When.
    pub time: Timestamp,
    /// The caller that withdrew it.
    pub actor: Principal,
}

/// An entry of the blocklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The id of the skill, as the blocking caller wrote it.
    pub skill: SkillId,
    /// Why.
    pub reason: String,
    /// Since when.
    pub time: Timestamp,
    /// The caller that blocked it.
    pub actor: Principal,
    /// It comes from the operator's feed, and goes once the feed no longer names it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_feed: bool,
}

/// How far a skill's origin is trusted, by the operator's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustTier {
    /// Comes with the server.
    Official,
    /// The origin was verified by the operator.
    Verified,
    /// A known community source.
    Community,
    /// Nothing is known.
    Unverified,
}

impl TrustTier {
    /// Its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Verified => "verified",
            Self::Community => "community",
            Self::Unverified => "unverified",
        }
    }
}
