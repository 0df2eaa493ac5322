//! The lock of a data directory.
//!
//! A process that opens a directory, compacts it or restores into it locks `DATA/lock` first and
//! holds it to the end. The file lies in DATA and not in `DATA/store`: compaction exchanges
//! `store` for another folder, so a lock in there would go away with the old folder while a
//! second process locks the file of the new one. DATA itself is never renamed and the file stays
//! where it is, so every process locks the same inode. The system gives the lock back when a
//! process ends, however it ends.
//!
//! The holder of the lock writes its process id into the file, for the messages of those that
//! wait. It decides nothing: the id in an unlocked file is stale.
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

/// The time to wait for a directory in use.
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
            // Not truncated: until it is locked, the text in it is that of another process.
            let file = private::writable().open(&path).map_err(&io)?;
            match file.try_lock() {
                Ok(()) if is_at(&path, &file).map_err(&io)? => {
                    write_holder(&file);
                    return Ok(Self { _file: file });
                }
                // A restore that failed has removed it: lock the next one.
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(io(cause)),
            }
            if waited >= timeout {
                return Err(OpenError::InUse {
                    path: directory.to_owned(),
                    process: read_holder(&path),
                });
            }
            std::thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
    }
}

/// Writes the holder of the lock. Where that fails, messages do not name it.
fn write_holder(file: &File) {
    let text = format!("{}\n", std::process::id());
    let _unsigned = file
        .set_len(0)
        .and_then(|()| (&*file).write_all(text.as_bytes()));
}

/// Reads the holder of the lock.
fn read_holder(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The holder of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The directory is not open.
    None,
    /// A process; none: it did not write its id.
    Process(Option<u32>),
}

/// Finds the holder of a data directory. One that does not exist has none.
///
/// # Errors
/// The lock cannot be read.
pub fn holder(directory: &Path) -> io::Result<Holder> {
    let path = directory.join(NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::None),
        file => file?,
    };
    // Shared: two processes that ask at once must not take each other for the holder.
    match file.try_lock_shared() {
        Ok(()) => Ok(Holder::None),
        Err(TryLockError::WouldBlock) => Ok(Holder::Process(read_holder(&path))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns whether the path still leads to the file.
fn is_at(path: &Path, file: &File) -> io::Result<bool> {
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
        let is_named = || is_at(&path, &file).expect("an answer");
        assert!(is_named());
        fs::remove_file(&path).expect("removed");
        assert!(!is_named());
        fs::write(&path, "").expect("a file");
        assert!(!is_named());
    }
}
