//! Withdrawals: why, when and by whom a version was withdrawn.
//!
//! Each has a record of its own, so that withdrawing one version costs the same however
//! many were withdrawn before. Which versions are withdrawn is in memory, with the head.

use std::collections::HashMap;

use imbl::OrdSet;
use serde::de::IgnoredAny;

use super::{Error, Head, Registry, number_of, version_key};
use model::{SkillKey, VersionNumber, Yank};
use store::{Batch, Store, StoreError, Table, TableId, prefix};

// Beside the head, which every write of the skill writes anew.
pub(super) const YANKS: Table<(SkillKey, VersionNumber), Yank> = Table::new(TableId::Yanks);
/// The same by their keys.
const NUMBERS: Table<(SkillKey, VersionNumber), IgnoredAny> = Table::new(TableId::Yanks);

/// The versions that were withdrawn, by skill.
pub(super) fn all(store: &Store) -> Result<HashMap<SkillKey, OrdSet<VersionNumber>>, StoreError> {
    let mut found: HashMap<_, OrdSet<_>> = HashMap::new();
    for entry in store.scan(&NUMBERS, b"") {
        if let Some((skill, number)) = version_key(&entry?.0) {
            found.entry(skill).or_default().insert(number);
        }
    }
    Ok(found)
}

/// Moves the withdrawals that a head holds to records of their own.
pub(super) fn move_out(batch: &mut Batch, head: &mut Head) {
    let key = head.id.key();
    for (number, yank) in std::mem::take(&mut head.inline) {
        batch.put(&YANKS, &(key.clone(), number), &yank);
    }
}

/// Removes the withdrawals of a skill.
pub(super) fn forget(store: &Store, batch: &mut Batch, key: &SkillKey) -> Result<(), StoreError> {
    for entry in store.scan(&NUMBERS, &prefix(key)) {
        if let Some(number) = number_of(&entry?.0) {
            batch.delete(&YANKS, &(key.clone(), number));
        }
    }
    Ok(())
}

impl Registry {
    /// Why and when a version was withdrawn; none where it was not.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn yank_of(&self, head: &Head, number: VersionNumber) -> Result<Option<Yank>, Error> {
        if head.is_withdrawn(number) {
            return self.stored_yank(head, number);
        }
        Ok(None)
    }

    /// The same of a stored head, by the records of its withdrawals.
    pub(super) fn stored_yank(
        &self,
        head: &Head,
        number: VersionNumber,
    ) -> Result<Option<Yank>, Error> {
        if let Some(yank) = head.inline.get(&number) {
            return Ok(Some(yank.clone()));
        }
        let stored = self.inner.store.get(&YANKS, &(head.id.key(), number))?;
        Ok(stored.map(|stored| stored.value))
    }

    /// The highest version of a stored head that is neither withdrawn nor held.
    pub(super) fn stored_available(&self, head: &mut Head) -> Result<Option<VersionNumber>, Error> {
        while let Some(number) = head.highest_available() {
            let is_there = match self.any_version(head, number) {
                Ok(_) => true,
                // A directory that was damaged may have lost it.
                Err(Error::VersionNotFound { .. }) => false,
                Err(error) => return Err(error),
            };
            let is_held = self.stored_hold(&head.id.key(), number)?.is_some();
            if is_there && !is_held && self.stored_yank(head, number)?.is_none() {
                return Ok(Some(number));
            }
            head.withdrawn.insert(number);
        }
        Ok(None)
    }
}
