//! Logs that are written here byte by byte, so that they end wherever a test wants.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A number as sled writes it.
fn number(number: u64) -> Vec<u8> {
    match number {
        0..=240 => vec![u8::try_from(number).expect("a byte")],
        241..=2287 => {
            let above = number - 240;
            let first = u8::try_from(above / 256 + 241).expect("a byte");
            vec![first, u8::try_from(above % 256).expect("a byte")]
        }
        _ => [&[255][..], &number.to_le_bytes()].concat(),
    }
}

/// Bytes behind their length.
fn bytes(bytes: &[u8]) -> Vec<u8> {
    [&number(bytes.len() as u64), bytes].concat()
}

/// A message of a segment.
pub(crate) fn message(kind: u8, segment: u64, page: u64, body: &[u8]) -> Vec<u8> {
    let length = number(body.len() as u64);
    let header = [&[kind][..], &length, &number(segment), &number(page)].concat();
    let checksum = crc32fast::hash(&[body, &header].concat()) ^ u32::MAX;
    [&checksum.to_le_bytes()[..], &header, body].concat()
}

/// The body of a change that sets a key.
pub(crate) fn setting(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0][..], &bytes(key), &bytes(value)].concat()
}

/// The body of a leaf of a range of keys, which lack the first `prefix` bytes of `low`.
pub(crate) fn leaf(low: &[u8], high: &[u8], prefix: u8, records: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut leaf = vec![0, 0, 0, prefix];
    leaf.extend([bytes(low), bytes(high), vec![0]].concat());
    leaf.extend(number(records.len() as u64));
    leaf.extend(records.iter().flat_map(|(key, _)| bytes(key)));
    leaf.extend(records.iter().flat_map(|(_, value)| bytes(value)));
    leaf
}

/// The body of a leaf of all keys.
fn leaf_of(records: &[(&str, &str)]) -> Vec<u8> {
    let records: Vec<_> = records
        .iter()
        .map(|(key, value)| (key.as_bytes(), value.as_bytes()))
        .collect();
    leaf(b"", b"", 0, &records)
}

/// A message that ends where so many bytes are left of the segment, of which `used` are
/// taken.
pub(crate) fn filler(segment: u64, used: usize, left: usize) -> Vec<u8> {
    let empty = message(kind::FREE_TAG, segment, 1, &[0; 3000]).len() - 3000;
    let body = SEGMENT_BYTES - left - used - empty;
    message(kind::FREE_TAG, segment, 1, &vec![0; body])
}

/// A segment of these messages, begun when the log was written up to another one.
pub(crate) fn segment(number: u64, stable: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    let place = |segment: u64| {
        let place = i64::try_from(segment * SEGMENT_BYTES as u64).expect("a place");
        (place ^ i64::MAX).to_le_bytes()
    };
    let rest = [place(number), place(stable)].concat();
    let checksum = crc32fast::hash(&rest) ^ u32::MAX;
    let mut segment = [&checksum.to_le_bytes()[..], &rest].concat();
    segment.extend(messages.iter().flatten());
    assert!(segment.len() <= SEGMENT_BYTES);
    segment.resize(SEGMENT_BYTES, 0);
    segment
}

/// A store folder whose log has these segments.
pub(crate) fn store(segments: &[Vec<u8>]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("blobs")).expect("a folder");
    fs::write(folder.path().join("db"), segments.concat()).expect("a file");
    folder
}

fn read(segments: &[Vec<u8>]) -> Log {
    Log::read(store(segments).path(), |_| ()).expect("a log")
}

/// What is in the pages of a log.
fn records(log: &Log) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
    let leaves = log.pages().filter_map(|page| log.leaf(page));
    let records = leaves.flat_map(|leaf| leaf.records);
    let mut records: Vec<_> = records.map(|(k, v)| (text(k), text(v))).collect();
    records.sort();
    records
}

/// Where the next message of a segment begins.
pub(crate) fn place(segment: u64, before: &[Vec<u8>]) -> u64 {
    let used: usize = before.iter().map(Vec::len).sum();
    segment * SEGMENT_BYTES as u64 + (SEGMENT_HEADER_BYTES + used) as u64
}

#[test]
fn a_batch_is_taken_with_its_last_message_and_not_before_it() {
    let page = message(
        kind::INLINE_NODE_TAG,
        0,
        7,
        &leaf_of(&[("a", "old"), ("b", "old")]),
    );
    let first = message(kind::INLINE_LINK_TAG, 0, 7, &setting(b"a", b"new"));
    let second = message(kind::INLINE_LINK_TAG, 0, 7, &setting(b"b", b"new"));
    // A batch says where its last message begins: there the one before it has ended.
    let batch = |last: u64| message(kind::BATCH_TAG, 0, 0, &last.to_le_bytes());
    let last = place(0, &[page.clone(), batch(0), first.clone()]);
    let after = |messages: &[&Vec<u8>]| {
        let mut all = vec![page.clone(), batch(last)];
        all.extend(messages.iter().map(|message| (*message).clone()));
        let values = records(&read(&[segment(0, 0, &all)])).into_iter();
        values.map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(after(&[&first]), ["old", "old"], "it was never finished");
    assert_eq!(after(&[&first, &second]), ["new", "new"]);
    // Another batch begins where the one before it has ended, whatever it said.
    let next = batch(u64::MAX);
    assert_eq!(after(&[&first, &next]), ["new", "old"]);
}

#[test]
fn a_gap_is_what_a_message_would_fit_in_unless_the_log_ends_there() {
    let gaps = |left: usize| {
        let first = segment(0, 0, &[filler(0, SEGMENT_HEADER_BYTES, left)]);
        let log = read(&[first, segment(1, 0, &[message(kind::CAP_TAG, 1, 0, &[])])]);
        log.gaps
    };
    assert_eq!([0, 1, MAX_HEADER_BYTES].map(gaps), [0, 0, 0]);
    assert_eq!(gaps(MAX_HEADER_BYTES + 1), 1);
    let last = read(&[segment(0, 0, &[filler(0, SEGMENT_HEADER_BYTES, 1000)])]);
    assert_eq!(last.gaps, 0, "it goes on there");
    // What comes behind is no end, but a place that is damaged.
    let (one, other) = (
        message(kind::FREE_TAG, 0, 1, &[]),
        message(kind::FREE_TAG, 0, 2, &[]),
    );
    let torn = read(&[segment(
        0,
        0,
        &[one.clone(), vec![0], other.clone(), vec![9; 5], one],
    )]);
    assert_eq!(torn.gaps, 2);
}

#[test]
fn a_segment_ends_at_its_cap_and_a_page_with_what_frees_it() {
    let page = |value| message(kind::INLINE_NODE_TAG, 0, 7, &leaf_of(&[("a", value)]));
    let all = |messages: &[Vec<u8>]| records(&read(&[segment(0, 0, messages)]));
    let one = |value: &str| vec![("a".to_owned(), value.to_owned())];
    let cap = message(kind::CAP_TAG, 0, 0, &[]);
    assert_eq!(all(&[page("1"), cap, page("2")]), one("1"));
    assert_eq!(all(&[page("1"), page("2")]), one("2"));
    let free = |page| message(kind::FREE_TAG, 0, page, &[]);
    assert_eq!(all(&[page("1"), free(8)]), one("1"));
    assert_eq!(all(&[page("1"), free(7)]), []);
    let removal = message(
        kind::INLINE_LINK_TAG,
        0,
        7,
        &[&[1][..], &bytes(b"a")].concat(),
    );
    assert_eq!(all(&[page("1"), removal]), []);
    let added = message(kind::INLINE_LINK_TAG, 0, 7, &setting(b"b", b"2"));
    assert_eq!(all(&[page("1"), added]).len(), 2);
}

#[test]
fn a_body_in_a_file_is_read_where_its_checksum_fits_and_counted_where_not() {
    let leaf = leaf_of(&[("a", "large")]);
    let named = |name: i64| message(kind::BLOB_NODE_TAG, 0, 7, &name.to_le_bytes());
    let folder = store(&[segment(0, 0, &[named(3)])]);
    let read = || Log::read(folder.path(), |_| ()).expect("a log");
    assert_eq!((read().lost_blobs, records(&read())), (1, vec![]));
    let body = [&[kind::BLOB_NODE_TAG][..], &leaf].concat();
    let mut file = [&crc32fast::hash(&body).to_le_bytes()[..], &body].concat();
    fs::write(folder.path().join("blobs/3"), &file).expect("a file");
    assert_eq!(read().lost_blobs, 0);
    assert_eq!(records(&read()), [("a".to_owned(), "large".to_owned())]);
    let page = message(kind::INLINE_NODE_TAG, 0, 7, &leaf_of(&[("a", "small")]));
    let change = message(kind::BLOB_LINK_TAG, 0, 7, &4_i64.to_le_bytes());
    let body = [&[kind::BLOB_LINK_TAG][..], &setting(b"a", b"larger")].concat();
    let link = [&crc32fast::hash(&body).to_le_bytes()[..], &body].concat();
    let changed = store(&[segment(0, 0, &[page, change])]);
    fs::write(changed.path().join("blobs/4"), link).expect("a file");
    let log = Log::read(changed.path(), |_| ()).expect("a log");
    assert_eq!(records(&log), [("a".to_owned(), "larger".to_owned())]);
    *file.last_mut().expect("a byte") ^= 1;
    fs::write(folder.path().join("blobs/3"), &file).expect("a file");
    assert_eq!((read().lost_blobs, records(&read())), (1, vec![]));
}

#[test]
fn a_leaf_whose_keys_share_all_of_the_lowest_is_one_and_one_that_share_more_is_none() {
    let leaf = |prefix: u8| leaf(b"ab", b"", prefix, &[]);
    assert_eq!(parse_leaf(&leaf(2)).map(|leaf| leaf.prefix), Some(2));
    assert!(parse_leaf(&leaf(3)).is_none());
}

#[test]
fn numbers_are_read_at_every_length() {
    let read = |mut bytes: &[u8]| take_number(&mut bytes).map(|number| (number, bytes.len()));
    assert_eq!(read(&[240, 7]), Some((240, 1)));
    assert_eq!(read(&[241, 1]), Some((241, 0)));
    assert_eq!(read(&[248, 255]), Some((2287, 0)));
    assert_eq!(read(&[249, 1, 2]), Some((2546, 0)));
    assert_eq!(read(&[250, 1, 2, 3]), Some((0x0003_0201, 0)));
    assert_eq!(read(&[255, 0, 0, 0, 0, 0, 0, 0, 1]), Some((1 << 56, 0)));
    assert_eq!(read(&[255, 0]), None);
}

#[test]
fn a_leaf_has_the_keys_from_its_low_one_to_below_its_high_one() {
    let (closed, open) = (leaf(b"b", b"d", 0, &[]), leaf(b"b", b"", 0, &[]));
    let has = |key: &[u8], leaf: &[u8]| leaf_around(key, leaf).is_some();
    let within = |leaf: &[u8]| [b"a", b"b", b"c", b"d"].map(|key| has(key, leaf));
    assert_eq!(within(&closed), [false, true, true, false]);
    assert_eq!(within(&open), [false, true, true, true]);
}
