//! Changes below a folder. Names are synced at once; new files with [`RootFolder::sync`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, OFlags, fsync, linkat, openat, readlinkat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{FOLDER, Kind, RootFolder, list, refused};

/// Folders in one another that are removed: deeper ones are nothing of ours.
const MAX_DEPTH: usize = 256;

const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn write(here: &OwnedFd, name: &OsStr, bytes: &[u8], is_program: bool) -> io::Result<File> {
    let mode = if is_program { 0o755 } else { 0o644 };
    let file = openat(here, name, NEW_FILE, Mode::from_bits_retain(mode))?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    Ok(file)
}

/// Removes a file or a link of this name; a folder is refused.
fn unlink(here: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(here, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes a folder with all in it.
fn remove_folder(here: &OwnedFd, name: &OsStr, depth: usize) -> io::Result<()> {
    if depth == MAX_DEPTH {
        return Err(io::Error::other("it has too many folders in one another"));
    }
    let folder = match openat(here, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        folder => folder.map_err(|error| refused(name, error))?,
    };
    for (name, kind) in list::entries(&folder)? {
        match kind {
            Kind::Folder => remove_folder(&folder, &name, depth + 1)?,
            _ => unlink(&folder, &name)?,
        }
    }
    match unlinkat(here, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(refused(name, error)),
    }
}

impl RootFolder {
    /// Writes a new file, with the folders that it is in. Nothing may have its name.
    ///
    /// # Errors
    /// Something has its name; a name on the way is a link; the disk refuses.
    pub fn write_new(&self, inside: &Path, bytes: &[u8], is_program: bool) -> io::Result<()> {
        let (here, name) = self.parent(inside, true)?;
        write(&here, name, bytes, is_program).map(drop)
    }

    /// Writes a file, and replaces a file or a link of its name: a reader finds the old bytes or
    /// the new ones.
    ///
    /// # Errors
    /// A folder has its name; a name on the way is a link; the disk refuses.
    pub fn replace(&self, inside: &Path, bytes: &[u8]) -> io::Result<()> {
        let (here, name) = self.parent(inside, true)?;
        let mut new = OsString::from(name);
        new.push(".new");
        // Left by a process that was killed.
        unlink(&here, &new)?;
        write(&here, &new, bytes, false)?.sync_all()?;
        renameat(&here, &new, &here, name)?;
        Ok(fsync(&here)?)
    }

    /// Renames a file or a folder. A file, a link or an empty folder of the new name is replaced.
    ///
    /// # Errors
    /// It is not there; a name on the way is a link; the disk refuses.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, name) = self.parent(from, false)?;
        let (new, new_name) = self.parent(to, true)?;
        renameat(&old, name, &new, new_name)?;
        // A rename is in the folders: without their sync a power cut may take it back, or leave
        // the record of a change without the change.
        fsync(&new)?;
        Ok(fsync(&old)?)
    }

    /// Makes a link, wherever it leads.
    ///
    /// # Errors
    /// Something has its name; the disk refuses.
    pub fn link(&self, to: &Path, inside: &Path) -> io::Result<()> {
        let (here, name) = self.parent(inside, true)?;
        symlinkat(to, &here, name)?;
        Ok(fsync(&here)?)
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// It is no link.
    pub fn link_target(&self, inside: &Path) -> io::Result<OsString> {
        use std::os::unix::ffi::OsStringExt as _;
        let (here, name) = self.parent(inside, false)?;
        let target = readlinkat(&here, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Removes a file, a link (not its target), or a folder with all in it. It may be gone
    /// already.
    ///
    /// # Errors
    /// A name on the way is a link; the disk refuses.
    pub fn remove(&self, inside: &Path) -> io::Result<()> {
        let (here, name) = match self.parent(inside, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            parent => parent?,
        };
        match self.kind(inside)? {
            None => Ok(()),
            Some(Kind::Folder) => remove_folder(&here, name, 0),
            Some(_) => unlink(&here, name),
        }
    }

    /// Removes a folder if it is empty.
    ///
    /// # Errors
    /// It is not empty, or no folder.
    pub fn remove_empty(&self, inside: &Path) -> io::Result<()> {
        let (here, name) = self.parent(inside, false)?;
        unlinkat(&here, name, AtFlags::REMOVEDIR).map_err(|error| refused(name, error))
    }

    /// Gives a file or a link a second name, and makes a copy where the disk has no such names.
    ///
    /// # Errors
    /// It is not there; something has the new name; the disk refuses.
    pub fn carry(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, name) = self.parent(from, false)?;
        let (new, new_name) = self.parent(to, true)?;
        // A second name costs no space and no time, however large the file is.
        let Err(error) = linkat(&old, name, &new, new_name, AtFlags::empty()) else {
            return Ok(());
        };
        match self.kind(from)? {
            Some(Kind::Link) => Ok(symlinkat(self.link_target(from)?, &new, new_name)?),
            Some(Kind::File) => {
                let mut file = self.file(from)?;
                let copy = openat(&new, new_name, NEW_FILE, Mode::from_bits_retain(0o600))?;
                let mut copy = File::from(copy);
                io::copy(&mut file, &mut copy)?;
                copy.set_permissions(file.metadata()?.permissions())
            }
            _ => Err(error.into()),
        }
    }

    /// Syncs the folder, and all files and folders below it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> io::Result<()> {
        for (name, kind) in list::entries(&self.folder)? {
            match kind {
                Kind::Folder => self.folder(Path::new(&name), false)?.sync()?,
                Kind::File => self.file(Path::new(&name))?.sync_all()?,
                Kind::Link | Kind::Other => {}
            }
        }
        Ok(fsync(&self.folder)?)
    }
}
