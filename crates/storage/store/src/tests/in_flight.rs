//! What readers see while a group is on its way to the disk, and when it fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;

/// A store whose next syncs wait until they are let go.
struct Gated {
    store: Store,
    _directory: TempDir,
    armed: Arc<AtomicBool>,
    reached: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
}

fn gated() -> Gated {
    let directory = TempDir::new().expect("a folder");
    let armed = Arc::new(AtomicBool::new(false));
    let (reached_sender, reached) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let gone = Mutex::new(gone);
    let sync = FileSync::new({
        let armed = Arc::clone(&armed);
        move |file| {
            if armed.load(Ordering::SeqCst) {
                reached_sender.send(()).expect("a test that waits");
                gone.lock().expect("a lock").recv().expect("a test");
            }
            file.sync_data()
        }
    });
    let options = Options { sync, ..options() };
    Gated {
        store: Store::open(&directory.path().join("data"), &options).expect("a store"),
        _directory: directory,
        armed,
        reached,
        go,
    }
}

/// All that can be read of a store.
fn seen(store: &Store, content: &Digest) -> Vec<String> {
    let keys = ["kept", "changed", "removed", "made", "grown"];
    let short = |value: String| format!("{}…{}", &value[..1], value.len());
    let notes = keys.map(|key| format!("{key}={:?}", note(store, key).map(short)));
    let scanned = store.scan(&NOTES, b"").map(|entry| {
        let (key, stored) = entry.expect("a record");
        format!("{}={}", key.escape_ascii(), short(stored.value))
    });
    let newest = store.before(&NOTES, b"", None, 10).expect("records");
    let events = store.events_after(0, 10).expect("events");
    let position = *store.position().borrow();
    notes
        .into_iter()
        .chain(scanned)
        .chain(newest.into_iter().map(short))
        .chain([
            format!("{:?}", store.content(content).expect("a content")),
            format!("{:?}", store.has_content(content)),
            format!("{events:?} {position:?}"),
        ])
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_answers_at_once_with_what_is_durable_while_a_group_is_synced() {
    let Gated {
        store,
        armed,
        reached,
        go,
        ..
    } = gated();
    for key in ["kept", "changed", "removed"] {
        store.commit(put(key, "1")).await.expect("a commit");
    }
    let grown = "g".repeat(100_000);
    store.commit(put("grown", &grown)).await.expect("a commit");
    let content = noise(50_000, 1);
    let digest = Digest::of(&content);
    let before = seen(&store, &digest);

    let mut batch = with_event("made");
    batch.put(&NOTES, "changed", &"22".to_owned());
    batch.put(&NOTES, "grown", &grown.repeat(2));
    batch.delete(&NOTES, "removed");
    batch.content(&Content::pack(digest, &content));
    armed.store(true, Ordering::SeqCst);
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.commit(batch).await }
    });
    reached.recv().expect("a sync");
    assert_eq!(seen(&store, &digest), before);
    armed.store(false, Ordering::SeqCst);
    go.send(()).expect("a sync that waits");
    assert_eq!(writing.await.expect("a writer").expect("a commit"), 5);
    assert_eq!(note(&store, "changed").as_deref(), Some("22"));
    assert_eq!(note(&store, "grown"), Some(grown.repeat(2)));
    assert_eq!(note(&store, "removed"), None);
    assert_eq!(note(&store, "made").as_deref(), Some("x"));
    assert_eq!(store.content(&digest).expect("a content"), Some(content));
    let events = store.events_after(0, 10).expect("events");
    assert_eq!(events, Some(vec![(5, event("made"))]));
}

#[tokio::test]
async fn who_loses_against_a_batch_of_the_same_group_sees_it_when_it_reads_again() {
    let Gated {
        store,
        armed,
        reached,
        go,
        ..
    } = gated();
    armed.store(true, Ordering::SeqCst);
    let commit = |key: &'static str| {
        let store = store.clone();
        let mut batch = put(key, "1");
        batch.expect(&NOTES, key, Expect::Absent);
        tokio::spawn(async move {
            let outcome = store.commit(batch).await;
            (outcome.is_ok(), note(&store, key))
        })
    };
    let first = commit("a");
    // Both wait together behind the first, so they come into one group.
    tokio::task::yield_now().await;
    let synced = tokio::task::spawn_blocking(move || reached.recv());
    synced.await.expect("a task").expect("a sync");
    let both = [commit("b"), commit("b")];
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    armed.store(false, Ordering::SeqCst);
    go.send(()).expect("a sync that waits");
    assert_eq!(first.await.expect("a writer"), (true, Some("1".to_owned())));
    let mut outcomes = Vec::new();
    for writer in both {
        outcomes.push(writer.await.expect("a writer"));
    }
    outcomes.sort();
    let there = Some("1".to_owned());
    assert_eq!(outcomes, [(false, there.clone()), (true, there)]);
}

/// Waits until the store takes writes, or takes none.
async fn mode(store: &Store, writable: bool) {
    let mut mode = store.mode();
    let reached = mode.wait_for(|mode| (*mode == Mode::ReadWrite) == writable);
    reached.await.expect("a store");
}

#[tokio::test]
async fn a_write_that_fails_is_taken_back_and_the_store_writes_again_by_itself() {
    let directory = TempDir::new().expect("a folder");
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let sync = FileSync::new({
        let broken = Arc::clone(&broken);
        move |file| {
            if broken.load(Ordering::SeqCst) {
                return Err(std::io::Error::other("the disk is gone"));
            }
            file.sync_data()
        }
    });
    let options = Options {
        sync,
        // As long as a loaded machine may need.
        reopen_patience: Duration::from_secs(60),
        ..options()
    };
    let data = directory.path().join("data");
    let store = Store::open(&data, &options).expect("a store");
    let large = "l".repeat(100_000);
    store.commit(with_event("changed")).await.expect("a commit");
    store.commit(put("removed", "1")).await.expect("a commit");
    store.commit(put("grown", &large)).await.expect("a commit");
    let content = noise(200_000, 1);
    let (digest, other) = (Digest::of(&content), Digest::of(b"other"));
    let mut batch = Batch::new();
    batch.content(&Content::pack(digest, &content));
    store.commit(batch).await.expect("a commit");
    let (before, whole) = (seen(&store, &other), everything(&store));
    store.follow(move |_, _| {
        assert!(!is_broken.load(Ordering::SeqCst), "it never is durable");
        Ok(())
    });

    broken.store(true, Ordering::SeqCst);
    let mut batch = with_event("made");
    batch.put(&NOTES, "changed", &"2".to_owned());
    batch.put(&NOTES, "grown", &"small".to_owned());
    batch.delete(&NOTES, "removed");
    batch.content(&Content::pack(other, &Bytes::from_static(b"other")));
    let error = store.commit(batch).await.expect_err("a broken disk");
    assert_eq!(error.to_string(), "the write failed: the disk is gone");
    assert_eq!(seen(&store, &other), before);
    mode(&store, false).await;
    let error = store.commit(put("made", "1")).await.expect_err("read-only");
    assert_eq!(
        error.to_string(),
        "the store accepts no writes for now: the disk is gone"
    );
    for _ in 0..200 {
        assert_eq!(seen(&store, &other), before);
        assert_eq!(
            store.content(&digest).expect("a content"),
            Some(content.clone())
        );
        tokio::task::yield_now().await;
    }

    broken.store(false, Ordering::SeqCst);
    mode(&store, true).await;
    assert_eq!(everything(&store), whole);
    store.commit(with_event("made")).await.expect("a commit");
    assert_eq!(note(&store, "made").as_deref(), Some("x"));
    assert_eq!(store.position().borrow().end, 5);
    drop(store);
    let store = open(&directory);
    assert_eq!(note(&store, "made").as_deref(), Some("x"));
    assert_eq!(note(&store, "changed").as_deref(), Some("x"));
    assert_eq!(store.verify(|_| {}).damage, Vec::<String>::new());
}

#[tokio::test]
async fn a_store_that_takes_no_writes_is_closed_at_once() {
    let directory = TempDir::new().expect("a folder");
    let sync = FileSync::new(|_| Err(std::io::Error::other("the disk is gone")));
    let options = Options { sync, ..options() };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    store
        .commit(put("a", "1"))
        .await
        .expect_err("a broken disk");
    store.close().await;
    let error = store.commit(put("a", "1")).await.expect_err("closed");
    assert!(matches!(error, CommitError::ReadOnly(_)), "{error}");
}
