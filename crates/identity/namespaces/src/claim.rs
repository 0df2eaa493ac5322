//! The first publish in a namespace, which makes its caller the owner.

use std::sync::Arc;

use jiff::Timestamp;

use crate::namespace_index::key;
use crate::namespaces::{MAX, NAMESPACES};
use crate::{FirstPublish, Namespace, Namespaces};
use model::{Principal, SkillId};
use registry::{Audience, Claim, Claims};
use store::{Batch, StoreError};

impl Claims for Namespaces {
    fn claim(
        &self,
        batch: &mut Batch,
        skill: &SkillId,
        by: &Principal,
        now: Timestamp,
    ) -> Result<Claim, StoreError> {
        let known = self.known();
        // Anonymous callers, sources and the server itself own nothing: nobody could sign in as
        // them.
        let can_own = by.owner().is_some() && !by.is_source() && *by != Principal::system();
        if known.config.first_publish != FirstPublish::Claims || !can_own {
            return Ok(Claim::None);
        }
        let key = key(skill.namespace());
        // From the store: the record in memory may be older than the one that the batch expects.
        let stored = self.stored(&key)?;
        let revision = stored.as_ref().map(|stored| stored.revision);
        let before = stored.map(|stored| stored.value);
        match &before {
            Some(before) if before.is_of(by) => return Ok(Claim::None),
            // Somebody was faster, after this publish was permitted.
            Some(before) if !before.owners.is_empty() => return Ok(Claim::Others),
            // At the limit the publish goes on without an owner: a full table is no fault of its
            // caller.
            None if known.by_key.len() >= MAX => return Ok(Claim::None),
            _ => {}
        }
        let after = Namespace {
            // An administrator may have set who sees it before anybody owned it.
            visibility: before.as_ref().and_then(|before| before.visibility),
            name: before.map_or_else(|| skill.namespace().to_owned(), |before| before.name),
            owners: vec![by.clone()],
            updated_at: now,
            updated_by: by.clone(),
        };
        // Of two first publishes at the same time the second one's commit fails here, instead of
        // taking the namespace from the first.
        batch.expect(&NAMESPACES, &key, revision.into());
        batch.put(&NAMESPACES, &key, &after);
        Ok(Claim::Added)
    }

    fn keeps_names(&self, holder: &SkillId, by: &Principal) -> bool {
        let known = self.known();
        // A source publishes what its operator wants from there, and the operator is bound by no
        // name.
        let is_bound = !by.is_source() && *by != Principal::system() && *by != Principal::local();
        let others = |record: &Arc<Namespace>| !record.owners.is_empty() && !record.is_of(by);
        known.config.first_publish == FirstPublish::Claims
            && is_bound
            && known
                .by_key
                .get(&key(holder.namespace()))
                .is_some_and(others)
    }
}

impl Audience for Namespaces {
    fn also_sees(&self, one: &SkillId, other: &SkillId) -> bool {
        use crate::Visibility::{Internal, Private, Public};
        let levels = &self.known().levels;
        match (levels.of_skill(other), levels.of_skill(one)) {
            (Public, _) | (Internal, Internal | Private) => true,
            (Internal, Public) => false,
            // Two private namespaces have different readers, so only the same one is safe to name.
            (Private, _) => key(one.namespace()) == key(other.namespace()),
        }
    }
}

impl Namespaces {
    /// Returns these namespaces as the registry asks about readers.
    #[must_use]
    pub fn as_audience(&self) -> Arc<dyn Audience> {
        Arc::new(self.clone())
    }

    /// Returns these namespaces as the registry claims them with a first publish.
    #[must_use]
    pub fn as_claims(&self) -> Arc<dyn Claims> {
        Arc::new(self.clone())
    }
}
