//! sled, open, with its file.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::backend::Writes;
use super::{Options, StoreError, directory, guarded};

type SyncData = dyn Fn(&File) -> io::Result<()> + Send + Sync;

/// The sync that makes a group survive a power cut.
///
/// Tests hand in one that is slow, or that fails.
#[derive(Clone)]
pub struct FileSync(pub(super) Arc<SyncData>);

impl FileSync {
    /// Uses another sync.
    #[must_use]
    pub fn new(sync: impl Fn(&File) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(sync))
    }
}

impl Default for FileSync {
    fn default() -> Self {
        Self::new(File::sync_data)
    }
}

impl std::fmt::Debug for FileSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSync").finish_non_exhaustive()
    }
}

/// Errors of a system that refuses to write, in the words that sled passes on. After any other
/// error it may have dropped pages that it had accepted.
const REFUSALS: [&str; 4] = [
    "File too large",
    "No space left",
    "quota exceeded",
    "Read-only file system",
];

/// A batch was not written, or may not be durable.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) reason: String,
    /// The system may have dropped pages that it had accepted.
    pub(super) dropped: bool,
}

impl From<String> for Failed {
    fn from(reason: String) -> Self {
        Self {
            dropped: !REFUSALS.iter().any(|refusal| reason.contains(refusal)),
            reason,
        }
    }
}

/// An open database.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) tree: sled::Tree,
    pub(super) db: sled::Db,
    /// The database file, to be synced: sled's own flush survives a killed
    /// process, not a power cut.
    pub(super) file: File,
}

impl Engine {
    /// Opens the database of a folder; makes one where there is none.
    pub(super) fn open(store: &Path, options: &Options) -> Result<Self, StoreError> {
        let (db, tree) = directory::engine(store, options)?;
        let file = File::open(store.join("db")).map_err(StoreError::io(store))?;
        Ok(Self { tree, db, file })
    }

    /// Opens the database of a directory that is open.
    pub(super) fn reopen(directory: &Path, options: &Options) -> Result<Self, String> {
        let (db, tree) =
            directory::reopen(directory, options).map_err(|error| error.to_string())?;
        let file = directory::database_file(directory).map_err(|error| error.to_string())?;
        Ok(Self { tree, db, file })
    }

    /// Writes records in one step; returns when they are durable.
    pub(super) fn write(&self, writes: &Writes, sync: &FileSync) -> Result<(), Failed> {
        let mut batch = sled::Batch::default();
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(key.as_slice(), value),
                None => batch.remove(key.as_slice()),
            }
        }
        guarded(|| self.tree.apply_batch(batch))
            .and_then(|()| guarded(|| self.db.flush()))
            .map_err(|error| error.to_string())?;
        (sync.0)(&self.file).map_err(|error| Failed {
            reason: error.to_string(),
            dropped: true,
        })
    }
}
