//! The last acknowledged write, noted next to the database.
//!
//! sled takes a database file that was cut short, or replaced by an older copy,
//! for one that was killed early: it opens without what is missing, and without
//! a word. This file says up to where the database must reach.
//!
//! ```text
//! DATA/last    revision: 20 digits | space | identity of the log | space | crc32: 8 digits | newline
//! ```
//!
//! It is overwritten in place after each group, and synced with every few hundred of
//! them: it survives a killed process, and after a power cut it may name an earlier
//! write, which is no harm. It is made when what it names is durable. A file that is missing or unreadable
//! is made anew.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{OpenError, Revision, private};

/// Notes between two syncs: one group in so many waits for the disk once more.
const NOTES_A_SYNC: Revision = 256;

/// The write that a directory must reach.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) revision: Revision,
    pub(super) log_id: String,
}

fn path(directory: &Path) -> PathBuf {
    directory.join("last")
}

fn line(revision: Revision, log_id: &str) -> String {
    // 20 digits hold any revision: the line is overwritten in place, so its length must not
    // change.
    let facts = format!("{revision:020} {log_id}");
    format!("{facts} {:08x}\n", crc32fast::hash(facts.as_bytes()))
}

/// Reads the file; none where there is none, or its checksum does not fit.
pub(super) fn read(directory: &Path) -> Option<Last> {
    let text = fs::read_to_string(path(directory)).ok()?;
    let (revision, rest) = text.split_once(' ')?;
    let (log_id, _) = rest.split_once(' ')?;
    let last = Last {
        revision: revision.parse().ok()?,
        log_id: log_id.to_owned(),
    };
    (line(last.revision, &last.log_id) == text).then_some(last)
}

/// The same, before anything in the directory is changed. Where the file exists and cannot be
/// read, it could not be written either.
pub(super) fn acknowledged(directory: &Path) -> Result<Option<Revision>, OpenError> {
    let path = path(directory);
    match File::open(&path).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_dir() => Err(OpenError::Io {
            path,
            cause: io::ErrorKind::IsADirectory.into(),
        }),
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(OpenError::Io { path, cause }),
        _ => Ok(read(directory).map(|last| last.revision)),
    }
}

/// Refuses a database whose log ends, or is damaged, before what was acknowledged.
pub(super) fn lacks(
    directory: &Path,
    acknowledged: Option<Revision>,
    found: Option<Revision>,
) -> OpenError {
    let cause = match (found, acknowledged) {
        (Some(found), Some(acknowledged)) if found < acknowledged => {
            format!("it ends with write {found}, but write {acknowledged} was acknowledged")
        }
        (None, Some(acknowledged)) => {
            format!("its log cannot be read up to write {acknowledged}, which was acknowledged")
        }
        _ => "its log ends before its snapshot".to_owned(),
    };
    OpenError::damaged(directory, cause)
}

/// Refuses a database that lacks what was acknowledged.
pub(super) fn check(
    directory: &Path,
    revision: Revision,
    log_id: Option<&str>,
) -> Result<(), OpenError> {
    let Some(last) = read(directory) else {
        return Ok(());
    };
    if log_id == Some(last.log_id.as_str()) && last.revision <= revision {
        return Ok(());
    }
    let found = match log_id {
        Some(log_id) if log_id != last.log_id => {
            "it is of another origin than its file `last`".to_owned()
        }
        _ => return Err(lacks(directory, Some(last.revision), Some(revision))),
    };
    Err(OpenError::damaged(directory, found))
}

/// The file, open for noting.
#[derive(Debug)]
pub(super) struct HighWaterMark {
    file: File,
    log_id: String,
    /// Notes since the last sync.
    unsynced: Cell<Revision>,
}

impl HighWaterMark {
    pub(super) fn open(
        directory: &Path,
        revision: Revision,
        log_id: &str,
    ) -> Result<Self, OpenError> {
        let path = path(directory);
        let file = private::writable().open(&path);
        let opened = file.and_then(|file| {
            let high_water_mark = Self {
                file,
                log_id: log_id.to_owned(),
                unsynced: Cell::new(0),
            };
            high_water_mark.note(revision)?;
            high_water_mark
                .file
                .set_len(line(revision, log_id).len() as u64)?;
            high_water_mark.file.sync_all()?;
            private::sync_dir(directory)?;
            Ok(high_water_mark)
        });
        opened.map_err(|cause| OpenError::Io { path, cause })
    }

    pub(super) fn note(&self, revision: Revision) -> io::Result<()> {
        self.file
            .write_all_at(line(revision, &self.log_id).as_bytes(), 0)?;
        self.unsynced.set(self.unsynced.get() + 1);
        // Not each time: a sync more for every group would cost as much as the group. What a
        // power cut takes of the notes makes the check weaker, and no write less durable.
        if self.unsynced.get() >= NOTES_A_SYNC {
            self.file.sync_data()?;
            self.unsynced.set(0);
        }
        Ok(())
    }
}
