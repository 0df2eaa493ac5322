//! The batches of one group, on their way to one sled batch.

use std::collections::btree_map::Entry;

use sled::IVec;

use super::backend::{Records, Writes};
use super::batch::Batch;
use super::chain::{self, ChainMark};
use super::view::Before;
use super::{CommitError, Expect, LogPosition, Revision, StoreError, chunks, log, record};
use model::Event;

/// A group that is ready to be written.
pub(super) struct Finished {
    pub(super) writes: Writes,
    /// Those records before the group.
    pub(super) before: Before,
    pub(super) position: LogPosition,
    pub(super) revision: Revision,
    /// The events, in order.
    pub(super) events: Vec<(Revision, Event)>,
}

/// The batches of one group.
pub(super) struct Group<'a> {
    records: &'a dyn Records,
    revision: Revision,
    writes: Writes,
    /// The records of all keys that it has read.
    before: Before,
    /// Events that it appends.
    events: Vec<(Revision, Event)>,
}

impl<'a> Group<'a> {
    pub(super) fn new(records: &'a dyn Records, revision: Revision) -> Self {
        Self {
            records,
            revision,
            writes: Writes::new(),
            before: Before::new(),
            events: Vec::new(),
        }
    }

    /// Checks a batch against the store and the group, and adds it.
    pub(super) fn add(&mut self, batch: &mut Batch) -> Result<Revision, CommitError> {
        for (key, expect) in &batch.expects {
            // Against what the group has so far, not what is on the disk: a batch sees the
            // batches before it as if each had been a commit of its own.
            let found = match self.current(key)? {
                Some(value) => Some(record::open(key, &value)?.0),
                None => None,
            };
            let expected = match *expect {
                Expect::Absent => None,
                Expect::Revision(revision) => Some(revision),
            };
            if found != expected {
                return Err(CommitError::Conflict { found });
            }
        }
        // All that may fail comes before the first change.
        let mut writes = Vec::with_capacity(batch.writes.len());
        for (key, value) in batch.writes.drain(..) {
            if key.len() > chunks::MAX_KEY {
                return Err(CommitError::KeyTooLong {
                    bytes: key.len(),
                    max: chunks::MAX_KEY,
                });
            }
            let old = self.current(&key)?;
            // Chunks of the old value go with it: nothing else would ever remove them.
            let old = old.map_or(Vec::new(), |old| chunks::keys(&key, &old));
            writes.push((key, value, old));
        }
        let end = match batch.bodies.as_slice() {
            [] => None,
            _ if batch.forgets_end => Some(self.last_link()?),
            _ => Some(self.chain_end()?),
        };
        // One for each batch, not for each group: it is what later writes expect to find, and
        // the position of the event in the log.
        self.revision += 1;
        let revision = self.revision;
        for (key, payload, old_chunks) in writes {
            for chunk in old_chunks {
                self.writes.insert(chunk, None);
            }
            match payload {
                Some(payload) => {
                    for (key, value) in chunks::records(&key, revision, &payload) {
                        self.writes.insert(key, Some(value.into()));
                    }
                }
                None => {
                    self.writes.insert(key, None);
                }
            }
        }
        if let Some(event) = batch.event.take() {
            let key = log::event_key(revision);
            #[expect(clippy::expect_used, reason = "an event has text keys and no floats")]
            let payload = serde_json::to_vec(&event).expect("an event is JSON");
            self.put(key, &payload);
            self.events.push((revision, event));
        }
        if let Some(mut end) = end {
            for body in batch.bodies.drain(..) {
                end = end.next(&body);
                self.put(chain::key(end.number), &end.payload(&body));
            }
            self.put(chain::end_key(), &end.to_bytes());
        }
        Ok(revision)
    }

    fn put(&mut self, key: Vec<u8>, payload: &[u8]) {
        let value = record::seal(&key, self.revision, payload);
        self.writes.insert(key, Some(value.into()));
    }

    /// Returns the end of the chain, as this group leaves it so far.
    fn chain_end(&mut self) -> Result<ChainMark, StoreError> {
        let key = chain::end_key();
        match self.current(&key)? {
            Some(end) => chain::mark(&key, &end),
            None => self.last_link(),
        }
    }

    /// Returns the last record of the chain, as this group leaves it so far.
    fn last_link(&self) -> Result<ChainMark, StoreError> {
        let appended = self.writes.range(chain::link_keys());
        let mut appended = appended.filter_map(|(key, value)| Some((key, value.as_ref()?)));
        match appended.next_back() {
            Some((key, value)) => chain::link_mark(key, value),
            None => chain::last(self.records),
        }
    }

    /// Returns a record as this group leaves it so far.
    fn current(&mut self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        if let Some(written) = self.writes.get(key) {
            return Ok(written.clone());
        }
        Ok(read(self.records, &mut self.before, key)?.clone())
    }

    /// Adds the group's own records: the revision, and the removal of the oldest events.
    pub(super) fn finish(
        mut self,
        mut position: LogPosition,
        keep: u64,
    ) -> Result<Finished, StoreError> {
        let revision = self.revision;
        self.put(log::revision_key().to_vec(), &revision.to_be_bytes());
        if let Some((end, _)) = self.events.last() {
            let added = (*end, self.events.len() as u64);
            position = log::append(self.records, &mut self.writes, position, added, keep)?;
        }
        let mut before = Before::new();
        for key in self.writes.keys() {
            let was = read(self.records, &mut self.before, key)?.clone();
            before.insert(key.clone(), was);
        }
        Ok(Finished {
            writes: self.writes,
            before,
            position,
            revision,
            events: self.events,
        })
    }
}

/// Reads a record as it was before the group.
fn read<'b>(
    records: &dyn Records,
    before: &'b mut Before,
    key: &[u8],
) -> Result<&'b Option<IVec>, StoreError> {
    match before.entry(key.to_vec()) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(unknown) => Ok(unknown.insert(records.get(key)?)),
    }
}
