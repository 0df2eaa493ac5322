//! The lock of a data directory.
//!
//! Whoever opens a directory, compacts it or restores into it locks `DATA/lock`
//! first and holds it to the end. The file lies in DATA and not in `DATA/store`:
//! compaction exchanges `store` for another folder, so a lock in there would go
//! away with the old folder while a second process locks the file of the new one.
//! DATA itself is never renamed and the file stays where it is, so every process
//! locks the same inode. The system gives the lock back when a process ends, however
//! it ends.
//!
//! sled's own lock on `store/db` keeps out earlier versions, which know no other.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::{OpenError, private};

pub(super) const NAME: &str = "lock";

/// How long a directory in use is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// A locked data directory. Dropped, it is free for the next process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory; makes it where there is none.
    ///
    /// Waits up to a second for another process.
    pub(super) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(NAME);
        let io = |cause| OpenError::Io {
            path: path.clone(),
            cause,
        };
        let mut waited = Duration::ZERO;
        loop {
            private::create_dir(directory).map_err(io)?;
            let file = private::writable().open(&path).map_err(io)?;
            match file.try_lock() {
                Ok(()) if names(&path, &file).map_err(io)? => return Ok(Self { _file: file }),
                // A restore that failed has removed it: lock the next one.
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(io(cause)),
            }
            if waited >= PATIENCE {
                return Err(OpenError::InUse {
                    path: directory.to_owned(),
                });
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }
}

/// The path still names the file.
fn names(path: &Path, file: &File) -> io::Result<bool> {
    let (locked, there) = (file.metadata()?, fs::metadata(path));
    match there {
        Ok(there) => Ok((locked.dev(), locked.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
