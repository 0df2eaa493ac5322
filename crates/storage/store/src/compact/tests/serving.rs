//! Compaction while others read and write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use proptest::prelude::*;

use super::*;
use crate::FileSync;
use crate::tests::{NOTES, note, put, with_event};

#[test]
fn what_is_written_meanwhile_is_there_afterwards_and_the_log_goes_on() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    let store = runtime.block_on(wasteful(&directory));
    for n in 0..100 {
        let written = runtime.block_on(store.commit(put(&format!("k{n:02}"), "1")));
        written.expect("a commit");
    }
    let log = store.log_id().to_owned();
    let written = Arc::new(AtomicUsize::new(0));
    let (behind_sender, behind) = mpsc::channel();
    let done = {
        let (store, written, handle) = (
            store.clone(),
            Arc::clone(&written),
            runtime.handle().clone(),
        );
        let meanwhile = store.clone();
        compacted(
            &store,
            |_| false,
            move |step| {
                let store = &meanwhile;
                match step {
                    Step::Filling | Step::Filled | Step::Followed => {
                        // Before and behind the place that was reached: each a change, a
                        // removal, a record that was not there, a large one, a content.
                        let name = format!("{step:?}");
                        for at in ["k03", "k50", "k97"] {
                            let mut batch = with_event(&format!("{name}-{at}").to_lowercase());
                            batch.put(&NOTES, at, &name);
                            batch.put(&NOTES, &*format!("{at}{name}"), &name.repeat(20_000));
                            handle.block_on(store.commit(batch)).expect("a commit");
                            written.fetch_add(1, Ordering::SeqCst);
                        }
                        let mut batch = content(step as u8).2;
                        batch.delete(&NOTES, &*format!("k{:02}", 20 + step as usize));
                        handle.block_on(store.commit(batch)).expect("a commit");
                    }
                    Step::Held => {
                        // A write waits, and a read does not.
                        let store = store.clone();
                        behind_sender
                            .send(handle.spawn(async move { store.commit(put("held", "1")).await }))
                            .expect("a test");
                    }
                    Step::Swapped | Step::Exchanged | Step::Removed => {}
                }
                assert_eq!(note(store, "k99").as_deref(), Some("1"), "{step:?}");
            },
        )
    };
    assert!(done.expect("compaction").replaced);
    let held = runtime.block_on(behind.recv().expect("a write"));
    held.expect("a task").expect("a commit");
    assert_eq!(written.load(Ordering::SeqCst), 9);
    assert_eq!(note(&store, "held").as_deref(), Some("1"));
    assert_eq!(note(&store, "k50").as_deref(), Some("Followed"));
    assert_eq!(note(&store, "k03Filling"), Some("Filling".repeat(20_000)));
    for step in [Step::Filling, Step::Filled, Step::Followed] {
        assert_eq!(note(&store, &format!("k{:02}", 20 + step as usize)), None);
        let (digest, bytes, _) = content(step as u8);
        assert_eq!(store.content(&digest).expect("a content"), Some(bytes));
    }
    let events = store.events_after(0, 1000).expect("events").expect("a log");
    assert_eq!(events.len(), 30 + 9);
    assert_eq!(store.position().borrow().events, 39);
    assert_eq!(store.log_id(), log);
    runtime
        .block_on(store.commit(with_event("after")))
        .expect("a commit");
    assert!(!has_new_folder(&directory));
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
}

#[test]
fn readers_writers_and_watchers_notice_nothing() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    let store = runtime.block_on(wasteful(&directory));
    let mut batch = Batch::new();
    for n in 0..300 {
        batch.put(&NOTES, &*format!("k{n}"), &n.to_string());
    }
    runtime.block_on(store.commit(batch)).expect("a commit");
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicBool::new(false));
    let kept = store.position().borrow().end;
    let watcher = {
        let (store, written) = (store.clone(), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            loop {
                let last = written.load(Ordering::SeqCst);
                let at = seen.last().map_or(kept, |(sequence, _)| *sequence);
                let events = store.events_after(at, 7).expect("events").expect("a log");
                if last && events.is_empty() {
                    return seen;
                }
                seen.extend(events);
            }
        })
    };
    let reader = {
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut last = [0_u64; 4];
            let mut reads = 0_u64;
            while !stop.load(Ordering::SeqCst) {
                for (writer, last) in last.iter_mut().enumerate() {
                    let read = note(&store, &format!("w{writer}"));
                    let read = read.map_or(0, |value| value.parse().expect("a number"));
                    assert!(read >= *last, "{read} after {last}");
                    *last = read;
                    reads += 1;
                }
                let fixed = store
                    .scan(&NOTES, b"k")
                    .map(|entry| entry.expect("a record"));
                assert_eq!(fixed.count(), 300);
            }
            reads
        })
    };
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (store, stop) = (store.clone(), Arc::clone(&stop));
            runtime.spawn(async move {
                let mut revisions = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let mut batch = with_event(&format!("w{writer}-{}", revisions.len()));
                    batch.put(
                        &NOTES,
                        &*format!("w{writer}"),
                        &(revisions.len() + 1).to_string(),
                    );
                    revisions.push(store.commit(batch).await.expect("a commit"));
                }
                revisions
            })
        })
        .collect();
    let mut replaced = 0;
    while replaced < 8 {
        // Once there is something to gain again.
        let (_, _, batch) = content(replaced);
        runtime.block_on(store.commit(batch)).expect("a commit");
        let done = compacted(&store, |_| false, |_| ());
        assert!(done.expect("compaction").replaced);
        replaced += 1;
    }
    stop.store(true, Ordering::SeqCst);
    let mut acknowledged: Vec<_> = writers
        .into_iter()
        .flat_map(|writer| runtime.block_on(writer).expect("a writer"))
        .collect();
    acknowledged.sort_unstable();
    written.store(true, Ordering::SeqCst);
    assert!(reader.join().expect("a reader") > 0);
    let seen = watcher.join().expect("a watcher");
    let seen: Vec<_> = seen.into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(seen, acknowledged);
    let expected = everything(&store);
    drop(store);
    assert_holds(&directory, &expected);
}

#[test]
fn a_content_that_a_write_is_about_to_use_stays_whenever_it_looks() {
    let steps = [
        None,
        Some(Step::Filling),
        Some(Step::Filled),
        Some(Step::Followed),
        Some(Step::Held),
        Some(Step::Exchanged),
    ];
    for at in steps {
        let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
        let store = runtime.block_on(wasteful(&directory));
        let (digest, bytes, batch) = content(200);
        runtime.block_on(store.commit(batch)).expect("a commit");
        // As a publish does: it says what it uses, and looks whether that is stored.
        let inspect = move |store: &Store| {
            let pinned = Arc::new(store.pin([digest]));
            let stored = store.has_content(&digest).expect("a store");
            (pinned, stored)
        };
        let (sender, looked) = mpsc::channel();
        let before = (at.is_none()).then(|| inspect(&store));
        let atomic_file = store.clone();
        let done = compacted(
            &store,
            |_| false,
            move |step| {
                if Some(step) == at {
                    let (store, sender) = (atomic_file.clone(), sender.clone());
                    let looking = std::thread::spawn(move || {
                        sender.send(inspect(&store)).expect("a test");
                    });
                    // While writes wait, so does who looks.
                    if !matches!(step, Step::Held | Step::Exchanged) {
                        looking.join().expect("a look");
                    }
                }
            },
        );
        assert!(done.expect("compaction").replaced);
        let (pinned, stored) = before.unwrap_or_else(|| looked.recv().expect("a look"));
        let found = store.content(&digest).expect("a store");
        assert_eq!(found, stored.then_some(bytes), "{at:?}");
        let waited = matches!(at, Some(Step::Held | Step::Exchanged));
        assert_eq!(stored, !waited, "{at:?}");
        // It stays until the write is done, and goes with the next compaction.
        drop(pinned);
        compacted(&store, |_| false, |_| ()).expect("compaction");
        assert!(!store.has_content(&digest).expect("a store"), "{at:?}");
    }
}

#[test]
fn what_a_write_in_the_queue_uses_stays_though_its_caller_is_gone() {
    let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
    let gate = Arc::new(Mutex::new(()));
    let (reached_sender, reached) = mpsc::channel();
    let sync = FileSync::new({
        let (gate, armed) = (Arc::clone(&gate), AtomicBool::new(false));
        move |file| {
            if !armed.swap(true, Ordering::SeqCst) {
                return file.sync_data();
            }
            let _unheard = reached_sender.send(());
            let _open = gate.lock();
            file.sync_data()
        }
    });
    let options = Options { sync, ..options() };
    let data = directory.path().join("data");
    let store = Store::open(&data, &options).expect("a store");
    let (digest, bytes, batch) = content(1);
    runtime.block_on(store.commit(batch)).expect("a commit");
    let shut = gate.lock().expect("a lock");
    let using = {
        let mut batch = put("using", "1");
        batch.pinned(&Arc::new(store.pin([digest])));
        let store = store.clone();
        runtime.spawn(async move { store.commit(batch).await })
    };
    reached.recv().expect("a sync");
    // Nobody can read the record that uses it, and nobody waits for it any more.
    using.abort();
    assert!(runtime.block_on(using).is_err());
    assert_eq!(note(&store, "using"), None);
    let compaction = Compaction::begin(&store).expect("a compaction");
    drop(shut);
    let done = compaction.run(|_| false, |_| Ok(()));
    done.expect("compaction");
    assert_eq!(note(&store, "using").as_deref(), Some("1"));
    assert_eq!(store.content(&digest).expect("a content"), Some(bytes));
}

#[derive(Debug, Clone)]
enum Op {
    Put(u8, u16),
    Delete(u8),
    Content(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (any::<u8>(), 0..50_000_u16).prop_map(|(key, size)| Op::Put(key, size)),
        any::<u8>().prop_map(Op::Delete),
        any::<u8>().prop_map(Op::Content),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_compacted_store_is_the_same_store(
        before in proptest::collection::vec(op(), 1..40),
        meanwhile in proptest::collection::vec((0..3_usize, op()), 0..40),
        used: [bool; 16],
    ) {
        let (runtime, directory) = (runtime(), TempDir::new().expect("a folder"));
        let store = open(&directory);
        let model = Arc::new(Mutex::new(BTreeMap::<String, String>::new()));
        let write = |model: &Mutex<BTreeMap<String, String>>, op: &Op| {
            let mut batch = Batch::new();
            let mut model = model.lock().expect("a lock");
            match op {
                Op::Put(key, size) => {
                    let (key, value) = (format!("k{:02}", key % 32), "v".repeat(usize::from(*size) * 3));
                    batch.put(&NOTES, &*key, &value);
                    model.insert(key, value);
                }
                Op::Delete(key) => {
                    let key = format!("k{:02}", key % 32);
                    batch.delete(&NOTES, &*key);
                    model.remove(&key);
                }
                Op::Content(seed) => batch = content(seed % 16).2,
            }
            batch
        };
        for op in &before {
            runtime.block_on(store.commit(write(&model, op))).expect("a commit");
        }
        // Something that goes for certain, so that the stores are exchanged.
        runtime.block_on(store.commit(content(99).2)).expect("a commit");
        let digests: Vec<_> = (0..16).map(|seed| content(seed).0).collect();
        let stored: Vec<_> = digests.iter().map(|d| store.has_content(d).expect("a store")).collect();
        let written: Vec<u8> = meanwhile
            .iter()
            .filter_map(|(_, op)| match op { Op::Content(seed) => Some(seed % 16), _ => None })
            .collect();
        let kept = digests.clone();
        let (atomic_file, modelled, handle) = (store.clone(), Arc::clone(&model), runtime.handle().clone());
        let done = compacted(
            &store,
            move |digest| kept.iter().position(|d| d == digest).is_some_and(|at| used[at]),
            move |step| {
                for (at, op) in &meanwhile {
                    if *at == step as usize {
                        let batch = write(&modelled, op);
                        handle.block_on(atomic_file.commit(batch)).expect("a commit");
                    }
                }
            },
        );
        prop_assert!(done.expect("compaction").replaced);
        let expected = everything(&store);
        drop(store);
        let store = open(&directory);
        prop_assert!(everything(&store) == expected);
        let notes: BTreeMap<String, String> = store
            .scan(&NOTES, b"")
            .map(|entry| entry.expect("a record"))
            .map(|(key, stored)| {
                let key = String::from_utf8(key[..key.len() - 1].to_vec());
                (key.expect("a text"), stored.value)
            })
            .collect();
        prop_assert!(notes == *model.lock().expect("a lock"));
        for (seed, digest) in (0..16).zip(&digests) {
            let there = store.content(digest).expect("a whole content").is_some();
            let at = usize::from(seed);
            if (stored[at] && used[at]) || written.contains(&seed) {
                prop_assert!(there, "{seed} is gone");
            } else {
                prop_assert!(!there, "{seed} stays");
            }
        }
    }
}
