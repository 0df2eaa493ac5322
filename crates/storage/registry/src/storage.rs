//! The storage limits of namespaces.
//!
//! * Skills count that were not deleted, those without an active version too; bytes are those of
//!   the files of all their versions, as they were sent: contents that the store shares between
//!   versions count in each.
//! * The limit is checked when a version is published. Concurrent publishes do not see each
//!   other, and may exceed it by their own size.
//!
//! Not here: the owners of namespaces (`namespaces`), quotas of calls (`quotas`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Catalog, Error, Head, Registry};
use model::{SkillId, Version};

/// The limit of a namespace; none: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageLimit {
    /// Skills.
    pub skills: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
}

/// The limits of all namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageLimits {
    /// The limit of each.
    pub all: StorageLimit,
    /// Exceptions, by name in lower case.
    pub some: BTreeMap<String, StorageLimit>,
}

impl StorageLimits {
    fn of(&self, namespace: &str) -> StorageLimit {
        let some = self.some.get(&namespace.to_ascii_lowercase());
        some.copied().unwrap_or(self.all)
    }
}

/// The storage that a namespace uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holding {
    /// Skills.
    pub skills: u64,
    /// Bytes of their versions.
    pub bytes: u64,
}

impl Catalog {
    /// The storage that a namespace uses.
    #[must_use]
    pub fn holding(&self, namespace: &str) -> Holding {
        let holding = self.holdings.get(&namespace.to_ascii_lowercase());
        holding.copied().unwrap_or_default()
    }

    /// Adds a skill to its namespace.
    pub(super) fn hold(&mut self, head: &Head) {
        let key = head.id.namespace().to_ascii_lowercase();
        let holding = self.holdings.entry(key).or_default();
        holding.skills += 1;
        holding.bytes += head.bytes.unwrap_or(0);
    }

    /// Removes a skill from its namespace.
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
    /// Sets the limits of namespaces, from the next publish on. Existing versions stay.
    pub fn set_storage_limits(&self, limits: StorageLimits) {
        self.inner.storage.store(Arc::new(limits));
    }

    /// Refuses a version that exceeds the limit of its namespace. `is_new`: the skill is new,
    /// too.
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
