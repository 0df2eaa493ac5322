//! Namespaces that belong to their first publisher.

use std::fmt;

use jiff::Timestamp;

use super::{Caller, Error, NameError, Registry};
use model::{Principal, SkillId};
use store::{Batch, StoreError};

/// The effect of a publish on the namespace of its skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// None: the namespace is the caller's, or stays without an owner.
    None,
    /// The namespace becomes the caller's.
    Added,
    /// The namespace belongs to another caller.
    Others,
}

/// Gives namespaces to those who publish first in them.
pub trait Claims: Send + Sync + fmt::Debug {
    /// Adds the claim of a skill's namespace by the caller to a batch, where policy wants that.
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

    /// Returns whether the short names of a skill belong to the owners of its namespace, and the
    /// caller is none of them.
    fn keeps_names(&self, holder: &SkillId, by: &Principal) -> bool;
}

impl Registry {
    /// Checks that the slug of a new skill is not the name of a skill of other owners.
    pub(super) fn permit_slug(&self, id: &SkillId, caller: &Caller) -> Result<(), Error> {
        let Some(claims) = &self.inner.policy.claims else {
            return Ok(());
        };
        // In the view of the caller: a refusal would show it a skill that it does not see.
        let catalog = self.catalog();
        let name = id.slug().to_lowercase();
        let holder = catalog.holder(&name).map(|head| (&head.id, &head.claims));
        match holder {
            Some((holder, held))
                if held.contains_key(name.as_str())
                    && holder.key() != id.key()
                    && claims.keeps_names(holder, &caller.principal) =>
            {
                let holder = holder.clone();
                Err(NameError::OfOthers { name, holder }.into())
            }
            _ => Ok(()),
        }
    }

    /// Claims the namespace of a skill with a batch. `was_added`: an earlier attempt had a
    /// claim, and lost to another write.
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
        // Only the first publish in a namespace claims it.
        if !*was_added && catalog.after(&prefix, None).next().is_some() {
            return Ok(());
        }
        let now = self.inner.clock.now();
        match claims.claim(batch, id, &caller.principal, now)? {
            // The caller was permitted while the namespace had no owner: it must be checked
            // again.
            Claim::Others if *was_added => return Err(Error::Contention),
            Claim::Added => *was_added = true,
            Claim::None | Claim::Others => {}
        }
        Ok(())
    }
}
