//! A directory of skills, while one process changes it.
//!
//! A change is made in these steps. Killed before the second, nothing has happened and what
//! is in `new` is cleared away; killed after it, the next call does the rest.
//!
//! 1. What is to come is written to `.repertoire/new/SLUG`, and is on disk.
//! 2. The record says what is about to happen.
//! 3. The folder that is there is moved to `.repertoire/old/SLUG`.
//! 4. What is to come gets its name.
//! 5. The record says what is there.
//! 6. The old folder is removed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::state::{OURS, Pending, State};
use super::{Error, MAX_SKILLS, Method, Record, contents, disk, health};
use model::{Digest, FilePath, SkillId, bundle_digest};

/// How long it waits before it asks for the lock again.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Files that others put into the folder of a skill, and that are kept there: more of them
/// are somebody's project, which a link serves better.
const MAX_DATA: usize = 100_000;

/// How a skill is installed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Installing<'a> {
    /// Where copies are kept that links lead to; none: its files are copied.
    pub contents: Option<&'a Path>,
    /// Files that somebody changed are given up.
    pub force: bool,
}

/// A skill that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// What was installed.
    pub record: Record,
    /// Its folder.
    pub path: PathBuf,
    /// Files that others had put into it, and that are still there.
    pub kept: usize,
}

/// A directory of skills that nobody else changes meanwhile.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    state: State,
    _lock: File,
}

/// Keeps every other process that asks from going on, as long as the answer is kept; the
/// folder is made where there is none.
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
        disk::make_folder(folder).map_err(failed())?;
        let lock = File::open(folder).map_err(failed())?;
        match lock.try_lock() {
            Ok(()) => {
                let ours = lock.metadata().map_err(failed())?;
                let there = fs::metadata(folder);
                // Somebody may have removed it, and another one made it anew.
                if there.is_ok_and(|there| disk::identity(&there) == disk::identity(&ours)) {
                    return Ok(lock);
                }
            }
            Err(TryLockError::Error(error)) => return Err(failed()(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if give_up() {
            return Err(Error::Busy {
                path: of.to_owned(),
            });
        }
        std::thread::sleep(LOCK_RETRY_INTERVAL);
    }
}

/// A slug as the name of a folder.
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

/// Two files that a disk takes for one, if there are any.
fn collision(files: &[(FilePath, Bytes)]) -> Option<&FilePath> {
    let mut seen = HashSet::new();
    let mut paths = files.iter().map(|(path, _)| path);
    paths.find(|path| !seen.insert(path.collision_key()))
}

impl Directory {
    /// Opens a directory for changes, and finishes what a kill left half done. It is made
    /// where there is none. Waits for others until it is to give up.
    ///
    /// # Errors
    /// Another process has it for too long; the record cannot be read.
    pub fn open(path: &Path, give_up: &dyn Fn() -> bool) -> Result<Self, Error> {
        let lock = lock(&path.join(OURS), path, give_up)?;
        let mut directory = Self {
            path: path.to_owned(),
            state: State::read(path)?,
            _lock: lock,
        };
        directory.recover()?;
        Ok(directory)
    }

    /// What is installed in it, by id.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.state.skills
    }

    /// What is installed of a skill.
    #[must_use]
    pub fn record(&self, id: &SkillId) -> Option<&Record> {
        self.state.find(id)
    }

    fn folder(&self, id: &SkillId) -> PathBuf {
        self.path.join(id.slug())
    }

    fn of_ours(&self, part: &str, id: &SkillId) -> PathBuf {
        self.path.join(OURS).join(part).join(id.slug())
    }

    /// Does the rest of what was noted, or clears away what was not.
    fn recover(&mut self) -> Result<(), Error> {
        if let Some(pending) = self.state.pending.clone() {
            // The record may be of a repository that somebody else wrote: nothing in it
            // becomes a path unchecked.
            folder_name(&pending.id)?;
            self.finish(pending)?;
        }
        for part in ["new", "old"] {
            let path = self.path.join(OURS).join(part);
            disk::remove(&path).map_err(Error::disk(&path))?;
        }
        Ok(())
    }

    /// Steps 3 to 6.
    fn finish(&mut self, pending: Pending) -> Result<(), Error> {
        let Pending { id, record, put } = pending;
        let (folder, new, old) = (
            self.folder(&id),
            self.of_ours("new", &id),
            self.of_ours("old", &id),
        );
        let failed = || Error::disk(&folder);
        // Without the one it was done before; with the other the folder is somebody else's.
        let is_to_do = !put || disk::is_there(&new);
        if is_to_do && disk::is_there(&folder) && !disk::is_there(&old) {
            // A link takes the place of a link in one step.
            if !(put && disk::is_link(&new) && disk::is_link(&folder)) {
                disk::rename(&folder, &old).map_err(failed())?;
            }
        }
        if put && disk::is_there(&new) {
            disk::rename(&new, &folder).map_err(failed())?;
        }
        let leaves_data = put && record.is_none();
        self.state.set(&id, record, leaves_data);
        self.state.pending = None;
        self.state.write(&self.path)?;
        disk::remove(&old).map_err(failed())
    }

    /// Notes what is about to happen, and does it.
    fn change(&mut self, pending: Pending) -> Result<(), Error> {
        let old = self.path.join(OURS).join("old");
        disk::make_folder(&old).map_err(Error::disk(&old))?;
        // Noted and synced before the first rename: whoever opens the directory after a kill
        // knows what was meant, and finishes it.
        self.state.pending = Some(pending.clone());
        self.state.write(&self.path)?;
        self.finish(pending)
    }

    /// What may not be given up: files that somebody changed.
    fn permit(&self, record: &Record, force: bool) -> Result<(), Error> {
        let found = health::of(&self.path, record);
        if force || found.changed.is_empty() {
            return Ok(());
        }
        Err(Error::Changed {
            path: self.folder(&record.id),
            changed: found.changed,
        })
    }

    /// Files in the folder of a skill that others put there.
    fn data(&self, id: &SkillId) -> Result<Vec<PathBuf>, Error> {
        let folder = self.folder(id);
        // Behind a link they are with the copy that it leads to, and stay there.
        if disk::is_link(&folder) || !folder.is_dir() {
            return Ok(Vec::new());
        }
        let all = disk::below(&folder, MAX_DATA).map_err(Error::disk(&folder))?;
        let all = all.ok_or_else(|| Error::TooMuchData {
            path: folder.clone(),
            max: MAX_DATA,
        })?;
        let files = self.state.find(id).map_or(&[][..], |record| &record.files);
        let ours: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let is_ours = |path: &PathBuf| path.to_str().is_some_and(|path| ours.contains(path));
        Ok(all.into_iter().filter(|path| !is_ours(path)).collect())
    }

    /// Installs a version, in the place of another one of the same skill. What others put
    /// into its folder stays.
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
        check(&record, files)?;
        let was = self.state.find(&record.id).cloned();
        if let Some(was) = &was {
            // The folder keeps its name, also where the id is written otherwise now.
            record.id = was.id.clone();
        }
        let id = record.id.clone();
        folder_name(&id)?;
        let folder = self.folder(&id);
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
                path: self.path.clone(),
            });
        }
        match &was {
            Some(was) => self.permit(was, options.force)?,
            None if is_left || !disk::is_there(&folder) => {}
            None => return Err(Error::NotOurs { path: folder }),
        }
        let data = self.data(&id)?;
        self.permit_data(&data, &id, files, options.force)?;
        let new = self.of_ours("new", &id);
        let failed = || Error::disk(&new);
        if let Some(parent) = new.parent() {
            disk::make_folder(parent).map_err(failed())?;
        }
        // A link would hide what others put there.
        if let Some(kept) = options.contents.filter(|_| data.is_empty()) {
            record.method = Method::Symlink;
            let copy = contents::keep(kept, record.digest, files, options.force)?;
            disk::link(&copy, &new).map_err(failed())?;
        } else {
            record.method = Method::Copy;
            disk::write_folder(&new, files).map_err(failed())?;
            for path in &data {
                disk::carry(&folder, &new, path).map_err(failed())?;
            }
        }
        self.change(Pending {
            id,
            record: Some(record),
            put: true,
        })?;
        Ok(folder)
    }

    /// A file of the version may have the name of one that somebody put there.
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
                fs::read(folder.join(path)).map_or(true, |there| there != content[..])
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

    /// Removes a skill; with `remove_data` also what others put into its folder.
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
        if !data.is_empty() {
            let new = self.of_ours("new", &id);
            disk::make_folder(&new).map_err(Error::disk(&new))?;
            for path in &data {
                disk::carry(&folder, &new, path).map_err(Error::disk(&new))?;
            }
        }
        self.change(Pending {
            id,
            record: None,
            put: !data.is_empty(),
        })?;
        Ok(Removed {
            record,
            path: folder,
            kept: data.len(),
        })
    }
}

/// The files are those that the record says, and can be written side by side.
pub(crate) fn check(record: &Record, files: &[(FilePath, Bytes)]) -> Result<(), Error> {
    let digests: BTreeMap<&FilePath, Digest> = files
        .iter()
        .map(|(path, content)| (path, Digest::of(content)))
        .collect();
    let found = bundle_digest(digests.iter().map(|(path, digest)| (*path, *digest)));
    let are_listed = record.files.len() == files.len()
        && record
            .files
            .iter()
            .all(|entry| digests.get(&entry.path) == Some(&entry.digest));
    if found != record.digest || !are_listed {
        return Err(Error::DigestDiffers {
            id: record.id.clone(),
            expected: record.digest,
            found,
        });
    }
    if let Some(path) = collision(files) {
        return Err(Error::Unwritable {
            name: path.to_string(),
            reason: "some disks take two of its files for one".to_owned(),
        });
    }
    Ok(())
}
