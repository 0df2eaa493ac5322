use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::store::tests::{everything, filled, open, options};
use crate::store::{Batch, Content, OpenError};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// A store of which compaction makes a smaller one.
async fn wasteful(directory: &TempDir) -> Store {
    let store = filled(directory).await;
    for round in 0_u8..40 {
        let content = crate::store::tests::noise(300_000, round);
        let mut batch = Batch::new();
        batch.content(&Content::pack(Digest::of(&content), &content));
        store.commit(batch).await.expect("a commit");
    }
    store
}

#[tokio::test]
async fn a_kill_at_any_step_of_compaction_leaves_a_directory_that_opens_whole() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let store = wasteful(&directory).await;
    let first: Vec<_> = (0..30_u8)
        .map(|n| Digest::of(&crate::store::tests::noise(usize::from(n) * 3_000, 7)))
        .collect();
    let log = store.log_id().to_owned();
    let mut states = Vec::new();
    let compacted = run(
        store,
        &options(),
        |digest| first.contains(digest),
        |_| (),
        |step| {
            // What a process that is killed here leaves behind.
            let state = directory.path().join(format!("{step:?}"));
            copy(&data, &state);
            states.push((step, state));
        },
    )
    .expect("compaction");
    assert!(compacted.replaced && compacted.after < compacted.before);
    let steps: Vec<_> = states.iter().map(|(step, _)| *step).collect();
    assert_eq!(
        steps,
        [Step::Filling, Step::Filled, Step::Exchanged, Step::Removed]
    );
    let is_kept = |key: &[u8]| {
        let digest = crate::store::blob::parse_key(key).map(|(bytes, _)| Digest::from(bytes));
        key.first() != Some(&3) || digest.is_some_and(|digest| first.contains(&digest))
    };
    let kept = |store: &Store| -> Vec<_> {
        let mut records = everything(store);
        records.retain(|(key, _)| is_kept(key));
        records
    };
    let expected = kept(&open(&directory));
    assert_eq!(
        everything(&open(&directory)),
        expected,
        "only what is used is left"
    );
    for (step, state) in states {
        let store =
            Store::open(&state, &options()).unwrap_or_else(|error| panic!("{step:?}: {error}"));
        assert_eq!(kept(&store), expected, "{step:?}");
        assert_eq!(store.log_id(), log, "{step:?}");
        assert_eq!(
            store.verify(|_| {}).damage,
            Vec::<String>::new(),
            "{step:?}"
        );
        drop(store);
        let mut names: Vec<_> = fs::read_dir(&state)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["FORMAT", "last", "lock", "store"], "{step:?}");
    }
}

#[tokio::test]
async fn a_store_with_nothing_to_gain_stays_as_it_is_and_so_does_one_that_is_in_use() {
    let directory = TempDir::new().expect("a folder");
    let store = filled(&directory).await;
    let other = store.clone();
    let error = compact(store, &options(), |_| true, |_| ()).expect_err("it is in use");
    assert!(error.to_string().contains("still in use"), "{error}");
    let before = everything(&other);
    let first = compact(other, &options(), |_| true, |_| ()).expect("compaction");
    let again = compact(open(&directory), &options(), |_| true, |_| ()).expect("compaction");
    assert!(!again.replaced, "{first:?}, then {again:?}");
    let store = open(&directory);
    assert_eq!(everything(&store), before);
    assert!(!directory.path().join("data/store.new").exists());
}

#[tokio::test]
async fn nobody_opens_a_directory_while_it_is_compacted() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let mut refused = Vec::new();
    run(
        wasteful(&directory).await,
        &options(),
        |_| false,
        |_| (),
        |step| {
            let error = Store::open(&data, &options()).expect_err("in use");
            refused.push((step, matches!(error, OpenError::InUse { .. })));
        },
    )
    .expect("compaction");
    assert_eq!(
        refused,
        [
            (Step::Filling, true),
            (Step::Filled, true),
            (Step::Exchanged, true),
            (Step::Removed, true)
        ]
    );
    drop(open(&directory));
}

#[tokio::test]
async fn only_the_owner_reads_a_directory_whatever_the_modes_were() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let file = directory.path().join("backup");
    let store = wasteful(&directory).await;
    store.backup(&file, false, |_| {}).expect("a backup");
    compact(store, &options(), |_| false, |_| ()).expect("compaction");
    let open_to_all = fs::Permissions::from_mode(0o755);
    for name in ["", "store", "store/db", "last"] {
        fs::set_permissions(data.join(name), open_to_all.clone()).expect("a mode");
    }
    drop(open(&directory));
    let readable = |folder: &Path| -> Vec<_> {
        walkdir::WalkDir::new(folder)
            .into_iter()
            .map(|entry| entry.expect("an entry"))
            .filter(|entry| entry.metadata().expect("metadata").permissions().mode() & 0o077 != 0)
            .map(|entry| entry.path().to_owned())
            .collect()
    };
    assert_eq!(readable(&data), Vec::<std::path::PathBuf>::new());
    assert_eq!(readable(&file), Vec::<std::path::PathBuf>::new());
    let restored = directory.path().join("restored");
    crate::store::restore(&file, &restored, &options(), |_| {}).expect("a restore");
    drop(Store::open(&restored, &options()).expect("a store"));
    assert_eq!(readable(&restored), Vec::<std::path::PathBuf>::new());
}
