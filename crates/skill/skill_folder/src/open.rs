//! Opens files below a folder without following links on the way: what was a folder when
//! it was listed may be a link to anywhere when it is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};

/// A folder that files are read below.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// It has more bytes than were asked for.
    TooLarge,
    /// There is none, or it is a link or something else that is no file.
    NoFile(io::Error),
    /// It cannot be read.
    Failed(io::Error),
}

impl From<rustix::io::Errno> for Unread {
    fn from(error: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match error {
            // LOOP: a link, with NOFOLLOW on Linux; MLINK: the same on FreeBSD; NXIO: a socket.
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::MLINK | Errno::NXIO => {
                Self::NoFile(error.into())
            }
            error => Self::Failed(error.into()),
        }
    }
}

/// `NONBLOCK`: opening a pipe would otherwise wait for a writer.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

impl Folder {
    /// Opens a folder by its whole path, whose own links are already resolved.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FLAGS | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Reads a file by its path below the folder, up to a number of bytes.
    pub(super) fn read(&self, path: &Path, max: u64) -> Result<Vec<u8>, Unread> {
        let none = |why: &str| Unread::NoFile(io::Error::other(why.to_owned()));
        let mut names = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(none("its path leads elsewhere")),
            }
        }
        let Some((name, folders)) = names.split_last() else {
            return Err(none("it is a folder"));
        };
        // One name at a time, from the folder that was opened before: NOFOLLOW holds for the last
        // name of a path alone, so a single `openat` would follow links on the way.
        let mut above: Option<OwnedFd> = None;
        for folder in folders {
            let here = above.as_ref().unwrap_or(&self.0);
            let below = openat(here, *folder, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
            above = Some(below);
        }
        let here = above.as_ref().unwrap_or(&self.0);
        let file = openat(here, *name, FLAGS, Mode::empty())?;
        // Asked of the open file, not of its path, which could change in between.
        if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
            return Err(none("it is no regular file"));
        }
        let mut content = Vec::new();
        let mut limited = File::from(file).take(max.saturating_add(1));
        limited.read_to_end(&mut content).map_err(Unread::Failed)?;
        if content.len() as u64 > max {
            return Err(Unread::TooLarge);
        }
        Ok(content)
    }
}
