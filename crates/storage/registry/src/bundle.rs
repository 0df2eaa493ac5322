//! The files of a skill, read.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Error;
use model::{Digest, FileEntry, FilePath, Problem, Severity, Skill, SkillId, bundle_digest};

/// The parts of a version: the id, the SKILL.md, the digest, the files, and the problems.
type Accepted = (SkillId, Skill, Digest, Vec<FileEntry>, Vec<Problem>);

/// The files of a skill, and how to read them.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// The id of the skill; none: `local/global/` and its name.
    pub id: Option<SkillId>,
    /// Its files.
    pub files: BTreeMap<FilePath, Bytes>,
    /// Name of the folder they come from; empty: not known.
    pub folder: String,
    /// Whether to refuse what the standard does not allow.
    pub strict: bool,
}

/// A bundle that was read: the version that would be published, and all problems.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The id that it would get; none where it has no usable name.
    pub id: Option<SkillId>,
    /// The contents of its SKILL.md; none where it is refused.
    pub skill: Option<Skill>,
    /// Digest over all its files.
    pub digest: Digest,
    /// Its files, by path.
    pub files: Vec<FileEntry>,
    /// All problems, errors first.
    pub problems: Vec<Problem>,
}

impl Candidate {
    /// Returns whether it would be published.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let refuses = |problem: &Problem| problem.severity == Severity::Error;
        self.id.is_some() && self.skill.is_some() && !self.problems.iter().any(refuses)
    }

    /// Returns the parts of a version.
    pub(super) fn accepted(self) -> Result<Accepted, Error> {
        match (self.id, self.skill) {
            (Some(id), Some(skill)) => Ok((id, skill, self.digest, self.files, self.problems)),
            _ => Err(Error::Invalid {
                problems: self.problems,
            }),
        }
    }
}

impl Bundle {
    /// Reads the files. Hashes up to 16 MiB: call it where blocking is allowed.
    #[must_use]
    pub fn read(&self) -> Candidate {
        let folder = (!self.folder.is_empty()).then_some(self.folder.as_str());
        let options = skill_md::ReadOptions {
            strict: self.strict,
            folder,
            slug: self.id.as_ref().map(SkillId::slug),
        };
        let skill_md::Reading {
            skill,
            slug,
            problems,
        } = skill_md::read(&self.files, &options);
        let files: Vec<FileEntry> = self
            .files
            .iter()
            .map(|(path, content)| FileEntry {
                path: path.clone(),
                digest: Digest::of(content),
                size: content.len() as u64,
            })
            .collect();
        let digest = bundle_digest(files.iter().map(|file| (&file.path, file.digest)));
        let id = self.id.clone().or_else(|| {
            let slug = slug?;
            SkillId::new(SkillId::LOCAL, "global", &slug).ok()
        });
        Candidate {
            id,
            skill,
            digest,
            files,
            problems,
        }
    }
}
