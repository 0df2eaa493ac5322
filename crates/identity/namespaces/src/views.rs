//! The registry and the index of callers that do not see all skills.

use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::Namespaces;
use crate::namespace_index::Levels;
use crate::visibility_key::{FixedVisibility, LiveVisibility, VisibilityKey};
use access::Access;
use registry::{Registry, Sees, View};
use search::SearchIndex;

/// Views in the cache: those of the last callers. One that was evicted is made
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
    /// The visibility that it was made by.
    levels: Arc<Levels>,
    seen: VisibleSkills,
}

/// Gives each caller the skills that it sees. Cheap to clone.
#[derive(Clone)]
pub struct Views(Arc<Inner>);

struct Inner {
    namespaces: Namespaces,
    all: VisibleSkills,
    cache: Cache<VisibilityKey, Arc<CachedView>>,
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
            cache: Cache::new(VIEW_CACHE_CAPACITY),
        }))
    }

    /// The namespaces that decide.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.0.namespaces
    }

    /// Returns what a caller sees; `None`: all skills. Callers that see the same wait together
    /// while it is made.
    pub async fn seen(&self, access: &Access) -> Option<VisibleSkills> {
        let known = self.0.namespaces.known();
        let visibility = VisibilityKey::of(&access.caller, &known)?;
        let is_fresh = |cached: &Arc<CachedView>| Arc::ptr_eq(&cached.levels, &known.levels);
        if let Some(cached) = self.0.cache.get(&visibility) {
            if is_fresh(&cached) {
                return Some(cached.seen.clone());
            }
            self.0.cache.remove(&visibility);
        }
        let cached = match self.0.cache.get_value_or_guard_async(&visibility).await {
            Ok(cached) if is_fresh(&cached) => cached,
            // Another call made it by an older or a newer snapshot. Each call keeps to its own, so
            // that its answers agree with each other.
            Ok(_) => self.make(&visibility, &known.levels).await,
            Err(guard) => {
                let cached = self.make(&visibility, &known.levels).await;
                // An error: the entry was removed meanwhile, and the next caller makes it again.
                let _inserted = guard.insert(Arc::clone(&cached));
                cached
            }
        };
        Some(cached.seen.clone())
    }

    async fn make(&self, visibility: &VisibilityKey, levels: &Arc<Levels>) -> Arc<CachedView> {
        let snapshot = FixedVisibility {
            visibility: visibility.clone(),
            levels: Arc::clone(levels),
        };
        let view = Arc::new(View::new(Arc::new(snapshot)));
        let registry = self.0.all.registry.with_view(view);
        let seen = VisibleSkills {
            search: self.0.all.search.with_view(&registry),
            registry,
        };
        // The first catalog of a view visits every skill: too long for a thread of the runtime.
        let first = seen.registry.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || first.catalog()).await {
            tracing::error!(%error, "the catalog of a view was not made beforehand");
        }
        Arc::new(CachedView {
            levels: Arc::clone(levels),
            seen,
        })
    }

    /// Tells which skills a caller sees, for streams that go on longer than a call.
    #[must_use]
    pub fn sees(&self, access: &Access) -> Arc<dyn Sees> {
        Arc::new(LiveVisibility {
            caller: Arc::clone(&access.caller),
            namespaces: self.0.namespaces.clone(),
        })
    }
}
