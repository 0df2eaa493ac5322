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
        // Sources and the server itself own nothing.
        let can_own = by.owner().is_some() && !by.is_source() && *by != Principal::system();
        if known.config.first_publish != FirstPublish::Claims || !can_own {
            return Ok(Claim::None);
        }
        let key = key(skill.namespace());
        // What is in memory may be older than what the batch is compared with.
        let stored = self.stored(&key)?;
        let revision = stored.as_ref().map(|stored| stored.revision);
        let said = stored.map(|stored| stored.value);
        match &said {
            Some(said) if said.is_of(by) => return Ok(Claim::None),
            Some(said) if !said.owners.is_empty() => return Ok(Claim::Others),
            None if known.by_key.len() >= MAX => return Ok(Claim::None),
            _ => {}
        }
        let said = Namespace {
            visibility: said.as_ref().and_then(|said| said.visibility),
            name: said.map_or_else(|| skill.namespace().to_owned(), |said| said.name),
            owners: vec![by.clone()],
            updated_at: now,
            updated_by: by.clone(),
        };
        batch.expect(&NAMESPACES, &key, revision.into());
        batch.put(&NAMESPACES, &key, &said);
        Ok(Claim::Added)
    }

    fn published(&self, skill: &SkillId) {
        let (known, namespace) = (self.known(), skill.namespace());
        let is_owned = |said: &Arc<Namespace>| !said.owners.is_empty();
        if known.config.first_publish != FirstPublish::Claims
            || known.get(namespace).is_some_and(is_owned)
        {
            return;
        }
        if let Err(error) = self.read_again(namespace) {
            tracing::error!(%error, %namespace, "the settings of a namespace cannot be read");
        }
    }
}

impl Audience for Namespaces {
    fn also_sees(&self, one: &SkillId, other: &SkillId) -> bool {
        use crate::Visibility::{Internal, Private, Public};
        let levels = &self.known().levels;
        match (levels.of_skill(other), levels.of_skill(one)) {
            (Public, _) | (Internal, Internal | Private) => true,
            (Internal, Public) => false,
            // Of two private namespaces, others see the one than the other.
            (Private, _) => key(one.namespace()) == key(other.namespace()),
        }
    }
}

impl Namespaces {
    /// The same as what a registry asks.
    #[must_use]
    pub fn as_audience(&self) -> Arc<dyn Audience> {
        Arc::new(self.clone())
    }

    /// The same as what a registry has written with a first publish.
    #[must_use]
    pub fn as_claims(&self) -> Arc<dyn Claims> {
        Arc::new(self.clone())
    }
}
