//! No workload makes sled write a file for a page.

use super::*;

fn blobs(directory: &TempDir) -> usize {
    fs::read_dir(directory.path().join("data/store/blobs"))
        .expect("a folder")
        .count()
}

#[tokio::test]
async fn records_of_every_size_read_back_and_leave_no_file_that_is_never_freed() {
    let directory = TempDir::new().expect("a folder");
    let mut store = open(&directory);
    // Around a chunk, a full leaf, a quarter of a segment and a segment.
    let sizes = [
        0,
        1,
        32_700,
        32_768,
        32_830,
        65_536,
        70_000,
        1 << 20,
        5 << 20,
    ];
    for round in 0..3 {
        for (n, size) in sizes.iter().enumerate() {
            let (key, other) = (format!("k{n}"), sizes[(n + round) % sizes.len()]);
            store
                .commit(put(&key, &"a".repeat(*size)))
                .await
                .expect("a commit");
            store
                .commit(put(&key, &"b".repeat(other)))
                .await
                .expect("a commit");
            assert_eq!(note(&store, &key), Some("b".repeat(other)));
        }
        let scanned: Vec<usize> = store
            .scan(&NOTES, b"")
            .map(|entry| entry.expect("a record").1.value.len())
            .collect();
        let newest = store.before(&NOTES, b"", None, 100).expect("records");
        let mut lengths: Vec<usize> = newest.iter().map(String::len).collect();
        lengths.reverse();
        assert_eq!(scanned, lengths);
        drop(store);
        store = open(&directory);
    }
    assert_eq!(store.verify(|_| {}).damage, Vec::<String>::new());
    for n in 0..sizes.len() {
        let mut batch = Batch::new();
        batch.delete(&NOTES, &*format!("k{n}"));
        store.commit(batch).await.expect("a commit");
    }
    let left: Vec<_> = everything(&store)
        .into_iter()
        .map(|(key, _)| TableId::of(&key))
        .collect();
    assert_eq!(left, [Some(TableId::Meta); 2], "chunks stay");
    drop(store);
    assert_eq!(blobs(&directory), 0);
}

#[tokio::test]
async fn full_leaves_of_the_largest_records_and_keys_that_merge_again_leave_no_file() {
    let directory = TempDir::new().expect("a folder");
    let store = open(&directory);
    // A key of a table: its byte, the text, and a NUL.
    let key = |n: usize| format!("{n:03}{}", "k".repeat(2048 - 5));
    let largest = "v".repeat(32_768 + 62);
    for n in 0..120 {
        store
            .commit(put(&key(n), &largest))
            .await
            .expect("a commit");
    }
    // Leaves of three or fewer records are merged with their neighbours.
    for n in (0..120).filter(|n| n % 5 != 0) {
        let mut batch = Batch::new();
        batch.delete(&NOTES, &*key(n));
        store.commit(batch).await.expect("a commit");
    }
    for n in 0..120 {
        store
            .commit(put(&key(n), &largest))
            .await
            .expect("a commit");
    }
    assert_eq!(store.scan(&NOTES, b"").count(), 120);
    let error = store.commit(put(&format!("{}k", key(0)), "1")).await;
    let error = error.expect_err("too long");
    assert_eq!(
        error.to_string(),
        "the key of a record has 2049 bytes; at most 2048 are accepted"
    );
    drop(store);
    assert_eq!(blobs(&directory), 0);
}
