//! Withdrawals of versions: reason, time and caller.
//!
//! Each has a record of its own, so that withdrawing one version costs the same however
//! many were withdrawn before. Which versions are withdrawn is in memory, with the head.

use super::{Error, Head, Registry};
use model::{SkillKey, VersionNumber, Yank};
use store::{Batch, Table, TableId};

// Not in the head, which every write of the skill rewrites.
pub(super) const YANKS: Table<(SkillKey, VersionNumber), Yank> = Table::new(TableId::Yanks);

/// Moves the withdrawals that a head holds to records of their own.
pub(super) fn move_out(batch: &mut Batch, head: &mut Head) {
    let key = head.id.key();
    for (number, yank) in std::mem::take(&mut head.inline) {
        batch.put(&YANKS, &(key.clone(), number), &yank);
    }
}

impl Registry {
    /// Returns the withdrawal of a version; none where it was not withdrawn.
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

    /// Returns the highest version of a stored head that is neither withdrawn nor held.
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
