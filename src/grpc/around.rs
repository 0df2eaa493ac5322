//! What a caller sees: the skills of the store, and in front of them those that lie around its
//! agent, where it asks for these.

use std::collections::VecDeque;
use std::sync::Arc;

use http::Extensions as Call;

use ::lookup::Lookup;
use ::registry::WatchFilter;
use local::{Changes, Overlays, Place, Seen};
use model::Event;

/// Where the agent of a caller on this machine looks for skills, which it says itself; the
/// server's local socket puts it into each request. It may have them read, since it could read
/// them, too.
#[derive(Debug, Clone)]
pub struct CallerPlace(pub Arc<Place>);

/// The places of callers; none are looked at where a server is not told of any.
#[derive(Debug, Clone, Default)]
pub(super) struct Around(pub(super) Option<Overlays>);

impl Around {
    fn place<'a>(&'a self, call: &'a Call) -> Option<(&'a Overlays, &'a Place)> {
        let CallerPlace(place) = call.get()?;
        Some((self.0.as_ref()?, place))
    }

    /// What is seen by a caller with skills of its own.
    pub(super) async fn seen(&self, call: &Call) -> Option<Arc<Seen>> {
        let (overlays, place) = self.place(call)?;
        overlays.seen(place).await
    }

    /// What a caller looks names up in; `own` is that of everybody else.
    pub(super) async fn lookup(&self, call: &Call, own: &Lookup) -> Lookup {
        match self.seen(call).await {
            Some(seen) => Lookup::new(seen.registry.clone()),
            None => own.clone(),
        }
    }

    /// What happens to these.
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
