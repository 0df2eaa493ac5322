//! A directory that is filled before it is one of ours.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{MARKER, RESTORING, UNFINISHED, at, finish, foreign, remove, store_path};
use super::lock::{self, Lock};
use super::{OpenError, private};

/// A directory to restore into: a new one, an empty one, or one over which another restore was
/// cut short. No other process opens it meanwhile. Dropped before it is completed, it leaves the
/// directory as it was.
#[derive(Debug)]
pub(super) struct Claim {
    directory: PathBuf,
    /// The directory was made here.
    made: bool,
    completed: bool,
    _lock: Lock,
}

pub(super) fn claim(directory: &Path) -> Result<Claim, OpenError> {
    let vacant = || match is_vacant(directory) {
        Ok(true) => Ok(()),
        Ok(false) => Err(at(directory)(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the directory is not empty; name a new one",
        ))),
        Err(error) => Err(error),
    };
    vacant()?;
    // Before the lock, which makes the directory.
    let made = !directory.exists();
    let lock = Lock::take(directory, lock::DEFAULT_TIMEOUT)?;
    vacant()?;
    // From here on a start sees that something was begun.
    let restoring = directory.join(RESTORING);
    private::create_dir(&restoring).map_err(at(&restoring))?;
    Ok(Claim {
        directory: directory.to_owned(),
        made,
        completed: false,
        _lock: lock,
    })
}

fn is_vacant(directory: &Path) -> Result<bool, OpenError> {
    if store_path(directory).exists() || foreign(directory)?.is_some() {
        return Ok(false);
    }
    // A restore that was cut short at its end has both, and no store.
    Ok(!directory.join(MARKER).exists() || directory.join(RESTORING).exists())
}

impl Claim {
    /// Returns the folder to build the store in.
    pub(super) fn store(&self) -> PathBuf {
        self.directory.join(RESTORING)
    }

    /// The store is whole, and lies in or below [`Claim::store`]: makes the directory one of
    /// ours. The rename is the moment at which it is; until then a start says that it was cut
    /// short.
    pub(super) fn complete(mut self, store: &Path) -> io::Result<()> {
        self.completed = true;
        finish(&self.directory)?;
        fs::rename(store, store_path(&self.directory))?;
        private::sync_dir(&self.directory)?;
        // The rest of the folder, if a salvage left one: a start removes it as well.
        let _gone = remove(&self.store());
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.completed {
            return;
        }
        // A leftover is no more than untidy: a start reports it.
        for name in [UNFINISHED, MARKER] {
            let _gone = fs::remove_file(self.directory.join(name));
        }
        let _gone = remove(&self.store());
        // While it is locked: a process that waits for this file notices then that its path
        // leads nowhere.
        let _gone = fs::remove_file(self.directory.join(lock::NAME));
        if self.made {
            let _gone = fs::remove_dir(&self.directory);
        }
    }
}
