//! What a caller sees: the skills of the store, without those that it may not see; and in front
//! of them those that lie around its agent, where it asks for these.

use std::collections::VecDeque;
use std::sync::Arc;

use http::Extensions as Call;

use ::registry::{Sees, WatchFilter};
use local::{AgentFolders, Changes, Overlays};
use model::Event;
use namespaces::{Views, VisibleSkills};

/// Where the agent of a caller on this machine looks for skills, which it says itself; the
/// server's local socket puts it into each request. It may have them read, since it could read
/// them, too.
#[derive(Debug, Clone)]
pub struct CallerPlace(pub Arc<AgentFolders>);

/// Finds out what each caller sees. The default shows every skill of the store to everybody,
/// and no others.
#[derive(Debug, Clone, Default)]
pub struct Viewer {
    /// What lies around callers.
    local: Option<Overlays>,
    /// What callers do not see.
    views: Option<Views>,
}

/// What a caller sees.
pub(super) enum Sight {
    /// All of the store, and nothing else.
    Everything,
    /// A part of the store.
    Part(VisibleSkills),
    /// All of the store, and in front of it what lies around the caller.
    Around(VisibleSkills),
}

impl Sight {
    /// What to read in the place of the store; none: the store.
    pub(super) fn seen(self) -> Option<VisibleSkills> {
        match self {
            Self::Everything => None,
            Self::Part(seen) | Self::Around(seen) => Some(seen),
        }
    }
}

impl Viewer {
    /// Shows callers what they may see, and what lies around them.
    #[must_use]
    pub fn new(local: Overlays, views: Views) -> Self {
        Self {
            local: Some(local),
            views: Some(views),
        }
    }

    fn place<'a>(&'a self, call: &'a Call) -> Option<(&'a Overlays, &'a AgentFolders)> {
        let CallerPlace(place) = call.get()?;
        Some((self.local.as_ref()?, place))
    }

    /// What a caller sees.
    pub(super) async fn sight(&self, call: &Call) -> Sight {
        // Whoever has a place came over the socket of the data directory, and sees all.
        if let Some((overlays, place)) = self.place(call) {
            return match overlays.seen(place).await {
                Some(seen) => Sight::Around(VisibleSkills {
                    registry: seen.registry.clone(),
                    search: seen.search.clone(),
                }),
                None => Sight::Everything,
            };
        }
        let Some(views) = &self.views else {
            return Sight::Everything;
        };
        let seen = views.seen(&contract::access_of(call)).await;
        seen.map_or(Sight::Everything, Sight::Part)
    }

    /// Whether a caller sees a skill, for as long as its call goes on.
    #[must_use]
    pub fn sees(&self, call: &Call) -> Option<Arc<dyn Sees>> {
        let views = self.views.as_ref()?;
        Some(views.sees(&contract::access_of(call)))
    }

    /// What happens to the skills around a caller.
    pub(super) async fn changes(&self, call: &Call) -> Option<Changes> {
        let (overlays, place) = self.place(call)?;
        overlays.changes(place).await
    }
}

/// Events of skills in folders, for a watcher.
pub(super) struct LocalEvents {
    changes: Option<Changes>,
    filter: WatchFilter,
    waiting: VecDeque<Event>,
}

impl LocalEvents {
    /// Those that a filter wants; none where there are no changes.
    pub(super) fn new(changes: Option<Changes>, filter: WatchFilter) -> Self {
        Self {
            changes,
            filter,
            waiting: VecDeque::new(),
        }
    }

    /// The next one. Cancelling loses nothing.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let change = self.changes.as_mut()?.next().await;
            let wanted = change.iter().filter(|event| self.filter.wants(event));
            self.waiting.extend(wanted.cloned());
        }
    }
}
