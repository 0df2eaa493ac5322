mod failing;
mod serving;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::tests::{everything, filled, noise, open, options};
use crate::{Batch, Content, OpenError};

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

fn content(seed: u8) -> (Digest, Bytes, Batch) {
    let bytes = noise(70_000, seed);
    let digest = Digest::of(&bytes);
    let mut batch = Batch::new();
    batch.content(&Content::pack(digest, &bytes));
    (digest, bytes, batch)
}

fn has_new_folder(directory: &TempDir) -> bool {
    directory.path().join("data/store.new").exists()
}

/// Opens it again, and looks whether it is whole and holds the same.
fn assert_holds(directory: &TempDir, expected: &[(Vec<u8>, Vec<u8>)]) {
    let store = open(directory);
    assert!(
        everything(&store) == expected,
        "other records after a start"
    );
    assert_eq!(store.verify(|_| {}).damage, Vec::<String>::new());
}

/// Compacts a store, and does something at each step.
fn compacted(
    store: &Store,
    keep: impl Fn(&Digest) -> bool,
    reached: impl Fn(Step) + Send + Sync + 'static,
) -> Result<Compacted, StoreError> {
    let compaction = Compaction::begin(store)?;
    compaction.steps(keep, |_| Ok(()), &(Arc::new(reached) as Reached))
}

/// The same on a thread that may block.
async fn compacted_beside(
    store: Store,
    keep: impl Fn(&Digest) -> bool + Send + 'static,
    reached: impl Fn(Step) + Send + Sync + 'static,
) -> Result<Compacted, StoreError> {
    let task = tokio::task::spawn_blocking(move || compacted(&store, keep, reached));
    task.await.expect("a task")
}

pub(crate) fn copy(from: &Path, to: &Path) {
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
        let content = noise(300_000, round);
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
        .map(|n| Digest::of(&noise(usize::from(n) * 3_000, 7)))
        .collect();
    let log = store.log_id().to_owned();
    let states = Arc::new(Mutex::new(Vec::new()));
    let (kept_ones, reached) = (first.clone(), Arc::clone(&states));
    let folder = directory.path().to_owned();
    let done = compacted_beside(
        store,
        move |digest| kept_ones.contains(digest),
        move |step| {
            // What a process that is killed here leaves behind.
            let state = folder.join(format!("{step:?}"));
            copy(&data, &state);
            reached.lock().expect("a lock").push((step, state));
        },
    );
    let done = done.await.expect("compaction");
    assert!(done.replaced && done.after < done.before);
    let states = std::mem::take(&mut *states.lock().expect("a lock"));
    let steps: Vec<_> = states.iter().map(|(step, _)| *step).collect();
    assert_eq!(
        steps,
        [
            Step::Filling,
            Step::Filled,
            Step::Followed,
            Step::Held,
            Step::Swapped,
            Step::Exchanged,
            Step::Removed
        ]
    );
    let is_kept = |key: &[u8]| {
        let digest = crate::blob::parse_key(key).map(|(digest, _)| digest);
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
async fn a_store_with_nothing_to_gain_stays_as_it_is() {
    let directory = TempDir::new().expect("a folder");
    let store = filled(&directory).await;
    let before = everything(&store);
    let first = compacted_beside(store.clone(), |_| true, |_| ()).await;
    let again = compacted_beside(store.clone(), |_| true, |_| ()).await;
    let again = again.expect("compaction");
    assert!(!again.replaced, "{first:?}, then {again:?}");
    assert_eq!(everything(&store), before);
    assert!(!directory.path().join("data/store.new").exists());
    drop(store);
    assert_eq!(everything(&open(&directory)), before);
}

#[tokio::test]
async fn nobody_opens_a_directory_or_compacts_it_while_it_is_compacted() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let refused = Arc::new(Mutex::new(Vec::new()));
    let store = wasteful(&directory).await;
    let (told, atomic_file) = (Arc::clone(&refused), store.clone());
    let done = compacted_beside(
        store,
        |_| false,
        move |step| {
            let opened = Store::open(&data, &options());
            let in_use = matches!(opened, Err(OpenError::InUse { .. }));
            let begun = Compaction::begin(&atomic_file);
            let compacting = matches!(begun, Err(StoreError::Compacting));
            told.lock()
                .expect("a lock")
                .push((step, in_use, compacting));
        },
    );
    done.await.expect("compaction");
    let steps = [
        Step::Filling,
        Step::Filled,
        Step::Followed,
        Step::Held,
        Step::Swapped,
        Step::Exchanged,
        Step::Removed,
    ];
    assert_eq!(
        *refused.lock().expect("a lock"),
        steps.map(|step| (step, true, true))
    );
    drop(refused);
    drop(open(&directory));
}

#[tokio::test]
async fn only_the_owner_reads_a_directory_whatever_the_modes_were() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data");
    let file = directory.path().join("backup");
    let store = wasteful(&directory).await;
    store.backup(&file, false, |_| Ok(())).expect("a backup");
    let done = compacted_beside(store, |_| false, |_| ()).await;
    assert!(done.expect("compaction").replaced);
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
    crate::restore(&file, &restored, &options(), |_| {}).expect("a restore");
    drop(Store::open(&restored, &options()).expect("a store"));
    assert_eq!(readable(&restored), Vec::<std::path::PathBuf>::new());
}
