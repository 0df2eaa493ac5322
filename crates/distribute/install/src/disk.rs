//! Every step that changes the disk.
//!
//! A test has the n-th step fail and all after it, as if the process had been killed there:
//! nothing cleans up after it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::FilePath;

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

/// Something has this name, be it a link that leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

pub(crate) fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// The identity of a file or folder, whatever its name.
pub(crate) fn identity(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Makes a folder with all above it.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    step()?;
    fs::create_dir_all(path)
}

/// Writes a new file and syncs it. One that begins with `#!` is executable.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    step()?;
    let mode = if bytes.starts_with(b"#!") {
        0o755
    } else {
        0o644
    };
    let mut options = OpenOptions::new();
    // `create_new` neither overwrites a file nor follows a link that somebody put there.
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file: a reader finds the old bytes or the new ones.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    // Left by a process that was killed.
    remove(&new)?;
    write(&new, bytes)?;
    rename(&new, path)
}

/// Renames a file or a folder, and syncs that. A file or a link of the new name is replaced.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step()?;
    fs::rename(from, to)?;
    // A rename is in the folders: without their sync a power cut may take it back, or leave the
    // record of a change without the change.
    sync(to.parent())?;
    if from.parent() != to.parent() {
        sync(from.parent())?;
    }
    Ok(())
}

pub(crate) fn link(to: &Path, path: &Path) -> io::Result<()> {
    step()?;
    std::os::unix::fs::symlink(to, path)?;
    sync(path.parent())
}

/// Removes a file, a link (not its target), or a folder with all in it. It may be gone already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    step()?;
    let removed = if found.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync(folder: Option<&Path>) -> io::Result<()> {
    match folder {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Writes a new folder with these files, and syncs all of it.
pub(crate) fn write_folder(folder: &Path, files: &[(FilePath, Bytes)]) -> io::Result<()> {
    make_folder(folder)?;
    for (path, content) in files {
        let to = folder.join(path.as_str());
        if let Some(parent) = to.parent() {
            make_folder(parent)?;
        }
        write(&to, content)?;
    }
    sync_folders(folder)
}

fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

/// Lists files and links below a folder, by their paths inside it. Follows no link. None: there are
/// more than `max`.
pub(crate) fn below(folder: &Path, max: usize) -> io::Result<Option<Vec<PathBuf>>> {
    let (mut found, mut next) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inside) = next.pop() {
        for entry in fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                next.push(path);
            } else {
                found.push(path);
            }
            if found.len() + next.len() > max {
                return Ok(None);
            }
        }
    }
    found.sort();
    Ok(Some(found))
}

/// Adds a file of one folder to another, under the same path: the same bytes, or the same link. A
/// file that is there already stays.
pub(crate) fn carry(from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    let (source, target) = (from.join(path), to.join(path));
    if is_there(&target) {
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        make_folder(parent)?;
    }
    step()?;
    if is_link(&source) {
        return std::os::unix::fs::symlink(fs::read_link(&source)?, &target);
    }
    // A link costs no space and no time, however large the files of others are; the old one is
    // removed afterwards. Not every file system has hard links.
    fs::hard_link(&source, &target).or_else(|_| fs::copy(&source, &target).map(drop))
}
