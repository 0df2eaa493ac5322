use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::engine_log::tests::{filler, message, place, segment, setting, store as log_of};
use crate::tests::{noise, note, open, options, put};
use crate::{Content, OpenError, Store, directory, salvage};
use model::Digest;

type Damage = Box<dyn Fn(&mut Vec<u8>)>;

/// A directory whose log has some segments since it was opened last, and before.
async fn long(directory: &TempDir) {
    for round in 0..2_u8 {
        let store = open(directory);
        for n in 0..4 + round * 30 {
            let content = noise(500_000, round * 40 + n);
            let mut batch = put(&format!("key-{n:03}"), &format!("round {round}"));
            batch.content(&Content::pack(Digest::of(&content), &content));
            store.commit(batch).await.expect("a commit");
        }
    }
}

fn copy(from: &Path, to: &Path) {
    for (name, bytes) in below(from) {
        let file = to.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, bytes).expect("a file");
    }
    fs::create_dir_all(to.join("store/blobs")).expect("a folder");
}

/// All files, with what is in them.
fn below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walkdir::WalkDir::new(folder).into_iter();
    let files = files.map(|entry| entry.expect("an entry"));
    files
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let name = entry.path().strip_prefix(folder).expect("below it");
            (name.to_owned(), fs::read(entry.path()).expect("a file"))
        })
        .collect()
}

fn salvaged(from: &Path, to: &Path) -> (u64, Revision) {
    let salvaged = salvage(from, to, &options(), |_| ()).expect("what is whole");
    let salvaged = salvaged.complete().expect("a directory");
    fs::remove_dir_all(to).expect("a folder");
    (salvaged.records, salvaged.revision)
}

#[tokio::test]
async fn a_directory_that_is_refused_is_left_as_the_damage_left_it() {
    let folder = TempDir::new().expect("a folder");
    long(&folder).await;
    let data = folder.path().join("data");
    let snapshot = leftovers::newest_snapshot(&directory::store_path(&data)).expect("a folder");
    let whole = fs::read(data.join("store/db")).expect("a file");
    // By their place in the log. What is in the last one may be behind the last write.
    let since: BTreeMap<u64, usize> = (0..whole.len())
        .step_by(SEGMENT_BYTES)
        .filter_map(|offset| Some((engine_log::header(&whole[offset..])?.number, offset)))
        .filter(|(number, _)| *number > snapshot / SEGMENT_LENGTH)
        .collect();
    let mut since: Vec<usize> = since.into_values().collect();
    since.pop();
    assert!(since.len() >= 3, "{} segments", since.len());
    let (first, last) = (since[0], since[since.len() - 1]);
    let cases: Vec<(&str, Damage)> = vec![
        (
            "a bit of the first one",
            Box::new(move |db| db[first + 90_000] ^= 4),
        ),
        (
            "a bit of the one in the middle",
            Box::new({
                let at = since[since.len() / 2] + 2_000_000;
                move |db| db[at] ^= 4
            }),
        ),
        (
            "a page of the last one",
            Box::new(move |db| db[last + 4096..last + 8192].fill(0)),
        ),
        (
            "the header of the first one",
            Box::new(move |db| db[first] ^= 1),
        ),
        (
            "the header of the last one",
            Box::new(move |db| db[last + 5] ^= 1),
        ),
        (
            "the beginning of one",
            Box::new({
                let at = since[1];
                move |db| db[at..at + 4096].fill(0)
            }),
        ),
        (
            "cut in the last one",
            Box::new(move |db| db.truncate(last + 4096)),
        ),
        (
            "cut before the snapshot",
            Box::new(move |db| db.truncate(SEGMENT_BYTES)),
        ),
        ("empty", Box::new(Vec::clear)),
    ];
    for (what, damage) in cases {
        let damaged = folder.path().join("damaged");
        copy(&data, &damaged);
        let mut db = whole.clone();
        damage(&mut db);
        fs::write(damaged.join("store/db"), &db).expect("a file");
        let (before, saved) = (below(&damaged), folder.path().join("saved"));
        let could = salvaged(&damaged, &saved);
        for _ in 0..2 {
            let refused = Store::open(&damaged, &options()).err();
            let refused = refused.unwrap_or_else(|| panic!("{what} is not noticed"));
            assert!(
                matches!(refused, OpenError::Damaged { .. }),
                "{what}: {refused}"
            );
            let said = refused.to_string();
            assert!(
                said.contains("write 38") && said.contains("acknowledged"),
                "{what}: {said}"
            );
        }
        let after = below(&damaged);
        assert!(after.keys().eq(before.keys()), "{what}: {:?}", after.keys());
        for (name, bytes) in &before {
            assert!(
                after[name] == *bytes,
                "{what}: {} is another",
                name.display()
            );
        }
        assert_eq!(salvaged(&damaged, &saved), could, "{what}");
        fs::remove_dir_all(damaged).expect("a folder");
    }
}

#[tokio::test]
async fn what_nobody_was_told_of_may_be_cut_off() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let store = open(&folder);
    store.commit(put("first", "1")).await.expect("a commit");
    let noted = fs::read(data.join("last")).expect("a file");
    for n in 0..10 {
        let later = put("later", &format!("number {n}"));
        store.commit(later).await.expect("a commit");
    }
    drop(store);
    let file = data.join("store/db");
    let mut db = fs::read(&file).expect("a file");
    let at = db.windows(8).position(|bytes| bytes == b"number 6");
    db[at.expect("a write")] ^= 1;
    fs::write(&file, db).expect("a file");
    let refused = Store::open(&data, &options()).expect_err("it was acknowledged");
    let said = refused.to_string();
    assert!(
        said.contains("it ends with write 7, but write 11"),
        "{said}"
    );
    fs::write(data.join("last"), noted).expect("a file");
    let store = open(&folder);
    assert_eq!(note(&store, "later"), Some("number 5".to_owned()));
}

#[tokio::test]
async fn a_store_that_was_written_anew_has_to_be_whole_to_its_end() {
    let folder = TempDir::new().expect("a folder");
    let (backup, data) = (folder.path().join("backup"), folder.path().join("restored"));
    let store = open(&folder);
    for n in 0..10 {
        let later = put(&format!("note-{n}"), &format!("number {n}"));
        store.commit(later).await.expect("a commit");
    }
    store.backup(&backup, false, |_| Ok(())).expect("a backup");
    crate::restore(&backup, &data, &options(), |_| ()).expect("restored");
    let file = data.join("store/db");
    let mut db = fs::read(&file).expect("a file");
    let at = db.windows(8).position(|bytes| bytes == b"number 6");
    db[at.expect("a write")] ^= 1;
    fs::write(&file, db).expect("a file");
    let before = below(&data);
    let refused = Store::open(&data, &options()).expect_err("it is damaged");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert!(below(&data) == before);
}

/// A commit of this number, and what makes a batch of the messages up to a place.
fn commit(segment: u64, revision: Revision) -> Vec<u8> {
    let key = log::revision_key();
    let value = record::seal(key, revision, &revision.to_be_bytes());
    message(kind::INLINE_LINK_TAG, segment, 7, &setting(key, &value))
}

fn batch(segment: u64, last: u64) -> Vec<u8> {
    message(kind::BATCH_TAG, segment, 0, &last.to_le_bytes())
}

/// How far a log is whole that is read from a segment on, up to a place, or to a write.
fn seen(segments: &[Vec<u8>], first: u64, goal: u64, acknowledged: Option<Revision>) -> LogState {
    let store = log_of(segments);
    let walk =
        LogWalk::open(store.path(), first * SEGMENT_LENGTH, goal, acknowledged).expect("a log");
    walk.run().expect("what is there")
}

#[test]
fn a_write_is_there_with_the_last_message_of_its_batch_and_not_before_it() {
    let other = message(kind::FREE_TAG, 0, 9, &[]);
    let before = [commit(0, 4), batch(0, 0), commit(0, 5)];
    let last = place(0, &before);
    let begun = [commit(0, 4), batch(0, last), commit(0, 5)];
    let whole = [&begun[..], &[other]].concat();
    let seen = |messages: &[Vec<u8>]| seen(&[segment(0, 0, messages)], 0, 0, Some(5));
    assert_eq!(seen(&begun), LogState::Cut(Some(4)));
    assert_eq!(seen(&whole), LogState::Whole);
}

#[test]
fn a_log_is_whole_that_ends_where_it_has_to_and_cut_one_byte_before() {
    let messages = [commit(0, 4), message(kind::FREE_TAG, 0, 9, &[])];
    let end = place(0, &messages);
    let seen = |goal: u64, write| seen(&[segment(0, 0, &messages)], 0, goal, write);
    assert_eq!(seen(end, None), LogState::Whole);
    assert_eq!(seen(end + 1, None), LogState::Cut(Some(4)));
    assert_eq!(seen(end, Some(4)), LogState::Whole);
    assert_eq!(seen(end, Some(5)), LogState::Cut(Some(4)));
    assert_eq!(seen(end + 1, Some(4)), LogState::Cut(Some(4)));
}

#[test]
fn a_segment_goes_on_for_as_long_as_a_message_fits() {
    let rest = |left: usize| {
        let first = [commit(0, 4)];
        let used = SEGMENT_HEADER_BYTES + first[0].len();
        let first = [&first[..], &[filler(0, used, left)]].concat();
        let segments = [segment(0, 0, &first), segment(1, 0, &[commit(1, 5)])];
        seen(&segments, 0, 0, Some(5))
    };
    assert_eq!(rest(MAX_HEADER_BYTES - 1), LogState::Whole);
    assert_eq!(rest(MAX_HEADER_BYTES), LogState::Cut(Some(4)));
}

#[test]
fn a_segment_may_be_missing_below_the_place_that_was_written_when_the_last_was_begun() {
    let cap = |number| message(kind::CAP_TAG, number, 0, &[]);
    let first = segment(0, 0, &[commit(0, 4), cap(0)]);
    let last = |stable| segment(2, stable, &[commit(2, 6)]);
    let log = |stable| [first.clone(), last(stable)];
    let seen = |segments: &[Vec<u8>]| seen(segments, 0, 0, Some(6));
    assert_eq!(seen(&log(1)), LogState::Cut(Some(4)));
    assert_eq!(seen(&log(2)), LogState::Whole);
    // It is there, but for its header.
    let mut headless = segment(1, 0, &[commit(1, 5), cap(1)]);
    headless[..SEGMENT_HEADER_BYTES].fill(0);
    let all = [first.clone(), headless, last(2)];
    assert_eq!(seen(&all), LogState::Cut(Some(4)));
    let from_it = super::tests::seen(&all, 1, 0, Some(6));
    assert_eq!(from_it, LogState::Cut(Some(4)));
}

#[test]
fn a_segment_that_was_begun_anew_is_passed_where_later_ones_rest_on_it_no_more() {
    let later = message(kind::FREE_TAG, 3, 9, &[]);
    let reused = |end: &Vec<u8>| segment(0, 0, &[commit(0, 4), end.clone()]);
    let last = |stable| segment(1, stable, &[commit(1, 5)]);
    let seen = |end, stable| seen(&[reused(end), last(stable)], 0, 0, Some(5));
    assert_eq!(seen(&later, 1), LogState::Whole);
    assert_eq!(
        seen(&later, 0),
        LogState::Cut(Some(4)),
        "it is one of the last"
    );
    let mut torn = later.clone();
    torn[0] ^= 1;
    assert_eq!(seen(&torn, 1), LogState::Cut(Some(4)), "nothing is there");
    let own = [torn.clone(), message(kind::FREE_TAG, 0, 9, &[])].concat();
    assert_eq!(seen(&own, 1), LogState::Cut(Some(4)), "it goes on itself");
}

#[test]
fn the_last_write_may_lie_before_the_snapshot_where_nothing_follows_it() {
    let (cap, free) = (
        message(kind::CAP_TAG, 0, 0, &[]),
        message(kind::FREE_TAG, 1, 9, &[]),
    );
    let before = segment(0, 0, &[commit(0, 4), cap]);
    let after = |messages: &[Vec<u8>]| [before.clone(), segment(1, 1, messages)];
    let goal = SEGMENT_LENGTH + SEGMENT_HEADER_BYTES as u64;
    let seen = |segments: &[Vec<u8>], write| seen(segments, 1, goal, Some(write));
    assert_eq!(
        seen(&after(std::slice::from_ref(&free)), 4),
        LogState::Whole
    );
    // Behind what cannot be read may be anything: then the write itself is looked for.
    let torn = after(&[free, vec![9; 100]]);
    assert_eq!(seen(&torn, 4), LogState::Whole);
    assert_eq!(seen(&torn, 5), LogState::Cut(Some(4)));
    assert_eq!(seen(&after(&[]), 4), LogState::Whole, "it ends at the goal");
    let later = after(&[commit(1, 5)]);
    assert_eq!(
        seen(&later, 6),
        LogState::Cut(Some(5)),
        "there is a later one"
    );
    let alone = [segment(1, 1, &[])];
    assert_eq!(seen(&alone, 4), LogState::Whole, "the snapshot has it");
}

#[test]
fn a_log_without_the_write_that_was_acknowledged_is_cut_also_where_nothing_follows() {
    let free = [message(kind::FREE_TAG, 0, 1, &[])];
    let log = log_of(&[segment(0, 0, &free)]);
    let look = |acknowledged| inspect_all(log.path(), acknowledged).expect("a log");
    assert_eq!(look(Some(3)), LogState::Cut(None));
    assert_eq!(look(None), LogState::Whole);
}

#[test]
fn a_segment_that_is_full_is_read_up_to_the_next_one() {
    let full = [message(kind::CAP_TAG, 2, 0, &[])];
    let log = log_of(&[segment(2, 1, &full)]);
    let look = |goal| {
        let walk = LogWalk::open(log.path(), 2 * SEGMENT_LENGTH, goal, None).expect("a log");
        walk.run().expect("a log")
    };
    assert_eq!(look(3 * SEGMENT_LENGTH), LogState::Whole);
    assert_eq!(look(3 * SEGMENT_LENGTH + 1), LogState::Cut(None));
}
