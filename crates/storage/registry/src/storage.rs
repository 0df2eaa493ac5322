//! How much a namespace may hold.
//!
//! * Skills count that were not deleted, those without an active version too; bytes are those of
//!   the files of all their versions, as they were sent: what the store shares between versions
//!   counts in each.
//! * It is looked at when a version is published. Publishes that are in work at the same time do
//!   not see each other, and may exceed it by what they bring.
//!
//! Not here: whose namespaces are (`namespaces`), how many calls a caller makes (`quotas`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Catalog, Error, Head, Registry};
use model::{SkillId, Version};

/// The most that a namespace may hold; none: as much as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageLimit {
    /// Skills.
    pub skills: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
}

/// The most that namespaces may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageLimits {
    /// Each.
    pub all: StorageLimit,
    /// What some may hold instead, by name in lower case.
    pub some: BTreeMap<String, StorageLimit>,
}

impl StorageLimits {
    fn of(&self, namespace: &str) -> StorageLimit {
        let some = self.some.get(&namespace.to_ascii_lowercase());
        some.copied().unwrap_or(self.all)
    }
}

/// What a namespace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holding {
    /// Skills.
    pub skills: u64,
    /// Bytes of their versions.
    pub bytes: u64,
}

impl Catalog {
    /// What a namespace holds.
    #[must_use]
    pub fn holding(&self, namespace: &str) -> Holding {
        let holding = self.holdings.get(&namespace.to_ascii_lowercase());
        holding.copied().unwrap_or_default()
    }

    /// Takes a skill in.
    pub(super) fn hold(&mut self, head: &Head) {
        let key = head.id.namespace().to_ascii_lowercase();
        let holding = self.holdings.entry(key).or_default();
        holding.skills += 1;
        holding.bytes += head.bytes.unwrap_or(0);
    }

    /// Takes it out.
    pub(super) fn release(&mut self, head: &Head) {
        let key = head.id.namespace().to_ascii_lowercase();
        if let Some(holding) = self.holdings.get_mut(&key) {
            holding.skills -= 1;
            holding.bytes -= head.bytes.unwrap_or(0);
            if holding.skills == 0 {
                self.holdings.remove(&key);
            }
        }
    }
}

impl Registry {
    /// Has namespaces hold so much at most, from the next publish on. What there is stays.
    pub fn set_storage_limits(&self, limits: StorageLimits) {
        self.inner.storage.store(Arc::new(limits));
    }

    /// Refuses a version that its namespace has no room for. `is_new`: the skill is, too.
    pub(super) fn permit_storage(
        &self,
        id: &SkillId,
        is_new: bool,
        version: &Version,
    ) -> Result<(), Error> {
        let limit = self.inner.storage.load().of(id.namespace());
        if limit == StorageLimit::default() || id.is_builtin() {
            return Ok(());
        }
        let holding = self.inner.catalog.load().holding(id.namespace());
        let skills = holding.skills + u64::from(is_new);
        let bytes = holding.bytes + version.size();
        let full = |what, limit| Error::NamespaceFull {
            id: id.clone(),
            what,
            limit,
        };
        match limit {
            StorageLimit {
                skills: Some(most), ..
            } if is_new && skills > most => Err(full("skills", most)),
            StorageLimit {
                bytes: Some(most), ..
            } if bytes > most => Err(full("bytes", most)),
            _ => Ok(()),
        }
    }
}
