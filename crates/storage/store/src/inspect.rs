//! Checks sled's log before sled reads it.
//!
//! Where sled meets something that is no message, it takes it for the end of the log, or of the
//! segment: it silently overwrites or skips what comes after. That is right for writes that were
//! never acknowledged, and for no other. So the log is read here first, from where sled begins
//! to read, up to the last write that was acknowledged: up to there it has to be whole. Nothing
//! is written, and no more is read than sled reads.
//!
//! Not detected: the loss of a segment with its header, where the log has been written far
//! beyond it. It may as well have been reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::directory::SEGMENT_BYTES;
use super::engine_log::{self, Header, MAX_HEADER_BYTES, SEGMENT_HEADER_BYTES, WholeMessage, kind};
use super::{Revision, leftovers, log, record};

const SEGMENT_LENGTH: u64 = SEGMENT_BYTES as u64;

/// The extent to which the log is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogState {
    /// It is whole up to the last acknowledged write, as far as sled reads it.
    Whole,
    /// It is whole only up to this write. None: no write is found before the damage.
    Cut(Option<Revision>),
}

/// Checks the log from the newest snapshot on. Where that does not fit the log, sled reads all
/// of it, and so it is checked from its beginning.
pub(super) fn inspect(store: &Path, acknowledged: Option<Revision>) -> io::Result<LogState> {
    let snapshot = leftovers::newest_snapshot(store)?;
    let seen = LogWalk::open(store, snapshot, snapshot, acknowledged)?.run()?;
    if seen == LogState::Whole || snapshot == 0 {
        return Ok(seen);
    }
    inspect_all(store, acknowledged)
}

/// Checks the log from its beginning, as sled reads it without a snapshot.
pub(super) fn inspect_all(store: &Path, acknowledged: Option<Revision>) -> io::Result<LogState> {
    let goal = match acknowledged {
        // A power cut may take what the snapshot covers and was never acknowledged.
        Some(_) => 0,
        None => leftovers::newest_snapshot(store)?,
    };
    LogWalk::open(store, 0, goal, acknowledged)?.run()
}

/// The log, read from some segment on.
struct LogWalk {
    db: File,
    length: u64,
    blobs: PathBuf,
    /// The offsets of the segments, by their number.
    segments: BTreeMap<u64, u64>,
    /// The offsets of those that sled does not read again.
    before: BTreeMap<u64, u64>,
    /// Segments that have messages, and no header that says so.
    headless: BTreeSet<u64>,
    /// The segment from which on none may be missing: up to here all was written when the last
    /// ones were begun, so those before may have been reused since.
    tail: u64,
    /// The segment to begin with.
    first: u64,
    /// The position in the log that has to be reached.
    goal: u64,
    /// The write that has to be reached.
    acknowledged: Option<Revision>,
    /// The newest write that was found, and before it the newest that is there as a whole.
    begun: Option<Revision>,
    revision: Option<Revision>,
    /// The end of the batch that is read.
    batch: u64,
}

/// The end of a segment.
enum End {
    /// All that had to be reached was.
    Reached,
    /// The next one follows.
    Next,
    /// The rest is no message.
    Cut,
}

impl LogWalk {
    fn open(
        store: &Path,
        from: u64,
        goal: u64,
        acknowledged: Option<Revision>,
    ) -> io::Result<Self> {
        let db = File::open(store.join("db"))?;
        let length = db.metadata()?.len();
        let mut walk = Self {
            db,
            length,
            blobs: store.join("blobs"),
            segments: BTreeMap::new(),
            before: BTreeMap::new(),
            headless: BTreeSet::new(),
            tail: from / SEGMENT_LENGTH,
            first: from / SEGMENT_LENGTH,
            goal,
            acknowledged,
            begun: None,
            revision: None,
            batch: 0,
        };
        let first = walk.first;
        let mut buffer = Vec::new();
        for offset in (0..length).step_by(SEGMENT_BYTES) {
            match walk.header(offset)? {
                Some(header) if header.number >= first => {
                    walk.segments.insert(header.number, offset);
                    walk.tail = walk.tail.max(header.stable / SEGMENT_LENGTH);
                }
                Some(header) => {
                    walk.before.insert(header.number, offset);
                }
                None => {
                    walk.load(offset, &mut buffer)?;
                    // One that is free is filled with zeros.
                    let begin = buffer.iter().position(|byte| *byte != 0);
                    let found = begin.and_then(|begin| {
                        let from = begin
                            .saturating_sub(MAX_HEADER_BYTES)
                            .max(SEGMENT_HEADER_BYTES);
                        engine_log::first_whole(&buffer, from)
                    });
                    walk.headless.extend(found.map(|found| found.segment));
                }
            }
        }
        walk.headless.retain(|number| *number >= first);
        Ok(walk)
    }

    fn header(&self, offset: u64) -> io::Result<Option<Header>> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        if self.length - offset < SEGMENT_HEADER_BYTES as u64 {
            return Ok(None);
        }
        self.db.read_exact_at(&mut bytes, offset)?;
        Ok(engine_log::header(&bytes))
    }

    fn load(&self, offset: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        engine_log::load(&self.db, offset, self.length, buffer)
    }

    fn run(mut self) -> io::Result<LogState> {
        let mut buffer = Vec::new();
        let mut end = self.first * SEGMENT_LENGTH;
        let mut next = self.first;
        for (number, offset) in self.segments.clone() {
            let is_missing = |number: u64| number >= self.tail || self.headless.contains(&number);
            if (next..number).any(is_missing) {
                break;
            }
            self.load(offset, &mut buffer)?;
            match self.segment(number, &buffer, &mut end)? {
                End::Reached => return Ok(LogState::Whole),
                End::Next => next = number + 1,
                End::Cut => break,
            }
        }
        if self.begun.is_none() && end >= self.goal && self.first > 0 {
            // The last write is before the snapshot, or after something that cannot be read.
            let is_last = self.segments.range(next..).nth(1).is_none() && self.headless.is_empty();
            let behind = usize::try_from(end % SEGMENT_LENGTH).unwrap_or(SEGMENT_BYTES);
            if is_last && buffer.iter().skip(behind).all(|byte| *byte == 0) {
                return Ok(LogState::Whole);
            }
            self.search_before(&mut buffer)?;
        }
        Ok(if self.is_reached(end) {
            LogState::Whole
        } else {
            LogState::Cut(self.revision)
        })
    }

    /// Searches the last write before the snapshot.
    fn search_before(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        for (number, offset) in std::mem::take(&mut self.before).into_iter().rev() {
            self.load(offset, buffer)?;
            let mut end = 0;
            // Damage there is found when its record is read.
            let _end = self.segment(number, buffer, &mut end)?;
            if self.revision.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Reads the messages of a segment; `end` is where the last one ended.
    fn segment(&mut self, number: u64, segment: &[u8], end: &mut u64) -> io::Result<End> {
        let mut at = SEGMENT_HEADER_BYTES;
        *end = number * SEGMENT_LENGTH + at as u64;
        while at + MAX_HEADER_BYTES <= SEGMENT_BYTES {
            let Some(found) = engine_log::message(segment, at, Some(number)) else {
                let is_reused = number < self.tail
                    && engine_log::first_whole(segment, at)
                        .is_some_and(|found| found.segment > number);
                // It was free and is being reused, and its end was overwritten before its
                // beginning.
                return Ok(if is_reused { End::Next } else { End::Cut });
            };
            let body = at + found.header;
            at = body + found.length;
            *end = number * SEGMENT_LENGTH + at as u64;
            if !self.take(found, segment.get(body..at).unwrap_or_default())? {
                return Ok(End::Cut);
            }
            if *end > self.batch {
                self.revision = self.begun;
            }
            if found.kind == kind::CAP_TAG {
                break;
            }
            if self.revision.is_some() && self.is_reached(*end) {
                return Ok(End::Reached);
            }
        }
        *end = (number + 1) * SEGMENT_LENGTH;
        Ok(End::Next)
    }

    /// Takes note of a message. False: its body is in a file that is damaged.
    fn take(&mut self, found: WholeMessage, body: &[u8]) -> io::Result<bool> {
        let file;
        let body = match found.kind {
            kind::BATCH_TAG => {
                let end = body.first_chunk().map(|end| u64::from_le_bytes(*end));
                self.batch = end.unwrap_or(0);
                return Ok(true);
            }
            kind::BLOB_NODE_TAG | kind::BLOB_LINK_TAG => {
                let name = body.first_chunk().map(|name| i64::from_le_bytes(*name));
                file = match engine_log::blob(&self.blobs, name.unwrap_or(-1)) {
                    Ok(file) => file,
                    // That of a page that was written anew is removed.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
                    Err(error) => return Err(error),
                };
                file.as_slice()
            }
            _ => body,
        };
        let revision = match found.kind {
            kind::INLINE_LINK_TAG | kind::BLOB_LINK_TAG => engine_log::set(body)
                .filter(|(key, _)| log::revision_key().ends_with(key))
                .and_then(|(_, value)| revision_of(&value)),
            kind::INLINE_NODE_TAG | kind::BLOB_NODE_TAG => {
                engine_log::leaf_around(log::revision_key(), body).and_then(|leaf| {
                    let key = log::revision_key();
                    let records = leaf.records.iter();
                    let mut near = records.filter(|(end, _)| key.ends_with(end));
                    near.find_map(|(_, value)| revision_of(value))
                })
            }
            _ => None,
        };
        self.begun = self.begun.max(revision);
        Ok(true)
    }

    /// Returns whether all that was acknowledged is before this position.
    fn is_reached(&self, end: u64) -> bool {
        end >= self.goal
            && self
                .acknowledged
                .is_none_or(|acknowledged| self.revision.unwrap_or(0) >= acknowledged)
    }
}

fn revision_of(value: &[u8]) -> Option<Revision> {
    let (_, payload) = record::open(log::revision_key(), value).ok()?;
    Some(Revision::from_be_bytes(payload.try_into().ok()?))
}

#[cfg(test)]
mod tests;
