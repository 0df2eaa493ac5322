//! Records in the memory of this process: for tests, and for uses without a disk.
//!
//! Each commit is a group of its own; all of it happens in the caller's thread.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sled::IVec;
use tokio::sync::watch;

use super::backend::{Backend, BoxFuture, Order, Page, Records, Status, Writes};
use super::group::{Finished, Group};
use super::{Batch, CommitError, LogPosition, Mode, Options, Revision, StoreError, locked};

#[derive(Debug, Default)]
struct Map(RwLock<BTreeMap<Vec<u8>, IVec>>);

impl Map {
    fn write(&self, changes: &Writes) {
        let mut records = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in changes {
            match value {
                Some(value) => records.insert(key.clone(), value.clone()),
                None => records.remove(key),
            };
        }
    }
}

impl Records for Map {
    fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        let records = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(records.get(key).cloned())
    }

    fn page(&self, range: &Range<Vec<u8>>, order: Order, limit: usize) -> Result<Page, StoreError> {
        if range.start >= range.end {
            return Ok(Page::default());
        }
        let records = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = records.range(range.clone());
        let found =
            found.map(|(key, value)| Ok::<_, Infallible>((key.as_slice().into(), value.clone())));
        Ok(Page::take(range, order, limit, found).unwrap_or_else(|never| match never {}))
    }
}

/// The state that writers lock.
#[derive(Debug)]
struct Writer {
    revision: Revision,
    position: watch::Sender<LogPosition>,
    closed: bool,
}

/// A store in memory.
#[derive(Debug)]
pub(super) struct InMemory {
    records: Map,
    writer: Mutex<Writer>,
    status: Status,
    // Never used: without it the receivers of the mode would report that the store is gone.
    _mode: watch::Sender<Mode>,
    keep_events: u64,
    max_bytes: usize,
}

impl InMemory {
    pub(super) fn new(options: &Options) -> Self {
        let (sender, position) = watch::channel(LogPosition::default());
        let (mode_sender, mode) = watch::channel(Mode::ReadWrite);
        Self {
            records: Map::default(),
            writer: Mutex::new(Writer {
                revision: 0,
                position: sender,
                closed: false,
            }),
            status: Status {
                position,
                mode,
                log_id: uuid::Uuid::new_v4().simple().to_string(),
                followers: Arc::default(),
            },
            _mode: mode_sender,
            keep_events: options.keep_events,
            max_bytes: options.limits.waiting_bytes,
        }
    }

    fn write(&self, mut batch: Batch) -> Result<Revision, CommitError> {
        batch.check_size(self.max_bytes)?;
        let mut writer = locked(&self.writer);
        if writer.closed {
            return Err(CommitError::Closed);
        }
        let mut group = Group::new(&self.records, writer.revision);
        group.add(&mut batch)?;
        let position = *writer.position.borrow();
        let Finished {
            writes,
            position,
            revision,
            events,
            ..
        } = group.finish(position, self.keep_events)?;
        // The start moves before what is forgotten is gone, as on a disk.
        writer.position.send_if_modified(|known| {
            known.start = position.start;
            false
        });
        self.records.write(&writes);
        writer.revision = revision;
        // Under the lock of writers, so that followers get groups in their order.
        let followers = &self.status.followers;
        let followed = followers.notify(&self.records, &writes, revision, &events);
        writer.position.send_replace(position);
        followed.map_err(CommitError::Unfollowed)?;
        Ok(revision)
    }
}

impl Backend for InMemory {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, CommitError>> {
        Box::pin(std::future::ready(self.write(batch)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        locked(&self.writer).closed = true;
        Box::pin(std::future::ready(()))
    }

    fn status(&self) -> &Status {
        &self.status
    }
}
