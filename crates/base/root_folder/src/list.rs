//! What is in a folder.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::{Kind, RootFolder};

/// The names in a folder, each with what it leads to.
pub(crate) fn entries(folder: &OwnedFd) -> io::Result<Vec<(OsString, Kind)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system says it here.
            FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        found.push((name.to_owned(), kind.into()));
    }
    Ok(found)
}

impl RootFolder {
    /// The names in the folder, in no order.
    ///
    /// # Errors
    /// The system refuses.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let all = entries(&self.folder)?.into_iter();
        Ok(all.map(|(name, _)| name).collect())
    }

    /// Lists what is no folder in all folders below it, by its path inside. Follows no link. None:
    /// it has more than `max` entries.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn files(&self, max: usize) -> io::Result<Option<Vec<(PathBuf, Kind)>>> {
        let (mut found, mut next) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(inside) = next.pop() {
            let folder = self.folder(Path::new(&inside), false)?;
            for (name, kind) in entries(&folder.folder)? {
                let path = inside.join(name);
                if kind == Kind::Folder {
                    next.push(path);
                } else {
                    found.push((path, kind));
                }
                if found.len() + next.len() > max {
                    return Ok(None);
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Some(found))
    }
}
