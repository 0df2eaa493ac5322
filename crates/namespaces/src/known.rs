//! What is said of all namespaces, in memory.

use std::collections::HashMap;
use std::sync::Arc;

use imbl::OrdMap;

use crate::{Namespace, NamespacesConfig, Visibility};
use model::{Principal, SkillId};

/// What is said of namespaces at a time. It does not change any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) config: NamespacesConfig,
    /// By name in lower case.
    pub(crate) by_key: OrdMap<String, Arc<Namespace>>,
    /// Keys of what is not public, by owner.
    owned: HashMap<Principal, Vec<Arc<str>>>,
    /// Some skills are not seen by everybody.
    pub(crate) hides_any: bool,
    /// Some namespaces have owners.
    pub(crate) has_owners: bool,
}

/// A namespace as a key.
pub(crate) fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

impl Known {
    pub(crate) fn new(config: NamespacesConfig, by_key: OrdMap<String, Arc<Namespace>>) -> Self {
        let mut owned: HashMap<Principal, Vec<Arc<str>>> = HashMap::new();
        let mut hides_any = config.visibility != Visibility::Public;
        let mut has_owners = false;
        for (key, namespace) in &by_key {
            has_owners |= !namespace.owners.is_empty();
            if namespace.visibility.unwrap_or(config.visibility) == Visibility::Public {
                continue;
            }
            hides_any = true;
            let key: Arc<str> = Arc::from(key.as_str());
            for owner in &namespace.owners {
                let keys = owned.entry(owner.clone()).or_default();
                keys.push(Arc::clone(&key));
            }
        }
        Self {
            config,
            by_key,
            owned,
            hides_any,
            has_owners,
        }
    }

    /// What is said of a namespace.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.by_key.get(&key(name))
    }

    /// Who sees the skills of a namespace.
    pub(crate) fn visibility(&self, name: &str) -> Visibility {
        let said = self.get(name).and_then(|namespace| namespace.visibility);
        said.unwrap_or(self.config.visibility)
    }

    /// Who sees a skill.
    pub(crate) fn visibility_of(&self, skill: &SkillId) -> Visibility {
        if skill.is_builtin() {
            return Visibility::Public;
        }
        self.visibility(skill.namespace())
    }

    /// The keys of namespaces of an owner that not everybody sees.
    pub(crate) fn owned_by(&self, owner: &Principal) -> &[Arc<str>] {
        self.owned.get(owner).map_or(&[], Vec::as_slice)
    }
}
