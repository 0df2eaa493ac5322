//! Which skills of a place are shown: of one name the first, and as many as may be.
//!
//! Contents are held of these alone, and of those that were shown before for as long as they
//! are. Of what was read and is not shown [`Facts`] are kept, which tell when it would be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Limits;
use model::{Digest, SkillKey};
use registry::{LocalSkill, LocalSkills};

/// What is chosen by.
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
    /// It was left out. Nothing is held of it but this; it is read again where it would fit.
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

/// What was chosen until now, in the order of the folders.
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

    /// Whether one more may be shown.
    ///
    /// # Errors
    /// Why it may not; none: it is the same as one that is shown, of which nobody is told.
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
