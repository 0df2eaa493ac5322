//! What the log keeps, and what readers at its edge are told.

use super::unreadable::patient_store;
use super::*;
use crate::faults::{Unreadable, begun};

fn keeping(directory: &TempDir, keep_events: u64) -> Store {
    let options = Options {
        keep_events,
        ..options()
    };
    Store::open(&directory.path().join("data"), &options).expect("a store")
}

fn position(store: &Store) -> LogPosition {
    *store.position().borrow()
}

fn kept(store: &Store, after: u64) -> Option<Vec<u64>> {
    let events = store.events_after(after, 100).expect("events")?;
    Some(events.iter().map(|(sequence, _)| *sequence).collect())
}

#[tokio::test]
async fn the_log_forgets_old_events_and_says_from_where_it_is_whole() {
    let directory = TempDir::new().expect("a folder");
    let store = keeping(&directory, 5);
    for n in 0..20 {
        let committed = store.commit(with_event(&n.to_string())).await;
        committed.expect("a commit");
    }
    let whole = LogPosition {
        start: 15,
        end: 20,
        events: 5,
    };
    assert_eq!(position(&store), whole);
    assert_eq!(kept(&store, 14), None);
    assert_eq!(kept(&store, 15), Some(vec![16, 17, 18, 19, 20]));
    drop(store);
    let store = keeping(&directory, 5);
    assert_eq!(position(&store), whole);
}

#[tokio::test]
async fn only_events_take_room_in_the_log() {
    let directory = TempDir::new().expect("a folder");
    let mut store = keeping(&directory, 3);
    for n in 0..4 {
        let event = with_event(&n.to_string());
        store.commit(event).await.expect("a commit");
        for quiet in 0..10 {
            let commit = put(&format!("quiet-{quiet}"), "x");
            store.commit(commit).await.expect("a commit");
        }
        if n == 1 {
            drop(store);
            store = keeping(&directory, 3);
        }
    }
    assert_eq!(kept(&store, 0), None);
    assert_eq!(kept(&store, 1), Some(vec![12, 23, 34]));
    let expected = LogPosition {
        start: 1,
        end: 34,
        events: 3,
    };
    assert_eq!(position(&store), expected);
}

#[tokio::test]
async fn a_log_whose_events_were_never_counted_is_counted_when_it_is_opened() {
    let directory = TempDir::new().expect("a folder");
    let store = keeping(&directory, 100);
    for n in 0..7 {
        let committed = store.commit(with_event(&n.to_string())).await;
        committed.expect("a commit");
    }
    let counted = position(&store);
    let engine = disk(&store).view.engine().expect("a database");
    engine.tree.remove(b"\x01log_position").expect("gone");
    drop(engine);
    store.commit(put("a", "1")).await.expect("a commit");
    drop(store);
    let store = keeping(&directory, 4);
    assert_eq!(position(&store), counted);
    let committed = store.commit(with_event("last")).await;
    committed.expect("a commit");
    // The eighth commit had no event.
    assert_eq!(kept(&store, 4), Some(vec![5, 6, 7, 9]));
}

/// Every commit has an event here, so that a gap in the sequences is a lost event.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_at_the_edge_of_the_log_misses_nothing_without_being_told() {
    const WRITERS: usize = 24;
    const READERS: usize = 4;
    const EVENTS: usize = 60;
    let directory = TempDir::new().expect("a folder");
    let store = keeping(&directory, 6);
    let last = (WRITERS * EVENTS) as u64;
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let store = store.clone();
            tokio::task::spawn_blocking(move || {
                let (mut at, mut gaps, mut told) = (0, Vec::new(), 0);
                while at < last {
                    let Some(events) = store.events_after(at, 3).expect("events") else {
                        told += 1;
                        at = store.position().borrow().start;
                        continue;
                    };
                    for (sequence, _) in events {
                        if sequence != at + 1 {
                            gaps.push((at, sequence));
                        }
                        at = sequence;
                    }
                }
                (gaps, told)
            })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for n in 0..EVENTS {
                    let committed = store.commit(with_event(&format!("{writer}-{n}"))).await;
                    committed.expect("a commit");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer");
    }
    let mut told = 0;
    for reader in readers {
        let (gaps, reader_told) = reader.await.expect("a reader");
        assert_eq!(gaps, []);
        told += reader_told;
    }
    assert!(told > 0, "no reader came to the edge");
}

#[tokio::test]
async fn a_restored_directory_has_the_same_records_and_a_log_of_its_own() {
    let directory = TempDir::new().expect("a folder");
    let store = filled(&directory).await;
    let (file, copy) = (
        directory.path().join("backup"),
        directory.path().join("copy"),
    );
    store.backup(&file, false, |_| Ok(())).expect("a backup");
    restore(&file, &copy, &options(), |_| {}).expect("a restore");
    let restored = Store::open(&copy, &options()).expect("a store");
    assert_ne!(restored.log_id(), store.log_id());
    assert_eq!(position(&restored), position(&store));
    let but_the_id = |store: &Store| {
        let mut records = everything(store);
        records.retain(|(key, _)| key != b"\x01log_id");
        records
    };
    assert_eq!(but_the_id(&restored), but_the_id(&store));
    // It opens again: what notes its last write names the new log too.
    let id = restored.log_id().to_owned();
    restored.commit(put("a", "1")).await.expect("a commit");
    drop(restored);
    let again = Store::open(&copy, &options()).expect("a store");
    assert_eq!(again.log_id(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_are_read_once_the_database_is_open_again() {
    let directory = TempDir::new().expect("a folder");
    let store = patient_store(&directory).await;
    let unreadable = Unreadable::new(&store);
    let reading = tokio::spawn({
        let store = store.clone();
        async move { store.events_after(1, 10) }
    });
    begun().await;
    unreadable.open_again();
    let events = reading.await.expect("a reader").expect("events");
    assert_eq!(events, Some(vec![(2, event("b")), (3, event("c"))]));
}
