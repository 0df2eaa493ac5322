mod backends;
mod backups;
mod chain;
mod fuzz;
mod in_flight;
mod log;
mod mirrors;
mod sizes;
mod unreadable;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use jiff::Timestamp;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use model::{EventKind, Principal};

pub(super) use crate::faults::options;

pub(super) const NOTES: Table<str, String> = Table::new(TableId::Heads);

pub(super) fn open(directory: &TempDir) -> Store {
    Store::open(directory.path().join("data").as_path(), &options()).expect("a store")
}

/// What is behind a store in a data directory.
pub(super) fn disk(store: &Store) -> &OnDisk {
    store.on_disk().expect("a data directory")
}

pub(super) fn put(key: &str, value: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(&NOTES, key, &value.to_owned());
    batch
}

fn event(slug: &str) -> Event {
    Event {
        kind: EventKind::Published,
        skill_id: format!("test/acme/{slug}").parse().expect("an id"),
        version: None,
        semantic_version: None,
        digest: None,
        active: None,
        held: false,
        time: Timestamp::UNIX_EPOCH,
        actor: Principal::anonymous(),
    }
}

pub(super) fn with_event(slug: &str) -> Batch {
    let mut batch = put(slug, "x");
    batch.event(event(slug));
    batch
}

pub(super) fn note(store: &Store, key: &str) -> Option<String> {
    store
        .get(&NOTES, key)
        .expect("a readable store")
        .map(|stored| stored.value)
}

#[tokio::test]
async fn what_was_committed_is_there_after_opening_again() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    let log = store.log_id().to_owned();
    let first = store.commit(put("a", "1")).await.expect("a commit");
    let second = store.commit(with_event("b")).await.expect("a commit");
    assert_eq!((first, second), (1, 2));
    drop(store);

    let store = open(&directory);
    assert_eq!(
        (note(&store, "a"), note(&store, "b")),
        (Some("1".to_owned()), Some("x".to_owned()))
    );
    assert_eq!(store.log_id(), log);
    assert_eq!(
        store.events_after(0, 10).expect("events"),
        Some(vec![(2, event("b"))])
    );
    assert_eq!(store.commit(put("c", "3")).await.expect("a commit"), 3);
}

pub(super) fn noise(size: usize, seed: u8) -> Bytes {
    let mut state = u64::from(seed) + 1;
    (0..size)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect()
}

#[tokio::test]
async fn contents_of_every_size_read_back_and_leave_no_file_that_is_never_freed() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    let sizes = [
        0,
        1,
        100,
        32 * 1024 - 11,
        32 * 1024,
        32 * 1024 + 1,
        1 << 20,
        16 << 20,
    ];
    for (size, seed) in sizes.into_iter().zip(0..) {
        for content in [noise(size, seed), Bytes::from(vec![seed; size])] {
            let digest = Digest::of(&content);
            let mut batch = Batch::new();
            batch.content(&Content::pack(digest, &content));
            store.commit(batch).await.expect("a commit");
            assert!(store.has_content(&digest).expect("a readable store"));
            assert_eq!(store.content(&digest).expect("a content"), Some(content));
        }
    }
    let other = Digest::of(b"other");
    assert!(!store.has_content(&other).expect("a readable store"));
    assert_eq!(store.content(&other).expect("a readable store"), None);
    drop(store);
    let blobs = fs::read_dir(directory.path().join("data/store/blobs"))
        .expect("a folder")
        .count();
    assert_eq!(blobs, 0);
}

#[tokio::test]
async fn a_nearly_full_disk_refuses_writes_and_keeps_serving_reads() {
    let directory = TempDir::new().expect("a folder");
    open(&directory)
        .commit(put("a", "1"))
        .await
        .expect("a commit");
    let options = Options {
        reserve_bytes: u64::MAX,
        ..options()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let error = store.commit(put("a", "2")).await.expect_err("a full disk");
    assert!(matches!(error, CommitError::DiskFull { .. }), "{error}");
    assert_eq!(note(&store, "a"), Some("1".to_owned()));
    drop(store);
    let store = open(&directory);
    store
        .commit(put("a", "2"))
        .await
        .expect("a disk with room again");
}

#[test]
fn a_directory_that_is_open_elsewhere_is_refused_with_what_to_do() {
    let directory = TempDir::new().expect("a folder");
    let _store = open(&directory);
    let error = Store::open(&directory.path().join("data"), &options()).expect_err("in use");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("--server"));
}

#[test]
fn a_directory_of_a_later_version_or_of_something_else_is_left_alone() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    drop(open(&directory));
    fs::write(
        data.join("FORMAT"),
        r#"{"product":"repertoire","format":3}"#,
    )
    .expect("a file");
    let error = Store::open(&data, &options()).expect_err("newer");
    assert!(
        matches!(
            error,
            OpenError::NewerFormat {
                found: 3,
                known: 2,
                ..
            }
        ),
        "{error}"
    );

    for wrong in ["", "{", r#"{"product":"repertoire","format":0}"#] {
        fs::write(data.join("FORMAT"), wrong).expect("a file");
        let error = Store::open(&data, &options()).expect_err("damaged");
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
    fs::write(data.join("FORMAT"), r#"{"product":"other","format":1}"#).expect("a file");
    let error = Store::open(&data, &options()).expect_err("another product");
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");

    let older = r#"{"product":"repertoire","format":1}"#;
    fs::write(data.join("FORMAT"), older).expect("a file");
    drop(Store::open(&data, &options()).expect("an older format"));
    let raised = fs::read_to_string(data.join("FORMAT")).expect("a file");
    assert_eq!(raised, r#"{"product":"repertoire","format":2}"#);

    let other = directory.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("thesis.txt"), "years of work").expect("a file");
    let error = Store::open(&other, &options()).expect_err("not ours");
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
    assert_eq!(fs::read_dir(&other).expect("a folder").count(), 1);
}

#[tokio::test]
async fn a_database_that_lacks_acknowledged_writes_is_refused() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let (database, older) = (data.join("store/db"), directory.path().join("older"));
    let store = open(&directory);
    store.commit(put("a", "1")).await.expect("a commit");
    drop(store);
    fs::copy(&database, &older).expect("a copy");
    let store = open(&directory);
    store.commit(put("b", "2")).await.expect("a commit");
    drop(store);
    let whole = fs::read(&database).expect("a file");

    fs::copy(&older, &database).expect("a copy");
    let error = Store::open(&data, &options())
        .expect_err("older")
        .to_string();
    assert!(error.contains("is damaged"), "{error}");
    fs::write(&database, "").expect("a file");
    let error = Store::open(&data, &options())
        .expect_err("empty")
        .to_string();
    assert!(error.contains("is damaged"), "{error}");

    fs::write(&database, whole).expect("a file");
    for unreadable in ["", "00000000000000000009 x 00000000\n"] {
        fs::write(data.join("last"), unreadable).expect("a file");
        let store = open(&directory);
        assert_eq!(
            (note(&store, "a"), note(&store, "b")),
            (Some("1".to_owned()), Some("2".to_owned()))
        );
    }
}

#[test]
fn a_directory_whose_making_was_cut_short_is_made_anew() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    fs::create_dir_all(data.join("store/blobs")).expect("a folder");
    fs::write(data.join("FORMAT.new"), "{").expect("a file");
    drop(open(&directory));
    assert!(data.join("FORMAT").exists() && !data.join("FORMAT.new").exists());
}

#[tokio::test]
async fn a_damaged_record_is_an_error_and_verify_names_it() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    store.commit(put("good", "1")).await.expect("a commit");
    store.commit(put("bad", "2")).await.expect("a commit");
    let key = NOTES.key("bad");
    let records = store.backend.records();
    let mut value = records
        .get(&key)
        .expect("a view")
        .expect("a record")
        .to_vec();
    if let Some(last) = value.last_mut() {
        *last ^= 1;
    }
    let engine = disk(&store).view.engine().expect("a database");
    engine.tree.insert(&key, value).expect("an insert");
    let error = store.get(&NOTES, "bad").expect_err("damage");
    assert_eq!(
        error.to_string(),
        r"the record `heads/bad\x00` is damaged: its checksum does not fit"
    );
    let verified = store.verify(|_| {});
    assert_eq!(verified.damage, vec![error.to_string()]);
}

pub(super) async fn filled(directory: &TempDir) -> Store {
    let store = open(directory);
    for n in 0..30 {
        let mut batch = with_event(&n.to_string());
        let content = noise(n * 3_000, 7);
        batch.content(&Content::pack(Digest::of(&content), &content));
        store.commit(batch).await.expect("a commit");
    }
    store
}

pub(super) fn everything(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let records = backend::walk(
        store.backend.records(),
        backend::everything(),
        backend::Order::Ascending,
    );
    records
        .map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).expect("a record"))
        .collect()
}

/// The same without the identity of the log, which a restore renews.
pub(super) fn records(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = everything(store);
    records.retain(|(key, _)| key != b"\x01log_id");
    records
}

#[tokio::test]
async fn a_restored_backup_holds_what_was_backed_up() {
    let directory = TempDir::new().expect("a folder");
    let store = filled(&directory).await;
    let (file, copy) = (
        directory.path().join("backup"),
        directory.path().join("copy"),
    );
    let backup = store.backup(&file, false, |_| Ok(())).expect("a backup");
    let restored = restore(&file, &copy, &options(), |_| {}).expect("a restore");
    assert_eq!(restored, backup);
    let before = records(&store);
    let copy = Store::open(&copy, &options()).expect("a store");
    assert_eq!(records(&copy), before);
    assert_eq!(copy.verify(|_| {}).damage, Vec::<String>::new());
}

#[tokio::test]
async fn a_backup_that_is_cut_short_or_changed_restores_nothing() {
    let directory = TempDir::new().expect("a folder");
    let file = directory.path().join("backup");
    filled(&directory)
        .await
        .backup(&file, false, |_| Ok(()))
        .expect("a backup");
    let whole = fs::read(&file).expect("a file");
    let copy = directory.path().join("copy");
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).expect("a file");
        let error = restore(&file, &copy, &options(), |_| {}).expect_err("a refusal");
        assert!(!copy.exists(), "{error}");
        assert!(!Path::new(&format!("{}.restoring", copy.display())).exists());
        error.to_string()
    };
    for length in [0, 5, 20, 40, whole.len() / 2, whole.len() - 1] {
        refused(&whole[..length]);
    }
    for at in (20..whole.len()).step_by(whole.len() / 9) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        refused(&bytes);
    }
    let mut later = whole.clone();
    later[18] = b'3';
    assert!(refused(&later).contains("later version"));
}

#[test]
fn a_restore_never_overwrites_a_directory() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let none = directory.path().join("none");
    let refused = || {
        let error = restore(&none, &data, &options(), |_| {}).expect_err("a refusal");
        assert!(error.to_string().contains("not empty"), "{error}");
    };
    drop(open(&directory));
    refused();
    // Nor one that is somebody else's.
    fs::remove_dir_all(&data).expect("a folder");
    fs::create_dir(&data).expect("a folder");
    let theirs = data.join("letter.txt");
    fs::write(&theirs, "Dear").expect("a file");
    refused();
    assert_eq!(fs::read(&theirs).expect("a file"), b"Dear");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The store against a map: any mix of puts, deletes, preconditions and
    /// openings gives what the map gives.
    #[test]
    fn the_store_behaves_as_a_map(steps in proptest::collection::vec((0_u8..4, 0_u8..6, any::<u16>()), 1..60)) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let directory = TempDir::new().expect("a folder");
        let mut store = open(&directory);
        let mut map = std::collections::BTreeMap::<String, (Revision, String)>::new();
        for (kind, key, value) in steps {
            // Some are too large for one record.
            let times = if value % 4 == 0 { 20_000 } else { 1 };
            let (key, value) = (format!("k{key}"), value.to_string().repeat(times));
            match kind {
                0 => {
                    let revision = runtime.block_on(store.commit(put(&key, &value))).expect("a commit");
                    map.insert(key, (revision, value));
                }
                1 => {
                    let mut batch = Batch::new();
                    batch.delete(&NOTES, &*key);
                    runtime.block_on(store.commit(batch)).expect("a commit");
                    map.remove(&key);
                }
                2 => {
                    let expect = Expect::from(map.get(&key).map(|(revision, _)| *revision));
                    let mut batch = put(&key, &value);
                    batch.expect(&NOTES, &*key, expect);
                    let revision = runtime.block_on(store.commit(batch)).expect("a commit");
                    map.insert(key, (revision, value));
                }
                _ => {
                    drop(store);
                    store = open(&directory);
                }
            }
        }
        let found: Vec<_> = store
            .scan(&NOTES, b"")
            .map(|entry| entry.expect("a record"))
            .map(|(key, stored)| (String::from_utf8_lossy(&key[..key.len() - 1]).into_owned(), (stored.revision, stored.value)))
            .collect();
        prop_assert_eq!(found, map.into_iter().collect::<Vec<_>>());
    }
}
