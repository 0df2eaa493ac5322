//! Copies that links lead to: a folder for each digest of a version.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use root_folder::{Kind, RootFolder};

use super::{Error, disk};
use model::{Digest, FilePath};

/// The folder in which copies are made, below that of all copies.
const NEW: &str = ".new";

/// Files of a copy that are not what they should be.
fn changed(contents: &RootFolder, copy: &Path, files: &[(FilePath, Bytes)]) -> Vec<String> {
    let is_same = |path: &FilePath, content: &Bytes| {
        let read = contents.read(&copy.join(path.as_str()), content.len() as u64);
        read.is_ok_and(|there| there == content[..])
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
    let copy = PathBuf::from(digest.hex());
    let path = contents.join(&copy);
    let failed = || Error::disk(&path);
    let root = disk::make(contents).map_err(failed())?;
    if root.kind(&copy).map_err(failed())?.is_some() {
        let changed = changed(&root, &copy, files);
        if changed.is_empty() {
            return Ok(path);
        }
        if !force {
            return Err(Error::Changed { path, changed });
        }
        disk::remove(&root, &copy).map_err(failed())?;
    }
    // With the process in the name: another one may be making the same copy.
    let new = Path::new(NEW).join(format!("{}-{}", digest.hex(), std::process::id()));
    disk::remove(&root, &new).map_err(failed())?;
    disk::write_folder(&root, &new, files).map_err(failed())?;
    match disk::rename(&root, &new, &copy) {
        Ok(()) => {}
        // Another process was quicker: a folder is not renamed over one with files.
        Err(_) if changed(&root, &copy, files).is_empty() => {
            disk::remove(&root, &new).map_err(failed())?;
        }
        Err(error) => return Err(failed()(error)),
    }
    Ok(path)
}

/// Removes a copy that nothing leads to any more. One that holds more than the skill's own files
/// stays: somebody put them there. The caller holds the lock of the folder.
pub(crate) fn clear(
    contents: &Path,
    used: &HashSet<Digest>,
    gone: &super::Record,
) -> Result<(), Error> {
    let root = disk::make(contents).map_err(Error::disk(contents))?;
    let new = Path::new(NEW);
    disk::remove(&root, new).map_err(Error::disk(&contents.join(new)))?;
    if used.contains(&gone.digest) {
        return Ok(());
    }
    let copy = PathBuf::from(gone.digest.hex());
    let folder = root.folder(&copy, false);
    let there = folder.and_then(|folder| folder.files(gone.files.len() + 1));
    let is_alone = there.ok().flatten().is_some_and(|there| {
        there.iter().all(|(path, kind)| {
            let mut files = gone.files.iter();
            *kind == Kind::File && files.any(|file| path.as_os_str() == file.path.as_str())
        })
    });
    if is_alone {
        disk::remove(&root, &copy).map_err(Error::disk(&contents.join(&copy)))?;
    }
    Ok(())
}
