//! What every backend does, on each of them.

use std::sync::{Arc, Mutex};

use super::*;

/// A store of each backend.
pub(super) struct Both {
    pub(super) stores: [Store; 2],
    _folder: TempDir,
}

pub(super) fn both(options: &Options) -> Both {
    let folder = TempDir::new().expect("a folder");
    let on_disk = Store::open(&folder.path().join("data"), options).expect("a store");
    Both {
        stores: [on_disk, Store::in_memory(options)],
        _folder: folder,
    }
}

#[tokio::test]
async fn a_batch_whose_precondition_fails_writes_nothing_of_itself() {
    for store in &both(&options()).stores {
        store.commit(put("a", "1")).await.expect("a commit");
        let mut stale = put("b", "2");
        stale.event(event("b"));
        stale.expect(&NOTES, "a", Expect::Absent);
        let error = store.commit(stale).await.expect_err("a conflict");
        assert!(
            matches!(error, CommitError::Conflict { found: Some(1) }),
            "{error}"
        );
        assert_eq!(note(store, "b"), None);
        assert_eq!(store.events_after(0, 10).expect("events"), Some(vec![]));
        let mut fresh = put("b", "2");
        fresh.expect(&NOTES, "a", Expect::Revision(1));
        store.commit(fresh).await.expect("a commit");
        assert_eq!(note(store, "b"), Some("2".to_owned()));
    }
}

#[tokio::test]
async fn a_record_that_was_read_before_is_told_from_one_that_was_written_since() {
    for store in &both(&options()).stores {
        let newer = |known| store.newer(&NOTES, "a", known).expect("a readable store");
        let stored = |revision, value: &str| {
            let value = value.to_owned();
            Newer::Other(Stored { revision, value })
        };
        assert_eq!(newer(None), Newer::Gone);
        let first = store.commit(put("a", "1")).await.expect("a commit");
        assert_eq!(newer(None), stored(first, "1"));
        assert_eq!(newer(Some(first)), Newer::Same);
        // The same words by another commit are another record.
        let second = store.commit(put("a", "1")).await.expect("a commit");
        assert_eq!(newer(Some(first)), stored(second, "1"));
        let mut removal = Batch::new();
        removal.delete(&NOTES, "a");
        store.commit(removal).await.expect("a commit");
        assert_eq!(newer(Some(second)), Newer::Gone);
    }
}

#[tokio::test]
async fn of_many_writers_that_expect_the_same_revision_exactly_one_wins() {
    for store in &both(&options()).stores {
        let writers = (0..64).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut batch = put("a", &n.to_string());
                batch.expect(&NOTES, "a", Expect::Absent);
                store.commit(batch).await.is_ok()
            })
        });
        let mut wins = 0;
        for writer in writers.collect::<Vec<_>>() {
            wins += usize::from(writer.await.expect("a writer"));
        }
        assert_eq!(wins, 1);
    }
}

#[tokio::test]
async fn a_follower_has_every_event_in_order_before_its_writer_is_answered() {
    for store in &both(&options()).stores {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&seen);
        store.follow(move |reader, events| {
            for (revision, event) in events {
                let record = reader.get(&NOTES, event.skill_id.slug())?;
                let record = record.expect("what it is about");
                assert!(record.revision <= *revision + 50 && record.value == "x");
                list.lock()
                    .expect("a lock")
                    .push((*revision, event.clone()));
            }
            Ok(())
        });
        let callers = (0..50).map(|n| {
            let (store, seen) = (store.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let name = n.to_string();
                let quiet = put(&format!("quiet-{n}"), "1");
                store.commit(quiet).await.expect("a commit");
                let revision = store.commit(with_event(&name)).await.expect("a commit");
                let seen = seen.lock().expect("a lock");
                assert!(seen.contains(&(revision, event(&name))), "{seen:?}");
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("a caller");
        }
        let seen = seen.lock().expect("a lock").clone();
        assert_eq!(store.events_after(0, 100).expect("events"), Some(seen));
    }
}

#[tokio::test]
async fn a_follower_that_fails_is_told_to_writers_of_events_and_to_nobody_else() {
    for store in &both(&options()).stores {
        store.follow(|_, events| {
            let (_, event) = events.first().expect("an event");
            match event.skill_id.slug() {
                "panics" => panic!("no such skill"),
                "fails" => Err(StoreError::Reopening),
                _ => Ok(()),
            }
        });
        let followed = Arc::new(Mutex::new(0));
        let count = Arc::clone(&followed);
        store.follow(move |_, events| {
            *count.lock().expect("a lock") += events.len();
            Ok(())
        });
        let (first, second) = tokio::join!(
            store.commit(with_event("panics")),
            store.commit(put("quiet", "1"))
        );
        let error = first.expect_err("a panic").to_string();
        let expected = "the write is durable, but not all reads show it: no such skill";
        assert_eq!(error, expected);
        assert_eq!(second.expect("a commit"), 2);
        let error = store.commit(with_event("fails")).await;
        let error = error.expect_err("an error").to_string();
        let told = StoreError::Reopening.to_string();
        assert!(error.ends_with(&told), "{error}");
        assert_eq!(store.commit(with_event("fine")).await.expect("a commit"), 4);
        let written = ["panics", "fails", "fine"].map(|name| note(store, name));
        assert_eq!(written, [(); 3].map(|()| Some("x".to_owned())));
        assert_eq!(store.position().borrow().end, 4);
        assert_eq!(*followed.lock().expect("a lock"), 3, "all others are told");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_a_whole_batch_or_none() {
    for store in &both(&options()).stores {
        for n in 0..200 {
            let (a, b) = (format!("a{n}"), format!("b{n}"));
            let mut batch = put(&a, "1");
            batch.put(&NOTES, &*b, &"2".to_owned());
            let committing = store.commit(batch);
            let _gone = tokio::time::timeout(std::time::Duration::from_micros(n), committing).await;
        }
        store.close().await;
        for n in 0..200 {
            let (a, b) = (note(store, &format!("a{n}")), note(store, &format!("b{n}")));
            assert_eq!(a.is_some(), b.is_some(), "half of batch {n}");
        }
    }
}

#[tokio::test]
async fn a_write_larger_than_all_that_may_wait_is_refused() {
    let limits = Limits {
        waiting_bytes: 4096,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..options()
    };
    for store in &both(&options).stores {
        let error = store.commit(put("a", &"x".repeat(5000))).await;
        let error = error.expect_err("too large");
        assert!(
            matches!(error, CommitError::TooLarge { max: 4096, .. }),
            "{error}"
        );
        let fits = store.commit(put("a", &"x".repeat(3000))).await;
        fits.expect("a commit");
    }
}

#[tokio::test]
async fn a_closed_store_refuses_writes() {
    for store in &both(&options()).stores {
        store.close().await;
        let error = store.commit(put("a", "1")).await.expect_err("closed");
        assert!(matches!(error, CommitError::Closed), "{error}");
    }
}

#[test]
fn a_store_in_memory_has_no_directory_to_back_up_or_to_compact() {
    let folder = TempDir::new().expect("a folder");
    let store = Store::in_memory(&options());
    let refusals = [
        store
            .backup(&folder.path().join("backup"), false, |_| Ok(()))
            .map(|_| ()),
        store.backup_unnamed(|_| Ok(())).map(|_| ()),
        Compaction::begin(&store).map(|_| ()),
    ];
    for refusal in refusals {
        let error = refusal.expect_err("no directory").to_string();
        assert_eq!(error, "the store is in memory and has no data directory");
    }
}

/// A write of a history.
#[derive(Debug, Clone)]
struct Step {
    puts: Vec<(u8, u32)>,
    deletes: Vec<u8>,
    /// What it takes a record for: absent, of its revision, or of the last one.
    expects: Vec<(u8, u8)>,
    has_event: bool,
    content: Option<u8>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        proptest::collection::vec((0..6_u8, any::<u32>()), 0..3),
        proptest::collection::vec(0..6_u8, 0..2),
        proptest::collection::vec((0..6_u8, 0..3_u8), 0..2),
        any::<bool>(),
        proptest::option::of(0..4_u8),
    );
    let step = step.prop_map(|(puts, deletes, expects, has_event, content)| Step {
        puts,
        deletes,
        expects,
        has_event,
        content,
    });
    proptest::collection::vec(step, 1..40)
}

fn batch(store: &Store, step: &Step) -> Batch {
    let key = |key: u8| format!("k{key}");
    let mut batch = Batch::new();
    for (at, expect) in &step.expects {
        let stored = store.get(&NOTES, &*key(*at)).expect("a store");
        let expect = match expect {
            0 => Expect::Absent,
            1 => stored.map(|stored| stored.revision).into(),
            _ => Expect::Revision(1),
        };
        batch.expect(&NOTES, &*key(*at), expect);
    }
    for (at, value) in &step.puts {
        // Some are too large for one record.
        let times = if value % 4 == 0 { 20_000 } else { 1 };
        batch.put(&NOTES, &*key(*at), &value.to_string().repeat(times));
    }
    for at in &step.deletes {
        batch.delete(&NOTES, &*key(*at));
    }
    if let Some(seed) = step.content {
        let content = noise(usize::from(seed) * 30_000, seed);
        batch.content(&Content::pack(Digest::of(&content), &content));
    }
    if step.has_event {
        batch.event(event("e"));
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn after_any_history_all_backends_hold_the_same(steps in steps()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let both = both(&Options { keep_events: 7, ..options() });
        let [one, other] = &both.stores;
        for step in &steps {
            let committed = [one, other].map(|store| {
                let committed = runtime.block_on(store.commit(batch(store, step)));
                committed.map_err(|error| error.to_string())
            });
            prop_assert_eq!(&committed[0], &committed[1]);
            prop_assert_eq!(*one.position().borrow(), *other.position().borrow());
        }
        prop_assert_eq!(records(one), records(other));
        let newest = |store: &Store| store.before(&NOTES, b"", Some("k4"), 3).expect("records");
        prop_assert_eq!(newest(one), newest(other));
        for after in 0..=steps.len() as u64 {
            let events = |store: &Store| store.events_after(after, 100).expect("events");
            prop_assert_eq!(events(one), events(other));
        }
    }
}
