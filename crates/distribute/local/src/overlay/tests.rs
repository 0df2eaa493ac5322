//! How long is waited for a place, for what happens in it, and after a fault.

use std::path::PathBuf;

use tokio::time::{advance, sleep, timeout};

use super::*;

/// Longer than anything here takes, on a clock that stands still.
const LONG: Duration = Duration::from_secs(600);

/// A place that nobody looks at.
fn overlay() -> Arc<Overlay> {
    let store = store::Store::in_memory(&store::Options::default());
    let registry = Registry::open(store, Arc::new(model::SystemClock)).expect("a registry");
    let search = SearchIndex::new(registry.clone(), PathBuf::from("nowhere"), None);
    let place = AgentFolders {
        project: PathBuf::from("/nowhere"),
        user: Vec::new(),
    };
    let stop = CancellationToken::new();
    Arc::new(Overlay::new(place, registry, search, stop))
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
