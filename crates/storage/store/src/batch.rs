//! A write: preconditions, records, contents, and what happened.

use std::sync::Arc;

use serde::Serialize;

use super::{CommitError, Content, Key, Pinned, Revision, Table, blob};
use model::Event;

/// A precondition of a batch on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The record is absent.
    Absent,
    /// The record is of this revision.
    Revision(Revision),
}

impl From<Option<Revision>> for Expect {
    fn from(revision: Option<Revision>) -> Self {
        revision.map_or(Self::Absent, Self::Revision)
    }
}

/// A set of writes that is durable as a whole, or absent.
#[derive(Default)]
pub struct Batch {
    pub(super) expects: Vec<(Vec<u8>, Expect)>,
    pub(super) writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(super) event: Option<Event>,
    /// Bodies of records that are appended to the chain.
    pub(super) bodies: Vec<Vec<u8>>,
    /// They go after the last record that there is, not after the stored end.
    pub(super) forgets_end: bool,
    pub(super) pinned: Option<Arc<Pinned>>,
    pub(super) bytes: usize,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("expects", &self.expects.len())
            .field("writes", &self.writes.len())
            .field("event", &self.event)
            .field("bodies", &self.bodies.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// A batch that writes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes only if this holds of a record.
    pub fn expect<K: Key + ?Sized, V>(&mut self, table: &Table<K, V>, key: &K, expect: Expect) {
        self.expects.push((table.key(key), expect));
    }

    /// Puts a record.
    pub fn put<K: Key + ?Sized, V: Serialize>(&mut self, table: &Table<K, V>, key: &K, value: &V) {
        self.write(table.key(key), Some(Table::<K, V>::encode(value)));
    }

    /// Removes a record.
    pub fn delete<K: Key + ?Sized, V>(&mut self, table: &Table<K, V>, key: &K) {
        self.write(table.key(key), None);
    }

    /// Puts a content.
    pub fn content(&mut self, content: &Content) {
        for (key, payload) in blob::records(content) {
            self.write(key, Some(payload));
        }
    }

    /// Protects contents that the batch uses and does not put, until it is written.
    pub fn pinned(&mut self, pinned: &Arc<Pinned>) {
        self.pinned = Some(Arc::clone(pinned));
    }

    /// Appends to the event log.
    pub fn event(&mut self, event: Event) {
        self.event = Some(event);
    }

    /// # Errors
    /// It has more bytes than are taken at once.
    pub(super) fn check_size(&self, max: usize) -> Result<(), CommitError> {
        let bytes = self.bytes;
        if bytes > max {
            return Err(CommitError::TooLarge { bytes, max });
        }
        Ok(())
    }

    pub(super) fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        // 64: about what the envelope and the entries of the maps take.
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + 64;
        self.writes.push((key, value));
    }
}
