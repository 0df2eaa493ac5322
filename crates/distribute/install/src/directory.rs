//! A directory of skills, while one process changes it.
//!
//! A change has these steps. After a kill before the second, nothing has happened and `new` is
//! cleared away; after a later one, the next call does the rest.
//!
//! 1. The new folder is written to `.repertoire/new/SLUG`, and synced.
//! 2. The record gets the change as pending.
//! 3. The present folder is moved to `.repertoire/old/SLUG`.
//! 4. The new folder is moved to its name.
//! 5. The record gets the result.
//! 6. The old folder is removed.

use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use root_folder::{Kind, RootFolder};

use super::state::{self, OURS, Pending, State};
use super::{Error, MAX_SKILLS, Method, Record, contents, disk, health};
use model::{FilePath, SkillId};

/// How long it waits before it tries the lock again.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Files of others in the folder of a skill that are carried along: more of them are somebody's
/// project, which a link serves better.
const MAX_DATA: usize = 100_000;

/// How a skill is installed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Installing<'a> {
    /// The folder of copies that links lead to; none: its files are copied.
    pub contents: Option<&'a Path>,
    /// Overwrites files that somebody changed.
    pub force: bool,
}

/// A skill that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its record.
    pub record: Record,
    /// Its folder.
    pub path: PathBuf,
    /// Files of others in it, which are still there.
    pub kept: usize,
}

/// A directory of skills, locked for changes.
#[derive(Debug)]
pub struct Directory {
    root: RootFolder,
    state: State,
    /// Our own folder in it.
    ours: disk::Identity,
    _lock: File,
}

/// Locks a folder against other processes, until the result is dropped; the folder is made where
/// there is none.
///
/// # Errors
/// Another process has it for too long; the disk refuses.
pub fn hold(folder: &Path, give_up: &dyn Fn() -> bool) -> Result<File, Error> {
    lock(folder, folder, give_up)
}

/// Locks a folder of ours; it is made where there is none.
pub(crate) fn lock(folder: &Path, of: &Path, give_up: &dyn Fn() -> bool) -> Result<File, Error> {
    let failed = || Error::disk(folder);
    loop {
        let open = |folder: RootFolder| folder.as_file();
        let lock = disk::make(folder).and_then(open).map_err(failed())?;
        match lock.try_lock() {
            Ok(()) => {
                let ours = disk::identity(&lock).map_err(failed())?;
                let there = RootFolder::open(folder).and_then(open);
                // A lock is of an inode. If the folder was removed and made anew while this one
                // waited, another process may hold the lock of the new one.
                if there
                    .and_then(|there| disk::identity(&there))
                    .is_ok_and(|there| there == ours)
                {
                    return Ok(lock);
                }
            }
            Err(TryLockError::Error(error)) => return Err(failed()(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        // In slices and not by `lock`, which no caller could give up.
        if give_up() {
            return Err(Error::Busy {
                path: of.to_owned(),
            });
        }
        std::thread::sleep(LOCK_RETRY_INTERVAL);
    }
}

/// A slug as the name of a folder. An id may have a slug that no file may have as its name, such as
/// `con` on Windows.
fn folder_name(id: &SkillId) -> Result<&str, Error> {
    let name: Result<FilePath, _> = id.slug().parse();
    match name {
        Ok(_) => Ok(id.slug()),
        Err(error) => Err(Error::Unwritable {
            name: id.slug().to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// The path of a part of our own folder, for a skill.
fn of_ours(part: &str, id: &SkillId) -> PathBuf {
    Path::new(OURS).join(part).join(id.slug())
}

impl Directory {
    /// Opens a directory for changes by its whole path, in which no name is a link, and finishes a
    /// change that was cut off by a kill. It is made where there is none. Waits for other processes
    /// until `give_up` returns true.
    ///
    /// # Errors
    /// Another process has it for too long; the record cannot be read, or names a change that did
    /// not begin here.
    pub fn open(path: &Path, give_up: &dyn Fn() -> bool) -> Result<Self, Error> {
        // The lock comes before the read: a record that was read before may be out of date.
        let lock = lock(&path.join(OURS), path, give_up)?;
        let mut directory = Self {
            root: RootFolder::open(path).map_err(Error::disk(path))?,
            state: State::read(path)?,
            ours: disk::identity(&lock).map_err(Error::disk(path))?,
            _lock: lock,
        };
        directory.recover()?;
        Ok(directory)
    }

    /// The records of its skills, by id.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.state.skills
    }

    /// The record of a skill.
    #[must_use]
    pub fn record(&self, id: &SkillId) -> Option<&Record> {
        self.state.find(id)
    }

    fn folder(&self, id: &SkillId) -> PathBuf {
        self.root.path().join(id.slug())
    }

    /// Finishes a pending change, and clears away one that did not come so far.
    fn recover(&mut self) -> Result<(), Error> {
        if let Some(pending) = self.state.pending.clone() {
            // The record may be of a repository that somebody else wrote: nothing in it becomes a
            // path unchecked, and no folder is moved because it says so.
            folder_name(&pending.id)?;
            if pending.begun_in != Some(self.ours) {
                return Err(Error::NotBegunHere {
                    record: state::file(self.root.path()),
                    id: pending.id,
                });
            }
            self.finish(pending)?;
        }
        for part in ["new", "old"] {
            let path = Path::new(OURS).join(part);
            let removed = disk::remove(&self.root, &path);
            removed.map_err(Error::disk(&self.root.path().join(&path)))?;
        }
        Ok(())
    }

    /// Steps 3 to 6.
    fn finish(&mut self, pending: Pending) -> Result<(), Error> {
        let Pending {
            id, record, put, ..
        } = pending;
        let (folder, new, old) = (
            Path::new(id.slug()),
            of_ours("new", &id),
            of_ours("old", &id),
        );
        let path = self.folder(&id);
        let failed = || Error::disk(&path);
        let kind = |path: &Path| self.root.kind(path).map_err(failed());
        let (is, next, was) = (kind(folder)?, kind(&new)?, kind(&old)?);
        // After a kill: without `new` it has its name already. With `old` this folder was moved,
        // and one of its name is somebody else's.
        if (!put || next.is_some()) && is.is_some() && was.is_none() {
            // A rename replaces a link by a link in one step, so the skill is never away. It cannot
            // replace a folder with files.
            if !(put && next == Some(Kind::Link) && is == Some(Kind::Link)) {
                disk::rename(&self.root, folder, &old).map_err(failed())?;
            }
        }
        if put && next.is_some() {
            disk::rename(&self.root, &new, folder).map_err(failed())?;
        }
        // An uninstall that put a folder: it has the files of others.
        let leaves_data = put && record.is_none();
        self.state.set(&id, record, leaves_data);
        self.state.pending = None;
        self.state.write(self.root.path())?;
        // Last: until the record has the result, this is the one copy of what was there.
        disk::remove(&self.root, &old).map_err(failed())
    }

    /// Records a change as pending, and makes it.
    fn change(&mut self, pending: Pending) -> Result<(), Error> {
        // Recorded and synced before the first rename: the process that opens the directory after
        // a kill knows the change, and finishes it.
        self.state.pending = Some(pending.clone());
        self.state.write(self.root.path())?;
        self.finish(pending)
    }

    /// Refuses to lose files that somebody changed.
    fn permit(&self, record: &Record, force: bool) -> Result<(), Error> {
        let found = health::of(self.root.path(), record);
        if force || found.changed.is_empty() {
            return Ok(());
        }
        Err(Error::Changed {
            path: self.folder(&record.id),
            changed: found.changed,
        })
    }

    /// The files of others in the folder of a skill.
    fn data(&self, id: &SkillId) -> Result<Vec<PathBuf>, Error> {
        let (path, folder) = (self.folder(id), Path::new(id.slug()));
        let failed = || Error::disk(&path);
        // Behind a link they are in the copy that it leads to, which is not removed with them in
        // it.
        if self.root.kind(folder).map_err(failed())? != Some(Kind::Folder) {
            return Ok(Vec::new());
        }
        let folder = self.root.folder(folder, false).map_err(failed())?;
        let all = folder.files(MAX_DATA).map_err(failed())?;
        let all = all.ok_or_else(|| Error::TooMuchData {
            path: path.clone(),
            max: MAX_DATA,
        })?;
        let all = all.into_iter().map(|(path, _)| path);
        let files = self.state.find(id).map_or(&[][..], |record| &record.files);
        let ours: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let is_ours = |path: &PathBuf| path.to_str().is_some_and(|path| ours.contains(path));
        Ok(all.filter(|path| !is_ours(path)).collect())
    }

    /// Installs a version, and replaces another one of the same skill. Files of others in its
    /// folder stay.
    ///
    /// # Errors
    /// The files are not those of the version, or cannot be written; something else has the
    /// name of its folder; somebody changed the version that is there.
    pub fn install(
        &mut self,
        mut record: Record,
        files: &[(FilePath, Bytes)],
        options: Installing<'_>,
    ) -> Result<PathBuf, Error> {
        record.check(files)?;
        let was = self.state.find(&record.id).cloned();
        if let Some(was) = &was {
            // Ids differ in case alone: the folder keeps its name, and is not a second one on disks
            // that tell them apart.
            record.id = was.id.clone();
        }
        let id = record.id.clone();
        folder_name(&id)?;
        let folder = self.folder(&id);
        // Two skills of one slug, from different authors, would share a folder.
        let key = id.slug().to_ascii_lowercase();
        let mut others = self.state.skills.iter().filter(|r| r.id.key() != id.key());
        if let Some(other) = others.find(|r| r.id.slug().to_ascii_lowercase() == key) {
            return Err(Error::FolderTaken {
                path: folder,
                other: other.id.clone(),
            });
        }
        let is_left = self.state.left.iter().any(|left| left.key() == id.key());
        if was.is_none() && self.state.skills.len() >= MAX_SKILLS {
            return Err(Error::Full {
                path: self.root.path().to_owned(),
            });
        }
        match &was {
            Some(was) => self.permit(was, options.force)?,
            None if is_left => {}
            None => {
                let there = self.root.kind(Path::new(id.slug()));
                if there.map_err(Error::disk(&folder))?.is_some() {
                    return Err(Error::NotOurs { path: folder });
                }
            }
        }
        let data = self.data(&id)?;
        self.permit_data(&data, &id, files, options.force)?;
        let new = of_ours("new", &id);
        let failed = || Error::disk(&folder);
        // A link would take the place of the folder with the files of others.
        if let Some(kept) = options.contents.filter(|_| data.is_empty()) {
            record.method = Method::Symlink;
            let copy = contents::keep(kept, record.digest, files, options.force)?;
            disk::link(&self.root, &copy, &new).map_err(failed())?;
        } else {
            record.method = Method::Copy;
            disk::write_folder(&self.root, &new, files).map_err(failed())?;
            self.carry(&id, &data)?;
        }
        self.change(Pending {
            id,
            record: Some(record),
            put: true,
            begun_in: Some(self.ours),
        })?;
        Ok(folder)
    }

    /// Adds the files of others to what is to become the folder of a skill.
    fn carry(&self, id: &SkillId, data: &[PathBuf]) -> Result<(), Error> {
        let (from, to) = (Path::new(id.slug()), of_ours("new", id));
        for path in data {
            let carried = disk::carry(&self.root, from, &to, path);
            carried.map_err(Error::disk(&self.folder(id)))?;
        }
        Ok(())
    }

    /// Refuses to overwrite a file of others that has the name of one of the version.
    fn permit_data(
        &self,
        data: &[PathBuf],
        id: &SkillId,
        files: &[(FilePath, Bytes)],
        force: bool,
    ) -> Result<(), Error> {
        let folder = self.folder(id);
        let new: HashMap<&str, &Bytes> = files.iter().map(|(path, c)| (path.as_str(), c)).collect();
        let is_lost = |path: &&PathBuf| {
            let content = path.to_str().and_then(|path| new.get(path));
            content.is_some_and(|content| {
                let path = Path::new(id.slug()).join(path);
                let there = self.root.read(&path, content.len() as u64);
                there.map_or(true, |there| there != content[..])
            })
        };
        let lost = data.iter().filter(is_lost);
        let lost: Vec<_> = lost.map(|path| path.display().to_string()).collect();
        if force || lost.is_empty() {
            return Ok(());
        }
        Err(Error::Changed {
            path: folder,
            changed: lost,
        })
    }

    /// Removes a skill; with `remove_data` also the files of others in its folder.
    ///
    /// # Errors
    /// It is not installed; somebody changed its files; the disk refuses.
    pub fn uninstall(
        &mut self,
        id: &SkillId,
        remove_data: bool,
        force: bool,
    ) -> Result<Removed, Error> {
        let Some(record) = self.state.find(id).cloned() else {
            let installed = self.state.skills.iter().map(|record| &record.id);
            return Err(Error::not_installed(id.as_str(), installed));
        };
        let id = record.id.clone();
        folder_name(&id)?;
        self.permit(&record, force)?;
        let folder = self.folder(&id);
        let data = if remove_data {
            Vec::new()
        } else {
            self.data(&id)?
        };
        self.carry(&id, &data)?;
        self.change(Pending {
            id,
            record: None,
            put: !data.is_empty(),
            begun_in: Some(self.ours),
        })?;
        Ok(Removed {
            record,
            path: folder,
            kept: data.len(),
        })
    }
}
