//! The records of all namespaces, in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use imbl::OrdMap;

use crate::{Namespace, NamespacesConfig, Visibility};
use model::{Principal, SkillId};
use store::{Change, Fold};

/// An immutable snapshot of the records and the settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamespaceIndex {
    /// The settings of now, which the next fold reads.
    pub(crate) settings: Arc<ArcSwap<NamespacesConfig>>,
    pub(crate) config: NamespacesConfig,
    /// By name in lower case.
    pub(crate) by_key: OrdMap<String, Arc<Namespace>>,
    /// Their visibility. The same `Arc` until that changes, whatever else does.
    pub(crate) levels: Arc<Levels>,
    /// The keys of namespaces that are not public, by owner.
    owned: HashMap<Principal, Vec<Arc<str>>>,
    /// Some namespace has owners.
    pub(crate) has_owners: bool,
}

/// The visibility of all namespaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// By name in lower case.
    stated: BTreeMap<String, Visibility>,
    /// The one of all others, by the settings.
    rest: Visibility,
}

/// The key of a namespace.
pub(crate) fn key(name: &str) -> String {
    // `GitHub/Acme` and `github/acme` are one namespace. Otherwise anybody could publish beside an
    // owner under the same name in other letters.
    name.to_ascii_lowercase()
}

impl Levels {
    /// Tells whether some skills are hidden from some callers.
    pub(crate) fn hide_any(&self) -> bool {
        let mut stated = self.stated.values();
        self.rest != Visibility::Public || stated.any(|level| *level != Visibility::Public)
    }

    /// The visibility of a namespace.
    pub(crate) fn of(&self, name: &str) -> Visibility {
        self.stated.get(&key(name)).copied().unwrap_or(self.rest)
    }

    /// The visibility of a skill.
    pub(crate) fn of_skill(&self, skill: &SkillId) -> Visibility {
        if skill.is_builtin() {
            return Visibility::Public;
        }
        self.of(skill.namespace())
    }
}

impl Fold for NamespaceIndex {
    type Record = Namespace;

    fn fold(&self, changes: Vec<Change<Namespace>>) -> Self {
        let mut by_key = self.by_key.clone();
        for Change { key, stored } in changes {
            match stored {
                Some(stored) => by_key.insert(key, Arc::new(stored.value)),
                None => by_key.remove(&key),
            };
        }
        self.with(**self.settings.load(), by_key)
    }
}

impl NamespaceIndex {
    /// Returns the snapshot with other settings and other records.
    fn with(&self, config: NamespacesConfig, by_key: OrdMap<String, Arc<Namespace>>) -> Self {
        let stated = by_key.iter().filter_map(|(key, namespace)| {
            let visibility = namespace.visibility?;
            Some((key.clone(), visibility))
        });
        let levels = Levels {
            stated: stated.collect(),
            rest: config.visibility,
        };
        // Cached views compare this `Arc` by its address. Kept where nothing changed, a new owner
        // of one namespace does not have every view made again.
        let levels = if levels == *self.levels {
            Arc::clone(&self.levels)
        } else {
            Arc::new(levels)
        };
        let mut owned: HashMap<Principal, Vec<Arc<str>>> = HashMap::new();
        for (key, namespace) in &by_key {
            // A caller's list of namespaces is part of the key of its view: with those that
            // everybody sees, each owner would have a view of its own for nothing.
            if levels.of(key) == Visibility::Public {
                continue;
            }
            let key: Arc<str> = Arc::from(key.as_str());
            for owner in &namespace.owners {
                let keys = owned.entry(owner.clone()).or_default();
                keys.push(Arc::clone(&key));
            }
        }
        Self {
            settings: Arc::clone(&self.settings),
            has_owners: by_key.values().any(|one| !one.owners.is_empty()),
            config,
            levels,
            owned,
            by_key,
        }
    }

    /// The keys of namespaces of an owner that not everybody sees.
    pub(crate) fn owned_by(&self, owner: &Principal) -> &[Arc<str>] {
        self.owned.get(owner).map_or(&[], Vec::as_slice)
    }
}
