//! Reads while the database cannot be read, until it is opened again.

use super::*;
use crate::faults::{Unreadable, begun, patient};
use crate::view::MAX_WAITING_TASKS;

pub(super) async fn patient_store(directory: &TempDir) -> Store {
    let store = Store::open(&directory.path().join("data"), &patient()).expect("a store");
    for key in ["a", "b", "c"] {
        store.commit(with_event(key)).await.expect("a commit");
    }
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_read_that_waits_for_the_database_holds_up_no_other_task() {
    let directory = TempDir::new().expect("a folder");
    let store = patient_store(&directory).await;
    let unreadable = Unreadable::new(&store);
    let reading = tokio::spawn({
        let store = store.clone();
        async move { note(&store, "a") }
    });
    begun().await;
    unreadable.open_again();
    assert_eq!(reading.await.expect("a reader").as_deref(), Some("x"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn so_many_tasks_wait_for_the_database_and_more_are_refused_at_once() {
    let directory = TempDir::new().expect("a folder");
    let store = patient_store(&directory).await;
    let unreadable = Unreadable::new(&store);
    let readers: Vec<_> = (0..2 * MAX_WAITING_TASKS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.get(&NOTES, "a") })
        })
        .collect();
    // Nobody is refused before all places are taken.
    while readers.iter().filter(|reader| reader.is_finished()).count() < MAX_WAITING_TASKS {
        tokio::task::yield_now().await;
    }
    unreadable.open_again();
    let mut answered = 0;
    for reader in readers {
        match reader.await.expect("a reader") {
            Ok(_) => answered += 1,
            Err(error) => assert!(matches!(error, StoreError::Reopening), "{error}"),
        }
    }
    assert_eq!(answered, MAX_WAITING_TASKS);
}

/// Between the failed read and its next one the database may be there already.
#[test]
fn a_read_that_failed_is_done_again_where_the_database_is_open_by_then() {
    let directory = TempDir::new().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(patient_store(&directory));
    let unreadable = std::cell::Cell::new(Some(Unreadable::new(&store)));
    let failing = disk(&store).view.read(|tree| {
        let found = tree.get(b"\x01log_id");
        if let Some(unreadable) = unreadable.take() {
            assert!(found.is_err());
            unreadable.open_again();
        }
        found
    });
    assert!(failing.expect("a database").is_some());
}

/// A database that readers do not let go of stays the one that has failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_database_that_could_not_be_closed_is_still_waited_for() {
    let directory = TempDir::new().expect("a folder");
    let store = patient_store(&directory).await;
    let unreadable = Unreadable::new(&store);
    let view = &disk(&store).view;
    let held = view.engine().expect("a database");
    assert!(!view.close(), "a reader has it");
    drop(held);
    let reading = tokio::spawn({
        let store = store.clone();
        async move { note(&store, "a") }
    });
    begun().await;
    unreadable.open_again();
    assert_eq!(reading.await.expect("a reader").as_deref(), Some("x"));
}
