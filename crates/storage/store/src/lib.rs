//! The data directory: typed tables, durable commits, the event log, contents.
//!
//! Rules:
//!
//! * **Reads are local and synchronous; commits are asynchronous** and resolve
//!   when they are durable. A [`Batch`] is whole or absent.
//! * **One committer thread** owns all writes: it gathers waiting batches, applies
//!   them as one, flushes once, syncs the file once, then acknowledges. sled
//!   acknowledges nothing by itself, and concurrent flushes deadlock it.
//! * Every record carries a format version, a checksum over its key and value,
//!   and the revision of the commit that wrote it. A damaged record is an error
//!   that says so, never an answer.
//! * Contents are stored once per digest, compressed, in chunks so small that sled's nodes stay
//!   below the size at which it writes files that it never frees.
//! * An event of a commit is in the same atomic batch as its effect; its position in the log is
//!   the commit's revision.
//! * **What is not durable is not read**: sled shows a batch before it is flushed,
//!   so readers see the before-images of what the group in flight changes (`view`).
//!   No read waits for a write.
//! * **A failed write is taken back**: the store is read-only until the database was
//!   opened again and takes writes (`recovery`).
//! * **Memory follows its table**: what a service has of a table in memory is a [`Mirror`], which
//!   no code but the store's can change.
//! * Records of the chain get their numbers and digests where their group is written (`chain`).
//! * No record is so large that sled would put a leaf into a file (`chunks`).
//! * sled is opened and read behind a guard, since it panics on damage.
//!
//! Not here: what the records mean (`registry`), sled's `watch_prefix` (a stalled
//! subscriber blocks every writer), `len` (a scan), transactions (not needed by
//! one writer).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod atomic_file;
mod attached;
mod backend;
mod backup;
mod batch;
mod blob;
mod bounded;
mod chain;
mod chunks;
mod claim;
mod committer;
mod compact;
mod directory;
mod engine;
mod engine_log;
mod error;
mod failure;
#[cfg(any(test, feature = "testing"))]
pub mod faults;
mod follow;
#[cfg(any(test, feature = "testing"))]
mod forgery;
mod group;
mod guard;
mod high_water_mark;
mod in_memory;
mod inspect;
mod leftovers;
mod lock;
mod log;
mod mirror;
mod on_disk;
mod packed;
mod private;
mod reader;
mod record;
mod recovery;
mod salvage;
mod snapshot;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use atomic_file::AtomicFile;
pub use attached::{Attached, to_the_end, with_attached};
pub use backup::{Backup, Verified, restore};
pub use batch::{Batch, Expect};
pub use blob::Content;
pub use bounded::bounded;
pub use chain::{ChainMark, Link};
pub use committer::Limits;
pub use compact::{Compacted, Compaction};
pub use engine::FileSync;
pub use error::{CommitError, OpenError, StoreError};
pub use follow::Pinned;
#[cfg(any(test, feature = "testing"))]
pub use forgery::Forgery;
pub use lock::{Holder, holder};
pub use log::LogPosition;
pub use mirror::{Change, Fold, Mirror};
pub use packed::{Packed, Packer};
pub use private::{begin_session, has_reader, keep_files_private};
pub use reader::{Newer, Reader, Stored};
pub use salvage::{Salvaged, Saved, salvage};
pub use space::{bytes_on_disk, free_bytes};
pub use table::{Key, Table, TableId, prefix};

use backend::{Backend, Order};
use guard::guarded;
use in_memory::InMemory;
use model::{Digest, Event};
use on_disk::OnDisk;

/// Number of a commit. Grows by one with each.
pub type Revision = u64;

/// Options of a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of pages that sled caches in memory.
    pub cache_bytes: u64,
    /// Events that the log keeps, give or take those of a group; older ones are
    /// forgotten. Commits without an event do not count.
    pub keep_events: u64,
    /// Commits are refused while the disk has fewer bytes free.
    pub reserve_bytes: u64,
    /// Bounds of the committer's queue.
    pub limits: Limits,
    /// The sync that makes a group survive a power cut.
    pub sync: FileSync,
    /// Maximum bytes of overwritten records in memory for a backup, which fails beyond.
    pub backup_bytes: usize,
    /// Maximum bytes of changed keys in memory for a compaction, with the overhead of each; it
    /// fails beyond.
    pub compaction_bytes: usize,
    /// The time to wait for another process that has the directory open.
    pub lock_timeout: Duration,
    /// The time that reads wait, after a write error, for the database to be opened again.
    pub reopen_patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 48 * 1024 * 1024,
            keep_events: 100_000,
            reserve_bytes: 64 * 1024 * 1024,
            limits: Limits::default(),
            sync: FileSync::default(),
            backup_bytes: 256 * 1024 * 1024,
            compaction_bytes: 64 * 1024 * 1024,
            lock_timeout: lock::DEFAULT_TIMEOUT,
            reopen_patience: Duration::from_secs(2),
        }
    }
}

/// Whether a store takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// It takes writes.
    ReadWrite,
    /// It takes no writes since one failed. It recovers by itself.
    ReadOnly {
        /// The failure.
        reason: String,
    },
}

/// An open store. Cheap to clone; the last clone closes it.
///
/// Its backend holds the records: a data directory, or the memory of this process.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    /// The same, where it is a data directory: it can be backed up and compacted.
    on_disk: Option<Arc<OnDisk>>,
}

impl Store {
    /// Opens a data directory, and makes it where there is none.
    ///
    /// # Errors
    /// The directory is in use, damaged, of a newer format, or not one.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        let on_disk = Arc::new(OnDisk::open(directory, options)?);
        Ok(Self {
            backend: Arc::clone(&on_disk) as Arc<dyn Backend>,
            on_disk: Some(on_disk),
        })
    }

    /// An empty store that is gone with its last clone.
    #[must_use]
    pub fn in_memory(options: &Options) -> Self {
        Self {
            backend: Arc::new(InMemory::new(options)),
            on_disk: None,
        }
    }

    fn on_disk(&self) -> Result<&Arc<OnDisk>, StoreError> {
        self.on_disk.as_ref().ok_or(StoreError::InMemory)
    }

    /// The durable records.
    fn reader(&self) -> Reader<'_> {
        Reader(self.backend.records())
    }

    /// Reads the record of a key.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn get<K: Key + ?Sized, V: DeserializeOwned>(
        &self,
        table: &Table<K, V>,
        key: &K,
    ) -> Result<Option<Stored<V>>, StoreError> {
        self.reader().get(table, key)
    }

    /// Reads the record of a key, unless the caller has it already: see [`Reader::newer`].
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn newer<K: Key + ?Sized, V: DeserializeOwned>(
        &self,
        table: &Table<K, V>,
        key: &K,
        known: Option<Revision>,
    ) -> Result<Newer<V>, StoreError> {
        self.reader().newer(table, key, known)
    }

    /// Records whose keys start with a prefix: see [`Reader::scan`].
    pub fn scan<'a, K: Key + ?Sized, V: DeserializeOwned>(
        &'a self,
        table: &Table<K, V>,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Stored<V>), StoreError>> + use<'a, K, V> {
        self.reader().scan(table, prefix)
    }

    /// Records of a table below a key, last first: see [`Reader::before`].
    ///
    /// # Errors
    /// As there.
    pub fn before<K: Key + ?Sized, V: DeserializeOwned>(
        &self,
        table: &Table<K, V>,
        prefix: &[u8],
        below: Option<&K>,
        limit: usize,
    ) -> Result<Vec<V>, StoreError> {
        self.reader().before(table, prefix, below, limit)
    }

    /// Reads the content of a digest: see [`Reader::content`].
    ///
    /// # Errors
    /// As there.
    pub fn content(&self, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        self.reader().content(digest)
    }

    /// Returns whether the content of a digest is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has_content(&self, digest: &Digest) -> Result<bool, StoreError> {
        self.reader().has_content(digest)
    }

    /// Protects contents, until the answer is dropped, from a compaction that finds them unused:
    /// for a write that uses them. To be called before [`Store::has_content`].
    ///
    /// Blocks for the moment in which a compaction exchanges the stores.
    #[must_use]
    pub fn pin(&self, digests: impl IntoIterator<Item = Digest>) -> Pinned {
        // A store in memory is never compacted.
        let pins = self
            .on_disk
            .as_ref()
            .map(|on_disk| Arc::clone(&on_disk.pins));
        pins.unwrap_or_default().pin(digests.into_iter().collect())
    }

    /// Writes a batch; returns when it is durable, visible to every reader, and known to all
    /// followers of the log.
    ///
    /// Dropping the future changes nothing: the batch is still written whole, or not at all.
    ///
    /// # Errors
    /// A precondition does not hold, or the disk refuses.
    pub async fn commit(&self, mut batch: Batch) -> Result<Revision, CommitError> {
        // Taken before the write: a second batch of the same call that is written meanwhile
        // carries no second copy of the record.
        let attached = attached::attached().filter(|attached| {
            let body = attached.take(batch.event.as_ref());
            body.map(|body| batch.append(body)).is_some()
        });
        let written = self.backend.commit(batch).await;
        if let Some(attached) = attached {
            attached.ended(written.is_ok());
        }
        written
    }

    /// Records of the chain with numbers from `from` on and below `below`, in order.
    ///
    /// Not a snapshot: a record appended meanwhile may or may not be seen.
    pub fn links(
        &self,
        from: u64,
        below: u64,
    ) -> impl Iterator<Item = Result<Link, StoreError>> + '_ {
        chain::links(self.backend.records(), from, below, Order::Ascending)
    }

    /// The same, last first.
    pub fn links_back(
        &self,
        from: u64,
        below: u64,
    ) -> impl Iterator<Item = Result<Link, StoreError>> + '_ {
        chain::links(self.backend.records(), from, below, Order::Descending)
    }

    /// Returns the mark before the oldest stored record of the chain.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn chain_start(&self) -> Result<ChainMark, StoreError> {
        chain::start(self.backend.records())
    }

    /// Returns the end of the chain, as it was stored with its last record. None: it was not.
    ///
    /// # Errors
    /// As [`Store::chain_start`].
    pub fn chain_end(&self) -> Result<Option<ChainMark>, StoreError> {
        chain::stored_end(self.backend.records())
    }

    /// Calls a function with the events of each group of commits from now on, in the order of
    /// the log, whichever writer they are from. It is called once they are durable and before
    /// their writers are answered, while nothing else is written: it must be quick. Where it
    /// fails, the writers get an error, and it has to catch up the next time.
    pub fn follow(
        &self,
        follower: impl Fn(Reader<'_>, &[(Revision, Event)]) -> Result<(), StoreError> + Send + 'static,
    ) {
        self.backend.status().followers.add(Box::new(follower));
    }

    /// Waits until the committer has written its queue, and stops it. Commits after this are
    /// refused.
    pub async fn close(&self) {
        self.backend.close().await;
    }

    /// Returns up to `limit` events after a position in the log, in order. None: the log no
    /// longer reaches back to it.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn events_after(
        &self,
        sequence: u64,
        limit: usize,
    ) -> Result<Option<Vec<(u64, Event)>>, StoreError> {
        let position = &self.backend.status().position;
        // Events beyond the end were not announced to watchers yet.
        let end = position.borrow().end;
        let mut events = log::after(self.backend.records(), sequence, limit)?;
        // After the read: the start moves before a reader can miss what was forgotten.
        if sequence < position.borrow().start {
            return Ok(None);
        }
        events.retain(|(sequence, _)| *sequence <= end);
        Ok(Some(events))
    }

    /// Returns the start and the end of the log; changes with every event.
    #[must_use]
    pub fn position(&self) -> watch::Receiver<LogPosition> {
        self.backend.status().position.clone()
    }

    /// Returns whether the store takes writes; changes when a write fails, and when the store
    /// takes writes again.
    #[must_use]
    pub fn mode(&self) -> watch::Receiver<Mode> {
        self.backend.status().mode.clone()
    }

    /// Identity of the log. A token of another log says nothing here.
    #[must_use]
    pub fn log_id(&self) -> &str {
        &self.backend.status().log_id
    }

    /// Reads every record and content, and reports what it found.
    pub fn verify(&self, progress: impl FnMut(u64)) -> Verified {
        backup::verify(self.backend.records(), progress)
    }

    /// Writes every record to a file that [`restore`] and any later version read: those
    /// of the revision at which it begins, while writes go on.
    ///
    /// A file that is there is overwritten only if `replace` says so. `progress` gets the number
    /// of records written; its error ends the work. The reserve of the disk stays free.
    ///
    /// # Errors
    /// A record is damaged, the file is there, or it cannot be written. Nothing is left of it
    /// then. Or the store has no data directory.
    pub fn backup(
        &self,
        to: &Path,
        replace: bool,
        progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<Backup, StoreError> {
        self.on_disk()?.backup(to, replace, progress)
    }

    /// The same to a file without a name, which goes when its handle is dropped.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_unnamed(
        &self,
        progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<(File, Backup), StoreError> {
        self.on_disk()?.backup_unnamed(progress)
    }
}

/// Locks a mutex, also where a thread has panicked with it: otherwise that one panic would
/// become one of every later caller.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
