//! All places that are in use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::overlay::{Changes, Keeper, Overlay, OverlaySnapshot};
use super::{AgentFolders, Limits};
use registry::Registry;
use search::SearchIndex;

/// Places that are scanned at once.
const SCAN_CONCURRENCY: usize = 2;
/// How long a call waits for the first scan of its place.
const FIRST_SCAN_TIMEOUT: Duration = Duration::from_secs(5);

/// Bounds of all places.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bounds of each.
    pub limits: Limits,
    /// Places at once. A call from one more sees the skills of the store alone.
    pub places: usize,
    /// How long an unused place is kept.
    pub linger: Duration,
    /// Folders are watched. Else they are polled, as they are where the system has no watches left.
    pub is_watched: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            places: 64,
            linger: Duration::from_mins(5),
            is_watched: true,
        }
    }
}

/// The places that are in use. Cheap to clone; dropping the last clone stops all of them.
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
    places: Mutex<BTreeMap<AgentFolders, Arc<Overlay>>>,
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
                permits: Arc::new(Semaphore::new(SCAN_CONCURRENCY)),
                stop,
            }),
        }
    }

    /// The skills as a place sees them. The first call waits for a scan of its folders. None: there
    /// are too many places, and this one sees the store alone.
    pub async fn seen(&self, place: &AgentFolders) -> Option<Arc<OverlaySnapshot>> {
        let overlay = self.shared.overlay(place)?;
        overlay.ready(FIRST_SCAN_TIMEOUT).await;
        Some(overlay.snapshot())
    }

    /// The changes of the skills of a place, from now on.
    pub async fn changes(&self, place: &AgentFolders) -> Option<Changes> {
        let overlay = self.shared.overlay(place)?;
        // Before the first scan, whose skills are changes as well.
        let changes = overlay.changes();
        overlay.ready(FIRST_SCAN_TIMEOUT).await;
        Some(changes)
    }

    /// Stops all of them, for good.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shared.places().len()
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, BTreeMap<AgentFolders, Arc<Overlay>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn overlay(self: &Arc<Self>, place: &AgentFolders) -> Option<Arc<Overlay>> {
        let mut places = self.places();
        if let Some(overlay) = places.get(place) {
            overlay.touch();
            return Some(Arc::clone(overlay));
        }
        if places.len() >= self.options.places {
            // Only an unused one makes room: taking a place from a caller would have the two of
            // them scan it anew in turn.
            let unused = places
                .iter()
                .filter_map(|(place, overlay)| Some((overlay.unused_since()?, place.clone())));
            let Some((_, oldest)) = unused.min() else {
                let folder = place.project.display();
                tracing::warn!(%folder, "skills of its folders are not served: as many places as may be are in use");
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
            is_watched: self.options.is_watched,
        };
        // Weak: the task must not keep alive what ends it when the last clone is dropped.
        let (shared, kept) = (Arc::downgrade(self), Arc::clone(&overlay));
        tokio::spawn(async move {
            let leaves = |overlay: &Arc<Overlay>| {
                let shared = shared.upgrade();
                shared.is_none_or(|shared| shared.leaves(overlay))
            };
            keeper.keep(leaves).await;
            // However it ended, the next caller starts a new one.
            if let Some(shared) = shared.upgrade() {
                remove(&mut shared.places(), &kept);
            }
            kept.end();
        });
        Some(overlay)
    }

    /// Gives a place up if it has not been used for the time that it is kept.
    fn leaves(&self, overlay: &Arc<Overlay>) -> bool {
        // Under the lock from here: a caller that comes now finds the place, or makes another one.
        let mut places = self.places();
        let is_unused = overlay
            .unused_since()
            .is_some_and(|since| since.elapsed() >= self.options.linger);
        if is_unused {
            remove(&mut places, overlay);
        }
        is_unused
    }
}

/// Removes an overlay, unless its place has another one by now.
fn remove(places: &mut BTreeMap<AgentFolders, Arc<Overlay>>, overlay: &Arc<Overlay>) {
    let known = places.get(&overlay.place);
    if known.is_some_and(|known| Arc::ptr_eq(known, overlay)) {
        places.remove(&overlay.place);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::OnceLock;

    use embed::{EmbedError, Embedder};
    use tempfile::TempDir;
    use tokio::time::advance;

    use super::*;

    /// As long as a loaded machine may need.
    const LIMIT: Duration = Duration::from_secs(20);

    fn overlays(options: Options, embedder: Option<Arc<dyn Embedder>>) -> (TempDir, Overlays) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store::Store::in_memory(&store::Options::default());
        let registry = Registry::open(store, Arc::new(model::SystemClock)).expect("a registry");
        let index = folder.path().join("index");
        let search = SearchIndex::new(registry.clone(), index, embedder);
        (folder, Overlays::new(registry, search, options))
    }

    fn place(folder: &Path, project: &str) -> AgentFolders {
        AgentFolders {
            project: folder.join(project),
            user: Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_away_for_longest_makes_room_for_another() {
        let options = Options {
            places: 2,
            is_watched: false,
            ..Options::default()
        };
        let (folder, overlays) = overlays(options, None);
        let comes = async |project: &str| {
            let overlay = overlays.shared.overlay(&place(folder.path(), project));
            advance(Duration::from_secs(1)).await;
            overlay.expect("room")
        };
        let (first, second) = (comes("first").await, comes("second").await);
        let again = comes("first").await;
        assert!(Arc::ptr_eq(&first, &again));
        let third = comes("third").await;
        let stopped = [&first, &second, &third].map(|overlay| overlay.stop.is_cancelled());
        assert_eq!(stopped, [false, true, false]);
        let places = overlays.shared.places();
        let there =
            ["first", "second", "third"].map(|it| places.contains_key(&place(folder.path(), it)));
        assert_eq!(there, [true, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_for_its_time_after_somebody_called_from_it() {
        let options = Options {
            is_watched: false,
            ..Options::default()
        };
        let (folder, overlays) = overlays(options, None);
        let overlay = overlays.shared.overlay(&place(folder.path(), "project"));
        let overlay = overlay.expect("room");
        advance(options.linger * 9 / 10).await;
        assert!(!overlays.shared.leaves(&overlay));
        assert_eq!(overlays.len(), 1);
        advance(options.linger / 10).await;
        assert!(overlays.shared.leaves(&overlay));
        assert_eq!(overlays.len(), 0);
    }

    /// Notes how many permits are left while a look has it embed.
    #[tokio::test(start_paused = true)]
    async fn a_place_that_ends_leaves_the_one_that_took_its_turn() {
        let options = Options {
            is_watched: false,
            ..Options::default()
        };
        let (folder, overlays) = overlays(options, None);
        let place = place(folder.path(), "project");
        let comes = || overlays.shared.overlay(&place).expect("room");
        let old = comes();
        remove(&mut overlays.shared.places(), &old);
        let new = comes();
        assert!(!Arc::ptr_eq(&old, &new));
        remove(&mut overlays.shared.places(), &old);
        assert!(Arc::ptr_eq(&comes(), &new));
    }

    #[derive(Debug, Default)]
    struct Permits {
        of: OnceLock<Arc<Semaphore>>,
        left: Mutex<Vec<usize>>,
    }

    impl Embedder for Permits {
        fn name(&self) -> &'static str {
            "permits"
        }

        fn digest(&self) -> model::Digest {
            model::Digest::of(b"permits")
        }

        fn dimensions(&self) -> usize {
            8
        }

        fn batch(&self) -> usize {
            8
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
            let permits = self.of.get().expect("permits");
            let mut left = self.left.lock().expect("a list");
            left.push(permits.available_permits());
            Ok(texts.iter().map(|_| vec![0.3; 8]).collect())
        }
    }

    #[tokio::test]
    async fn whoever_looks_holds_a_permit_for_as_long() {
        let permits = Arc::new(Permits::default());
        let (folder, overlays) = overlays(Options::default(), Some(permits.clone()));
        let of = Arc::clone(&overlays.shared.permits);
        permits.of.set(of).expect("once");
        let skill = folder.path().join("project/.claude/skills/a");
        fs::create_dir_all(&skill).expect("a folder");
        let text = "---\nname: a\ndescription: x\n---\nBody.\n";
        fs::write(skill.join("SKILL.md"), text).expect("a file");
        let project = place(folder.path(), "project");
        let mut changes = overlays.changes(&project).await.expect("a place");
        // Told once it is indexed.
        let told = tokio::time::timeout(LIMIT, changes.next()).await;
        assert_eq!(told.expect("told").len(), 1);
        let left = permits.left.lock().expect("a list").clone();
        assert!(
            !left.is_empty() && left.iter().all(|left| *left == SCAN_CONCURRENCY - 1),
            "{left:?}"
        );
    }
}
