//! Selects the skills of a place that are shown: of one name the first, up to the limits.
//!
//! Contents are held in memory of these alone. Of a skill that was read and is not shown only
//! [`Facts`] are held, by which it is known when it would fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Limits;
use model::{Digest, SkillKey};
use registry::{LocalSkill, LocalSkills};

/// What the selection depends on.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    key: SkillKey,
    digest: Digest,
    bytes: u64,
}

/// A skill that was read.
#[derive(Debug)]
pub(super) enum Read {
    /// It is shown, and held with all its contents.
    Shown(Arc<LocalSkill>),
    /// It was left out. Only this is held of it; it is read again when it would fit.
    LeftOut(Facts),
}

impl Read {
    pub(super) fn facts(&self) -> Facts {
        match self {
            Self::Shown(skill) => Facts {
                key: skill.id().key(),
                digest: skill.digest(),
                bytes: skill.bytes(),
            },
            Self::LeftOut(facts) => facts.clone(),
        }
    }
}

/// The skills that were selected so far, in the order of the folders.
#[derive(Debug)]
pub(super) struct Selection {
    limits: Limits,
    taken: BTreeMap<SkillKey, (PathBuf, Digest)>,
    skills: Vec<Arc<LocalSkill>>,
    bytes: u64,
}

impl Selection {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            taken: BTreeMap::new(),
            skills: Vec::new(),
            bytes: 0,
        }
    }

    /// Checks whether one more may be shown.
    ///
    /// # Errors
    /// The reason; none: it is a copy of one that is shown, which is no problem to report.
    pub(super) fn fits(&self, facts: &Facts) -> Result<(), Option<String>> {
        if let Some((first, digest)) = self.taken.get(&facts.key) {
            let first = first.display();
            let is_other = *digest != facts.digest;
            return Err(is_other.then(|| format!("`{first}` has the same name and goes first")));
        }
        let Limits { skills, bytes, .. } = self.limits;
        if self.skills.len() >= skills {
            return Err(Some(format!("there are more than {skills} skills")));
        }
        if self.bytes.saturating_add(facts.bytes) > bytes {
            let mib = bytes >> 20;
            return Err(Some(format!("with it the skills have more than {mib} MiB")));
        }
        Ok(())
    }

    /// Shows one that fits.
    pub(super) fn take(&mut self, folder: &Path, facts: Facts, skill: Arc<LocalSkill>) {
        self.bytes += facts.bytes;
        let taken = (folder.to_owned(), facts.digest);
        self.taken.insert(facts.key, taken);
        self.skills.push(skill);
    }

    pub(super) fn into_skills(self) -> LocalSkills {
        LocalSkills::new(self.skills)
    }
}
