//! What callers get who do not see all skills.

use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::Namespaces;
use crate::known::Known;
use crate::sight::{Now, Sight, Then};
use access::Access;
use registry::{Registry, Sees, View};
use search::SearchIndex;

/// Views that are kept: those of the callers who were there last. One that is gone is made
/// again, in a time that grows with the skills.
const KEPT: usize = 256;

/// The skills that a caller sees.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The registry with these alone.
    pub registry: Registry,
    /// The index of these alone.
    pub search: SearchIndex,
}

struct Kept {
    /// By what was said of namespaces then.
    known: Arc<Known>,
    seen: Seen,
}

/// Gives each caller what it sees. Cheap to clone.
#[derive(Clone)]
pub struct Views(Arc<Inner>);

struct Inner {
    namespaces: Namespaces,
    all: Seen,
    kept: Cache<Sight, Arc<Kept>>,
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views").finish_non_exhaustive()
    }
}

impl Views {
    /// Views of a registry and its index.
    #[must_use]
    pub fn new(namespaces: Namespaces, registry: Registry, search: SearchIndex) -> Self {
        Self(Arc::new(Inner {
            namespaces,
            all: Seen { registry, search },
            kept: Cache::new(KEPT),
        }))
    }

    /// The namespaces by which it is decided.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.0.namespaces
    }

    /// What a caller sees; none: all skills.
    #[must_use]
    pub fn seen(&self, access: &Access) -> Option<Seen> {
        let known = self.0.namespaces.known();
        let sight = Sight::of(&access.caller, &known)?;
        if let Some(kept) = self.0.kept.get(&sight)
            && Arc::ptr_eq(&kept.known, &known)
        {
            return Some(kept.seen.clone());
        }
        let then = Then {
            sight: sight.clone(),
            known: Arc::clone(&known),
        };
        let view = Arc::new(View::new(Arc::new(then)));
        let registry = self.0.all.registry.with_view(view);
        let seen = Seen {
            search: self.0.all.search.with_view(&registry),
            registry,
        };
        let kept = Kept {
            known,
            seen: seen.clone(),
        };
        self.0.kept.insert(sight, Arc::new(kept));
        Some(seen)
    }

    /// Whether a caller sees a skill, for what goes on longer than a call.
    #[must_use]
    pub fn sees(&self, access: &Access) -> Arc<dyn Sees> {
        Arc::new(Now {
            caller: Arc::clone(&access.caller),
            namespaces: self.0.namespaces.clone(),
        })
    }
}
