//! Copies that links lead to: a folder for each digest of a version.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{Error, disk};
use model::{Digest, FilePath};

/// Where copies are made, in the folder of copies.
const NEW: &str = ".new";

/// The folder of a copy.
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

/// Has a copy of these files, and says where it is. The caller holds a lock that keeps it
/// from being cleared away.
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
    // Another process may be making the same one.
    let new = contents
        .join(NEW)
        .join(format!("{}-{}", digest.hex(), std::process::id()));
    disk::remove(&new).map_err(failed())?;
    disk::write_folder(&new, files).map_err(failed())?;
    match disk::rename(&new, &copy) {
        Ok(()) => {}
        Err(_) if disk::is_there(&copy) && changed(&copy, files).is_empty() => {
            disk::remove(&new).map_err(failed())?;
        }
        Err(error) => return Err(failed()(error)),
    }
    copy.canonicalize().map_err(failed())
}

/// Removes copies that nothing leads to any more. Those that hold more than a skill's own
/// files stay: somebody put it there. Nobody else may use the folder meanwhile.
pub(crate) fn clear(
    contents: &Path,
    used: &HashSet<Digest>,
    gone: Option<&super::Record>,
) -> Result<(), Error> {
    let new = contents.join(NEW);
    disk::remove(&new).map_err(Error::disk(&new))?;
    let Some(gone) = gone.filter(|gone| !used.contains(&gone.digest)) else {
        return Ok(());
    };
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
