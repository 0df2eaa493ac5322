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
//! * Contents are kept once per digest, compressed, in chunks that keep sled's
//!   nodes below the size at which it writes files that it never frees.
//! * An event of a commit is in the same atomic batch as its effect; its place in
//!   the log is the commit's revision.
//! * **What is not durable is not read**: sled shows a batch before it is flushed,
//!   so readers see the before-images of what the group in flight changes (`view`).
//!   No read waits for a write.
//! * **A failed write is taken back**: the store is read-only until the database was
//!   opened again and takes writes (`recovery`).
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

mod backup;
mod batch;
mod beside;
mod blob;
mod bounded;
mod chunks;
mod claim;
mod committer;
mod compact;
mod directory;
mod engine;
mod engine_log;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod faults;
mod follow;
mod group;
mod guard;
mod last;
mod leftovers;
mod lock;
mod log;
mod look;
mod packed;
mod private;
mod record;
mod recovery;
mod salvage;
mod snapshot;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use backup::{Backup, Verified, restore};
pub use batch::{Batch, Expect};
pub use beside::Beside;
pub use blob::Content;
pub use bounded::bounded;
pub use committer::Limits;
pub use compact::{Compacted, Compaction};
pub use engine::FileSync;
pub use error::{CommitError, OpenError, StoreError};
pub use follow::Pinned;
pub use log::LogPosition;
pub use packed::{Packed, Packer};
pub use private::keep_files_private;
pub use salvage::{Salvaged, Saved, salvage};
pub use table::{Key, Table, TableId, prefix};

use engine::Engine;
use guard::guarded;
use model::{Digest, Event};
use view::{Order, View, with_prefix};

/// Number of a commit. Grows by one with each.
pub type Revision = u64;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of pages that sled keeps in memory.
    pub cache_bytes: u64,
    /// Events that the log keeps, give or take those of a group; older ones are
    /// forgotten. Commits without an event do not count.
    pub keep_events: u64,
    /// Commits are refused while the disk has fewer bytes free.
    pub reserve_bytes: u64,
    /// Bounds of what waits for the committer.
    pub limits: Limits,
    /// How a group is made to survive a power cut.
    pub sync: FileSync,
    /// Bytes of overwritten records that are kept for a backup at most; it fails beyond.
    pub backup_bytes: usize,
    /// Bytes of keys that are kept for a compaction at once, each with what it costs to
    /// keep; it fails beyond.
    pub compaction_bytes: usize,
    /// After a write error, how long reads wait for the database to be opened again.
    pub reopen_patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 * 1024 * 1024,
            keep_events: 100_000,
            reserve_bytes: 64 * 1024 * 1024,
            limits: Limits::default(),
            sync: FileSync::default(),
            backup_bytes: 256 * 1024 * 1024,
            compaction_bytes: 64 * 1024 * 1024,
            reopen_patience: Duration::from_secs(2),
        }
    }
}

/// Whether a store takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    ReadWrite,
    /// It does not, since a write failed. It tries to, by itself.
    ReadOnly {
        /// What failed.
        reason: String,
    },
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
    // First, so that the thread ends before the database is closed.
    committer: committer::Handle,
    view: Arc<View>,
    log_id: String,
    position: watch::Receiver<LogPosition>,
    mode: watch::Receiver<Mode>,
    directory: PathBuf,
    options: Options,
    pins: Arc<follow::Pins>,
    // Last, so that nobody opens the directory before the database is closed.
    _lock: lock::Lock,
}

impl Store {
    /// Opens a data directory, and makes it where there is none.
    ///
    /// # Errors
    /// The directory is in use, damaged, of a newer format, or not one.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        let (path, opening) = (directory.to_owned(), options.clone());
        let directory::Opened { db, tree, lock } =
            bounded(directory, move || directory::open(&path, &opening))??;
        let damaged = |cause: StoreError| OpenError::damaged(directory, cause);
        let revision = log::last_revision(&tree).map_err(damaged)?;
        last::check(
            directory,
            revision,
            log::id(&tree).map_err(damaged)?.as_deref(),
        )?;
        let opened = log::open(&tree).map_err(damaged)?;
        let (sender, position) = watch::channel(opened.position);
        let (mode_sender, mode) = watch::channel(Mode::ReadWrite);
        let file = directory::database_file(directory)?;
        let view = Arc::new(View::new(Engine { tree, db, file }, revision, options));
        let committer = committer::spawn(committer::Committer {
            view: Arc::clone(&view),
            notes: last::Notes::open(directory, revision, &opened.log_id)?,
            revision,
            log_id: opened.log_id.clone(),
            directory: directory.to_owned(),
            position: sender,
            mode: mode_sender,
            options: options.clone(),
        })
        .map_err(|cause| OpenError::Io {
            path: directory.to_owned(),
            cause,
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                committer,
                view,
                log_id: opened.log_id,
                position,
                mode,
                directory: directory.to_owned(),
                options: options.clone(),
                pins: Arc::default(),
                _lock: lock,
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
        let Some(value) = self.inner.view.get(&key)? else {
            return Ok(None);
        };
        let found = chunks::open(&self.inner.view, &key, value)?;
        found.map(|found| stored::<K, V>(&key, found)).transpose()
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
        let view = &self.inner.view;
        let records = view.walk(with_prefix(start), Order::Ascending);
        records.filter_map(move |entry| {
            let read = entry.and_then(|(key, value)| {
                let Some(found) = chunks::open(view, &key, value)? else {
                    return Ok(None);
                };
                let value = stored::<K, V>(&key, found)?;
                Ok(Some((key.get(cut..).unwrap_or_default().to_vec(), value)))
            });
            read.transpose()
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
        let mut range = with_prefix(table.raw(prefix));
        if let Some(key) = below {
            range.end = table.key(key);
        }
        let mut found = Vec::new();
        let mut records = self.inner.view.walk(range, Order::Descending);
        while found.len() < limit {
            let Some((key, value)) = records.next().transpose()? else {
                break;
            };
            if let Some(read) = chunks::open(&self.inner.view, &key, value)? {
                found.push(stored::<K, V>(&key, read)?.value);
            }
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
        blob::read(&self.inner.view, digest)
    }

    /// The content of a digest is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has_content(&self, digest: &Digest) -> Result<bool, StoreError> {
        blob::exists(&self.inner.view, digest)
    }

    /// Keeps contents, as long as the answer is there, from a compaction that finds them
    /// unused: for a write that uses them. Before it looks whether they are stored.
    ///
    /// Blocks for the moment in which a compaction exchanges the stores.
    #[must_use]
    pub fn pin(&self, digests: impl IntoIterator<Item = Digest>) -> Pinned {
        self.inner.pins.pin(digests.into_iter().collect())
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

    /// Up to `limit` events after a place in the log, in order. None: the log no longer
    /// reaches back to that place.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn events_after(
        &self,
        sequence: u64,
        limit: usize,
    ) -> Result<Option<Vec<(u64, Event)>>, StoreError> {
        // Events beyond the end are not known to whoever waits for one yet.
        let end = self.inner.position.borrow().end;
        let mut events = log::after(&self.inner.view, sequence, limit)?;
        // After the read: the start moves before a reader can miss what was forgotten.
        if sequence < self.inner.position.borrow().start {
            return Ok(None);
        }
        events.retain(|(sequence, _)| *sequence <= end);
        Ok(Some(events))
    }

    /// Where the log begins and ends; changes with every event.
    #[must_use]
    pub fn position(&self) -> watch::Receiver<LogPosition> {
        self.inner.position.clone()
    }

    /// Whether the store takes writes; changes when a write fails, and when the store
    /// takes writes again.
    #[must_use]
    pub fn mode(&self) -> watch::Receiver<Mode> {
        self.inner.mode.clone()
    }

    /// Identity of the log. A token of another log says nothing here.
    #[must_use]
    pub fn log_id(&self) -> &str {
        &self.inner.log_id
    }

    /// Reads every record and content, and says what was found.
    pub fn verify(&self, progress: impl FnMut(u64)) -> Verified {
        backup::verify(&self.inner.view, progress)
    }

    /// Writes every record to a file that [`restore`] and any later version read: those
    /// of the revision at which it begins, while writes go on.
    ///
    /// A file that is there is overwritten only if `replace` says so. `progress` is told how
    /// many records were written; its error ends the work. The reserve of the disk stays
    /// free.
    ///
    /// # Errors
    /// A record is damaged, the file is there, or it cannot be written. Nothing is left of it
    /// then.
    pub fn backup(
        &self,
        to: &Path,
        replace: bool,
        mut progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<Backup, StoreError> {
        // What lies on another disk takes nothing from writes.
        let disk = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let shared = disk(parent.unwrap_or(Path::new("."))) == disk(&self.inner.directory);
        if shared {
            self.room(to)?;
        }
        backup::write(&self.inner.view, to, replace, |count| {
            if shared && count.is_multiple_of(backup::LOOK) {
                self.room(to)?;
            }
            progress(count)
        })
    }

    /// The same to a file that has no name, and goes with whoever has it open.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_unnamed(
        &self,
        mut progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<(File, Backup), StoreError> {
        let path = self.inner.directory.join(directory::BACKING_UP);
        self.room(&path)?;
        backup::write_unnamed(&self.inner.view, &path, |count| {
            if count.is_multiple_of(backup::LOOK) {
                self.room(&path)?;
            }
            progress(count)
        })
    }

    /// Refuses to take the last of the disk for a file.
    fn room(&self, file: &Path) -> Result<(), StoreError> {
        let room = directory::room(&self.inner.directory, self.inner.options.reserve_bytes);
        room.map_err(|cause| StoreError::Io {
            path: file.to_owned(),
            cause,
        })
    }
}

fn stored<K: Key + ?Sized, V: DeserializeOwned>(
    key: &[u8],
    (revision, payload): (Revision, Vec<u8>),
) -> Result<Stored<V>, StoreError> {
    Ok(Stored {
        revision,
        value: Table::<K, V>::decode(key, &payload)?,
    })
}
