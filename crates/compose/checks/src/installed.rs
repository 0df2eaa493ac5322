//! What is installed, as far as checks need to know.

use std::fmt::Debug;

use jiff::Timestamp;

use model::{Digest, Failure, SkillId, VersionNumber};

/// A skill that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledSkill {
    /// The skill.
    pub id: SkillId,
    /// What it is called.
    pub name: String,
    /// The number of its version.
    pub number: VersionNumber,
    /// The digest over all its files.
    pub digest: Digest,
    /// Characters of its instructions.
    pub chars: u64,
    /// Since when.
    pub time: Timestamp,
    /// What on disk differs from what was installed. None: nothing, or it was not compared.
    pub damage: Option<String>,
}

/// The list of what is installed.
pub trait Installed: Debug + Send + Sync {
    /// The skills that are installed, by id; with `health` their files are compared with what
    /// was installed. May block.
    ///
    /// # Errors
    /// It cannot be read.
    fn installed(&self, health: bool) -> Result<Vec<InstalledSkill>, Failure>;
}
