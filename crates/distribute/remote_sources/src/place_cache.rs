//! The cache of a place between looks, read and written off the async threads.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Error, run_blocking};

/// Bytes of a file. One limit for writes and reads, so that every file that is written can be read.
const MAX_KEPT: u64 = 256 * 1024 * 1024;

/// Reads what an earlier look wrote; none: it is gone, too large or of another form.
pub(crate) async fn read_cache<T>(folder: &Path, name: &str) -> Option<T>
where
    T: DeserializeOwned + Send + 'static,
{
    let path = folder.join(name);
    let read = run_blocking(move || Ok(read(&path, MAX_KEPT)));
    read.await.ok()?
}

fn read<T: DeserializeOwned>(path: &Path, max: u64) -> Option<T> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(max + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > max {
        return None;
    }
    serde_json::from_slice(&bytes).ok()
}

/// Replaces a file for the next look. A value that is too large is not written, and requested
/// again.
pub(crate) async fn write_cache<T>(folder: &Path, name: &str, what: T) -> Result<(), Error>
where
    T: Serialize + Send + 'static,
{
    let (new, path) = (folder.join(format!("{name}.new")), folder.join(name));
    run_blocking(move || write(&new, &path, &what, MAX_KEPT)).await
}

fn write<T: Serialize>(new: &PathBuf, path: &PathBuf, what: &T, max: u64) -> Result<(), Error> {
    let wrong = |error: &dyn std::fmt::Display| {
        let message = format!("the state between syncs cannot be written: {error}");
        Error::Unavailable(message)
    };
    let bytes = serde_json::to_vec(what).map_err(|error| wrong(&error))?;
    if bytes.len() as u64 > max {
        // The file of an earlier look stays, and does no harm.
        return Ok(());
    }
    // Not synced: a cache that a power cut damages is read as none.
    fs::write(new, bytes).map_err(|error| wrong(&error))?;
    fs::rename(new, path).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn what_panics_is_wrong_and_stops_nothing_else() {
        let done = run_blocking::<()>(|| panic!("broken")).await;
        assert!(matches!(done, Err(Error::Invalid(_))), "{done:?}");
    }

    #[tokio::test]
    async fn what_is_kept_is_read_again_unless_it_is_gone_or_of_another_form() {
        let folder = TempDir::new().expect("a folder");
        write_cache(folder.path(), "a.json", vec![1_u8, 2])
            .await
            .expect("kept");
        let read: Option<Vec<u8>> = read_cache(folder.path(), "a.json").await;
        assert_eq!(read, Some(vec![1, 2]));
        assert_eq!(read_cache::<String>(folder.path(), "a.json").await, None);
        assert_eq!(read_cache::<Vec<u8>>(folder.path(), "b.json").await, None);
    }

    #[test]
    fn nothing_is_written_that_is_too_large_to_be_read_again() {
        let folder = TempDir::new().expect("a folder");
        let (new, path) = (folder.path().join("a.new"), folder.path().join("a"));
        write(&new, &path, &"1234", 6).expect("written");
        assert_eq!(read::<String>(&path, 6).as_deref(), Some("1234"));
        write(&new, &path, &"12345", 6).expect("left out");
        assert_eq!(read::<String>(&path, 6).as_deref(), Some("1234"));
        assert_eq!(read::<String>(&path, 5), None);
    }
}
