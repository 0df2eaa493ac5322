//! Compaction that does not come to its end, and what comes after it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::*;
use crate::tests::{NOTES, note, put};
use crate::{CommitError, FileSync};

#[test]
fn where_more_is_written_than_can_be_brought_over_all_stays_as_it_is() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    let store = runtime.block_on(wasteful(&directory));
    let rounds = Arc::new(AtomicUsize::new(0));
    let (handle, atomic_file, counted) =
        (runtime.handle().clone(), store.clone(), Arc::clone(&rounds));
    let done = compacted(
        &store,
        |_| false,
        move |step| {
            assert_ne!(step, Step::Held);
            if step == Step::Followed {
                let round = counted.fetch_add(1, Ordering::SeqCst);
                let mut batch = Batch::new();
                for n in 0..=MAX_HELD {
                    batch.put(&NOTES, &*format!("n{n}"), &round.to_string());
                }
                handle
                    .block_on(atomic_file.commit(batch))
                    .expect("a commit");
            }
        },
    );
    assert!(matches!(done, Err(StoreError::Busy)), "{done:?}");
    assert_eq!(rounds.load(Ordering::SeqCst), MAX_ROUNDS);
    assert!(!has_new_folder(&directory));
    assert_eq!(note(&store, "n0"), Some((MAX_ROUNDS - 1).to_string()));
    let done = compacted(&store, |_| false, |_| ());
    assert!(done.expect("with nothing in its way").replaced);
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
}

/// So many that they are not even kept.
#[test]
fn where_more_is_written_than_is_kept_all_stays_as_it_is() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    drop(runtime.block_on(wasteful(&directory)));
    let options = Options {
        compaction_bytes: 10_000,
        ..options()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let (handle, atomic_file) = (runtime.handle().clone(), store.clone());
    let done = compacted(
        &store,
        |_| false,
        move |step| {
            if step == Step::Followed {
                let mut batch = Batch::new();
                for n in 0..200 {
                    batch.put(&NOTES, &*format!("n{n}"), &"x".to_owned());
                }
                handle
                    .block_on(atomic_file.commit(batch))
                    .expect("a commit");
            }
        },
    );
    assert!(matches!(done, Err(StoreError::Busy)), "{done:?}");
    assert!(!has_new_folder(&directory));
    let done = compacted(&store, |_| false, |_| ());
    assert!(done.expect("with nothing in its way").replaced);
}

#[test]
fn what_fails_before_the_exchange_leaves_a_store_that_serves() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    drop(runtime.block_on(wasteful(&directory)));
    let failing = Arc::new(AtomicBool::new(false));
    let sync = FileSync::new({
        let failing = Arc::clone(&failing);
        move |file| {
            if failing.load(Ordering::SeqCst) {
                return Err(io::Error::other("the disk is gone"));
            }
            file.sync_data()
        }
    });
    let data = directory.path().join("data");
    let store = Store::open(&data, &Options { sync, ..options() }).expect("a store");
    let before = everything(&store);
    for at in [Step::Filling, Step::Filled, Step::Followed] {
        let arm = Arc::clone(&failing);
        let done = compacted(
            &store,
            |_| false,
            move |step| {
                if step == at {
                    arm.store(true, Ordering::SeqCst);
                }
            },
        );
        failing.store(false, Ordering::SeqCst);
        let error = done.expect_err("a disk that is gone");
        assert!(error.to_string().ends_with("the disk is gone"), "{error}");
        assert!(!has_new_folder(&directory), "{at:?}");
        assert!(everything(&store) == before, "{at:?}");
    }
    let stopped = Compaction::begin(&store).expect("a compaction").run(
        |_| false,
        |moved| (moved < 50).then_some(()).ok_or(StoreError::Stopped),
    );
    assert!(matches!(stopped, Err(StoreError::Stopped)), "{stopped:?}");
    assert!(!has_new_folder(&directory));
    assert_eq!(*store.mode().borrow(), Mode::ReadWrite);
    runtime
        .block_on(store.commit(put("a", "1")))
        .expect("a commit");
    assert!(
        compacted(&store, |_| false, |_| ())
            .expect("compaction")
            .replaced
    );
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
}

#[test]
fn the_reserve_of_the_disk_is_not_taken() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    drop(runtime.block_on(wasteful(&directory)));
    let options = Options {
        reserve_bytes: u64::MAX,
        ..options()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let error = compacted(&store, |_| false, |_| ()).expect_err("a full disk");
    assert!(error.to_string().contains("the reserve of"), "{error}");
    assert!(!has_new_folder(&directory));
}

/// Waits until a store takes no writes, and until it takes writes again. `mode` was asked
/// for before that.
fn writes_again(runtime: &Runtime, mut mode: watch::Receiver<Mode>) {
    runtime.block_on(mode.changed()).expect("a store");
    let reached = mode.wait_for(|mode| *mode == Mode::ReadWrite);
    runtime.block_on(reached).expect("a store");
}

#[test]
fn what_fails_between_the_exchange_and_its_end_goes_on_with_the_new_store() {
    for at in [Step::Held, Step::Exchanged] {
        let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
        let store = runtime.block_on(wasteful(&directory));
        runtime
            .block_on(store.commit(put("a", "1")))
            .expect("a commit");
        let (log, unused) = (store.log_id().to_owned(), content(3));
        runtime.block_on(store.commit(unused.2)).expect("a commit");
        let mode = store.mode();
        let done = compacted(
            &store,
            |_| false,
            move |step| {
                assert_ne!(step, at, "a fault at a bad moment");
            },
        );
        done.expect_err("a fault");
        writes_again(&runtime, mode);
        assert_eq!(note(&store, "a").as_deref(), Some("1"));
        let dropped = store.content(&unused.0).expect("a store").is_none();
        assert_eq!(dropped, at == Step::Exchanged);
        runtime
            .block_on(store.commit(put("a", "2")))
            .expect("a commit");
        assert_eq!(store.log_id(), log);
        let expected = everything(&store);
        drop(store);
        assert_holds(&directory, &expected);
        assert!(!has_new_folder(&directory));
    }
}

#[test]
fn a_compaction_whose_old_store_cannot_be_removed_is_one_that_took_effect() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    let store = runtime.block_on(wasteful(&directory));
    let new = directory.path().join("data/store.new");
    let (there, aside) = (new.clone(), directory.path().join("aside"));
    let done = compacted(
        &store,
        |_| false,
        move |step| {
            if step == Step::Exchanged {
                // No folder of that name can be removed.
                fs::rename(&there, &aside).expect("renamed");
                fs::write(&there, "").expect("a file");
            }
        },
    );
    assert!(done.expect("a compaction").replaced);
    assert!(has_new_folder(&directory));
    fs::remove_file(new).expect("removed");
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
}

#[test]
fn a_compaction_that_may_not_be_durable_says_that_its_store_is_in_use() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    let store = runtime.block_on(wasteful(&directory));
    let unused = content(3);
    runtime.block_on(store.commit(unused.2)).expect("a commit");
    let mode = store.mode();
    let data = directory.path().join("data");
    let away = directory.path().join("away");
    let (from, to) = (data.clone(), away.clone());
    let done = compacted(
        &store,
        |_| false,
        move |step| {
            if step == Step::Swapped {
                fs::rename(&from, &to).expect("renamed");
            }
        },
    );
    let error = done.expect_err("a folder that cannot be synced");
    fs::rename(&away, &data).expect("renamed");
    assert!(matches!(error, StoreError::NotDurable { .. }), "{error}");
    assert!(!error.to_string().contains("as it was"), "{error}");
    writes_again(&runtime, mode);
    assert!(store.content(&unused.0).expect("a store").is_none());
    runtime
        .block_on(store.commit(put("a", "1")))
        .expect("a commit");
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
    assert!(!has_new_folder(&directory));
}

#[test]
fn a_store_that_was_compacted_takes_back_a_write_that_fails() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    drop(runtime.block_on(wasteful(&directory)));
    let failing = Arc::new(AtomicBool::new(false));
    let sync = FileSync::new({
        let failing = Arc::clone(&failing);
        move |file| {
            if failing.swap(false, Ordering::SeqCst) {
                return Err(io::Error::other("the disk is gone"));
            }
            file.sync_data()
        }
    });
    let options = Options {
        sync,
        reopen_patience: Duration::from_secs(60),
        ..options()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    assert!(
        compacted(&store, |_| false, |_| ())
            .expect("compaction")
            .replaced
    );
    runtime
        .block_on(store.commit(put("a", "1")))
        .expect("a commit");
    let before = everything(&store);
    let mode = store.mode();
    failing.store(true, Ordering::SeqCst);
    let error = runtime
        .block_on(store.commit(put("a", "2")))
        .expect_err("a disk");
    assert!(matches!(error, CommitError::Failed(_)), "{error}");
    writes_again(&runtime, mode);
    let without_revision = |mut records: Vec<(Vec<u8>, Vec<u8>)>| {
        records.retain(|(key, _)| key != b"\x01revision");
        records
    };
    assert!(without_revision(everything(&store)) == without_revision(before));
    runtime
        .block_on(store.commit(put("a", "3")))
        .expect("a commit");
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
}
