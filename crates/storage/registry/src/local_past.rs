//! What skills of folders have been, for whoever comes next under their ids.
//!
//! A skill may be gone for a moment, or be no skill while somebody types, or come back in the
//! folder of another agent. Its numbers go on all the same, since whoever holds one holds it
//! for one version; and what it newly does is told by what it did, or it would be enough to
//! break a skill for a moment to get anything past a review.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LocalSkill;
use model::{SkillId, SkillKey, VersionNumber};

/// Skills that are remembered. More than are ever shown of one place at once.
const MAX: usize = 2_000;

/// The last version of each skill that was read of a place, without its files.
#[derive(Debug, Default)]
pub struct LocalPast {
    last: BTreeMap<SkillKey, Arc<LocalSkill>>,
    /// The highest number of those that were forgotten: no other begins below it.
    forgotten: Option<VersionNumber>,
}

impl LocalPast {
    /// The last version of a skill.
    pub(super) fn get(&self, id: &SkillId) -> Option<&Arc<LocalSkill>> {
        self.last.get(&id.key())
    }

    /// The number of a skill that is not known.
    pub(super) fn first(&self) -> Option<VersionNumber> {
        match self.forgotten {
            None => Some(VersionNumber::FIRST),
            Some(number) => number.next(),
        }
    }

    /// There is a new version. Where there are too many the oldest is forgotten.
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
