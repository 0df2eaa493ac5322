//! What callers get who do not see all skills.

use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::Namespaces;
use crate::namespace_index::Levels;
use crate::visibility_key::{Now, Then, VisibilityKey};
use access::Access;
use registry::{Registry, Sees, View};
use search::SearchIndex;

/// Views that are kept: those of the callers who were there last. One that is gone is made
/// again, in a time that grows with the skills.
const VIEW_CACHE_CAPACITY: usize = 256;

/// The skills that a caller sees.
#[derive(Debug, Clone)]
pub struct VisibleSkills {
    /// The registry with these alone.
    pub registry: Registry,
    /// The index of these alone.
    pub search: SearchIndex,
}

struct CachedView {
    /// By who saw which namespaces then.
    levels: Arc<Levels>,
    seen: VisibleSkills,
}

/// Gives each caller what it sees. Cheap to clone.
#[derive(Clone)]
pub struct Views(Arc<Inner>);

struct Inner {
    namespaces: Namespaces,
    all: VisibleSkills,
    kept: Cache<VisibilityKey, Arc<CachedView>>,
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
            all: VisibleSkills { registry, search },
            kept: Cache::new(VIEW_CACHE_CAPACITY),
        }))
    }

    /// The namespaces by which it is decided.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.0.namespaces
    }

    /// What a caller sees; none: all skills. The first of those who see the same waits while it
    /// is made, and the others with it.
    pub async fn seen(&self, access: &Access) -> Option<VisibleSkills> {
        let known = self.0.namespaces.known();
        let sight = VisibilityKey::of(&access.caller, &known)?;
        let is_fresh = |kept: &Arc<CachedView>| Arc::ptr_eq(&kept.levels, &known.levels);
        if let Some(kept) = self.0.kept.get(&sight) {
            if is_fresh(&kept) {
                return Some(kept.seen.clone());
            }
            self.0.kept.remove(&sight);
        }
        let kept = match self.0.kept.get_value_or_guard_async(&sight).await {
            Ok(kept) if is_fresh(&kept) => kept,
            // Somebody made it by what was said before, or after.
            Ok(_) => self.make(&sight, &known.levels).await,
            Err(guard) => {
                let kept = self.make(&sight, &known.levels).await;
                // Nobody may wait for it any more.
                let _inserted = guard.insert(Arc::clone(&kept));
                kept
            }
        };
        Some(kept.seen.clone())
    }

    async fn make(&self, sight: &VisibilityKey, levels: &Arc<Levels>) -> Arc<CachedView> {
        let then = Then {
            sight: sight.clone(),
            levels: Arc::clone(levels),
        };
        let view = Arc::new(View::new(Arc::new(then)));
        let registry = self.0.all.registry.with_view(view);
        let seen = VisibleSkills {
            search: self.0.all.search.with_view(&registry),
            registry,
        };
        // What takes long the first time, since it looks at every skill.
        let first = seen.registry.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || first.catalog()).await {
            tracing::error!(%error, "a caller's view was not prepared in advance");
        }
        Arc::new(CachedView {
            levels: Arc::clone(levels),
            seen,
        })
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
