//! How long is waited for a place, for what happens in it, and after a fault.

use std::path::PathBuf;

use tokio::time::{advance, sleep, timeout};

use super::*;

/// Longer than anything here takes, on a clock that stands still.
const LONG: Duration = Duration::from_secs(600);

/// A place that nobody looks at.
fn overlay() -> Arc<Overlay> {
    keeper(PathBuf::from("/nowhere")).overlay
}

fn keeper(project: PathBuf) -> Keeper {
    let store = store::Store::in_memory(&store::Options::default());
    let registry = Registry::open(store, Arc::new(model::SystemClock)).expect("a registry");
    let search = SearchIndex::new(registry.clone(), PathBuf::from("nowhere"), None);
    let place = AgentFolders {
        project,
        user: Vec::new(),
    };
    let stop = CancellationToken::new();
    let overlay = Overlay::new(place, registry.clone(), search.clone(), stop);
    Keeper {
        overlay: Arc::new(overlay),
        registry,
        search,
        limits: Limits::default(),
        permits: Arc::new(Semaphore::new(1)),
        is_watched: true,
    }
}

#[test]
fn after_each_fault_twice_as_long_is_waited_up_to_a_minute() {
    let millis = [1, 2, 3, 7, 8, 9, 1_000].map(|faults| backoff(faults).as_millis());
    assert_eq!(millis, [500, 1_000, 2_000, 32_000, 60_000, 60_000, 60_000]);
}

#[tokio::test(start_paused = true)]
async fn what_else_happens_is_waited_for_so_long_at_most() {
    let told = ChangeSignal::default();
    let begun = Instant::now();
    debounce(&told).await;
    assert_eq!(begun.elapsed(), DEBOUNCE_DELAY, "nothing else happens");
    let busy = async {
        loop {
            told.happened.notify_one();
            sleep(DEBOUNCE_DELAY / 2).await;
        }
    };
    let begun = Instant::now();
    let is_over = tokio::select! {
        () = debounce(&told) => true,
        () = busy => false,
        () = sleep(LONG) => false,
    };
    assert!(is_over, "it happens for ever");
    assert_eq!(begun.elapsed(), MAX_DEBOUNCE);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_nobody_looks_at_is_waited_for_so_long() {
    let overlay = overlay();
    let patience = Duration::from_secs(5);
    let waited = async || {
        let begun = Instant::now();
        let waited = timeout(LONG, overlay.ready(patience)).await;
        waited.expect("it ends");
        begun.elapsed()
    };
    assert_eq!(waited().await, patience);
    overlay.end();
    assert_eq!(waited().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_place_is_used_until_the_last_who_followed_it_leaves() {
    let overlay = overlay();
    let [one, other] = [overlay.changes(), overlay.changes()];
    advance(Duration::from_secs(7)).await;
    drop(one);
    assert_eq!(overlay.unused_since(), None);
    advance(Duration::from_secs(7)).await;
    drop(other);
    assert_eq!(overlay.unused_since(), Some(Instant::now()));
}

/// An event of the skill `local/project/SLUG`.
fn of(kind: EventKind, slug: &str) -> Change {
    let id = format!("local/project/{slug}");
    [Event {
        kind,
        skill_id: id.parse().expect("an id"),
        version: None,
        semantic_version: None,
        digest: None,
        active: None,
        held: false,
        time: Default::default(),
        actor: Principal::local(),
    }]
    .into()
}

#[tokio::test]
async fn a_follower_that_was_too_slow_hears_of_no_removal_twice() {
    let overlay = overlay();
    let mut changes = overlay.changes();
    let send = |change: Change| overlay.changes.send(change).expect("a follower");
    for kind in [EventKind::Published, EventKind::Deleted] {
        send(of(kind, "a"));
        assert_eq!(changes.next().await, of(kind, "a"));
    }
    for _ in 0..=CHANGE_QUEUE_CAPACITY {
        send(of(EventKind::Published, "b"));
    }
    // It finds out that it lags, and waits from there on: of what it knows nothing is gone.
    let later = async {
        tokio::task::yield_now().await;
        send(of(EventKind::Published, "c"));
    };
    let (next, ()) = tokio::join!(changes.next(), later);
    assert_eq!(next, of(EventKind::Published, "c"));
}

#[tokio::test]
async fn folders_that_are_watched_from_now_on_are_scanned_once_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let skills = folder.path().join(".claude/skills");
    std::fs::create_dir_all(&skills).expect("a folder");
    let keeper = keeper(folder.path().to_owned());
    let work = keeper.begin(&Arc::default(), &Arc::default());
    // What happened between the scan and the watch was seen by neither.
    let ScanEnd::Scanned(work, again) = keeper.scan(work).await else {
        panic!("no scan");
    };
    assert!(again);
    let ScanEnd::Scanned(_, again) = keeper.scan(*work).await else {
        panic!("no scan");
    };
    assert!(!again);
}
