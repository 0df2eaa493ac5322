//! The order of skills, and what moves when one is moved.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use model::{SkillId, SkillKey};

/// A skill in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityEntry {
    /// The skill.
    pub id: SkillId,
    /// It keeps its position when others move.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
}

/// A skill that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The skill.
    pub id: SkillId,
    /// Its old position, from 1.
    pub from: usize,
    /// Its new position.
    pub to: usize,
}

/// All skills, the first one first. A list and not a number for each, so that no two have the same
/// position.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Order(pub(crate) Vec<PriorityEntry>);

impl Order {
    /// The entries, the first one first.
    #[must_use]
    pub fn places(&self) -> &[PriorityEntry] {
        &self.0
    }

    /// The position of a skill, from 1.
    #[must_use]
    pub fn place(&self, key: &SkillKey) -> Option<usize> {
        let at = self.0.iter().position(|place| place.id.key() == *key)?;
        Some(at + 1)
    }

    /// The order of these skills: those that have a position keep their order, others come last in
    /// the order in which they are given.
    #[must_use]
    pub fn of(&self, skills: &[SkillId]) -> Self {
        let there: HashSet<SkillKey> = skills.iter().map(SkillId::key).collect();
        let kept = self
            .0
            .iter()
            .filter(|place| there.contains(&place.id.key()));
        let mut places: Vec<PriorityEntry> = kept.cloned().collect();
        let mut seen: HashSet<SkillKey> = places.iter().map(|place| place.id.key()).collect();
        for id in skills {
            if seen.insert(id.key()) {
                places.push(PriorityEntry {
                    id: id.clone(),
                    locked: false,
                });
            }
        }
        Self(places)
    }

    /// Moves a skill to a position; beyond the last: to the last. Others make room in their order,
    /// but for those that are locked, which stay where they are; one that is locked to this very
    /// position gets the next that is free. Returns what moved, the skill itself first; none: it
    /// is not in the order.
    pub fn put(&mut self, key: &SkillKey, place: usize, lock: bool) -> Option<Vec<Moved>> {
        let before: HashMap<SkillKey, usize> = (1..)
            .zip(&self.0)
            .map(|(at, place)| (place.id.key(), at))
            .collect();
        let from = self.place(key)? - 1;
        let at = place.clamp(1, self.0.len()) - 1;
        let mut slots: Vec<Option<PriorityEntry>> = vec![None; self.0.len()];
        let (mut free, mut evicted) = (Vec::new(), None);
        for (index, mut place) in std::mem::take(&mut self.0).into_iter().enumerate() {
            let slot = slots.get_mut(if index == from { at } else { index });
            if index == from {
                place.locked = lock;
            }
            // The skill and the locked ones get their slots; the others fill the rest below.
            match slot {
                Some(slot) if index == from => *slot = Some(place),
                _ if index == at && place.locked => evicted = Some(place),
                Some(slot) if place.locked => *slot = Some(place),
                _ => free.push(place),
            }
        }
        if let Some(evicted) = evicted {
            // Behind the position first, then in front of it, the nearest first.
            let next = (at..slots.len()).chain((0..at).rev());
            let mut next = next.filter(|index| matches!(slots.get(*index), Some(None)));
            if let Some(slot) = next.next().and_then(|index| slots.get_mut(index)) {
                *slot = Some(evicted);
            }
        }
        let mut free = free.into_iter();
        let filled = slots.into_iter().map(|slot| slot.or_else(|| free.next()));
        self.0 = filled.flatten().collect();
        let mut moved: Vec<Moved> = Vec::new();
        for (to, place) in (1..).zip(&self.0) {
            let id_key = place.id.key();
            let from = before.get(&id_key).copied().unwrap_or(to);
            let one = Moved {
                id: place.id.clone(),
                from,
                to,
            };
            if id_key == *key {
                moved.insert(0, one);
            } else if from != to {
                moved.push(one);
            }
        }
        Some(moved)
    }
}
