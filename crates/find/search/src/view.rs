//! Views of the index, for callers that see some skills only.
//!
//! Hidden skills are left out where postings are read, like deleted documents: they count in no
//! total, no facet and no idf, correct no spelling, and none of their words is known. So an
//! answer is that of an index without them.

use std::sync::{Arc, Mutex, PoisonError};

use super::SearchIndex;
use super::snapshot::Snapshot;
use registry::{Registry, View};

/// A view of an index.
#[derive(Debug)]
pub(super) struct SearchView {
    /// The registry that shows the same.
    pub(super) registry: Registry,
    view: Arc<View>,
    /// The state that was searched last, and the view of it.
    seen: Mutex<Option<(Arc<Snapshot>, Arc<Snapshot>)>>,
}

impl SearchView {
    /// The view of a state of the index.
    pub(super) fn of(&self, snapshot: &Arc<Snapshot>) -> Arc<Snapshot> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, seen)) = &*seen()
            && Arc::ptr_eq(of, snapshot)
        {
            return Arc::clone(seen);
        }
        // Not under the lock: another search that comes now does the same work and does not wait.
        let before = seen().as_ref().map(|(_, seen)| Arc::clone(seen));
        let shown = snapshot.seen_by(|id| self.view.sees(id), before.as_deref());
        let shown = Arc::new(shown);
        *seen() = Some((Arc::clone(snapshot), Arc::clone(&shown)));
        shown
    }
}

impl SearchIndex {
    /// The same index for callers that see what a registry shows.
    #[must_use]
    pub fn with_view(&self, registry: &Registry) -> Self {
        let view = registry.view().map(|view| SearchView {
            view: Arc::clone(view),
            registry: registry.clone(),
            seen: Mutex::default(),
        });
        Self {
            view: view.map(Arc::new),
            ..self.clone()
        }
    }
}
