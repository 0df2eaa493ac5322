//! The event log: what happened, in order, by the revision of its commit.

use super::{Key as _, Revision, StoreError, TableId, guarded, record};
use crate::model::Event;

/// Where the log begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogPosition {
    /// Sequence before the oldest event that is kept: whoever has seen up to
    /// here, or more, has missed nothing that is gone.
    pub start: u64,
    /// Sequence of the newest event, or of `start` where none is kept.
    pub end: u64,
}

pub(super) struct Opened {
    pub(super) log_id: String,
    pub(super) position: LogPosition,
}

const LOG_ID: &[u8] = b"\x01log_id";
const REVISION: &[u8] = b"\x01revision";
const LOG_START: &[u8] = b"\x01log_start";

pub(super) fn event_key(sequence: u64) -> Vec<u8> {
    let mut key = vec![TableId::Events.byte()];
    sequence.write(&mut key);
    key
}

fn sequence_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?))
}

/// The keys under which the directory's own facts are kept.
pub(super) fn revision_key() -> &'static [u8] {
    REVISION
}

pub(super) fn log_start_key() -> &'static [u8] {
    LOG_START
}

fn number(tree: &sled::Tree, key: &[u8]) -> Result<Option<u64>, StoreError> {
    let Some(value) = guarded(|| tree.get(key))? else {
        return Ok(None);
    };
    let (_, payload) = record::open(key, &value)?;
    let bytes = payload.try_into().map_err(|_| StoreError::Damaged {
        key: record::printable(key),
        reason: "it is not a number".to_owned(),
    })?;
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

/// Reads where the log stands; gives a new directory the identity of its log.
pub(super) fn open(tree: &sled::Tree) -> Result<Opened, StoreError> {
    let log_id = if let Some(id) = id(tree)? {
        id
    } else {
        let id = uuid::Uuid::new_v4().simple().to_string();
        guarded(|| tree.insert(LOG_ID, record::seal(LOG_ID, 0, id.as_bytes())))?;
        guarded(|| tree.flush())?;
        id
    };
    let start = number(tree, LOG_START)?.unwrap_or(0);
    let last = guarded(|| {
        tree.scan_prefix([TableId::Events.byte()])
            .next_back()
            .transpose()
    })?;
    let end = last.and_then(|(key, _)| sequence_of(&key)).unwrap_or(start);
    Ok(Opened {
        log_id,
        position: LogPosition { start, end },
    })
}

pub(super) fn after(
    tree: &sled::Tree,
    sequence: u64,
    limit: usize,
) -> Result<Vec<(u64, Event)>, StoreError> {
    let from = event_key(sequence.saturating_add(1));
    let to = vec![TableId::Events.byte() + 1];
    let mut records = tree.range(from..to);
    let mut events = Vec::new();
    while events.len() < limit {
        let Some((key, value)) = guarded(|| records.next().transpose())? else {
            break;
        };
        let (_, payload) = record::open(&key, &value)?;
        let damaged = |reason: String| StoreError::Damaged {
            key: record::printable(&key),
            reason,
        };
        let sequence =
            sequence_of(&key).ok_or_else(|| damaged("its key is cut short".to_owned()))?;
        let event = serde_json::from_slice(payload).map_err(|error| damaged(error.to_string()))?;
        events.push((sequence, event));
    }
    Ok(events)
}

/// The oldest events from `start` on, up to `limit`: what to forget next.
pub(super) fn oldest(tree: &sled::Tree, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let mut records = tree.scan_prefix([TableId::Events.byte()]);
    let mut found = Vec::new();
    while found.len() < limit {
        let Some((key, _)) = guarded(|| records.next().transpose())? else {
            break;
        };
        if let Some(sequence) = sequence_of(&key) {
            found.push((sequence, key.to_vec()));
        }
    }
    Ok(found)
}
