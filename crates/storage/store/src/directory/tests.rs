use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::tests::{everything, filled, open as open_store, options, put, records as kept};
use crate::{Store, restore};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    names.sort();
    names
}

fn snapshot(data: &Path) -> PathBuf {
    let name = names(&data.join("store"))
        .into_iter()
        .find(|name| name.starts_with("snap."))
        .expect("a snapshot");
    data.join("store").join(name)
}

#[tokio::test]
async fn a_snapshot_that_a_kill_left_unfinished_is_no_damage() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let records = everything(&filled(&directory).await);
    for left in ["", "half a snapshot"] {
        for lsn in ["0000000000000001", "FFFFFFFFFFFFFFFF"] {
            let unfinished = data.join(format!("store/snap.{lsn}.generating"));
            fs::write(&unfinished, left).expect("a file");
            assert_eq!(everything(&open_store(&directory)), records);
            assert!(
                !unfinished.exists(),
                "it would be in the way of the next one"
            );
        }
    }
}

#[tokio::test]
async fn a_damaged_snapshot_is_set_aside_and_the_directory_opens_whole() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let records = everything(&filled(&directory).await);
    // The first start after the writes makes a snapshot.
    drop(open_store(&directory));
    let whole = fs::read(snapshot(&data)).expect("a file");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let half = whole[..whole.len() / 2].to_vec();
    for (count, damaged) in (1..).zip([Vec::new(), flipped, half, vec![0; 4096]]) {
        fs::write(snapshot(&data), damaged).expect("a file");
        assert_eq!(everything(&open_store(&directory)), records);
        assert_eq!(names(&data.join("aside")).len(), count);
        assert_eq!(everything(&open_store(&directory)), records);
    }
    // One with a right checksum that belongs to no log of ours.
    let state = [7_u8; 40];
    let mut foreign = state.to_vec();
    foreign.extend_from_slice(&40_u64.to_le_bytes());
    foreign.extend_from_slice(&crc32fast::hash(&state).to_le_bytes());
    fs::write(data.join("store/snap.FFFFFFFFFFFFFFF0"), foreign).expect("a file");
    assert_eq!(everything(&open_store(&directory)), records);
}

#[tokio::test]
async fn damaged_constants_are_written_anew() {
    let directory = TempDir::new().expect("a folder");
    let conf = directory.path().join("data/store/conf");
    let records = everything(&filled(&directory).await);
    let whole = fs::read(&conf).expect("a file");
    for damaged in [&b""[..], b"segment_size: 524288\n", &whole[..20], &[0; 63]] {
        fs::write(&conf, damaged).expect("a file");
        assert_eq!(everything(&open_store(&directory)), records);
        assert_eq!(fs::read(&conf).expect("a file"), whole);
    }
    fs::remove_file(&conf).expect("a file");
    assert_eq!(everything(&open_store(&directory)), records);
}

#[tokio::test]
async fn an_empty_volume_will_do_for_a_start_and_for_a_restore() {
    let directory = TempDir::new().expect("a folder");
    let (data, file) = (
        directory.path().join("data"),
        directory.path().join("backup"),
    );
    fs::create_dir_all(data.join("lost+found")).expect("a folder");
    let store = filled(&directory).await;
    let records = kept(&store);
    store.backup(&file, false, |_| Ok(())).expect("a backup");
    drop(store);
    assert_eq!(
        names(&data),
        ["FORMAT", "last", "lock", "lost+found", "store"]
    );
    let volume = directory.path().join("volume");
    fs::create_dir_all(volume.join("lost+found")).expect("a folder");
    restore(&file, &volume, &options(), |_| {}).expect("a restore");
    let store = Store::open(&volume, &options()).expect("a store");
    assert_eq!(kept(&store), records);
    assert_eq!(
        names(directory.path()),
        ["backup", "data", "volume"],
        "nothing lies outside"
    );
}

/// A start of a directory of today's format has nothing to raise.
#[tokio::test]
async fn a_start_leaves_the_format_file_as_it_is() {
    let directory = TempDir::new().expect("a folder");
    let file = || {
        let file = fs::metadata(directory.path().join("data/FORMAT")).expect("a file");
        std::os::unix::fs::MetadataExt::ino(&file)
    };
    drop(open_store(&directory));
    let before = file();
    drop(open_store(&directory));
    assert_eq!(file(), before);
}

#[tokio::test]
async fn a_restore_that_was_cut_short_is_no_empty_directory_and_can_be_repeated() {
    let directory = TempDir::new().expect("a folder");
    let file = directory.path().join("backup");
    let store = filled(&directory).await;
    let records = kept(&store);
    store.backup(&file, false, |_| Ok(())).expect("a backup");
    drop(store);
    // What a kill leaves: after the folder, after FORMAT.new, after FORMAT.
    for (marks, number) in [&[][..], &["FORMAT.new"], &["FORMAT"]].iter().zip(0..) {
        let data = directory.path().join(number.to_string());
        fs::create_dir_all(data.join("store.restoring/blobs")).expect("a folder");
        for mark in *marks {
            fs::copy(directory.path().join("data/FORMAT"), data.join(mark)).expect("a copy");
        }
        let error = Store::open(&data, &options())
            .expect_err("it is not whole")
            .to_string();
        assert!(
            error.contains("a restore or salvage into it was cut short; run it again"),
            "{error}"
        );
        restore(&file, &data, &options(), |_| {}).expect("a restore");
        let store = Store::open(&data, &options()).expect("a store");
        assert_eq!(kept(&store), records);
        assert_eq!(names(&data), ["FORMAT", "last", "lock", "store"]);
    }
}

#[tokio::test]
async fn nobody_opens_a_directory_while_it_is_restored() {
    let directory = TempDir::new().expect("a folder");
    let (file, data) = (
        directory.path().join("backup"),
        directory.path().join("new"),
    );
    let store = filled(&directory).await;
    store.backup(&file, false, |_| Ok(())).expect("a backup");
    let mut looked = 0;
    restore(&file, &data, &options(), |count| {
        if count == 20 {
            let error = Store::open(&data, &options()).expect_err("in use");
            assert!(matches!(error, OpenError::InUse { .. }), "{error}");
            let error = restore(&file, &data, &options(), |_| {}).expect_err("in use");
            assert!(error.to_string().contains("in use"), "{error}");
            looked += 1;
        }
    })
    .expect("a restore");
    assert_eq!(looked, 1);
    drop(Store::open(&data, &options()).expect("a store"));
}

#[tokio::test]
async fn no_new_directory_is_made_where_an_earlier_version_was_cut_short() {
    for ending in [".old", ".new"] {
        let directory = TempDir::new().expect("a folder");
        let data = directory.path().join("data");
        drop(filled(&directory).await);
        fs::rename(&data, directory.path().join(format!("data{ending}"))).expect("a rename");
        let error = Store::open(&data, &options())
            .expect_err("not whole")
            .to_string();
        assert!(
            error.contains(&format!("data{ending}` next to it holds")),
            "{error}"
        );
        assert!(error.contains("give that one the name"), "{error}");
        assert!(!data.join("FORMAT").exists());
    }
}

#[tokio::test]
async fn a_directory_that_lost_a_file_says_which_and_is_not_made_anew() {
    let lost = [
        ("FORMAT", "its FORMAT file is missing"),
        ("store/db", "the file `store/db` is missing"),
        ("store", "the file `store/db` is missing"),
    ];
    for (name, reason) in lost {
        let directory = TempDir::new().expect("a folder");
        let path = directory.path().join("data").join(name);
        drop(filled(&directory).await);
        fs::rename(&path, directory.path().join("lost")).expect("a rename");
        // Without `last`, nothing else would tell.
        if name != "FORMAT" {
            fs::remove_file(directory.path().join("data/last")).expect("a file");
        }
        let data = directory.path().join("data");
        let error = Store::open(&data, &options()).expect_err("damaged");
        assert!(matches!(&error, OpenError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!path.exists());
    }
}

#[tokio::test]
async fn a_backup_overwrites_nothing_unasked_and_nothing_may_lie_behind_its_end() {
    let directory = TempDir::new().expect("a folder");
    let (file, copy) = (
        directory.path().join("backup"),
        directory.path().join("copy"),
    );
    let store = filled(&directory).await;
    fs::write(&file, "years of work").expect("a file");
    let error = store
        .backup(&file, false, |_| Ok(()))
        .expect_err("it is there");
    assert!(error.to_string().contains("exists"), "{error}");
    assert_eq!(fs::read(&file).expect("a file"), b"years of work");
    store.backup(&file, true, |_| Ok(())).expect("a backup");
    assert_eq!(names(directory.path()), ["backup", "data"]);
    let whole = fs::read(&file).expect("a file");
    let packed = zstd::bulk::compress(b"more", 1).expect("packed");
    for more in [&b"x"[..], &[0; 4096], &packed, &whole[20..]] {
        fs::write(&file, [&whole, more].concat()).expect("a file");
        let error = restore(&file, &copy, &options(), |_| {}).expect_err("junk");
        assert!(error.to_string().contains("behind its end"), "{error}");
        assert!(!copy.exists());
    }
}

/// Without its FORMAT file a directory is one of ours where it has all else that ours have.
#[test]
fn a_directory_with_some_of_the_names_of_ours_is_somebody_elses() {
    let directory = TempDir::new().expect("a folder");
    for (name, files) in [
        ("database", &["store/db"][..]),
        ("mark", &["last"]),
        ("other", &["store/goods.csv", "last"]),
    ] {
        let data = directory.path().join(name);
        fs::create_dir_all(data.join("store")).expect("a folder");
        for file in files {
            fs::write(data.join(file), "theirs").expect("a file");
        }
        let error = Store::open(&data, &options()).expect_err("it is not ours");
        assert!(
            matches!(error, OpenError::NotOurs { .. }),
            "{name}: {error}"
        );
        for file in files {
            assert_eq!(fs::read(data.join(file)).expect("a file"), b"theirs");
        }
    }
}

#[tokio::test]
async fn a_database_that_was_exchanged_for_another_one_is_refused() {
    let (one, other) = (
        TempDir::new().expect("a folder"),
        TempDir::new().expect("a folder"),
    );
    for directory in [&one, &other] {
        let store = open_store(directory);
        store.commit(put("a", "1")).await.expect("a commit");
    }
    let database = "data/store/db";
    fs::copy(other.path().join(database), one.path().join(database)).expect("a copy");
    let error = Store::open(&one.path().join("data"), &options()).expect_err("another one");
    assert!(
        error
            .to_string()
            .contains("it is of another origin than its file `last`"),
        "{error}"
    );
}

/// An earlier version has the lock of the database, and no other.
#[test]
fn a_database_that_stays_open_elsewhere_is_given_up_after_a_while() {
    let folder = TempDir::new().expect("a folder");
    let store = folder.path().join("store");
    let held = engine(&store, &options()).expect("a database");
    let refused = engine(&store, &options()).expect_err("it is in use");
    assert_eq!(refused, Cause::Locked);
    drop(held);
    engine(&store, &options()).expect("a database");
}

#[test]
fn a_folder_that_is_cleared_stays_and_has_nothing_in_it() {
    let directory = TempDir::new().expect("a folder");
    let folder = directory.path().join("folder");
    clear(&folder).expect("none is there");
    assert!(!folder.exists());
    fs::create_dir_all(folder.join("a/b")).expect("a folder");
    fs::write(folder.join("a/b/file"), "x").expect("a file");
    fs::write(folder.join("file"), "x").expect("a file");
    clear(&folder).expect("a folder");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
}
