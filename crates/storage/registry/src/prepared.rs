//! What is ready to be published.

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
    /// What the scanner says of them; none where a version had these bytes already.
    pub(super) scan: Option<Box<Scan>>,
    pub(super) contents: Vec<Content>,
    /// The contents that are not among them, and are stored.
    pub(super) pinned: Arc<Pinned>,
    /// The active version that they were merged with; where another one is active by the
    /// time they are published, they are not what was meant.
    pub(super) merged_with: Option<VersionNumber>,
    /// Why they are held, whatever the scanner says of them.
    pub(super) objection: Option<String>,
    /// What tells them from other bytes of the same semantic version.
    pub(super) build: Option<BuildMetadata>,
}

impl Prepared {
    /// The skill that they would be a version of.
    #[must_use]
    pub fn id(&self) -> &SkillId {
        &self.id
    }

    /// The semantic version that their front matter states.
    #[must_use]
    pub fn stated_version(&self) -> Option<semver::Version> {
        let stated = self.skill.version.as_deref()?;
        stated_version(stated).ok().flatten()
    }

    /// A version had these bytes when they were prepared.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.scan.is_none()
    }

    /// Has them published and held, for this reason (a clause), where the scanner has no
    /// worse one.
    pub fn hold_because(&mut self, reason: impl Into<String>) {
        self.objection = Some(reason.into());
    }

    /// Where another version has the semantic version that they state, theirs is the same
    /// with this behind a `+`, instead of none: repositories change skills without raising
    /// the version.
    pub fn distinguish_by(&mut self, build: BuildMetadata) {
        self.build = Some(build);
    }

    /// Digest over all its files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What was found in them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
