//! The disk space that the store takes, and that is left.

use std::io;
use std::path::Path;

use super::directory::store_path;

/// Returns the bytes of a directory's disk that are free for this user, where the system reports
/// them.
#[must_use]
pub fn free_bytes(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the bytes of the files of the store in a data directory. Files that come or go
/// meanwhile may or may not count. Blocks.
///
/// # Errors
/// A folder of it cannot be read.
pub fn bytes_on_disk(directory: &Path) -> io::Result<u64> {
    of(&store_path(directory))
}

fn of(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(found) if found.is_dir() => of(&entry.path())?,
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_files_of_the_store_count_wherever_they_are_and_no_others() {
        let directory = tempfile::TempDir::new().expect("a folder");
        let directory = directory.path();
        let error = bytes_on_disk(directory).expect_err("there is no store");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        fs::create_dir_all(store_path(directory).join("blobs")).expect("a folder");
        for (name, bytes) in [("store/db", 700), ("store/blobs/1", 20), ("last", 5000)] {
            fs::write(directory.join(name), vec![0; bytes]).expect("a file");
        }
        assert_eq!(bytes_on_disk(directory).expect("a store"), 720);
    }
}
