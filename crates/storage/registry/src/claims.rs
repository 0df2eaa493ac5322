//! Namespaces that become somebody's by the first publish in them.

use std::fmt;

use jiff::Timestamp;

use super::{Caller, Error, Registry};
use model::{Principal, SkillId};
use store::{Batch, StoreError};

/// What a publish does to the namespace of its skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Nothing: it is the caller's, or stays nobody's.
    None,
    /// It becomes the caller's.
    Added,
    /// It is somebody else's.
    Others,
}

/// Gives namespaces to those who publish first in them.
pub trait Claims: Send + Sync + fmt::Debug {
    /// Adds to a batch what makes the namespace of a skill the caller's, where it is to be.
    ///
    /// # Errors
    /// The store cannot be read.
    fn claim(
        &self,
        batch: &mut Batch,
        skill: &SkillId,
        by: &Principal,
        now: Timestamp,
    ) -> Result<Claim, StoreError>;

    /// A skill was published, perhaps with a claim. It is asked on the thread that commits,
    /// before anybody sees the version.
    fn published(&self, skill: &SkillId);
}

impl Registry {
    /// Claims the namespace of a skill with a batch. `was_added`: an attempt before had a claim,
    /// which another write came before.
    pub(super) fn claim(
        &self,
        batch: &mut Batch,
        id: &SkillId,
        caller: &Caller,
        was_added: &mut bool,
    ) -> Result<(), Error> {
        let Some(claims) = &self.inner.policy.claims else {
            return Ok(());
        };
        let prefix = format!("{}/", id.namespace().to_ascii_lowercase());
        let catalog = self.inner.catalog.load();
        if !*was_added && catalog.after(&prefix, None).next().is_some() {
            return Ok(());
        }
        let now = self.inner.clock.now();
        match claims.claim(batch, id, &caller.principal, now)? {
            // Whether the caller may publish here was asked when it was nobody's.
            Claim::Others if *was_added => return Err(Error::Contention),
            Claim::Added => *was_added = true,
            Claim::None | Claim::Others => {}
        }
        Ok(())
    }
}
