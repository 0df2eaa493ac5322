use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::engine_log::tests::{leaf, message, segment, setting};
use crate::engine_log::{self, kind};
use crate::tests::{NOTES, disk, everything, noise, note, open, options, put};
use crate::{Batch, Content, Key as _, Store, guarded};

/// A directory with some history: records that were written anew and removed, contents,
/// pages that were split and merged, and two starts.
async fn used(directory: &TempDir) -> Store {
    let mut store = open(directory);
    for round in 0..3_usize {
        for n in 0..150_usize {
            let mut batch = put(&format!("key-{n:03}"), &format!("round {round} of {n}"));
            batch.put(
                &NOTES,
                &format!("twin-{n:03}"),
                &format!("round {round} of {n}"),
            );
            if n == 7 {
                batch.put(&NOTES, "large", &format!("{round} {}", "y".repeat(100_000)));
            }
            if n % 5 == 0 {
                let content = noise(
                    20_000 + n * 100,
                    u8::try_from(round * 50 + n / 5).expect("a byte"),
                );
                batch.content(&Content::pack(Digest::of(&content), &content));
            }
            if round == 1 && n % 3 == 0 {
                batch.put(&NOTES, &format!("passing-{n:03}"), &"x".repeat(200));
            }
            if round == 2 && n % 3 == 0 {
                batch.delete(&NOTES, &format!("passing-{n:03}"));
            }
            store.commit(batch).await.expect("a commit");
        }
        drop(store);
        store = open(directory);
    }
    store
}

/// Without what says where the log is.
fn saved(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = everything(store);
    records.retain(|(key, _)| !is_of_the_log(key));
    records
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("store/blobs")).expect("a folder");
    for name in ["FORMAT", "last", "store/db"] {
        fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

/// Salvages a directory whose database is damaged, in a folder of its own.
fn salvage_damaged(
    directory: &TempDir,
    name: &str,
    damage: impl FnOnce(&mut Vec<u8>),
) -> (Salvaged, Store) {
    let (data, damaged, to) = (
        directory.path().join("data"),
        directory.path().join(format!("damaged-{name}")),
        directory.path().join(format!("saved-{name}")),
    );
    copy(&data, &damaged);
    let mut bytes = fs::read(damaged.join("store/db")).expect("a file");
    damage(&mut bytes);
    fs::write(damaged.join("store/db"), &bytes).expect("a file");
    let salvaged = salvage(&damaged, &to, &options(), |_| ()).expect("what is whole");
    let salvaged = salvaged.complete().expect("a directory");
    assert_eq!(
        fs::read(damaged.join("store/db")).expect("a file"),
        bytes,
        "it stays as it is"
    );
    let store = Store::open(&to, &options()).expect("a store");
    assert_eq!(store.verify(|_| {}).damage, Vec::<String>::new());
    fs::remove_dir_all(damaged).expect("a folder");
    (salvaged, store)
}

#[tokio::test]
async fn all_is_saved_of_a_directory_that_is_whole() {
    let directory = TempDir::new().expect("a folder");
    let store = used(&directory).await;
    let (records, log) = (saved(&store), store.log_id().to_owned());
    drop(store);
    let (salvaged, store) = salvage_damaged(&directory, "whole", |_| ());
    assert_eq!(saved(&store), records);
    assert!(salvaged.is_complete(), "{salvaged:?}");
    assert_eq!((salvaged.gaps, salvaged.revision), (0, 450));
    assert_ne!(store.log_id(), log, "tokens of the old log are refused");
    assert_eq!(store.commit(put("next", "1")).await.expect("a commit"), 451);
    let position = *store.position().borrow();
    assert_eq!((position.start, position.end), (450, 450));
}

#[tokio::test]
async fn what_is_saved_of_a_damaged_directory_was_written_and_little_is_lost() {
    let directory = TempDir::new().expect("a folder");
    let store = used(&directory).await;
    let records = saved(&store);
    let is_content = |key: &[u8]| TableId::of(key) == Some(TableId::Contents);
    let mut least = records.len();
    drop(store);
    let size = fs::metadata(directory.path().join("data/store/db"))
        .expect("a file")
        .len();
    let size = usize::try_from(size).expect("a size");
    for case in 0..24_usize {
        let at = size * case / 24 + 77;
        let (salvaged, store) =
            salvage_damaged(&directory, &case.to_string(), |db| match case % 3 {
                0 => db[at] ^= 0x10,
                1 => db[at..(at + 4096).min(size)].fill(0),
                _ => db[at..(at + 512).min(size)]
                    .copy_from_slice(&noise(512, 9)[..512.min(size - at)]),
            });
        let found = saved(&store);
        for (key, value) in &found {
            // Of an earlier commit at worst; and contents never change.
            assert!(record::open(key, value).is_ok(), "case {case}");
            let as_it_was = records
                .iter()
                .any(|(known, was)| known == key && was == value);
            assert!(
                as_it_was || !is_content(key) || salvaged.gaps > 0,
                "case {case}"
            );
        }
        for n in 0..150 {
            if let Some(text) = note(&store, &format!("key-{n:03}")) {
                assert!(text.ends_with(&format!(" of {n}")), "case {case}: {text}");
            }
        }
        least = least.min(found.len());
        drop(store);
        fs::remove_dir_all(directory.path().join(format!("saved-{case}"))).expect("a folder");
    }
    assert!(least * 2 > records.len(), "{least} of {}", records.len());
}

#[tokio::test]
async fn a_write_that_the_end_of_the_log_cuts_in_two_is_not_saved() {
    let directory = TempDir::new().expect("a folder");
    let mut store = open(&directory);
    for round in 0..20 {
        let mut batch = Batch::new();
        for n in 0..40 {
            batch.put(
                &NOTES,
                &format!("key-{n:03}"),
                &format!("{round} {}", "x".repeat(100)),
            );
        }
        store.commit(batch).await.expect("a commit");
        if round == 10 {
            drop(store);
            store = open(&directory);
        }
    }
    drop(store);
    let database = fs::read(directory.path().join("data/store/db")).expect("a file");
    let end = database
        .iter()
        .rposition(|byte| *byte != 0)
        .expect("an end");
    let mut rounds = std::collections::BTreeSet::new();
    // How many bytes a write takes is the engine's: cut until some writes are passed.
    for case in 0..200 {
        if case >= 40 && rounds.len() > 2 {
            break;
        }
        let at = end - case * 571;
        let (_, store) = salvage_damaged(&directory, &case.to_string(), |db| db[at..].fill(0));
        let found: std::collections::BTreeSet<_> = (0..40)
            .map(|n| note(&store, &format!("key-{n:03}")))
            .collect();
        assert_eq!(found.len(), 1, "cut at {at}: {found:?}");
        rounds.extend(found);
        drop(store);
        fs::remove_dir_all(directory.path().join(format!("saved-{case}"))).expect("a folder");
    }
    assert!(
        rounds.len() > 2,
        "the cuts go back over some writes: {}",
        rounds.len()
    );
}

#[tokio::test]
async fn a_content_that_lacks_a_part_is_left_out_whole() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    let content = noise(200_000, 1);
    let digest = Digest::of(&content);
    let mut batch = put("a", "1");
    batch.content(&Content::pack(digest, &content));
    store.commit(batch).await.expect("a commit");
    let mut key = vec![TableId::Contents.byte()];
    digest.write(&mut key);
    key.extend_from_slice(&3_u16.to_be_bytes());
    let engine = disk(&store).view.engine().expect("a store");
    let removed = guarded(|| engine.tree.remove(&key)).expect("a tree");
    assert!(removed.is_some());
    guarded(|| engine.tree.flush()).expect("a flush");
    drop((engine, store));
    let (salvaged, store) = salvage_damaged(&directory, "part", |_| ());
    assert_eq!(salvaged.contents_lost, 1);
    assert_eq!(note(&store, "a"), Some("1".to_owned()));
    assert!(!store.has_content(&digest).expect("a store"));
}

/// A record that is too large for one value lacks a chunk: what is left of it would be
/// something that nobody wrote.
#[tokio::test]
async fn a_record_that_lacks_a_chunk_is_left_out_with_its_other_chunks() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    let mut batch = put("small", "1");
    batch.put(&NOTES, "broken", &"b".repeat(100_000));
    batch.put(&NOTES, "whole", &"w".repeat(100_000));
    store.commit(batch).await.expect("a commit");
    let key = NOTES.key("broken");
    let engine = disk(&store).view.engine().expect("a store");
    let value = guarded(|| engine.tree.get(&key)).expect("a tree");
    let chunks = chunks::keys(&key, &value.expect("a record"));
    let removed = guarded(|| engine.tree.remove(&chunks[1])).expect("a tree");
    assert!(removed.is_some());
    guarded(|| engine.tree.flush()).expect("a flush");
    let mut expected = saved(&store);
    expected.retain(|(known, _)| *known != key && !chunks.contains(known));
    drop((engine, store));
    let (salvaged, store) = salvage_damaged(&directory, "chunk", |_| ());
    assert_eq!(salvaged.damaged, 1);
    assert_eq!(saved(&store), expected);
    assert_eq!(note(&store, "broken"), None);
    assert_eq!(note(&store, "whole"), Some("w".repeat(100_000)));
}

/// Where the page that a record was moved from is lost in its new state, the old one has
/// the record as well, as it was then.
#[test]
fn of_two_copies_of_a_record_the_one_of_the_later_commit_is_saved() {
    let (early, late) = (NOTES.key("early"), NOTES.key("late"));
    let of = |key: &[u8], revision| record::seal(key, revision, format!("{revision}").as_bytes());
    let all = leaf(
        b"",
        b"",
        0,
        &[(&early, &of(&early, 1)), (&late, &of(&late, 1))],
    );
    let moved = leaf(&late, b"", 0, &[(&late, &of(&late, 5))]);
    let messages = [
        message(kind::INLINE_NODE_TAG, 0, 7, &all),
        message(kind::INLINE_NODE_TAG, 0, 8, &moved),
        // So the old page has the later change.
        message(
            kind::INLINE_LINK_TAG,
            0,
            7,
            &setting(&early, &of(&early, 6)),
        ),
    ];
    let log = engine_log::tests::store(&[segment(0, 0, &messages)]);
    let log = Log::read(log.path(), |_| ()).expect("a log");
    let database = sled::Config::new().temporary(true).open().expect("a store");
    let from = TempDir::new().expect("a folder");
    let mut told = Vec::new();
    let salvaged = fill(&log, &database, from.path(), |count| told.push(count));
    assert_eq!(
        salvaged.expect("what is whole").revision,
        6,
        "the last commit"
    );
    let found = |key: &[u8]| guarded(|| database.get(key)).expect("a tree");
    assert_eq!(found(&early).as_deref(), Some(&*of(&early, 6)));
    assert_eq!(found(&late).as_deref(), Some(&*of(&late, 5)));
    assert_eq!(told, [1, 2, 2], "records, of which one was found twice");
}

#[test]
fn ranges_of_keys_join_where_they_touch() {
    let mut covered = Covered::default();
    for (low, high) in [("b", "d"), ("f", "h"), ("d", "e"), ("k", ""), ("g", "i")] {
        covered.add(low.into(), high.into());
    }
    let inside: String = ('a'..='m')
        .filter(|c| covered.contains(c.to_string().as_bytes()))
        .collect();
    assert_eq!(inside, "bcdfghklm");
    covered.add(Vec::new(), b"c".to_vec());
    covered.add(b"e".to_vec(), Vec::new());
    let inside: String = ('a'..='m')
        .filter(|c| covered.contains(c.to_string().as_bytes()))
        .collect();
    assert_eq!(inside, "abcdefghijklm");
}

#[tokio::test]
async fn what_was_saved_is_no_directory_before_it_was_repaired() {
    let directory = TempDir::new().expect("a folder");
    drop(used(&directory).await);
    let (data, to) = (
        directory.path().join("data"),
        directory.path().join("saved"),
    );
    let saved = salvage(&data, &to, &options(), |_| ()).expect("what is whole");
    let store = saved.open().expect("a store");
    let repaired = store.commit(put("repaired", "1")).await;
    repaired.expect("a commit");
    store.close().await;
    let records = self::saved(&store);
    drop(store);
    // What a kill leaves here opens nowhere, and can be salvaged into again.
    let killed = directory.path().join("killed");
    crate::compact::tests::copy(&to, &killed);
    let error = Store::open(&killed, &options()).expect_err("it is not whole");
    assert!(matches!(error, OpenError::CutShort { .. }), "{error}");
    let again = salvage(&data, &killed, &options(), |_| ()).expect("what is whole");
    assert_eq!(
        again.complete().expect("a directory").records,
        saved.salvaged.records
    );

    let salvaged = saved.complete().expect("a directory");
    assert!(salvaged.is_complete());
    let store = Store::open(&to, &options()).expect("a store");
    assert_eq!(self::saved(&store), records);
    assert_eq!(note(&store, "repaired").as_deref(), Some("1"));
    store.commit(put("repaired", "2")).await.expect("a commit");
    drop(store);
    let mut names: Vec<_> = fs::read_dir(&to)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["FORMAT", "last", "lock", "store"]);

    let dropped = directory.path().join("dropped");
    drop(salvage(&data, &dropped, &options(), |_| ()).expect("what is whole"));
    assert!(!dropped.exists(), "nothing is left of it");
}

#[test]
fn a_salvage_is_complete_where_all_that_was_acknowledged_was_found_whole() {
    let whole = Salvaged {
        records: 3,
        revision: 5,
        acknowledged: Some(5),
        ..Salvaged::default()
    };
    assert!(whole.is_complete());
    let lacking = |change: fn(&mut Salvaged)| {
        let mut salvaged = whole.clone();
        change(&mut salvaged);
        salvaged.is_complete()
    };
    assert!(lacking(|salvaged| salvaged.acknowledged = Some(4)));
    assert!(!lacking(|salvaged| salvaged.acknowledged = Some(6)));
    assert!(!lacking(|salvaged| salvaged.acknowledged = None));
    assert!(!lacking(|salvaged| salvaged.damaged = 1));
    assert!(!lacking(|salvaged| salvaged.gaps = 1));
    assert!(!lacking(|salvaged| salvaged.contents_lost = 1));
}
