//! The trait of backends, and what they share.
//!
//! Reads are local and synchronous, wherever writes go: a backend that commits elsewhere has a
//! copy here. `on_disk` and `in_memory` are the two that there are; one set of tests runs on
//! both.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use sled::IVec;
use tokio::sync::watch;

use super::mirror::TableFollowers;
use super::{Batch, CommitError, LogPosition, Mode, Reader, Revision, StoreError, locked};
use model::Event;

/// A key and its value. `IVec` is shared bytes, of whatever backend.
pub(super) type Record = (IVec, IVec);

/// The writes of a group; none: the record is removed.
pub(super) type Writes = BTreeMap<Vec<u8>, Option<IVec>>;

/// The number of records in the first page of a walk, and in the largest.
// Small at first, as many walks end after a few records; larger then, as each page seeks its
// start anew.
const PAGES: Range<usize> = 16..256;

/// The durable records, by key.
pub(super) trait Records: std::fmt::Debug + Send + Sync {
    /// Reads a record.
    fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError>;

    /// Reads some records of a range; the page has the rest of the range.
    fn page(&self, range: &Range<Vec<u8>>, order: Order, limit: usize) -> Result<Page, StoreError>;
}

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A storage of records, which makes writes durable.
pub(super) trait Backend: std::fmt::Debug + Send + Sync {
    /// The durable records.
    fn records(&self) -> &dyn Records;

    /// Writes a batch whole, or not at all. Returns when it is durable, every reader sees it,
    /// and every follower got its event.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, CommitError>>;

    /// Finishes the queued writes, and takes no more.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Returns its log, and whether it takes writes.
    fn status(&self) -> &Status;
}

/// The log of a backend, and whether it takes writes.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) position: watch::Receiver<LogPosition>,
    pub(super) mode: watch::Receiver<Mode>,
    pub(super) log_id: String,
    pub(super) followers: Arc<Followers>,
}

type Follower = Box<dyn Fn(Reader<'_>, &[(Revision, Event)]) -> Result<(), StoreError> + Send>;

/// The followers, which get the events and the writes of each group once it is durable.
#[derive(Default)]
pub(super) struct Followers {
    log: Mutex<Vec<Follower>>,
    pub(super) tables: Mutex<TableFollowers>,
}

impl std::fmt::Debug for Followers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Followers").finish_non_exhaustive()
    }
}

impl Followers {
    pub(super) fn add(&self, follower: Follower) {
        locked(&self.log).push(follower);
    }

    /// Hands over a group: its writes, then its events, in their order. An error: a follower
    /// failed.
    pub(super) fn notify(
        &self,
        records: &dyn Records,
        writes: &Writes,
        revision: Revision,
        events: &[(Revision, Event)],
    ) -> Result<(), String> {
        let mut outcome = locked(&self.tables).notify(records, writes, revision);
        if events.is_empty() {
            return outcome;
        }
        let followers = locked(&self.log);
        // All of them, also after one that failed: the others must not miss an event.
        for follower in &*followers {
            let followed = catch_unwind(AssertUnwindSafe(|| follower(Reader(records), events)));
            let reason = match followed {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(panicked) => model::panic_words(&*panicked),
            };
            tracing::error!(reason, "a follower of the log failed");
            outcome = Err(reason);
        }
        outcome
    }
}

/// The records with the writes of a group in front: its followers can read those even where the
/// database cannot be read just then.
#[derive(Debug)]
pub(super) struct Written<'a> {
    pub(super) writes: &'a Writes,
    pub(super) records: &'a dyn Records,
}

impl Records for Written<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.records.get(key),
        }
    }

    fn page(&self, range: &Range<Vec<u8>>, order: Order, limit: usize) -> Result<Page, StoreError> {
        self.records.page(range, order, limit)
    }
}

/// The order in which records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// A part of the records of a range.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) records: Vec<Record>,
    /// The part of the range that the records cover.
    pub(super) covered: Range<Vec<u8>>,
    /// The rest of the range.
    pub(super) rest: Option<Range<Vec<u8>>>,
}

impl Page {
    /// The first `limit` of the records of a range.
    pub(super) fn take<E>(
        range: &Range<Vec<u8>>,
        order: Order,
        limit: usize,
        mut all: impl DoubleEndedIterator<Item = Result<Record, E>>,
    ) -> Result<Self, E> {
        let mut records = Vec::new();
        while records.len() < limit {
            let next = match order {
                Order::Ascending => all.next(),
                Order::Descending => all.next_back(),
            };
            let Some(next) = next.transpose()? else {
                return Ok(Self {
                    records,
                    covered: range.clone(),
                    rest: None,
                });
            };
            records.push(next);
        }
        let Range { start, end } = range.clone();
        let last = records.last().map(|(key, _)| key.to_vec());
        let (covered, rest) = match (last, order) {
            // Only for a limit of 0.
            (None, _) => (start.clone()..start.clone(), start..end),
            (Some(mut last), Order::Ascending) => {
                // The lowest key after the last one.
                last.push(0);
                (start..last.clone(), last..end)
            }
            (Some(last), Order::Descending) => (last.clone()..end, start..last),
        };
        Ok(Self {
            records,
            covered,
            rest: Some(rest),
        })
    }
}

/// Records, a page at a time: nothing of the backend is held between two. Not a snapshot:
/// a record that is written meanwhile may or may not be seen.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    records: &'a dyn Records,
    range: Option<Range<Vec<u8>>>,
    order: Order,
    limit: usize,
    page: std::vec::IntoIter<Record>,
}

/// The records from the start of a range to below its end, in order, or in reverse order.
pub(super) fn walk(records: &dyn Records, range: Range<Vec<u8>>, order: Order) -> Scan<'_> {
    Scan {
        records,
        range: Some(range),
        order,
        limit: PAGES.start,
        page: Vec::new().into_iter(),
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.next() {
                return Some(Ok(entry));
            }
            let range = self.range.take()?;
            match self.records.page(&range, self.order, self.limit) {
                Ok(page) => {
                    self.page = page.records.into_iter();
                    self.range = page.rest;
                    self.limit = PAGES.end.min(2 * self.limit);
                }
                // The range was taken: the walk ends with its first error.
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// All records.
pub(super) fn everything() -> Range<Vec<u8>> {
    // No table has this byte.
    Vec::new()..vec![u8::MAX]
}

/// All keys that start with a prefix of ours. A table's byte is less than 255.
pub(super) fn with_prefix(prefix: Vec<u8>) -> Range<Vec<u8>> {
    let mut end = prefix.clone();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    prefix..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one_also_where_its_last_byte_has_none() {
        assert_eq!(with_prefix(vec![1, 2]), vec![1, 2]..vec![1, 3]);
        assert_eq!(with_prefix(vec![1, 254]), vec![1, 254]..vec![1, 255]);
        assert_eq!(with_prefix(vec![1, 255, 255]), vec![1, 255, 255]..vec![2]);
    }
}
