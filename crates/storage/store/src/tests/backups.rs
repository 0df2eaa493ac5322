//! Backups that are taken while writes go on.

use std::collections::BTreeMap;

use super::*;
use crate::backup::Filler;

type Map = BTreeMap<String, String>;

fn notes(store: &Store) -> Map {
    store
        .scan(&NOTES, b"")
        .map(|entry| entry.expect("a record"))
        .map(|(key, stored)| {
            let key = String::from_utf8(key[..key.len() - 1].to_vec());
            (key.expect("a text"), stored.value)
        })
        .collect()
}

#[test]
fn a_backup_holds_the_records_of_its_beginning_whatever_is_written_meanwhile() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    let large = "l".repeat(100_000);
    for n in 0..1000 {
        let value = if n % 100 == 7 { &large } else { "1" };
        let written = runtime.block_on(store.commit(put(&format!("k{n:04}"), value)));
        written.expect("a commit");
    }
    let (before, whole) = (notes(&store), everything(&store));
    let file = directory.path().join("backup");
    let backup = store.backup(&file, false, |count| {
        // Before, at, and behind the place that was reached; twice, so that a
        // before-image is of this backup and not of what came between.
        for step in [0, 1, 500, 998] {
            let at = (usize::try_from(count).expect("a count") + step) % 1000;
            let key = format!("k{at:04}");
            let mut batch = put(&format!("{key}+"), "new");
            match step {
                0 | 500 => batch.put(&NOTES, &*key, &format!("{count}")),
                1 => batch.put(&NOTES, &*key, &large.repeat(2)),
                _ => batch.delete(&NOTES, &*key),
            }
            if count.is_multiple_of(10) {
                runtime.block_on(store.commit(batch)).expect("a commit");
            }
        }
        Ok(())
    });
    assert_eq!(backup.expect("a backup").records, whole.len() as u64);
    assert_ne!(notes(&store), before);
    let copy = directory.path().join("copy");
    restore(&file, &copy, &options(), |_| {}).expect("a restore");
    let copy = Store::open(&copy, &options()).expect("a store");
    assert_eq!(notes(&copy), before);
    // The log of a restored directory has an identity of its own.
    let records = |records: Vec<(Vec<u8>, Vec<u8>)>| {
        let kept = records.into_iter().filter(|(key, _)| key != b"\x01log_id");
        kept.collect::<Vec<_>>()
    };
    assert!(records(everything(&copy)) == records(whole));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_backup_under_writers_is_the_store_at_one_revision() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    let writers: Vec<_> = (0..4_usize)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut done = Vec::new();
                for n in 0..250 {
                    let (key, value) = (format!("k{}", (n * 7 + writer * 31) % 97), n.to_string());
                    let mut batch = Batch::new();
                    let kept = n % 5 != 0;
                    if kept {
                        batch.put(&NOTES, &*key, &value);
                    } else {
                        batch.delete(&NOTES, &*key);
                    }
                    let revision = store.commit(batch).await.expect("a commit");
                    done.push((revision, key, kept.then_some(value)));
                }
                done
            })
        })
        .collect();
    let mut copies = Vec::new();
    for n in 0..6 {
        let (file, store) = (directory.path().join(format!("b{n}")), store.clone());
        let path = file.clone();
        let taken = tokio::task::spawn_blocking(move || store.backup(&path, false, |_| Ok(())));
        taken.await.expect("a task").expect("a backup");
        copies.push(file);
    }
    let mut history = Vec::new();
    for writer in writers {
        history.extend(writer.await.expect("a writer"));
    }
    history.sort();
    for file in copies {
        let copy = file.with_extension("copy");
        restore(&file, &copy, &options(), |_| {}).expect("a restore");
        let copy = Store::open(&copy, &options()).expect("a store");
        let revision =
            crate::log::last_revision(&disk(&copy).view.engine().expect("a database").tree);
        let revision = revision.expect("a revision");
        let mut model = Map::new();
        for (_, key, value) in history.iter().take_while(|(of, ..)| *of <= revision) {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        assert_eq!(notes(&copy), model, "at revision {revision}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_backup_that_is_stopped_or_has_no_room_leaves_nothing() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let file = directory.path().join("backup");
    let store = filled(&directory).await;
    let there = names(&data);
    let stop = |count| (count < 7).then_some(()).ok_or(StoreError::Stopped);
    let stopped = store.backup(&file, false, stop);
    assert!(matches!(stopped, Err(StoreError::Stopped)), "{stopped:?}");
    let stopped = store.backup_unnamed(stop);
    assert!(matches!(stopped, Err(StoreError::Stopped)), "{stopped:?}");
    drop(store);
    let full = Options {
        reserve_bytes: u64::MAX,
        ..options()
    };
    let store = Store::open(&data, &full).expect("a store");
    for error in [
        store.backup(&file, false, |_| Ok(())).expect_err("full"),
        store.backup_unnamed(|_| Ok(())).expect_err("full"),
    ] {
        assert!(error.to_string().contains("the reserve of"), "{error}");
    }
    drop(store);
    assert_eq!(names(directory.path()), ["data"]);
    assert_eq!(names(&data), there);
}

#[tokio::test]
async fn what_a_kill_leaves_of_a_backup_goes_and_a_file_of_the_owner_stays() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let records = everything(&filled(&directory).await);
    for name in ["backup.new", "backup", "backup.part"] {
        fs::write(data.join(name), name).expect("a file");
    }
    let store = open(&directory);
    assert!(!data.join("backup.new").exists());
    let (mut file, backup) = store.backup_unnamed(|_| Ok(())).expect("a backup");
    assert!(!data.join("backup.new").exists(), "it has no name");
    for name in ["backup", "backup.part"] {
        assert_eq!(fs::read_to_string(data.join(name)).expect("a file"), name);
    }
    let (path, copy) = (
        directory.path().join("backup"),
        directory.path().join("copy"),
    );
    let mut named = fs::File::create(&path).expect("a file");
    let bytes = std::io::copy(&mut file, &mut named).expect("a copy");
    assert_eq!(
        (bytes, backup.records),
        (backup.bytes, records.len() as u64)
    );
    restore(&path, &copy, &options(), |_| {}).expect("a restore");
    let copy = Store::open(&copy, &options()).expect("a store");
    assert_eq!(super::records(&copy), super::records(&store));
}

#[test]
fn a_backup_that_is_outrun_says_so_and_leaves_nothing() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = TempDir::new().expect("a folder");
    let file = directory.path().join("backup");
    let options = Options {
        backup_bytes: 50_000,
        ..options()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let value = "v".repeat(1000);
    let mut batch = Batch::new();
    for n in 0..1000 {
        batch.put(&NOTES, &*format!("k{n:04}"), &value);
    }
    runtime.block_on(store.commit(batch)).expect("a commit");
    // Behind the place that was reached, so that all of it has to be kept: little, then much.
    for (overwritten, fits) in [(20, true), (200, false)] {
        let backup = store.backup(&file, false, |count| {
            if count == 1 {
                let mut batch = Batch::new();
                for n in 0..overwritten {
                    batch.put(&NOTES, &*format!("k{:04}", 999 - n), &"w".repeat(1000));
                }
                runtime.block_on(store.commit(batch)).expect("a commit");
            }
            Ok(())
        });
        assert_eq!(file.exists(), fits);
        match backup {
            Ok(_) => assert!(fits),
            Err(StoreError::Outrun { max }) => assert_eq!((max, fits), (50_000, false)),
            Err(error) => panic!("{error}"),
        }
        let _gone = fs::remove_file(&file);
    }
    assert_eq!(names(directory.path()), ["data"]);
}

#[tokio::test]
async fn a_check_counts_the_records_and_contents_as_it_reads_them() {
    let directory = TempDir::new().expect("a folder");
    let store = filled(&directory).await;
    let records = everything(&store);
    // A content has one record or more, of which the first has the number 0.
    let contents = records
        .iter()
        .filter(|(key, _)| matches!(crate::blob::parse_key(key), Some((_, 0))));
    let mut told = Vec::new();
    let verified = store.verify(|count| told.push(count));
    let expected = crate::Verified {
        records: records.len() as u64,
        contents: contents.count() as u64,
        damage: Vec::new(),
    };
    assert_eq!(verified, expected);
    assert!(expected.contents > 0);
    assert_eq!(told, (1..=expected.records).collect::<Vec<_>>());
}

#[test]
fn a_store_is_filled_whenever_four_mebibytes_are_waiting_and_at_the_end() {
    const VALUE: usize = 32 * 1024;
    let database = sled::Config::new().temporary(true).open().expect("a store");
    let mut filler = Filler::new(&database);
    let put = |filler: &mut Filler<'_>, n: u32| {
        let key = n.to_be_bytes();
        filler.put(&key, &vec![1; VALUE - key.len()])
    };
    for n in 0..128 {
        put(&mut filler, n).expect("a record");
    }
    assert_eq!(database.len(), 0, "4 MiB wait, and no more");
    put(&mut filler, 128).expect("a record");
    assert_eq!(database.len(), 129);
    put(&mut filler, 129).expect("a record");
    filler.remove(&0_u32.to_be_bytes()).expect("a record");
    assert_eq!(database.len(), 129, "it begins anew");
    filler.finish().expect("a store");
    assert_eq!(database.len(), 129, "one more, and one less");
    assert_eq!(database.get(0_u32.to_be_bytes()).expect("a tree"), None);
}
