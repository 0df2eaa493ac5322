//! The last versions of skills of folders, for the next version under the same id.
//!
//! A skill may be gone for a moment, or be no skill while somebody types, or come back in the
//! folder of another agent. Its numbers go on all the same, since a client that holds one means
//! one version; and it is compared with its last version all the same, or breaking a skill for a
//! moment would get anything past a review.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LocalSkill;
use model::{SkillId, SkillKey, VersionNumber};

/// Maximum number of skills that are remembered: more than one place ever shows at once.
const MAX: usize = 2_000;

/// The last version of each skill that was read, without its files.
#[derive(Debug, Default)]
pub struct LocalPast {
    last: BTreeMap<SkillKey, Arc<LocalSkill>>,
    /// The highest number among the forgotten skills: every new skill begins above it.
    forgotten: Option<VersionNumber>,
}

impl LocalPast {
    /// Returns the last version of a skill.
    pub(super) fn get(&self, id: &SkillId) -> Option<&Arc<LocalSkill>> {
        self.last.get(&id.key())
    }

    /// Returns the first number of an unknown skill.
    pub(super) fn first(&self) -> Option<VersionNumber> {
        match self.forgotten {
            None => Some(VersionNumber::FIRST),
            Some(number) => number.next(),
        }
    }

    /// Remembers a new version. Where there are too many, the oldest is forgotten.
    pub(super) fn learn(&mut self, skill: &LocalSkill) {
        let key = skill.id().key();
        self.last
            .insert(key.clone(), Arc::new(skill.with_contents(Vec::new())));
        while self.last.len() > MAX {
            let others = self.last.iter().filter(|(other, _)| **other != key);
            let oldest = others.min_by_key(|(_, skill)| skill.version().created_at);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            let gone = self.last.remove(&oldest);
            let number = gone.map(|skill| skill.version().number);
            self.forgotten = self.forgotten.max(number);
        }
    }
}
