//! Recovery after a failed write.
//!
//! After a write error sled refuses every write, and cannot read the pages that it could not
//! write. So the database is closed and opened again, compared with what was acknowledged, and
//! the failed group is taken back. That write shows as well whether the disk works again. No
//! restart is needed, and until then the store is read-only.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::committer::Committer;
use super::engine::{Engine, Failed};
use super::view::Before;
use super::{directory, log, private, record};

/// Maximum bytes of a snapshot of sled, which it writes when it is opened.
const MAX_SNAPSHOT_BYTES: usize = 64 * 1024;
/// Maximum growth of the file by a group.
const MAX_GROWTH_BYTES: u64 = 16 * 1024 * 1024;
const BLOCK_BYTES: usize = 1024 * 1024;

/// The progress of a recovery.
#[derive(Debug)]
pub(super) struct Recovery {
    /// The database was opened again, and has written nothing since.
    opened: bool,
    /// The system may have dropped pages that it had accepted: a later sync would succeed, and
    /// leave a hole below what is acknowledged then. So every byte is written again.
    dropped: bool,
}

impl Recovery {
    pub(super) fn new(dropped: bool) -> Self {
        Self {
            opened: false,
            dropped,
        }
    }

    /// Tries to get the database to write again; returns the reason where it fails.
    pub(super) fn attempt(&mut self, committer: &Committer) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        // sled writes a snapshot, and at the end of its file, when it is opened. Until the
        // disk takes that, the database that has failed answers what it can: a closed one
        // would answer nothing.
        let file = directory::store_path(&committer.directory).join("db");
        let size = fs::metadata(&file).map_err(text)?.len();
        // The failure may be that of a compaction that exchanged the folders: no write may be
        // acknowledged while a power cut could still leave it in a folder that has lost its
        // name.
        private::sync_dir(&committer.directory).map_err(text)?;
        probe(&committer.directory, 0, MAX_SNAPSHOT_BYTES).map_err(text)?;
        probe(&committer.directory, size + MAX_GROWTH_BYTES, 1).map_err(text)?;
        if !self.opened {
            committer.view.fail();
            self.reopen(committer, |_| Ok(()))?;
        }
        if self.dropped {
            // Reads wait meanwhile, and fail where it takes long: sled may write as well
            // when it is read, and must not.
            committer.view.fail();
            self.reopen(committer, rewrite)?;
            self.dropped = false;
        }
        take_back(committer).map_err(|failed| {
            committer.view.fail();
            self.opened = false;
            self.dropped = failed.dropped;
            failed.reason
        })
    }

    /// Closes the database, does something with its file, and opens it.
    fn reopen(
        &mut self,
        committer: &Committer,
        closed: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), String> {
        if !committer.view.close() {
            return Err("a reader did not let go of the database".to_owned());
        }
        let file = directory::store_path(&committer.directory).join("db");
        let done = closed(&file).map_err(|error| error.to_string());
        let engine = Engine::reopen(&committer.directory, &committer.options)?;
        compare(&engine, committer)?;
        committer.view.open(engine);
        self.opened = true;
        done
    }
}

/// Refuses a database that lacks what was acknowledged.
pub(super) fn compare(engine: &Engine, committer: &Committer) -> Result<(), String> {
    let found = log::last_revision(&engine.tree).map_err(|error| error.to_string())?;
    let log_id = log::id(&engine.tree).map_err(|error| error.to_string())?;
    if found < committer.revision || log_id.as_deref() != Some(&committer.log_id) {
        return Err(format!(
            "the database ends with write {found}, but write {} was acknowledged; restart the server, which says what to do",
            committer.revision
        ));
    }
    Ok(())
}

/// Restores the before-images of the failed group: it is there as a whole, or not at all, and no
/// reader has seen it.
fn take_back(committer: &Committer) -> Result<(), Failed> {
    let engine = committer.view.engine().map_err(|error| error.to_string())?;
    let mut before = Before::clone(&committer.view.in_flight());
    let (key, revision) = (log::revision_key(), committer.revision);
    let last = record::seal(key, revision, &revision.to_be_bytes());
    before.insert(key.to_vec(), Some(last.into()));
    engine.write(&before, &committer.options.sync)?;
    committer.view.settle(revision);
    Ok(())
}

/// Writes and syncs a file, up to some place of it, and removes it.
fn probe(directory: &Path, at: u64, bytes: usize) -> io::Result<()> {
    let path = directory.join("probe");
    let written = File::create(&path).and_then(|file| {
        file.write_all_at(&vec![0; bytes], at)?;
        file.sync_all()
    });
    fs::remove_file(&path)?;
    written
}

/// Writes every byte of a file again, and syncs it.
fn rewrite(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = 0;
    loop {
        let count = (&file).read(&mut block)?;
        let Some(read) = block.get(..count).filter(|read| !read.is_empty()) else {
            return file.sync_all();
        };
        file.write_all_at(read, at)?;
        at += count as u64;
    }
}
