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
//! Whoever has the lock writes its process into the file, for those who have to wait. It is
//! there to be told, and decides nothing: what stands in a file that nobody has locked is old.
//!
//! sled's own lock on `store/db` keeps out earlier versions, which know no other.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::directory::at;
use super::{OpenError, private};

pub(super) const NAME: &str = "lock";

/// How long a directory in use is waited for.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A locked data directory. Dropped, it is free for the next process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory; makes it where there is none.
    ///
    /// Waits for another process until a timeout.
    pub(super) fn take(directory: &Path, timeout: Duration) -> Result<Self, OpenError> {
        let path = directory.join(NAME);
        let io = at(&path);
        let mut waited = Duration::ZERO;
        loop {
            private::create_dir(directory).map_err(&io)?;
            let file = private::writable().open(&path).map_err(&io)?;
            match file.try_lock() {
                Ok(()) if names(&path, &file).map_err(&io)? => {
                    sign(&file);
                    return Ok(Self { _file: file });
                }
                // A restore that failed has removed it: lock the next one.
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(io(cause)),
            }
            if waited >= timeout {
                return Err(OpenError::InUse {
                    path: directory.to_owned(),
                    process: signed(&path),
                });
            }
            std::thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
    }
}

/// Writes who has the lock. Where that cannot be written, nobody is told.
fn sign(file: &File) {
    let text = format!("{}\n", std::process::id());
    let _unsigned = file
        .set_len(0)
        .and_then(|()| (&*file).write_all(text.as_bytes()));
}

/// Who wrote that it has the lock.
fn signed(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Who has a data directory open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    None,
    /// A process, which nothing more is known of where it did not write its number.
    Process(Option<u32>),
}

/// Who has a data directory open. Nobody has one that is not there.
///
/// # Errors
/// The lock cannot be looked at.
pub fn holder(directory: &Path) -> io::Result<Holder> {
    let path = directory.join(NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::None),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Holder::None),
        Err(TryLockError::WouldBlock) => Ok(Holder::Process(signed(&path))),
        Err(TryLockError::Error(error)) => Err(error),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_lock_is_named_and_nobody_who_had_it() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let held = || holder(folder.path()).expect("an answer");
        assert_eq!(held(), Holder::None);
        // What a process with a longer number left.
        fs::write(folder.path().join(NAME), "123456789\n").expect("a file");
        assert_eq!(held(), Holder::None);
        let lock = Lock::take(folder.path(), Duration::ZERO).expect("a lock");
        let us = Some(std::process::id());
        assert_eq!(held(), Holder::Process(us));
        let refused = Lock::take(folder.path(), Duration::ZERO).expect_err("in use");
        assert!(matches!(&refused, OpenError::InUse { process, .. } if *process == us));
        let words = format!("in use by process {};", std::process::id());
        assert!(refused.to_string().contains(&words), "{refused}");
        drop(lock);
        assert_eq!(held(), Holder::None);
    }

    #[test]
    fn a_path_names_a_file_until_it_is_removed_or_made_anew() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("lock");
        let file = File::create(&path).expect("a file");
        let is_named = || names(&path, &file).expect("an answer");
        assert!(is_named());
        fs::remove_file(&path).expect("removed");
        assert!(!is_named());
        fs::write(&path, "").expect("a file");
        assert!(!is_named());
    }
}
