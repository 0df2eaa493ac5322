//! Copies that links lead to: a folder for each digest of a version.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{Error, disk};
use model::{Digest, FilePath};

/// The folder in which copies are made, below that of all copies.
const NEW: &str = ".new";

pub(crate) fn folder(contents: &Path, digest: Digest) -> PathBuf {
    contents.join(digest.hex())
}

/// Files of a copy that are not what they should be.
fn changed(copy: &Path, files: &[(FilePath, Bytes)]) -> Vec<String> {
    let is_same = |path: &FilePath, content: &Bytes| {
        let at = copy.join(path.as_str());
        fs::read(at).is_ok_and(|there| there == content[..])
    };
    let changed = files
        .iter()
        .filter(|(path, content)| !is_same(path, content));
    changed.map(|(path, _)| path.to_string()).collect()
}

/// Makes a copy of these files, unless there is one, and returns its path. The caller holds a lock
/// that keeps it from being cleared away.
pub(crate) fn keep(
    contents: &Path,
    digest: Digest,
    files: &[(FilePath, Bytes)],
    force: bool,
) -> Result<PathBuf, Error> {
    let copy = folder(contents, digest);
    let failed = || Error::disk(&copy);
    if disk::is_there(&copy) {
        let changed = changed(&copy, files);
        if changed.is_empty() {
            return copy.canonicalize().map_err(failed());
        }
        if !force {
            return Err(Error::Changed {
                path: copy,
                changed,
            });
        }
        disk::remove(&copy).map_err(failed())?;
    }
    // With the process in the name: another one may be making the same copy.
    let new = contents
        .join(NEW)
        .join(format!("{}-{}", digest.hex(), std::process::id()));
    disk::remove(&new).map_err(failed())?;
    disk::write_folder(&new, files).map_err(failed())?;
    match disk::rename(&new, &copy) {
        Ok(()) => {}
        // Another process was quicker: a folder is not renamed over one with files.
        Err(_) if disk::is_there(&copy) && changed(&copy, files).is_empty() => {
            disk::remove(&new).map_err(failed())?;
        }
        Err(error) => return Err(failed()(error)),
    }
    copy.canonicalize().map_err(failed())
}

/// Removes a copy that nothing leads to any more. One that holds more than the skill's own files
/// stays: somebody put them there. The caller holds the lock of the folder.
pub(crate) fn clear(
    contents: &Path,
    used: &HashSet<Digest>,
    gone: &super::Record,
) -> Result<(), Error> {
    let new = contents.join(NEW);
    disk::remove(&new).map_err(Error::disk(&new))?;
    if used.contains(&gone.digest) {
        return Ok(());
    }
    let copy = folder(contents, gone.digest);
    let there = disk::below(&copy, gone.files.len() + 1).unwrap_or_default();
    let is_alone = there.is_some_and(|there| {
        there.iter().all(|path| {
            let mut files = gone.files.iter();
            files.any(|file| path.as_os_str() == file.path.as_str())
        })
    });
    if is_alone {
        disk::remove(&copy).map_err(Error::disk(&copy))?;
    }
    Ok(())
}
