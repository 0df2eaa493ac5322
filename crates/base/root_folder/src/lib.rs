//! A folder below which files are read, written and removed: nothing outside of it is, whatever
//! links a stranger puts into it, and whenever.
//!
//! Rules:
//!
//! * Every name of a path is opened by itself, from the descriptor of the folder above it, and a
//!   link is refused: what was a folder when it was listed may be a link to anywhere when it is
//!   used.
//! * A path below the folder has names alone: no `..`, and nothing absolute.
//! * A new file never takes the place of another one. What is replaced is replaced whole.
//!
//! Links are followed in one place, [`resolved`]: it is for a path that a person named.
//!
//! | file | what it does |
//! |---|---|
//! | `lib` | opens folders and reads files |
//! | `change` | writes, renames and removes |
//! | `list` | lists what is in a folder |
//!
//! Not here: which paths may be written to, and what is recorded of them.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod change;
mod list;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, open, openat, statat};
use rustix::io::Errno;

/// A folder, opened once.
#[derive(Debug)]
pub struct RootFolder {
    folder: OwnedFd,
    path: PathBuf,
}

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A link, wherever it leads.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Why a file is not read.
#[derive(Debug)]
pub enum Unread {
    /// It has more bytes than were asked for.
    TooLarge,
    /// There is none, or it is a link or something else that is no file.
    NoFile(io::Error),
    /// It cannot be read.
    Failed(io::Error),
}

impl From<Unread> for io::Error {
    fn from(why: Unread) -> Self {
        match why {
            Unread::TooLarge => Self::new(io::ErrorKind::FileTooLarge, "it is too large"),
            Unread::NoFile(error) | Unread::Failed(error) => error,
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::DIRECTORY);

/// A folder that is passed on the way, whose names nobody may list but its owner.
#[cfg(target_os = "linux")]
const WAY: OFlags = FOLDER.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const WAY: OFlags = FOLDER;

/// `NONBLOCK`: opening a pipe would otherwise wait for a writer.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// Resolves the links of a path that a person named. What of it does not exist yet stays as it is.
///
/// # Errors
/// A link leads nowhere; `..` follows a name that does not exist.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let full = std::path::absolute(path)?;
    // The part that exists, which links may lead elsewhere, and the part that is yet to be made.
    let mut above = full.ancestors();
    let there = above.find(|above| above.symlink_metadata().is_ok());
    let there = there.unwrap_or(Path::new("/"));
    let rest = full.strip_prefix(there).map_err(io::Error::other)?;
    // `..` in a part that does not exist is followed by nobody, until somebody makes that part.
    let rest = names(rest)?;
    let mut real = there.canonicalize()?;
    real.extend(rest);
    Ok(real)
}

/// The names of a path below a folder.
fn names(inside: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for part in inside.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => {
                let message = format!("`{}` leads out of its folder", inside.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
    }
    Ok(names)
}

/// A name cannot be opened.
fn refused(name: &OsStr, error: Errno) -> io::Error {
    match error {
        // LOOP: a link, with NOFOLLOW on Linux; MLINK: the same on FreeBSD.
        Errno::LOOP | Errno::NOTDIR | Errno::MLINK => {
            let message = format!("`{}` is a link, or no folder", name.display());
            io::Error::new(io::ErrorKind::NotADirectory, message)
        }
        error => error.into(),
    }
}

/// Opens a folder in another one; `make`: it is made where there is none.
fn below(here: &OwnedFd, name: &OsStr, flags: OFlags, make: bool) -> io::Result<OwnedFd> {
    let opened = match openat(here, name, flags, Mode::empty()) {
        Err(Errno::NOENT) if make => {
            match mkdirat(here, name, Mode::from_bits_retain(0o777)) {
                // Another process may have made it meanwhile.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(refused(name, error)),
            }
            openat(here, name, flags, Mode::empty())
        }
        opened => opened,
    };
    opened.map_err(|error| refused(name, error))
}

impl RootFolder {
    /// Opens a folder by its whole path, in which no name is a link: see [`resolved`].
    ///
    /// # Errors
    /// There is no such folder; a name of its path is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::walk(path, false)
    }

    /// Opens a folder by its whole path, and makes what of it does not exist.
    ///
    /// # Errors
    /// A name of its path is a link; the disk refuses.
    pub fn make(path: &Path) -> io::Result<Self> {
        Self::walk(path, true)
    }

    fn walk(path: &Path, make: bool) -> io::Result<Self> {
        let inside = path.strip_prefix("/").map_err(|_| {
            let message = format!("`{}` is no whole path", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        let top = open("/", FOLDER, Mode::empty())?;
        Ok(Self {
            folder: walk(top, &names(inside)?, make)?,
            path: path.to_owned(),
        })
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder below it; `make`: with all above it, where there is none.
    ///
    /// # Errors
    /// There is none; a name on the way is a link.
    pub fn folder(&self, inside: &Path, make: bool) -> io::Result<Self> {
        Ok(Self {
            folder: walk(self.folder.try_clone()?, &names(inside)?, make)?,
            path: self.path.join(inside),
        })
    }

    /// The folder itself as a file, for a lock and for its identity.
    ///
    /// # Errors
    /// The system refuses.
    pub fn as_file(&self) -> io::Result<File> {
        Ok(openat(&self.folder, ".", FOLDER, Mode::empty())?.into())
    }

    /// The folder that a name is in, and the name.
    fn parent<'a>(&self, inside: &'a Path, make: bool) -> io::Result<(OwnedFd, &'a OsStr)> {
        let mut names = names(inside)?;
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "it is the folder itself");
        let name = names.pop().ok_or_else(none)?;
        Ok((walk(self.folder.try_clone()?, &names, make)?, name))
    }

    /// What a path leads to; none: nothing.
    ///
    /// # Errors
    /// A name on the way is a link; the system refuses.
    pub fn kind(&self, inside: &Path) -> io::Result<Option<Kind>> {
        let (here, name) = match self.parent(inside, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            parent => parent?,
        };
        match statat(&here, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode).into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn file(&self, inside: &Path) -> Result<File, Unread> {
        let (here, name) = self.parent(inside, false).map_err(|error| {
            use io::ErrorKind as Is;
            match error.kind() {
                Is::NotFound | Is::NotADirectory | Is::InvalidInput => Unread::NoFile(error),
                _ => Unread::Failed(error),
            }
        })?;
        let file = openat(&here, name, FILE, Mode::empty()).map_err(|error| match error {
            // NXIO: a socket.
            Errno::NOENT | Errno::NXIO => Unread::NoFile(error.into()),
            Errno::LOOP | Errno::MLINK => Unread::NoFile(refused(name, error)),
            error => Unread::Failed(error.into()),
        })?;
        // Asked of the open file, not of its path, which could change in between.
        let found = fstat(&file).map_err(|error| Unread::Failed(error.into()))?;
        if Kind::from(FileType::from_raw_mode(found.st_mode)) != Kind::File {
            return Err(Unread::NoFile(io::Error::other("it is no regular file")));
        }
        Ok(file.into())
    }

    /// Reads a file, up to a number of bytes.
    ///
    /// # Errors
    /// There is none, it has more bytes, or it cannot be read.
    pub fn read(&self, inside: &Path, max: u64) -> Result<Vec<u8>, Unread> {
        let mut content = Vec::new();
        let mut limited = self.file(inside)?.take(max.saturating_add(1));
        limited.read_to_end(&mut content).map_err(Unread::Failed)?;
        if content.len() as u64 > max {
            return Err(Unread::TooLarge);
        }
        Ok(content)
    }
}

/// Opens a folder by the names that lead to it.
fn walk(top: OwnedFd, names: &[&OsStr], make: bool) -> io::Result<OwnedFd> {
    let mut here = top;
    if let Some((last, way)) = names.split_last() {
        for name in way {
            here = below(&here, name, WAY, make)?;
        }
        here = below(&here, last, FOLDER, make)?;
    }
    Ok(here)
}
