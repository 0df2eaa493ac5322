//! Reading what is held or blocked, for those who decide on it.
//!
//! Nothing else hands any of it out, and a version that is neither held nor of a blocked skill is
//! refused here: this is no second way to read skills, and counts as no use of one.
//!
//! Not here: who may (the contract); approving and rejecting (`holds`).

use super::{Archive, ArchiveFormat, Described, Error, Registry, VersionDiff};
use model::{SkillId, VersionSelector};

impl Registry {
    /// Returns a version that is held, or that a blocked skill has.
    ///
    /// # Errors
    /// There is no such version, or it is neither.
    pub fn in_review(&self, id: &SkillId, selector: &VersionSelector) -> Result<Described, Error> {
        let head = self.head(id)?;
        let number = self.number(&head, selector)?;
        if head.blocked.is_none() && !head.is_held(number) {
            return Err(Error::NotHeld {
                id: head.id.clone(),
                version: number,
            });
        }
        let version = self.any_version(&head, number)?;
        self.described(head, version)
    }

    /// Compares it with another version, held or not; by default with the active one, else with
    /// the one before it.
    ///
    /// # Errors
    /// As of [`Registry::in_review`]; there is nothing to compare it with.
    pub async fn diff_in_review(
        &self,
        id: &SkillId,
        from: Option<VersionSelector>,
        to: &VersionSelector,
    ) -> Result<VersionDiff, Error> {
        let to = self.in_review(id, to)?;
        let active = to.head.active.filter(|active| *active != to.version.number);
        let from = match from.or(active.map(VersionSelector::Number)) {
            Some(from) => {
                let number = self.number(&to.head, &from)?;
                let version = self.any_version(&to.head, number)?;
                self.described(to.head.clone(), version)?
            }
            None => self.before(&to, true)?,
        };
        self.compare(from, to).await
    }

    /// Returns it as an archive.
    ///
    /// # Errors
    /// As of [`Registry::in_review`], or a content of it is damaged.
    pub async fn export_in_review(
        &self,
        id: &SkillId,
        selector: &VersionSelector,
        format: ArchiveFormat,
    ) -> Result<Archive, Error> {
        self.pack(self.in_review(id, selector)?, format).await
    }
}
