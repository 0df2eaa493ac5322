//! `skills.lock`: which versions of which skills a project uses, to the byte.
//!
//! It is TOML, sorted by id and without times, so that branches merge, and the same skills make
//! the same file.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::Error;
use super::state::{read_with, write_text};
use model::{Digest, SkillId, VersionNumber};

/// The name of the file.
pub const LOCK_FILE: &str = "skills.lock";
/// The format of the file.
const LOCK_FILE_FORMAT: u32 = 1;
const HEAD: &str = "\
# The skills of this folder, to the byte. Written by `repertoire install`; keep it in version control.
";

/// A skill in a lock file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Locked {
    /// The skill.
    pub id: SkillId,
    /// Semantic version.
    #[serde(rename = "version")]
    pub semantic: semver::Version,
    /// Number of the version.
    pub number: VersionNumber,
    /// Digest over all its files.
    pub digest: Digest,
    /// The verdict of the scan: `passed`, `warning` or `failed`. Empty: it is not known.
    #[serde(default)]
    pub verdict: String,
    /// The server that it came from: its address, or `local`.
    #[serde(default)]
    pub server: String,
    /// Where it is installed: names of agents, or paths of directories, sorted.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Somebody asked for it; else others require it.
    #[serde(default)]
    pub requested: bool,
}

/// A lock file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillsLock {
    /// The skills, by id.
    skills: Vec<Locked>,
}

#[derive(Deserialize)]
struct Document {
    version: u32,
    #[serde(default)]
    skill: Vec<Locked>,
}

impl SkillsLock {
    /// Reads a lock file; none: there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        read_with(path, Self::parse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
        if document.version != LOCK_FILE_FORMAT {
            return Err(format!(
                "it is of form {}, and this version knows {LOCK_FILE_FORMAT}",
                document.version
            ));
        }
        let mut lock = Self::default();
        for skill in document.skill {
            if lock.get(&skill.id).is_some() {
                return Err(format!("it has '{}' twice", skill.id));
            }
            lock.put(skill);
        }
        Ok(lock)
    }

    /// Writes the file as a whole.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        write_text(path, &self.text())
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}version = {LOCK_FILE_FORMAT}\n");
        for skill in &self.skills {
            let targets: Vec<_> = skill.targets.iter().map(|target| quoted(target)).collect();
            let fields = [
                ("id", quoted(skill.id.as_str())),
                ("version", quoted(&skill.semantic.to_string())),
                ("number", skill.number.to_string()),
                ("digest", quoted(&skill.digest.to_string())),
                ("verdict", quoted(&skill.verdict)),
                ("server", quoted(&skill.server)),
                ("targets", format!("[{}]", targets.join(", "))),
                ("requested", skill.requested.to_string()),
            ];
            text.push_str("\n[[skill]]\n");
            for (name, value) in fields {
                // Writing to a `String` does not fail.
                let _written = writeln!(text, "{name} = {value}");
            }
        }
        text
    }

    /// The skills, by id.
    #[must_use]
    pub fn skills(&self) -> &[Locked] {
        &self.skills
    }

    /// A skill.
    #[must_use]
    pub fn get(&self, id: &SkillId) -> Option<&Locked> {
        let key = id.key();
        self.skills.iter().find(|skill| skill.id.key() == key)
    }

    /// Adds a skill, or replaces its entry.
    pub fn put(&mut self, mut skill: Locked) {
        skill.targets.sort();
        skill.targets.dedup();
        self.remove(&skill.id);
        let key = skill.id.key();
        let at = self.skills.partition_point(|other| other.id.key() < key);
        self.skills.insert(at, skill);
    }

    /// Removes the entry of a skill.
    pub fn remove(&mut self, id: &SkillId) -> Option<Locked> {
        let key = id.key();
        let at = self.skills.iter().position(|skill| skill.id.key() == key)?;
        Some(self.skills.remove(at))
    }
}

/// A text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _written = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
