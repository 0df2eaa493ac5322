//! The data directory: typed tables, durable commits, the event log, contents.
//!
//! Rules of this room:
//!
//! * **Reads are local and synchronous; commits are asynchronous** and resolve
//!   when they are durable. A [`Batch`] is whole or absent.
//! * **One committer thread** owns all writes: it gathers waiting batches, applies
//!   them as one, flushes once, syncs the file once, then acknowledges. sled
//!   acknowledges nothing by itself, and concurrent flushes deadlock it.
//! * Every record carries a format version, a checksum over its key and value,
//!   and the revision of the commit that wrote it. A damaged record is an error
//!   that says so, never an answer.
//! * Contents are kept once per digest, compressed, in chunks that keep sled's
//!   nodes below the size at which it writes files that it never frees.
//! * An event of a commit is in the same atomic batch as its effect; its place in
//!   the log is the commit's revision.
//! * **What is not durable is not read**: sled shows a batch before it is flushed,
//!   so a read of what the group in work wrote waits for it (`unsettled`).
//! * sled is opened and read behind a guard, since it panics on damage.
//!
//! Not here: what the records mean (`registry`), sled's `watch_prefix` (a stalled
//! subscriber blocks every writer), `len` (a scan), transactions (not needed by
//! one writer), space given back (`repertoire compact` rewrites the directory).

mod backup;
mod batch;
mod blob;
mod committer;
mod directory;
mod error;
mod guard;
mod last;
mod log;
mod packed;
mod record;
mod table;
#[cfg(test)]
mod tests;
mod unsettled;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use backup::{Backup, Verified, restore};
pub use batch::{Batch, Expect};
pub use blob::Content;
pub use committer::Limits;
pub use directory::{endpoint, forget_endpoint, remember_endpoint};
pub use error::{CommitError, OpenError, StoreError};
pub use guard::quiet_panics;
pub use log::LogPosition;
pub use packed::{Packed, Packer};
pub use table::{Key, Table, TableId, prefix};

use crate::model::{Digest, Event};
use guard::guarded;
use unsettled::{Unsettled, Verdict};

/// Number of a commit. Grows by one with each.
pub type Revision = u64;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of pages that sled keeps in memory.
    pub cache_bytes: u64,
    /// Events that the log keeps; older ones are forgotten.
    pub keep_events: u64,
    /// Commits are refused while the disk has fewer bytes free.
    pub reserve_bytes: u64,
    /// Bounds of what waits for the committer.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 * 1024 * 1024,
            keep_events: 100_000,
            reserve_bytes: 64 * 1024 * 1024,
            limits: Limits::default(),
        }
    }
}

/// A record and the revision that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// Commit that wrote the record; a precondition for the next write.
    pub revision: Revision,
    /// The record.
    pub value: T,
}

/// An open data directory. Cheap to clone; the last clone closes it.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tree: sled::Tree,
    committer: committer::Handle,
    log_id: String,
    position: watch::Receiver<LogPosition>,
    unsettled: Arc<Unsettled>,
    directory: PathBuf,
    // Last, so that sled outlives the thread that writes to it.
    _db: sled::Db,
}

impl Inner {
    /// A record, once it is durable.
    fn read(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreError> {
        loop {
            let value = guarded(|| self.tree.get(key))?;
            match self.unsettled.wait(key)? {
                Verdict::Durable => return Ok(value),
                Verdict::Again => {}
                Verdict::Absent => return Ok(None),
            }
        }
    }

    /// The next record of a walk, once it is durable.
    fn settled(
        &self,
        mut next: impl FnMut() -> Option<sled::Result<(sled::IVec, sled::IVec)>>,
    ) -> Result<Option<(sled::IVec, sled::IVec)>, StoreError> {
        loop {
            let Some((key, value)) = guarded(|| next().transpose())? else {
                return Ok(None);
            };
            let value = match self.unsettled.wait(&key)? {
                Verdict::Durable => Some(value),
                Verdict::Again => self.read(&key)?,
                Verdict::Absent => None,
            };
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }
}

impl Store {
    /// Opens a data directory, and makes it where there is none.
    ///
    /// # Errors
    /// The directory is in use, damaged, of a newer format, or not one.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        let (db, tree) = directory::open(directory, options)?;
        let damaged = |cause: StoreError| OpenError::damaged(directory, cause);
        let revision = log::last_revision(&tree).map_err(damaged)?;
        last::check(
            directory,
            revision,
            log::id(&tree).map_err(damaged)?.as_deref(),
        )?;
        let opened = log::open(&tree).map_err(damaged)?;
        let (sender, position) = watch::channel(opened.position);
        let unsettled = Arc::new(Unsettled::default());
        let committer = committer::spawn(committer::Committer {
            tree: tree.clone(),
            db: db.clone(),
            file: directory::database_file(directory)?,
            notes: last::Notes::open(directory, revision, &opened.log_id)?,
            revision,
            directory: directory.to_owned(),
            position: sender,
            unsettled: Arc::clone(&unsettled),
            keep_events: options.keep_events,
            reserve_bytes: options.reserve_bytes,
            limits: options.limits,
        })
        .map_err(|cause| OpenError::Io {
            path: directory.to_owned(),
            cause,
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                tree,
                committer,
                log_id: opened.log_id,
                position,
                unsettled,
                directory: directory.to_owned(),
                _db: db,
            }),
        })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// The record of a key.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn get<K: Key + ?Sized, V: DeserializeOwned>(
        &self,
        table: &Table<K, V>,
        key: &K,
    ) -> Result<Option<Stored<V>>, StoreError> {
        let key = table.key(key);
        let Some(value) = self.inner.read(&key)? else {
            return Ok(None);
        };
        let (revision, payload) = record::open(&key, &value)?;
        Ok(Some(Stored {
            revision,
            value: Table::<K, V>::decode(&key, payload)?,
        }))
    }

    /// Records whose keys start with `prefix`, in the order of their keys.
    ///
    /// The key of each is handed over without the table and the prefix.
    /// Not a snapshot: a record written meanwhile may or may not be seen.
    pub fn scan<'a, K: Key + ?Sized, V: DeserializeOwned>(
        &'a self,
        table: &'a Table<K, V>,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Stored<V>), StoreError>> + 'a {
        let start = table.raw(prefix);
        let cut = start.len();
        let mut records = self.inner.tree.scan_prefix(start);
        std::iter::from_fn(move || match self.inner.settled(|| records.next()) {
            Ok(None) => None,
            Ok(Some((key, value))) => {
                Some(record::open(&key, &value).and_then(|(revision, payload)| {
                    let value = Table::<K, V>::decode(&key, payload)?;
                    Ok((
                        key.get(cut..).unwrap_or_default().to_vec(),
                        Stored { revision, value },
                    ))
                }))
            }
            Err(error) => Some(Err(error)),
        })
    }

    /// Records of a table below a key and above `prefix`, last first. For pages
    /// of versions, newest first.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn before<K: Key + ?Sized, V: DeserializeOwned>(
        &self,
        table: &Table<K, V>,
        prefix: &[u8],
        below: Option<&K>,
        limit: usize,
    ) -> Result<Vec<V>, StoreError> {
        let start = table.raw(prefix);
        let end = match below {
            Some(key) => table.key(key),
            None => [start.as_slice(), &[0xff; 16]].concat(),
        };
        let mut records = self.inner.tree.range(start..end);
        let mut found = Vec::new();
        while found.len() < limit {
            let Some((key, value)) = self.inner.settled(|| records.next_back())? else {
                break;
            };
            let (_, payload) = record::open(&key, &value)?;
            found.push(Table::<K, V>::decode(&key, payload)?);
        }
        Ok(found)
    }

    /// The content of a digest, checked against it.
    ///
    /// Reads and unpacks up to 16 MiB: call it where blocking is allowed.
    ///
    /// # Errors
    /// The content is damaged, or the store cannot be read.
    pub fn content(&self, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        blob::read(&self.inner.tree, digest)
    }

    /// The content of a digest is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has_content(&self, digest: &Digest) -> Result<bool, StoreError> {
        blob::exists(&self.inner.tree, digest)
    }

    /// Writes a batch; returns when it is durable and visible to every reader.
    ///
    /// A caller that goes away meanwhile changes nothing: the batch is still
    /// written whole, or not at all.
    ///
    /// # Errors
    /// A precondition does not hold, or the disk refuses.
    pub async fn commit(&self, batch: Batch) -> Result<Revision, CommitError> {
        self.inner.committer.commit(batch).await
    }

    /// Waits until all that was handed to the committer is written, and stops it.
    /// Commits after this are refused.
    pub async fn close(&self) {
        self.inner.committer.close().await;
    }

    /// Up to `limit` events after a place in the log, in order.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn events_after(
        &self,
        sequence: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        // Events beyond the end are on their way: a crash may still take them back.
        let end = self.inner.position.borrow().end;
        let mut events = log::after(&self.inner.tree, sequence, limit)?;
        events.retain(|(sequence, _)| *sequence <= end);
        Ok(events)
    }

    /// Where the log begins and ends; changes with every event.
    #[must_use]
    pub fn position(&self) -> watch::Receiver<LogPosition> {
        self.inner.position.clone()
    }

    /// Identity of the log. A token of another log says nothing here.
    #[must_use]
    pub fn log_id(&self) -> &str {
        &self.inner.log_id
    }

    /// Reads every record and content, and says what was found.
    pub fn verify(&self, progress: impl FnMut(u64)) -> Verified {
        backup::verify(&self.inner.tree, progress)
    }

    /// Writes every record to a file that [`restore`] and any later version read.
    ///
    /// Contents for which `keep` is false are left out.
    ///
    /// # Errors
    /// A record is damaged, or the file cannot be written.
    pub fn backup(
        &self,
        to: &Path,
        keep: impl Fn(&Digest) -> bool,
        progress: impl FnMut(u64),
    ) -> Result<Backup, StoreError> {
        backup::write(&self.inner.tree, keep, to, progress)
    }
}
