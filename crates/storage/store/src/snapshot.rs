//! The records of one revision, while writes go on.
//!
//! Later records are recognized by their revision. Records that were overwritten or removed
//! since are held here until the reader has passed their keys. The memory for them is bounded; a
//! backup that is too slow for it fails with an error.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use sled::IVec;

use super::backend::{Order, Record, Records as _, everything};
use super::view::{Before, View};
use super::{Revision, StoreError, locked, record};

/// Records that are read at once.
const RECORDS_PER_PAGE: usize = 256;

#[derive(Debug, Default)]
struct PreservedRecords {
    /// The key below which everything was read.
    read: Vec<u8>,
    before: BTreeMap<Vec<u8>, IVec>,
    bytes: usize,
    full: bool,
}

/// The records as they were at a revision.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) revision: Revision,
    /// The maximum bytes in memory.
    max: usize,
    kept: Mutex<PreservedRecords>,
}

impl Snapshot {
    pub(super) fn new(revision: Revision, max: usize) -> Self {
        Self {
            revision,
            max,
            kept: Mutex::default(),
        }
    }

    /// Saves the records that a group is about to change, where they are of this snapshot.
    pub(super) fn keep(&self, before: &Before) {
        let mut kept = locked(&self.kept);
        if kept.full {
            return;
        }
        let read = kept.read.clone();
        for (key, value) in before.range(read..) {
            // A record that was absent needs no image: the new one has a later revision, and is
            // skipped.
            let Some(value) = value else { continue };
            // An earlier one is the older, and a later one is not of this snapshot.
            if kept.before.contains_key(key) || self.is_later(key, value) {
                continue;
            }
            kept.bytes += key.len() + value.len();
            kept.before.insert(key.clone(), value.clone());
        }
        if kept.bytes > self.max {
            kept.full = true;
            kept.before.clear();
        }
    }

    fn is_later(&self, key: &[u8], value: &[u8]) -> bool {
        record::open(key, value).is_ok_and(|(revision, _)| revision > self.revision)
    }

    /// Hands over every record once, in the order of their keys.
    pub(super) fn read(
        &self,
        view: &View,
        mut each: impl FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut range: Option<Range<Vec<u8>>> = Some(everything());
        while let Some(next) = range {
            let page = view.page(&next, Order::Ascending, RECORDS_PER_PAGE)?;
            let mut records = BTreeMap::new();
            for (key, value) in page.records {
                let (revision, _) = record::open(&key, &value)?;
                if revision <= self.revision {
                    records.insert(key, value);
                }
            }
            // After the page was read: a record that was removed or overwritten before the read
            // was saved here first, so none is missed.
            let mut kept = locked(&self.kept);
            if kept.full {
                return Err(StoreError::Outrun { max: self.max });
            }
            let mut rest = kept.before.split_off(&page.covered.end);
            std::mem::swap(&mut rest, &mut kept.before);
            for (key, value) in rest {
                kept.bytes -= key.len() + value.len();
                records.insert(key.into(), value);
            }
            kept.read = page.covered.end;
            drop(kept);
            for entry in records {
                each(entry)?;
            }
            range = page.rest;
        }
        Ok(())
    }
}
