//! Giving a short name to another skill, or up.

use serde::{Deserialize, Serialize};

use super::outcome::skill_event;
use super::short_names::{CLAIMS, Claim, names};
use super::{Caller, Error, NameError, Plan, Registry};
use model::{Digest, EventKind, Principal, SkillId, TrustTier};
use store::Batch;

/// A short name that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameMoved {
    /// The name, in lower case.
    pub name: String,
    /// The skill that held it.
    pub from: SkillId,
    /// The skill that holds it now; none: nobody.
    pub to: Option<SkillId>,
}

impl Registry {
    /// Gives a short name that a skill holds to another skill; none: up, so that it leads to the
    /// next skill of the name.
    ///
    /// # Errors
    /// `from` does not hold the name, or comes with the server; `to` has no such name, has no
    /// active version, or is not seen by all who see `from`.
    pub async fn give_name(
        &self,
        name: &str,
        from: &SkillId,
        to: Option<&SkillId>,
        caller: &Caller,
    ) -> Result<NameMoved, Error> {
        let name = name.to_lowercase();
        let digest = Digest::of(name.as_bytes());
        // The holder's: of two gifts of one name the second finds that it has moved.
        let _queue = self.lock(&from.key()).await;
        self.write(caller, || {
            let catalog = self.catalog();
            let holder = catalog.holder(&name).cloned();
            let holder = holder.ok_or_else(|| catalog.not_found(&name))?;
            if holder.id.key() != from.key() {
                return Err(NameError::NotHeld {
                    name: name.clone(),
                    id: from.clone(),
                    holder: holder.id.clone(),
                }
                .into());
            }
            self.inner
                .policy
                .names
                .permit(&holder.id, &caller.principal)?;
            let target = match to {
                Some(to) => self.head(to)?,
                None => holder.clone(),
            };
            let key = target.id.key();
            if to.is_some() {
                self.check_gift(&name, &holder.id, &target)?;
            }
            let stored = self.stored_head(&key)?;
            let stored = stored.ok_or_else(|| catalog.not_found(target.id.as_str()))?;
            let mut batch = Batch::new();
            let at = (key, digest);
            // The head as it is: so the batch fails where the skill was changed meanwhile, and a
            // skill of before names had holders gets its other claims.
            self.put_head(&mut batch, Some(stored.revision), stored.value)?;
            match to {
                Some(_) => {
                    let tier = if caller.principal == Principal::local() {
                        TrustTier::Official
                    } else {
                        catalog.place(&holder, &name).tier
                    };
                    let claim = Claim {
                        name: name.clone(),
                        given: Some(tier),
                        before: None,
                    };
                    batch.put(&CLAIMS, &at, &claim);
                }
                None => batch.delete(&CLAIMS, &at),
            }
            let moved = NameMoved {
                name: name.clone(),
                from: holder.id.clone(),
                to: to.map(|_| target.id.clone()),
            };
            let now = self.inner.clock.now();
            let event = skill_event(EventKind::Named, &target.id, now, caller);
            Ok(Plan::Write(batch, event, moved))
        })
        .await
    }

    /// Claims the short names of the skills of a namespace anew where skills elsewhere share them:
    /// more callers are about to see these skills, and no name that those callers know moves for
    /// it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn claim_again(&self, namespace: &str, caller: &Caller) -> Result<(), Error> {
        let audience = self.inner.policy.audience.as_ref();
        let also_sees = |one: &SkillId, other: &SkillId| {
            audience.is_none_or(|audience| audience.also_sees(one, other))
        };
        let catalog = self.inner.catalog.load_full();
        let shared = catalog.names_before_others(namespace, also_sees);
        for (id, name) in shared {
            let at = (id.key(), Digest::of(name.as_bytes()));
            let claim = Claim {
                name,
                given: None,
                before: None,
            };
            self.write(caller, || {
                let stored = self.stored_head(&at.0)?;
                let stored = stored.ok_or(Error::Contention)?;
                let mut batch = Batch::new();
                self.put_head(&mut batch, Some(stored.revision), stored.value)?;
                batch.put(&CLAIMS, &at, &claim);
                let now = self.inner.clock.now();
                let event = skill_event(EventKind::Named, &id, now, caller);
                Ok(Plan::Write(batch, event, ()))
            })
            .await?;
        }
        Ok(())
    }

    /// Checks that a skill can be given a name.
    fn check_gift(&self, name: &str, from: &SkillId, target: &super::Head) -> Result<(), Error> {
        let audience = self.inner.policy.audience.as_ref();
        let is_seen = audience.is_none_or(|audience| audience.also_sees(from, &target.id));
        let has_name = names(target).iter().any(|known| **known == *name);
        let why = if target.id.key() == from.key() {
            "holds this name already"
        } else if target.active.is_none() {
            "has no active version"
        } else if !has_name {
            "has another slug and another name"
        } else if !is_seen {
            "is not seen by all who see the holder"
        } else {
            return Ok(());
        };
        Err(Error::Parameter {
            field: "skill_id",
            message: format!("{} cannot be given the name '{name}': it {why}", target.id),
        })
    }
}
