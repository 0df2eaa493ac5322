//! Decides what a caller sees: the skills of the store without those that it may not see, and in
//! front of them those in the folders around its agent, where it asks for these.

use std::collections::VecDeque;
use std::sync::Arc;

use http::Extensions as Call;

use ::registry::{Sees, WatchFilter};
use local::{AgentFolders, Changes, Overlays};
use model::Event;
use namespaces::{Views, VisibleSkills};

/// The folders in which the agent of a caller on this machine looks for skills, as the caller
/// states them; the local socket of the server puts them into each request. They are read for the
/// caller, which could read them itself.
#[derive(Debug, Clone)]
pub struct CallerPlace(pub Arc<AgentFolders>);

/// Finds out what each caller sees. By default everybody sees the whole store, and nothing else.
#[derive(Debug, Clone, Default)]
pub struct Viewer {
    /// Skills in folders around callers.
    local: Option<Overlays>,
    /// Skills that each caller may see.
    views: Option<Views>,
}

/// The skills that a caller sees.
pub(super) enum Sight {
    /// All of the store, and nothing else.
    Everything,
    /// A part of the store.
    Part(VisibleSkills),
    /// All of the store, and in front of it the folders around the caller.
    Around(VisibleSkills),
}

impl Sight {
    /// Returns what to read instead of the store; none is the store.
    pub(super) fn seen(self) -> Option<VisibleSkills> {
        match self {
            Self::Everything => None,
            Self::Part(seen) | Self::Around(seen) => Some(seen),
        }
    }
}

impl Viewer {
    /// Creates a viewer for callers that see different skills.
    #[must_use]
    pub fn new(local: Overlays, views: Views) -> Self {
        Self {
            local: Some(local),
            views: Some(views),
        }
    }

    fn folders<'a>(&'a self, call: &'a Call) -> Option<(&'a Overlays, &'a AgentFolders)> {
        let CallerPlace(folders) = call.get()?;
        Some((self.local.as_ref()?, folders))
    }

    /// Returns the skills that a caller sees.
    pub(super) async fn sight(&self, call: &Call) -> Sight {
        // Only the local socket puts folders into a request. Its callers may open the data
        // directory itself, so they see the whole store.
        if let Some((overlays, folders)) = self.folders(call) {
            return match overlays.seen(folders).await {
                Some(seen) => Sight::Around(VisibleSkills {
                    registry: seen.registry.clone(),
                    search: seen.search.clone(),
                }),
                // Too many places are watched already: the store alone is better than an error.
                None => Sight::Everything,
            };
        }
        let Some(views) = &self.views else {
            return Sight::Everything;
        };
        let seen = views.seen(&contract::access_of(call)).await;
        seen.map_or(Sight::Everything, Sight::Part)
    }

    /// Returns the check of whether a caller sees a skill, for as long as its call goes on.
    #[must_use]
    pub fn sees(&self, call: &Call) -> Option<Arc<dyn Sees>> {
        let views = self.views.as_ref()?;
        // Not a snapshot: a stream may outlive a change of visibility.
        Some(views.sees(&contract::access_of(call)))
    }

    /// Returns the changes of skills in the folders around a caller.
    pub(super) async fn changes(&self, call: &Call) -> Option<Changes> {
        let (overlays, folders) = self.folders(call)?;
        overlays.changes(folders).await
    }
}

/// Events of skills in folders, for a watcher.
pub(super) struct LocalEvents {
    changes: Option<Changes>,
    filter: WatchFilter,
    waiting: VecDeque<Event>,
}

impl LocalEvents {
    /// Creates events of changes that a filter wants.
    pub(super) fn new(changes: Option<Changes>, filter: WatchFilter) -> Self {
        Self {
            changes,
            filter,
            waiting: VecDeque::new(),
        }
    }

    /// Waits for the next event. Cancelling loses nothing.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let change = self.changes.as_mut()?.next().await;
            // Queued before the next await, so that a cancelled `select!` keeps the rest of the
            // change.
            let wanted = change.iter().filter(|event| self.filter.wants(event));
            self.waiting.extend(wanted.cloned());
        }
    }
}
