//! Installs skills of a server on the caller's machine: chooses, fetches, checks and writes
//! them, and records them in `skills.lock`.
//!
//! Rules:
//!
//! * No server is trusted: an archive must hold the files of the version by their digest, and
//!   the scan is made here.
//! * All skills of a call are fetched and checked before the first is written.
//! * A version that failed the scan is never installed. One with a warning is, once this user
//!   accepted it, which their own machine remembers. A lock accepts nothing.
//! * What a lock names is in the project. What leads out of it the user names.
//! * A lock is installed to the byte. Only `install NAME` and `update` choose versions.
//!
//! Not here: requests to a server ([`Source`] is implemented by the command line), writing of
//! folders (`install`), printing.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod command_report;
mod error;
mod fetch;
mod installed;
mod plan;
mod targets;
#[cfg(test)]
mod tests;

pub use command_report::{
    CommandReport, Line, Tone, of_audit, of_changes, of_installed, of_newer, of_removed,
};
pub use error::Error;
pub use fetch::{InstalledSkill, Outcome};
pub use installed::{Concern, Finding, Newer, audit, installed, newer, uninstall, worst};
pub use plan::{Changes, install, update};
pub use targets::{TargetFolder, Targets, Wish};

use std::time::Instant;

use model::{Clock, Code, Digest, Failure, SkillId, VersionNumber};

/// Skills that are fetched at once.
const FETCH_CONCURRENCY: usize = 4;

/// A version that a server chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The skill.
    pub id: SkillId,
    /// Number of the version.
    pub number: VersionNumber,
    /// Digest over all its files.
    pub digest: Digest,
    /// Somebody asked for it; else another one requires it.
    pub requested: bool,
}

/// A version as the server has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedVersion {
    /// Digest over all its files.
    pub digest: Digest,
    /// Why it was withdrawn; none: it was not.
    pub yanked: Option<String>,
}

/// The archive of a version.
#[derive(Debug, Clone)]
pub struct Archive {
    /// Its semantic version.
    pub semantic: semver::Version,
    /// A `.tar.gz`, whatever is in it.
    pub bytes: Vec<u8>,
}

/// A server of skills.
#[expect(
    async_fn_in_trait,
    reason = "a command line waits for one thing at a time"
)]
pub trait Source {
    /// The error of a request.
    type Error: From<Failure>;

    /// Its address, or `local`.
    fn name(&self) -> String;

    /// The error has this code.
    fn has_code(error: &Self::Error, code: Code) -> bool;

    /// Resolves the versions of these skills, and of all that they require.
    async fn resolve(&self, skills: Vec<String>) -> Result<Vec<Pin>, Self::Error>;

    /// Refuses skills that conflict; requirements are not added.
    async fn permit_set(&self, skills: Vec<String>) -> Result<(), Self::Error>;

    /// A version as an archive.
    async fn archive(&self, id: &SkillId, number: VersionNumber) -> Result<Archive, Self::Error>;

    /// A version as the server has it.
    async fn known(
        &self,
        id: &SkillId,
        number: VersionNumber,
    ) -> Result<PublishedVersion, Self::Error>;

    /// The version that a skill's name leads to.
    async fn latest(&self, id: &SkillId) -> Result<semver::Version, Self::Error>;
}

/// The context of a call.
pub struct Provision<'a, S> {
    /// The server.
    pub source: &'a S,
    /// The folders that skills are installed to.
    pub targets: &'a Targets,
    /// The clock for the time of an install.
    pub clock: &'a dyn Clock,
    /// Until when it waits for another process that installs to the same folder.
    pub until: Instant,
    /// Called after each skill that was fetched.
    pub fetched: &'a dyn Fn(),
}

impl<S: Source> Provision<'_, S> {
    fn give_up(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// A failure as an error of the source.
fn fail<S: Source>(error: impl Into<Failure>) -> S::Error {
    S::Error::from(error.into())
}
