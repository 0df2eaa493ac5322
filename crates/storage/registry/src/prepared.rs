//! A bundle that is ready to be published.

use std::sync::Arc;

use semver::BuildMetadata;

use super::scans::Scan;
use model::{Digest, FileEntry, Problem, Skill, SkillId, VersionNumber, stated_version};
use store::{Content, Pinned};

/// A bundle that was read and packed.
#[derive(Debug)]
pub struct Prepared {
    pub(super) id: SkillId,
    pub(super) skill: Skill,
    pub(super) digest: Digest,
    pub(super) files: Vec<FileEntry>,
    pub(super) problems: Vec<Problem>,
    /// Their scan; none where a version had these bytes already.
    pub(super) scan: Option<Box<Scan>>,
    pub(super) contents: Vec<Content>,
    /// Protects the contents that are not among them, since they are stored already.
    pub(super) pinned: Arc<Pinned>,
    /// The active version that they were merged with; where another one is active by the time
    /// they are published, they must be merged again.
    pub(super) merged_with: Option<VersionNumber>,
    /// The reason to hold them in any case.
    pub(super) objection: Option<String>,
    /// The build metadata that distinguish them from other bytes of the same semantic version.
    pub(super) build: Option<BuildMetadata>,
}

impl Prepared {
    /// Returns the skill that they would be a version of.
    #[must_use]
    pub fn id(&self) -> &SkillId {
        &self.id
    }

    /// Returns the semantic version that their front matter states.
    #[must_use]
    pub fn stated_version(&self) -> Option<semver::Version> {
        let stated = self.skill.version.as_deref()?;
        stated_version(stated).ok().flatten()
    }

    /// Returns whether a version had these bytes when they were prepared.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.scan.is_none()
    }

    /// Has them held for this reason (a clause), unless the scanner finds a worse one.
    pub fn hold_because(&mut self, reason: impl Into<String>) {
        self.objection = Some(reason.into());
    }

    /// Appends this after a `+` to their semantic version, where another version has it already,
    /// instead of refusing them: repositories change skills without raising the version.
    pub fn distinguish_by(&mut self, build: BuildMetadata) {
        self.build = Some(build);
    }

    /// Returns the digest over all files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the problems in them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
