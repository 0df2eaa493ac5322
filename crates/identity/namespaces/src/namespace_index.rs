//! What is said of all namespaces, in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use imbl::OrdMap;

use crate::{Namespace, NamespacesConfig, Visibility};
use model::{Principal, SkillId};

/// What is said of namespaces at a time. It does not change any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamespaceIndex {
    pub(crate) config: NamespacesConfig,
    /// By name in lower case.
    pub(crate) by_key: OrdMap<String, Arc<Namespace>>,
    /// Who sees them. The same one for as long as that does not change, whatever else does.
    pub(crate) levels: Arc<Levels>,
    /// Keys of what is not public, by owner.
    owned: HashMap<Principal, Vec<Arc<str>>>,
    /// Some namespaces have owners.
    pub(crate) has_owners: bool,
}

/// Who sees the skills of namespaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// By name in lower case.
    said: BTreeMap<String, Visibility>,
    /// Of all others.
    rest: Visibility,
}

/// A namespace as a key.
pub(crate) fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

impl Levels {
    /// Some skills are not seen by everybody.
    pub(crate) fn hide_any(&self) -> bool {
        let mut said = self.said.values();
        self.rest != Visibility::Public || said.any(|level| *level != Visibility::Public)
    }

    /// Who sees the skills of a namespace.
    pub(crate) fn of(&self, name: &str) -> Visibility {
        self.said.get(&key(name)).copied().unwrap_or(self.rest)
    }

    /// Who sees a skill.
    pub(crate) fn of_skill(&self, skill: &SkillId) -> Visibility {
        if skill.is_builtin() {
            return Visibility::Public;
        }
        self.of(skill.namespace())
    }
}

impl NamespaceIndex {
    /// The same with other settings, and with other things said.
    pub(crate) fn with(
        &self,
        config: NamespacesConfig,
        by_key: OrdMap<String, Arc<Namespace>>,
    ) -> Self {
        let said = by_key.iter().filter_map(|(key, namespace)| {
            let visibility = namespace.visibility?;
            Some((key.clone(), visibility))
        });
        let levels = Levels {
            said: said.collect(),
            rest: config.visibility,
        };
        let levels = if levels == *self.levels {
            Arc::clone(&self.levels)
        } else {
            Arc::new(levels)
        };
        let mut owned: HashMap<Principal, Vec<Arc<str>>> = HashMap::new();
        for (key, namespace) in &by_key {
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
            has_owners: by_key.values().any(|said| !said.owners.is_empty()),
            config,
            levels,
            owned,
            by_key,
        }
    }

    /// What is said of a namespace.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.by_key.get(&key(name))
    }

    /// The keys of namespaces of an owner that not everybody sees.
    pub(crate) fn owned_by(&self, owner: &Principal) -> &[Arc<str>] {
        self.owned.get(owner).map_or(&[], Vec::as_slice)
    }
}
