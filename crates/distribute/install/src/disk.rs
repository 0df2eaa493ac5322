//! Every step that changes the disk, below a folder that was opened once.
//!
//! A test has the n-th step fail and all after it, as if the process had been killed there:
//! nothing cleans up after it.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bytes::Bytes;
use model::FilePath;
use root_folder::RootFolder;

#[cfg(test)]
thread_local! {
    /// Steps that still succeed; none: all of them.
    pub(crate) static STEPS: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
fn step() -> io::Result<()> {
    STEPS.with(|steps| match steps.get() {
        None => Ok(()),
        Some(0) => Err(io::Error::other("killed")),
        Some(left) => {
            steps.set(Some(left - 1));
            Ok(())
        }
    })
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it may fail")]
fn step() -> io::Result<()> {
    Ok(())
}

/// The identity of a folder, whatever its name: device and inode. Nobody knows it before the folder
/// is made, so a file that came with a repository does not have it.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(file: &File) -> io::Result<Identity> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Opens a folder by its whole path, and makes it with all above it.
pub(crate) fn make(path: &Path) -> io::Result<RootFolder> {
    match RootFolder::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            step()?;
            RootFolder::make(path)
        }
        opened => opened,
    }
}

/// Replaces a file: a reader finds the old bytes or the new ones.
pub(crate) fn replace(root: &RootFolder, path: &Path, bytes: &[u8]) -> io::Result<()> {
    step()?;
    root.replace(path, bytes)
}

/// Renames a file or a folder, and syncs that. A file or a link of the new name is replaced.
pub(crate) fn rename(root: &RootFolder, from: &Path, to: &Path) -> io::Result<()> {
    step()?;
    root.rename(from, to)
}

pub(crate) fn link(root: &RootFolder, to: &Path, path: &Path) -> io::Result<()> {
    step()?;
    root.link(to, path)
}

/// Removes a file, a link (not its target), or a folder with all in it. It may be gone already.
pub(crate) fn remove(root: &RootFolder, path: &Path) -> io::Result<()> {
    if root.kind(path)?.is_none() {
        return Ok(());
    }
    step()?;
    root.remove(path)
}

/// Writes a new folder with these files, and syncs all of it. A file that begins with `#!` is
/// executable.
pub(crate) fn write_folder(
    root: &RootFolder,
    path: &Path,
    files: &[(FilePath, Bytes)],
) -> io::Result<()> {
    step()?;
    let folder = root.folder(path, true)?;
    for (path, content) in files {
        step()?;
        folder.write_new(path.as_str().as_ref(), content, content.starts_with(b"#!"))?;
    }
    step()?;
    folder.sync()
}

/// Adds a file of one folder to another, under the same path: the same bytes, or the same link. A
/// file that is there already stays.
pub(crate) fn carry(root: &RootFolder, from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    let target = to.join(path);
    if root.kind(&target)?.is_some() {
        return Ok(());
    }
    step()?;
    root.carry(&from.join(path), &target)
}
