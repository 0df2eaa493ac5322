//! Compaction: the store is written anew without what is no longer used.
//!
//! All of it happens below the data directory, which is locked throughout: a new store
//! folder is filled beside the old one, made durable, and exchanged for it in one step
//! (`RENAME_EXCHANGE`). A kill before that leaves the old store and half a new one, a
//! kill after it the new store and the old one; the next start removes the other. A data
//! directory that is a mount point can be compacted, since it is not renamed itself.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, RenameFlags};

use super::{Inner, Options, Store, StoreError, backup, directory, private};
use crate::model::Digest;

/// A store that would not be smaller by one part in so many stays: two that hold the
/// same differ by a little.
const LEAST_GAIN: u64 = 20;

/// What compaction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes of the store before.
    pub before: u64,
    /// Bytes of the store written anew.
    pub after: u64,
    /// The new one took the place of the old one: it is notably smaller, or lacks what the
    /// old one need not hold.
    pub replaced: bool,
}

/// A moment after which a kill leaves other files than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Filling,
    Filled,
    Exchanged,
    Removed,
}

/// Writes the store of a data directory anew, without contents for which `keep` is
/// false, and closes it. The directory stays locked to the end.
///
/// Takes as much disk as the new store has.
///
/// # Errors
/// Another handle of the store is still in use, a record is damaged, or the disk
/// refuses. The directory is as it was then.
pub fn compact(
    store: Store,
    options: &Options,
    keep: impl Fn(&Digest) -> bool,
    progress: impl FnMut(u64),
) -> Result<Compacted, StoreError> {
    run(store, options, keep, progress, |_| ())
}

fn run(
    store: Store,
    options: &Options,
    keep: impl Fn(&Digest) -> bool,
    mut progress: impl FnMut(u64),
    mut reached: impl FnMut(Step),
) -> Result<Compacted, StoreError> {
    // What another handle writes from here on would be lost.
    let inner = Arc::into_inner(store.inner)
        .ok_or_else(|| StoreError::Engine("it is still in use".to_owned()))?;
    let Inner {
        committer,
        view,
        directory,
        lock,
        ..
    } = inner;
    drop(committer);
    let (old, new) = (
        directory::store_path(&directory),
        directory.join(directory::COMPACTING),
    );
    let left_out = Cell::new(false);
    let keep = |digest: &Digest| {
        let kept = keep(digest);
        left_out.set(left_out.get() || !kept);
        kept
    };
    directory::build(&new, options, |to| {
        let mut filler = backup::Filler::new(to);
        for (entry, count) in backup::records(&view, keep).zip(1..) {
            let (key, value) = entry?;
            filler.put(&key, &value)?;
            progress(count);
            if count == 1 {
                reached(Step::Filling);
            }
        }
        filler.finish()
    })?;
    reached(Step::Filled);
    let io = |cause| StoreError::Io {
        path: new.clone(),
        cause,
    };
    if !view.close() {
        let _gone = directory::remove(&new);
        return Err(StoreError::Engine("it is still in use".to_owned()));
    }
    let (before, after) = (size(&old), size(&new));
    let replaced = left_out.get() || after < before - before / LEAST_GAIN;
    if replaced {
        if let Err(error) = exchange(&new, &old) {
            let _gone = directory::remove(&new);
            return Err(io(error));
        }
        private::sync_dir(&directory).map_err(io)?;
        reached(Step::Exchanged);
    }
    directory::remove(&new).map_err(io)?;
    reached(Step::Removed);
    drop(lock);
    Ok(Compacted {
        before,
        after,
        replaced,
    })
}

/// Exchanges two folders in one step.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|error| {
        if matches!(error, rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this file system cannot exchange two folders in one step; use `repertoire backup`, and `repertoire restore` into a new directory",
            )
        } else {
            error.into()
        }
    })
}

/// Bytes that a store has when it is opened next: sled fills up its last segment then.
fn size(store: &Path) -> u64 {
    let files = walkdir::WalkDir::new(store)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            if entry.file_name() == "db" {
                bytes.next_multiple_of(directory::SEGMENT_BYTES as u64)
            } else {
                bytes
            }
        })
        .sum()
}

#[cfg(test)]
mod tests;
