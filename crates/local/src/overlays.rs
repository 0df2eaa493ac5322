//! All places from which somebody calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::overlay::{Changes, Keeper, Overlay, Seen};
use super::{Limits, Place};
use registry::Registry;
use search::SearchIndex;

/// Places that are looked at in one moment.
const AT_ONCE: usize = 2;
/// How long a call waits for a place that nobody called from before.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bounds of all places.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Of each.
    pub limits: Limits,
    /// Places at once. Whoever calls from one more sees the skills of the store alone.
    pub places: usize,
    /// How long a place is kept that nobody calls from.
    pub linger: Duration,
    /// The system is asked to tell what happens. Else places are looked at at intervals, as
    /// they are where it has no watches left.
    pub is_told: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            places: 64,
            linger: Duration::from_mins(5),
            is_told: true,
        }
    }
}

/// The places from which somebody calls. Cheap to clone; with the last clone all of them are
/// given up.
#[derive(Debug, Clone)]
pub struct Overlays {
    shared: Arc<Shared>,
    _last: Arc<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    registry: Registry,
    search: SearchIndex,
    options: Options,
    places: Mutex<BTreeMap<Place, Arc<Overlay>>>,
    permits: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Overlays {
    /// Places whose skills are in front of those of a registry, and of its index.
    #[must_use]
    pub fn new(registry: Registry, search: SearchIndex, options: Options) -> Self {
        let stop = CancellationToken::new();
        Self {
            _last: Arc::new(stop.clone().drop_guard()),
            shared: Arc::new(Shared {
                registry,
                search,
                options,
                places: Mutex::default(),
                permits: Arc::new(Semaphore::new(AT_ONCE)),
                stop,
            }),
        }
    }

    /// What is seen from a place. The first call waits until its folders were looked at. None:
    /// there are too many places, and nothing but the store is seen from this one.
    pub async fn seen(&self, place: &Place) -> Option<Arc<Seen>> {
        let overlay = self.shared.overlay(place)?;
        overlay.ready(PATIENCE).await;
        Some(overlay.seen())
    }

    /// The changes of what is seen from a place, from now on.
    pub async fn changes(&self, place: &Place) -> Option<Changes> {
        let overlay = self.shared.overlay(place)?;
        let changes = overlay.changes();
        overlay.ready(PATIENCE).await;
        Some(changes)
    }

    /// Gives all of them up, for good.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// How many places there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.places().len()
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, BTreeMap<Place, Arc<Overlay>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn overlay(self: &Arc<Self>, place: &Place) -> Option<Arc<Overlay>> {
        let mut places = self.places();
        if let Some(overlay) = places.get(place) {
            overlay.touch();
            return Some(Arc::clone(overlay));
        }
        if places.len() >= self.options.places {
            let unused = places
                .iter()
                .filter_map(|(place, overlay)| Some((overlay.unused_since()?, place.clone())));
            let Some((_, oldest)) = unused.min() else {
                let folder = place.project.display();
                tracing::warn!(%folder, "skills of its folders are not served: somebody is in as many places as may be");
                return None;
            };
            if let Some(oldest) = places.remove(&oldest) {
                oldest.stop.cancel();
            }
        }
        let overlay = Arc::new(Overlay::new(
            place.clone(),
            self.registry.clone(),
            self.search.clone(),
            self.stop.child_token(),
        ));
        places.insert(place.clone(), Arc::clone(&overlay));
        drop(places);
        let keeper = Keeper {
            overlay: Arc::clone(&overlay),
            registry: self.registry.clone(),
            search: self.search.clone(),
            limits: self.options.limits,
            permits: Arc::clone(&self.permits),
            is_told: self.options.is_told,
        };
        let (shared, kept) = (Arc::downgrade(self), Arc::clone(&overlay));
        tokio::spawn(async move {
            let leaves = |overlay: &Arc<Overlay>| {
                let shared = shared.upgrade();
                shared.is_none_or(|shared| shared.leaves(overlay))
            };
            keeper.keep(leaves).await;
            // Where it ended by a fault, whoever comes next begins anew.
            if let Some(shared) = shared.upgrade() {
                shared.forget(&kept);
            }
            kept.end();
        });
        Some(overlay)
    }

    /// Gives a place up, if nobody has called from it for its time.
    fn leaves(&self, overlay: &Arc<Overlay>) -> bool {
        let mut places = self.places();
        let is_unused = overlay
            .unused_since()
            .is_some_and(|since| since.elapsed() >= self.options.linger);
        if is_unused {
            Self::remove(&mut places, overlay);
        }
        is_unused
    }

    fn forget(&self, overlay: &Arc<Overlay>) {
        Self::remove(&mut self.places(), overlay);
    }

    fn remove(places: &mut BTreeMap<Place, Arc<Overlay>>, overlay: &Arc<Overlay>) {
        let known = places.get(&overlay.place);
        if known.is_some_and(|known| Arc::ptr_eq(known, overlay)) {
            places.remove(&overlay.place);
        }
    }
}
