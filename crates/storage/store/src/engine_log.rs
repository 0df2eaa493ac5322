//! Reading sled's log without sled, as far as it is whole.
//!
//! `db` is a sequence of segments of 4 MiB. A segment begins with its number in the log,
//! and holds messages, each with a checksum of its own. A message is a page as it was, or
//! a change of one; the newest of each page, with the changes behind it, are the data.
//!
//! ```text
//! segment: crc32 ^ !0: u32 | (number × 4 MiB) ^ i64::MAX: i64 | …: i64 | messages
//! message: crc32 ^ !0: u32 | kind: u8 | length, segment, page: varint | body
//! blob:    crc32: u32 | kind: u8 | body       (a file of its own; the message has its name)
//! ```
//!
//! Numbers are little-endian. A message whose checksum does not fit is skipped, and the next
//! whole one is searched byte by byte. Nothing is written.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::directory::SEGMENT_BYTES;

pub(super) const SEGMENT_HEADER_BYTES: usize = 20;
/// A crc, a kind and three numbers.
pub(super) const MAX_HEADER_BYTES: usize = 4 + 1 + 3 * 9;

/// Kinds of messages, by sled's bytes for them.
pub(super) mod kind {
    pub(crate) const CAP_TAG: u8 = 2;
    pub(crate) const BATCH_TAG: u8 = 3;
    pub(crate) const FREE_TAG: u8 = 4;
    pub(crate) const INLINE_NODE_TAG: u8 = 8;
    pub(crate) const BLOB_NODE_TAG: u8 = 9;
    pub(crate) const INLINE_LINK_TAG: u8 = 10;
    pub(crate) const BLOB_LINK_TAG: u8 = 11;
}

/// The location of the body of a message.
#[derive(Debug, Clone, Copy)]
enum Body {
    Inline { offset: u64, length: usize },
    Blob(i64),
}

/// A message that concerns a page.
#[derive(Debug, Clone, Copy)]
struct Message {
    kind: u8,
    page: u64,
    /// Its position in the log.
    at: u64,
    body: Body,
}

/// A page as it was, and what was changed since.
#[derive(Debug)]
pub(super) struct EnginePage {
    base: Message,
    links: Vec<Message>,
}

impl EnginePage {
    /// Returns the position in the log of the page as a whole.
    pub(super) fn written(&self) -> u64 {
        self.base.at
    }

    /// Returns the position in the log of the last change.
    pub(super) fn changed(&self) -> u64 {
        self.links.last().map_or(self.base.at, |link| link.at)
    }
}

/// A leaf of a tree: a range of keys.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    pub(super) low: Vec<u8>,
    /// Empty: up to the last key.
    pub(super) high: Vec<u8>,
    /// The number of leading bytes of `low` that its keys leave out.
    pub(super) prefix: usize,
    /// Keys without the prefix, and values.
    pub(super) records: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The whole messages of a log.
#[derive(Debug)]
pub(super) struct Log {
    db: File,
    blobs: PathBuf,
    pages: HashMap<u64, EnginePage>,
    /// Number of ranges before the end of the log that are no message.
    pub(super) gaps: u64,
    /// Files of values that are missing or damaged.
    pub(super) lost_blobs: u64,
    /// Messages of a batch that was never finished.
    unfinished: Vec<Message>,
    batch_end: Option<u64>,
}

impl Log {
    /// Reads the log in a store folder from its beginning to its end, some megabytes at
    /// a time.
    pub(super) fn read(store: &Path, mut progress: impl FnMut(u64)) -> io::Result<Self> {
        let db = File::open(store.join("db"))?;
        let length = db.metadata()?.len();
        let mut log = Self {
            db,
            blobs: store.join("blobs"),
            pages: HashMap::new(),
            gaps: 0,
            lost_blobs: 0,
            unfinished: Vec::new(),
            batch_end: None,
        };
        let mut segments = Vec::new();
        let mut buffer = Vec::new();
        for offset in (0..length).step_by(SEGMENT_BYTES) {
            load(&log.db, offset, length, &mut buffer)?;
            if let Some(number) = segment_number(&buffer) {
                segments.push((number, offset));
            }
        }
        segments.sort_unstable();
        let last = segments.last().copied();
        for (number, offset) in segments {
            load(&log.db, offset, length, &mut buffer)?;
            let is_last = last == Some((number, offset));
            log.read_segment(number, offset, &buffer, is_last);
            progress(offset);
        }
        Ok(log)
    }

    fn read_segment(&mut self, number: u64, offset: u64, segment: &[u8], last: bool) {
        let mut at = SEGMENT_HEADER_BYTES;
        // Bytes before `at` that are no message.
        let mut skipped = 0;
        while at < segment.len() {
            let Some(found) = message(segment, at, Some(number)) else {
                skipped += 1;
                at += 1;
                continue;
            };
            self.gaps += u64::from(std::mem::take(&mut skipped) > 0);
            let body = at + found.header;
            let end = body + found.length;
            let place = number * SEGMENT_BYTES as u64 + at as u64;
            let bytes = segment.get(body..end).unwrap_or_default();
            let message = Message {
                kind: found.kind,
                page: found.page,
                at: place,
                body: Body::Inline {
                    offset: offset + body as u64,
                    length: found.length,
                },
            };
            self.take(message, bytes, place + (end - at) as u64);
            if found.kind == kind::CAP_TAG {
                return;
            }
            at = end;
        }
        // sled leaves a rest that is too short for a message empty, and so is the end of the
        // log.
        self.gaps += u64::from(!last && skipped > MAX_HEADER_BYTES);
    }

    /// Takes a message, the next one in the order of the log; `end` is where it ends.
    ///
    /// A batch is taken whole or, where the log ends within it, not at all.
    fn take(&mut self, mut message: Message, bytes: &[u8], end: u64) {
        match message.kind {
            kind::BATCH_TAG => {
                self.finish_batch();
                self.batch_end = bytes.first_chunk().map(|place| u64::from_le_bytes(*place));
                return;
            }
            kind::BLOB_NODE_TAG | kind::BLOB_LINK_TAG => {
                let name = bytes.first_chunk().map(|name| i64::from_le_bytes(*name));
                message.body = Body::Blob(name.unwrap_or(-1));
                if self.body(message.body).is_err() {
                    self.lost_blobs += 1;
                    return;
                }
            }
            kind::FREE_TAG | kind::INLINE_NODE_TAG | kind::INLINE_LINK_TAG => {}
            _ => return,
        }
        match self.batch_end {
            Some(last) => {
                self.unfinished.push(message);
                if end > last {
                    self.finish_batch();
                }
            }
            None => self.apply(message),
        }
    }

    fn finish_batch(&mut self) {
        self.batch_end = None;
        for message in std::mem::take(&mut self.unfinished) {
            self.apply(message);
        }
    }

    fn apply(&mut self, message: Message) {
        match message.kind {
            kind::FREE_TAG => {
                self.pages.remove(&message.page);
            }
            kind::INLINE_NODE_TAG | kind::BLOB_NODE_TAG => {
                let page = EnginePage {
                    base: message,
                    links: Vec::new(),
                };
                self.pages.insert(message.page, page);
            }
            _ => {
                if let Some(page) = self.pages.get_mut(&message.page) {
                    page.links.push(message);
                }
            }
        }
    }

    /// The pages, in no order.
    pub(super) fn pages(&self) -> impl Iterator<Item = &EnginePage> {
        self.pages.values()
    }

    /// A page with all its changes; none where it is no leaf, or cannot be read.
    pub(super) fn leaf(&self, page: &EnginePage) -> Option<Leaf> {
        let mut leaf = parse_leaf(&self.body(page.base.body).ok()?)?;
        for link in &page.links {
            let Ok(body) = self.body(link.body) else {
                continue;
            };
            if let Some((key, value)) = set(&body) {
                match leaf.records.iter_mut().find(|(known, _)| *known == key) {
                    Some(record) => record.1 = value,
                    None => leaf.records.push((key, value)),
                }
                continue;
            }
            // Splits and merges need no handling: the pages that follow hold their result.
            let mut rest = body.as_slice();
            if take_byte(&mut rest) == Some(1)
                && let Some(key) = take_bytes(&mut rest)
            {
                leaf.records.retain(|(known, _)| *known != key);
            }
        }
        Some(leaf)
    }

    fn body(&self, body: Body) -> io::Result<Vec<u8>> {
        match body {
            Body::Inline { offset, length } => {
                let mut bytes = vec![0; length];
                self.db.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            Body::Blob(name) => blob(&self.blobs, name),
        }
    }
}

/// Reads the segment at an offset of a file of this length.
pub(super) fn load(db: &File, offset: u64, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let size = (length - offset).min(SEGMENT_BYTES as u64);
    buffer.resize(usize::try_from(size).unwrap_or(SEGMENT_BYTES), 0);
    db.read_exact_at(buffer, offset)
}

/// The body of a message that is in a file of its own.
pub(super) fn blob(folder: &Path, name: i64) -> io::Result<Vec<u8>> {
    let bytes = fs::read(folder.join(name.to_string()))?;
    match bytes.split_first_chunk() {
        Some((checksum, rest)) if crc32fast::hash(rest) == u32::from_le_bytes(*checksum) => {
            Ok(rest.get(1..).unwrap_or_default().to_vec())
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The header of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    /// Its number in the log.
    pub(super) number: u64,
    /// The position up to which the log was written when the segment was begun.
    pub(super) stable: u64,
}

/// Reads the header of a segment, where it is whole.
pub(super) fn header(segment: &[u8]) -> Option<Header> {
    let header = segment.get(..SEGMENT_HEADER_BYTES)?;
    let (checksum, rest) = header.split_first_chunk::<4>()?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) ^ u32::MAX {
        return None;
    }
    let (place, stable) = rest.split_first_chunk::<8>()?;
    let place = u64::try_from(i64::from_le_bytes(*place) ^ i64::MAX).ok()?;
    let stable = i64::from_le_bytes(*stable.first_chunk()?) ^ i64::MAX;
    place
        .is_multiple_of(SEGMENT_BYTES as u64)
        .then_some(Header {
            number: place / SEGMENT_BYTES as u64,
            // Nothing was, where it is below 0.
            stable: u64::try_from(stable).unwrap_or(0),
        })
}

/// The number of a segment: its header's, or that of the first message that is whole.
pub(super) fn segment_number(segment: &[u8]) -> Option<u64> {
    header(segment)
        .map(|header| header.number)
        .or_else(|| first_whole(segment, SEGMENT_HEADER_BYTES).map(|found| found.segment))
}

/// The first message from a place on that is whole, of whatever segment.
pub(super) fn first_whole(segment: &[u8], from: usize) -> Option<WholeMessage> {
    (from..segment.len()).find_map(|at| message(segment, at, None))
}

/// A message that is whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeMessage {
    pub(super) kind: u8,
    pub(super) segment: u64,
    page: u64,
    /// Bytes before its body.
    pub(super) header: usize,
    /// Bytes of its body.
    pub(super) length: usize,
}

/// The message at a place of a segment, where there is a whole one.
///
/// Where the number of the segment is known, a message of another one is rejected without its
/// checksum.
pub(super) fn message(segment: &[u8], at: usize, expected: Option<u64>) -> Option<WholeMessage> {
    let kind = *segment.get(at + 4)?;
    if kind == 0 || kind > kind::BLOB_LINK_TAG {
        return None;
    }
    let bytes = segment.get(at..)?;
    let mut rest = bytes.get(5..)?;
    let length = take_number(&mut rest)?;
    let number = take_number(&mut rest)?;
    if expected.is_some_and(|expected| expected != number) {
        return None;
    }
    let page = take_number(&mut rest)?;
    let header = bytes.len() - rest.len();
    debug_assert!(header <= MAX_HEADER_BYTES, "a header has three numbers");
    let length = usize::try_from(length).ok()?;
    let body = rest.get(..length)?;
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(body);
    checksum.update(bytes.get(4..header)?);
    let stated = u32::from_le_bytes(*bytes.first_chunk()?);
    (checksum.finalize() ^ u32::MAX == stated).then_some(WholeMessage {
        kind,
        segment: number,
        page,
        header,
        length,
    })
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

/// A number of one to nine bytes.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let first = take_byte(bytes)?;
    match first {
        0..=240 => Some(u64::from(first)),
        241..=248 => Some(240 + 256 * (u64::from(first) - 241) + u64::from(take_byte(bytes)?)),
        249 => Some(2288 + 256 * u64::from(take_byte(bytes)?) + u64::from(take_byte(bytes)?)),
        _ => {
            let (number, rest) = bytes.split_at_checked(usize::from(first) - 247)?;
            *bytes = rest;
            Some(
                number
                    .iter()
                    .rev()
                    .fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
            )
        }
    }
}

/// Bytes behind their length.
fn take_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken.to_vec())
}

/// The key, without what it shares, and the value of a change that sets one.
pub(super) fn set(mut change: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let rest = &mut change;
    (take_byte(rest)? == 0)
        .then(|| Some((take_bytes(rest)?, take_bytes(rest)?)))
        .flatten()
}

/// Parses a leaf whose range has a key.
pub(super) fn leaf_around(key: &[u8], mut bytes: &[u8]) -> Option<Leaf> {
    let whole = bytes;
    let (_prefix, low, high) = bounds(&mut bytes)?;
    (low.as_slice() <= key && (high.is_empty() || key < high.as_slice()))
        .then(|| parse_leaf(whole))
        .flatten()
}

/// Reads the length of the shared prefix, and the bounds of the keys.
fn bounds(bytes: &mut &[u8]) -> Option<(usize, Vec<u8>, Vec<u8>)> {
    let (_next, _merging_child, _merging) =
        (take_number(bytes)?, take_number(bytes)?, take_byte(bytes)?);
    let prefix = usize::from(take_byte(bytes)?);
    Some((prefix, take_bytes(bytes)?, take_bytes(bytes)?))
}

fn parse_leaf(mut bytes: &[u8]) -> Option<Leaf> {
    let bytes = &mut bytes;
    let (prefix, low, high) = bounds(bytes)?;
    let is_leaf = take_byte(bytes)? == 0;
    if !is_leaf || prefix > low.len() {
        return None;
    }
    let count = take_number(bytes)?;
    let keys: Option<Vec<_>> = (0..count).map(|_| take_bytes(bytes)).collect();
    let values: Option<Vec<_>> = (0..count).map(|_| take_bytes(bytes)).collect();
    Some(Leaf {
        low,
        high,
        prefix,
        records: keys?.into_iter().zip(values?).collect(),
    })
}

#[cfg(test)]
pub(super) mod tests;
