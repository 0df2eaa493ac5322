//! The event log: what happened, in order, by the revision of its commit.
//!
//! It holds a fixed number of events. Commits without an event take a revision, but no entry in
//! the log.

use super::backend::{Order, Records, Writes, walk, with_prefix};
use super::{Key as _, Limits, Revision, StoreError, TableId, guarded, record};
use model::Event;

/// The start and the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogPosition {
    /// Sequence before the oldest stored event: a reader that has seen up to here, or more, has
    /// missed nothing that is gone.
    pub start: u64,
    /// Sequence of the newest event, or of `start` where there is none.
    pub end: u64,
    /// The number of stored events.
    pub events: u64,
}

pub(super) struct OpenedLog {
    pub(super) log_id: String,
    pub(super) position: LogPosition,
}

const LOG_ID: &[u8] = b"\x01log_id";
const REVISION: &[u8] = b"\x01revision";
const LOG_START: &[u8] = b"\x01log_start";
/// The whole position. It spares counting the events at each start.
const LOG_POSITION: &[u8] = b"\x01log_position";
/// Events that one group forgets at most: more than it adds, so that a log that is
/// too long shrinks to its bound.
const MAX_TRIMMED_EVENTS: usize = 2 * Limits::DEFAULT.group;

pub(super) fn event_key(sequence: u64) -> Vec<u8> {
    let mut key = vec![TableId::Events.byte()];
    sequence.write(&mut key);
    key
}

fn sequence_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?))
}

/// Returns the key of the revision of the last commit.
pub(super) fn revision_key() -> &'static [u8] {
    REVISION
}

impl LogPosition {
    fn to_bytes(self) -> Vec<u8> {
        let parts = [self.start, self.end, self.events];
        parts.into_iter().flat_map(u64::to_be_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (parts, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let &[start, end, events] = parts else {
            return None;
        };
        Some(Self {
            start: u64::from_be_bytes(start),
            end: u64::from_be_bytes(end),
            events: u64::from_be_bytes(events),
        })
    }
}

fn number(tree: &sled::Tree, key: &[u8]) -> Result<Option<u64>, StoreError> {
    let Some(value) = guarded(|| tree.get(key))? else {
        return Ok(None);
    };
    let (_, payload) = record::open(key, &value)?;
    let bytes = payload.try_into();
    let bytes = bytes.map_err(|_| StoreError::damaged(key, "it is not a number"))?;
    Ok(Some(u64::from_be_bytes(bytes)))
}

/// The revision of the last commit.
pub(super) fn last_revision(tree: &sled::Tree) -> Result<Revision, StoreError> {
    Ok(number(tree, REVISION)?.unwrap_or(0))
}

/// The identity of the log; none where the directory is new.
pub(super) fn id(tree: &sled::Tree) -> Result<Option<String>, StoreError> {
    let Some(value) = guarded(|| tree.get(LOG_ID))? else {
        return Ok(None);
    };
    Ok(Some(
        String::from_utf8_lossy(record::open(LOG_ID, &value)?.1).into_owned(),
    ))
}

/// Reads the position of the log; gives a new directory the identity of its log.
pub(super) fn open(tree: &sled::Tree) -> Result<OpenedLog, StoreError> {
    let log_id = if let Some(id) = id(tree)? {
        id
    } else {
        let id = renew(tree)?;
        guarded(|| tree.flush())?;
        id
    };
    let start = number(tree, LOG_START)?.unwrap_or(0);
    let last = guarded(|| events(tree).next_back().transpose())?;
    let end = last.and_then(|(key, _)| sequence_of(&key)).unwrap_or(start);
    let stored = guarded(|| tree.get(LOG_POSITION))?
        .map(|value| {
            record::open(LOG_POSITION, &value).map(|(_, bytes)| LogPosition::from_bytes(bytes))
        })
        .transpose()?
        .flatten();
    let position = match stored {
        // Only where both ends agree: then no other version wrote in between.
        Some(stored) if (stored.start, stored.end) == (start, end) => stored,
        // A version that did not count has written here.
        _ => LogPosition {
            start,
            end,
            events: count(tree)?,
        },
    };
    Ok(OpenedLog { log_id, position })
}

fn events(tree: &sled::Tree) -> sled::Iter {
    tree.scan_prefix([TableId::Events.byte()])
}

fn count(tree: &sled::Tree) -> Result<u64, StoreError> {
    let mut keys = events(tree).keys();
    let mut count = 0;
    while guarded(|| keys.next().transpose())?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Gives the log of a directory that is not open a new identity: its history from here on is not
/// that of the directory that it was copied from.
pub(super) fn renew(tree: &sled::Tree) -> Result<String, StoreError> {
    let id = uuid::Uuid::new_v4().simple().to_string();
    guarded(|| tree.insert(LOG_ID, record::seal(LOG_ID, 0, id.as_bytes())))?;
    Ok(id)
}

/// Begins the log of a directory that was salvaged: all that is in it came with this
/// commit or before.
pub(super) fn begin_anew(tree: &sled::Tree, revision: Revision) -> Result<(), StoreError> {
    for key in [REVISION, LOG_START] {
        let value = record::seal(key, revision, &revision.to_be_bytes());
        guarded(|| tree.insert(key, value))?;
    }
    renew(tree).map(|_| ())
}

/// Adds the log's own records to a group that appends `added` events, the last of them at `end`:
/// the removal of the oldest, and the new position.
pub(super) fn append(
    records: &dyn Records,
    writes: &mut Writes,
    mut position: LogPosition,
    (end, added): (u64, u64),
    keep: u64,
) -> Result<LogPosition, StoreError> {
    position.end = end;
    position.events += added;
    let surplus = usize::try_from(position.events.saturating_sub(keep)).unwrap_or(usize::MAX);
    for (sequence, key) in oldest(records, surplus.min(MAX_TRIMMED_EVENTS))? {
        writes.insert(key.to_vec(), None);
        position.start = position.start.max(sequence);
        position.events -= 1;
    }
    for (key, value) in [
        (LOG_START, position.start.to_be_bytes().to_vec()),
        (LOG_POSITION, position.to_bytes()),
    ] {
        writes.insert(key.to_vec(), Some(record::seal(key, end, &value).into()));
    }
    Ok(position)
}

/// Reads the events after a position, as readers see them.
pub(super) fn after(
    records: &dyn Records,
    sequence: u64,
    limit: usize,
) -> Result<Vec<(u64, Event)>, StoreError> {
    let from = event_key(sequence.saturating_add(1));
    let to = vec![TableId::Events.byte() + 1];
    let mut events = Vec::new();
    for entry in walk(records, from..to, Order::Ascending).take(limit) {
        let (key, value) = entry?;
        let (_, payload) = record::open(&key, &value)?;
        let sequence = sequence_of(&key);
        let sequence = sequence.ok_or_else(|| StoreError::damaged(&key, "its key is cut short"))?;
        let event =
            serde_json::from_slice(payload).map_err(|error| StoreError::damaged(&key, error))?;
        events.push((sequence, event));
    }
    Ok(events)
}

/// Returns the oldest events, up to `limit`: the next to be removed.
fn oldest(records: &dyn Records, limit: usize) -> Result<Vec<(u64, sled::IVec)>, StoreError> {
    let events = with_prefix(vec![TableId::Events.byte()]);
    let page = records.page(&events, Order::Ascending, limit)?;
    let keys = page.records.into_iter();
    Ok(keys
        .filter_map(|(key, _)| Some((sequence_of(&key)?, key)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written_and_not_from_other_bytes() {
        let position = LogPosition {
            start: 3,
            end: 500_000,
            events: 70,
        };
        let bytes = position.to_bytes();
        assert_eq!(LogPosition::from_bytes(&bytes), Some(position));
        for wrong in [&bytes[1..], &[&bytes[..], &[0]].concat(), &[]] {
            assert_eq!(LogPosition::from_bytes(wrong), None);
        }
    }
}
