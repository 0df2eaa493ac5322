//! Facets, counts and requirements of skills that were published before these existed, or by
//! older rules.
//!
//! Facets are a function of a version's record, so they can be inferred again without its files.
//! That is done once for each skill, when the heads are read, and then written, so that the next
//! start finds it done. The skill did not change: there is no event, and a reader before the
//! write sees the same.

use super::head::{required_by, warnings};
use super::{Error, HEADS, Head, Registry, VERSIONS};
use model::{SkillKey, Version, VersionNumber};
use store::{Batch, CommitError, Store, prefix};

/// Heads that are written at once.
const WRITE_CONCURRENCY: usize = 128;

/// Infers the facets of the active version of a head again, if that was done by other rules. A
/// version that cannot be read is skipped; its next reader gets the error.
pub(super) fn renew(
    head: &mut Head,
    version: impl FnOnce(&(SkillKey, VersionNumber)) -> Option<Version>,
) -> bool {
    let key = head.id.key();
    let Some((summary, active)) = head.summary.as_mut().zip(head.active) else {
        return false;
    };
    let is_counted = summary.problems.is_some() && summary.requires.is_some();
    if summary.inferred.is_current() && is_counted {
        return false;
    }
    let Some(version) = version(&(key, active)) else {
        return false;
    };
    summary.inferred = facets::infer(&version.skill, &version.files);
    summary.problems = Some(warnings(&version));
    summary.requires = Some(required_by(&version));
    true
}

/// The same of a head of a store; and counts its bytes, where that was never done.
pub(super) fn renew_from(store: &Store, head: &mut Head) -> bool {
    let is_renewed = renew(head, |key| Some(store.get(&VERSIONS, key).ok()??.value));
    let counts = head.bytes.is_none() && !head.deleted;
    if counts {
        let versions = store.scan(&VERSIONS, &prefix(&head.id.key()));
        let sizes = versions.flatten().map(|(_, version)| version.value.size());
        head.bytes = Some(sizes.sum());
    }
    is_renewed || counts
}

impl Registry {
    /// Writes the facets that were inferred again when the heads were read; returns the number
    /// of heads. Heads that were written meanwhile stay as they are. Where the store takes no
    /// writes, the next start does it.
    pub async fn keep_facets(&self) -> usize {
        let renewed = std::mem::take(&mut *self.inner.renewed.lock().await);
        let mut written = 0;
        for keys in renewed.chunks(WRITE_CONCURRENCY) {
            match self.keep_facets_of(keys).await {
                Ok(count) => written += count,
                Err(error) => {
                    tracing::warn!(%error, "inferred facets are in memory alone");
                    break;
                }
            }
        }
        written
    }

    async fn keep_facets_of(&self, keys: &[SkillKey]) -> Result<usize, Error> {
        let mut batch = Batch::new();
        let mut count = 0;
        for key in keys {
            let Some(stored) = self.inner.store.get(&HEADS, key)? else {
                continue;
            };
            let mut head = stored.value;
            if renew_from(&self.inner.store, &mut head) {
                batch.expect(&HEADS, key, Some(stored.revision).into());
                batch.put(&HEADS, key, &head);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(0);
        }
        match self.inner.store.commit(batch).await {
            Ok(_) => Ok(count),
            // One of them was written meanwhile, with its facets; the others have theirs in
            // memory, and are left to the next start.
            Err(CommitError::Conflict { .. }) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
