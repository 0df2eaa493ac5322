//! Memory that follows a table, on each backend.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::backends::both;
use super::*;

/// The notes, and how often readers were shown some.
#[derive(Debug, Default)]
struct Notes {
    notes: BTreeMap<String, Stored<String>>,
    shown: Arc<AtomicUsize>,
}

impl Fold for Notes {
    type Record = String;

    fn fold(&self, changes: Vec<Change<String>>) -> Self {
        let mut notes = self.notes.clone();
        for Change { key, stored } in changes {
            assert_ne!(key, "panics");
            match stored {
                Some(stored) => notes.insert(key, stored),
                None => notes.remove(&key),
            };
        }
        Self {
            notes,
            shown: Arc::clone(&self.shown),
        }
    }

    fn shown(&self) {
        self.shown.fetch_add(1, Ordering::SeqCst);
    }
}

fn notes(store: &Store) -> BTreeMap<String, Stored<String>> {
    let records = store.scan(&NOTES, b"").map(|entry| {
        let (key, stored) = entry.expect("a record");
        let key = key.strip_suffix(&[0]).expect("a text").to_vec();
        (String::from_utf8(key).expect("a text"), stored)
    });
    records.collect()
}

fn follow(store: &Store) -> Mirror<Notes> {
    store
        .follow_table(&NOTES, &Notes::default())
        .expect("a mirror")
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, usize),
    Remove(u8),
    PutUnlessThere(u8),
}

fn step() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        // Some of them so long that they are in chunks.
        (0..6_u8, prop::sample::select(vec![1, 20, 200_000])).prop_map(|(k, n)| Step::Put(k, n)),
        (0..6_u8).prop_map(Step::Remove),
        (0..6_u8).prop_map(Step::PutUnlessThere),
    ];
    proptest::collection::vec(step, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_follows_a_table_has_its_records_after_any_batch(
        batches in proptest::collection::vec(step(), 1..12),
        late in 0..12_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            for store in &both(&options()).stores {
                let first = follow(store);
                let mut second = None;
                for (at, steps) in batches.iter().enumerate() {
                    if at == late {
                        second = Some(follow(store));
                    }
                    let mut batch = Batch::new();
                    for step in steps {
                        match step {
                            Step::Put(key, bytes) => {
                                batch.put(&NOTES, &*format!("k{key}"), &"x".repeat(*bytes));
                            }
                            Step::Remove(key) => batch.delete(&NOTES, &*format!("k{key}")),
                            Step::PutUnlessThere(key) => {
                                batch.expect(&NOTES, &format!("k{key}"), Expect::Absent);
                                batch.put(&NOTES, &*format!("k{key}"), &"new".to_owned());
                            }
                        }
                    }
                    let _refused = store.commit(batch).await;
                    let stored = notes(store);
                    assert_eq!(first.load().notes, stored);
                    if let Some(second) = &second {
                        assert_eq!(second.load().notes, stored);
                    }
                }
            }
        });
    }
}

#[tokio::test]
async fn memory_has_a_write_before_its_writer_is_answered_and_who_watches_is_woken() {
    for store in &both(&options()).stores {
        let mirror = follow(store);
        let mut watch = store.watch_table(TableId::Heads);
        let other = store.watch_table(TableId::Tokens);
        assert_eq!(*watch.borrow_and_update(), 0);
        let revision = store.commit(put("a", "1")).await.expect("a commit");
        assert_eq!(mirror.load().notes["a"].revision, revision);
        assert!(watch.has_changed().expect("a store"));
        assert_eq!(*watch.borrow_and_update(), revision);
        // A refused batch, and one for other tables, change nothing.
        let mut refused = put("a", "2");
        refused.expect(&NOTES, "a", Expect::Absent);
        store.commit(refused).await.expect_err("a conflict");
        let mut elsewhere = Batch::new();
        elsewhere.put(
            &Table::<str, String>::new(TableId::Usage),
            "a",
            &"1".to_owned(),
        );
        store.commit(elsewhere).await.expect("a commit");
        assert!(!watch.has_changed().expect("a store"));
        assert_eq!((mirror.load().notes.len(), *other.borrow()), (1, 0));
        assert_eq!(mirror.load().shown.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn memory_that_cannot_follow_is_told_to_writers_of_its_table_alone() {
    for store in &both(&options()).stores {
        let mirror = follow(store);
        let error = store.commit(put("panics", "1")).await;
        assert!(
            matches!(error, Err(CommitError::Unfollowed(_))),
            "{error:?}"
        );
        let mut elsewhere = Batch::new();
        elsewhere.put(
            &Table::<str, String>::new(TableId::Usage),
            "a",
            &"1".to_owned(),
        );
        store.commit(elsewhere).await.expect("a commit");
        store.commit(put("a", "1")).await.expect("a commit");
        assert_eq!(mirror.load().notes.len(), 1);
        drop(mirror);
        // Nobody follows by now.
        store.commit(put("panics", "2")).await.expect("a commit");
    }
}
