//! Errors of a data directory.

use std::io;
use std::path::{Path, PathBuf};

use super::{Revision, record};

/// A data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory is open in another process.
    #[error(
        "the data directory `{}` is in use by {}; wait until it is done or stop it, or reach a server with `--server URL`",
        path.display(), process_words(*process)
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, where it is known.
        process: Option<u32>,
    },
    /// A later version wrote it.
    #[error(
        "the data directory `{}` has format {found}, this version reads up to {known}; use the version that wrote it, or a later one",
        path.display()
    )]
    NewerFormat {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The directory holds something else.
    #[error("`{}` is not a data directory: {reason}", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// The unexpected entry.
        reason: String,
    },
    /// A restore, salvage or compaction was cut short.
    #[error("the data directory `{}` is not whole: {what}; {next}", path.display())]
    CutShort {
        /// The directory.
        path: PathBuf,
        /// The finding.
        what: String,
        /// The next step.
        next: String,
    },
    /// A file of it is damaged.
    #[error(
        "the data directory `{}` is damaged: {cause}; restore a backup into a new directory (`repertoire restore`), or save what is whole (`repertoire salvage`)",
        path.display()
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// The finding.
        cause: String,
    },
    /// The system refused.
    #[error("cannot open the data directory `{}`: {cause}", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

fn process_words(process: Option<u32>) -> String {
    process.map_or_else(
        || "another process".to_owned(),
        |process| format!("process {process}"),
    )
}

impl OpenError {
    pub(super) fn damaged(path: &Path, cause: impl std::fmt::Display) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            cause: cause.to_string(),
        }
    }
}

/// A read failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store is in memory: there is nothing to back up or to compact.
    #[error("the store is in memory and has no data directory")]
    InMemory,
    /// A record is not what was written.
    #[error("the record `{key}` is damaged: {reason}")]
    Damaged {
        /// Its key, printable.
        key: String,
        /// The mistake in it.
        reason: String,
    },
    /// A later version wrote the record.
    #[error("the record `{key}` has format {found}, this version reads up to {known}")]
    NewerFormat {
        /// Its key, printable.
        key: String,
        /// Its format.
        found: u8,
        /// The newest format known here.
        known: u8,
    },
    /// The engine fails to read.
    #[error("the store cannot be read: {0}")]
    Engine(String),
    /// The database is opened again after a write failed.
    #[error("the store is opened again after a failed write; try again in a moment")]
    Reopening,
    /// More was overwritten during a backup than it may hold in memory.
    #[error(
        "more than {max} bytes were overwritten while the backup was taken; try again when less is written"
    )]
    Outrun {
        /// The maximum bytes.
        max: usize,
    },
    /// More was written during a compaction than it could copy.
    #[error(
        "so much was written meanwhile that the compaction did not come to its end; all is as it was"
    )]
    Busy,
    /// A compaction is in progress.
    #[error("the data directory is already being compacted")]
    Compacting,
    /// The caller or the server stopped it.
    #[error("the work was stopped without effect")]
    Stopped,
    /// A compaction took effect, but a power cut may still bring the old store back.
    #[error(
        "the compacted store is in use, but the disk has not confirmed the exchange yet: `{}`: {cause}",
        path.display()
    )]
    NotDurable {
        /// The directory that cannot be synced.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A file cannot be read or written.
    #[error("`{}`: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The directory cannot be opened, or restored into.
    #[error(transparent)]
    Directory(Box<OpenError>),
    /// A file is not a backup, or not a whole one.
    #[error("`{}` is not a usable backup: {reason}", path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
        /// The mistake in it.
        reason: String,
    },
}

impl StoreError {
    pub(super) fn damaged(key: &[u8], reason: impl std::fmt::Display) -> Self {
        Self::Damaged {
            key: record::printable(key),
            reason: reason.to_string(),
        }
    }

    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| Self::Io {
            path: path.clone(),
            cause,
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io { path, cause } => Self::Io { path, cause },
            error => Self::Directory(Box::new(error)),
        }
    }
}

/// A commit failed. Nothing of it was written, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A precondition does not hold: read again.
    #[error("another write interfered (the record is of revision {found:?})")]
    Conflict {
        /// Revision of the record now; none where it is absent.
        found: Option<Revision>,
    },
    /// The disk is nearly full.
    #[error("the disk has {free} bytes free, fewer than the reserve of {reserve}")]
    DiskFull {
        /// Bytes free.
        free: u64,
        /// Bytes kept.
        reserve: u64,
    },
    /// The batch alone is more than the committer takes.
    #[error("the write has {bytes} bytes; at most {max} are accepted")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A key is longer than the store takes.
    #[error("the key of a record has {bytes} bytes; at most {max} are accepted")]
    KeyTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// The disk refused the write, and the store takes it back. Should the process end
    /// before it could, the write may be there.
    #[error("the write failed: {0}")]
    Failed(String),
    /// An earlier write failed. Nothing of this one was tried.
    #[error("the store accepts no writes for now: {0}")]
    ReadOnly(String),
    /// The write is durable, but a follower of the log in this process does not know of it.
    #[error("the write is durable, but not all reads show it: {0}")]
    Unfollowed(String),
    /// A record cannot be read to check a precondition.
    #[error(transparent)]
    Store(#[from] StoreError),
}
