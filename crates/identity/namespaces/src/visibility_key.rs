//! The skills that a caller sees.

use std::sync::Arc;

use crate::namespace_index::{Levels, NamespaceIndex, key};
use crate::{Namespaces, Visibility};
use access::Caller;
use model::{SkillId, SkillPattern};
use registry::Sees;

/// What decides which skills a caller sees: callers with equal keys see the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct VisibilityKey {
    is_signed_in: bool,
    /// The skills that its rights name.
    named: Vec<SkillPattern>,
    /// The keys of the namespaces that it owns.
    owned: Vec<Arc<str>>,
}

impl VisibilityKey {
    /// The key of a caller. `None`: it sees all skills.
    pub(crate) fn of(caller: &Caller, known: &NamespaceIndex) -> Option<Self> {
        (known.levels.hide_any() && !caller.rights.see_all()).then(|| Self {
            is_signed_in: !caller.is_anonymous(),
            named: caller.rights.seen().cloned().collect(),
            owned: known.owned_by(&caller.principal).to_vec(),
        })
    }

    fn sees(&self, skill: &SkillId, levels: &Levels) -> bool {
        let is_seen = match levels.of_skill(skill) {
            Visibility::Public => true,
            Visibility::Internal => self.is_signed_in,
            Visibility::Private => false,
        };
        is_seen
            || self.named.iter().any(|pattern| pattern.covers(skill))
            || !self.owned.is_empty() && self.owns(skill.namespace())
    }

    /// Tells whether it sees skills of a namespace, or would if there were any.
    pub(crate) fn sees_into(&self, namespace: &str, levels: &Levels) -> bool {
        match levels.of(namespace) {
            Visibility::Public => true,
            Visibility::Internal if self.is_signed_in => true,
            Visibility::Internal | Visibility::Private => {
                let mut named = self.named.iter();
                self.owns(namespace) || named.any(|pattern| pattern.is_about(namespace))
            }
        }
    }

    fn owns(&self, namespace: &str) -> bool {
        let key = key(namespace);
        self.owned.iter().any(|owned| **owned == key)
    }
}

/// The skills that a caller sees by one snapshot of the namespaces.
#[derive(Debug)]
pub(crate) struct FixedVisibility {
    pub(crate) visibility: VisibilityKey,
    pub(crate) levels: Arc<Levels>,
}

impl Sees for FixedVisibility {
    fn sees(&self, id: &SkillId) -> bool {
        self.visibility.sees(id, &self.levels)
    }
}

/// The skills that a caller sees by the namespaces of the moment at which it is asked.
#[derive(Debug)]
pub(crate) struct LiveVisibility {
    pub(crate) caller: Arc<Caller>,
    pub(crate) namespaces: Namespaces,
}

impl Sees for LiveVisibility {
    fn sees(&self, id: &SkillId) -> bool {
        let known = self.namespaces.known();
        let visibility = VisibilityKey::of(&self.caller, &known);
        visibility.is_none_or(|visibility| visibility.sees(id, &known.levels))
    }
}
