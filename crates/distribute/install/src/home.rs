//! All directories of a machine together: what is installed in them, the copies that links
//! lead to, and which skill goes first.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::directory::{self, Installing, Removed};
use super::priority::{Moved, Order};
use super::state::{self, read_json, write_json};
use super::{Directory, Error, Health, Method, Record, contents, health};
use model::{Digest, FilePath, SkillId, SkillKey};

/// Directories that are remembered.
const MAX_DIRECTORIES: usize = 1_024;

/// Where it is kept which directories there are. Cheap to clone.
#[derive(Clone)]
pub struct Home {
    path: PathBuf,
    known: Vec<PathBuf>,
    shown: Option<Shown>,
}

/// Says of which skills is told that they are installed.
type Shown = Arc<dyn Fn(&SkillId) -> bool + Send + Sync>;

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Home")
            .field("path", &self.path)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

/// An installed skill, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The directory of skills.
    pub directory: PathBuf,
    /// What is installed.
    pub record: Record,
}

impl Placed {
    /// Its folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(self.record.folder())
    }

    /// What is on disk, compared with what was installed. Reads all its files.
    #[must_use]
    pub fn health(&self) -> Health {
        health::of(&self.directory, &self.record)
    }
}

impl Home {
    /// A home in a folder, which is made when something is installed, for these directories
    /// and those that something was installed to.
    #[must_use]
    pub fn new(path: PathBuf, known: Vec<PathBuf>) -> Self {
        Self {
            path,
            known,
            shown: None,
        }
    }

    /// The same for who is told of some skills alone. It reads: what such a one writes would
    /// put the others out of their places.
    #[must_use]
    pub fn showing(&self, shown: impl Fn(&SkillId) -> bool + Send + Sync + 'static) -> Self {
        Self {
            shown: Some(Arc::new(shown)),
            ..self.clone()
        }
    }

    fn contents(&self) -> PathBuf {
        self.path.join("contents")
    }

    fn directories_file(&self) -> PathBuf {
        self.path.join("directories.json")
    }

    fn priorities_file(&self) -> PathBuf {
        self.path.join("priorities.json")
    }

    /// The directories that skills may be in.
    ///
    /// # Errors
    /// What is kept of them cannot be read.
    pub fn directories(&self) -> Result<Vec<PathBuf>, Error> {
        let remembered: Option<Vec<PathBuf>> = read_json(&self.directories_file())?;
        let mut all: Vec<PathBuf> = Vec::new();
        let known = self.known.iter().cloned();
        // Whoever has several skills at once may name one more than once.
        for directory in known.chain(remembered.unwrap_or_default()) {
            if !all.contains(&directory) {
                all.push(directory);
            }
        }
        Ok(all)
    }

    /// Has a directory looked at from now on.
    fn remember(&self, directory: &Path, give_up: &dyn Fn() -> bool) -> Result<(), Error> {
        let file = self.directories_file();
        let known: Option<Vec<PathBuf>> = read_json(&file)?;
        if known.is_some_and(|known| known.iter().any(|known| known == directory)) {
            return Ok(());
        }
        let _lock = directory::lock(&self.path, directory, give_up)?;
        let mut all: Vec<PathBuf> = read_json(&file)?.unwrap_or_default();
        // Those that are gone make room.
        all.retain(|known| known.is_dir() && known != directory);
        if all.len() >= MAX_DIRECTORIES || directory.to_str().is_none() {
            return Err(Error::OutsideRoots {
                path: directory.display().to_string(),
            });
        }
        all.push(directory.to_owned());
        write_json(&file, &all)
    }

    /// What is installed anywhere, by id, then by directory.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn list(&self) -> Result<Vec<Placed>, Error> {
        let mut all = Vec::new();
        for directory in self.directories()? {
            for record in state::list(&directory)? {
                if self.shown.as_ref().is_some_and(|shown| !shown(&record.id)) {
                    continue;
                }
                all.push(Placed {
                    directory: directory.clone(),
                    record,
                });
            }
        }
        all.sort_by(|one, other| {
            let by_id = one.record.id.key().cmp(&other.record.id.key());
            by_id.then_with(|| one.directory.cmp(&other.directory))
        });
        Ok(all)
    }

    /// Where a skill is installed, by its id or its short name.
    ///
    /// # Errors
    /// It is not installed, or the short name is that of several; a record cannot be read.
    pub fn find(&self, skill: &str) -> Result<Vec<Placed>, Error> {
        find(&self.list()?, skill)
    }

    /// Installs a version in a directory, as a copy or as a link. Waits for others until it
    /// is to give up.
    ///
    /// # Errors
    /// See [`Directory::install`].
    pub fn install(
        &self,
        directory: &Path,
        record: Record,
        files: &[(FilePath, Bytes)],
        force: bool,
        give_up: &dyn Fn() -> bool,
    ) -> Result<Placed, Error> {
        // Where a copy is used must be known to whoever clears copies away.
        let is_known = self.known.iter().any(|known| known == directory);
        if !is_known || record.method == Method::Symlink {
            self.remember(directory, give_up)?;
        }
        let contents = self.contents();
        // Held until the record says that a copy is used.
        let lock = match record.method {
            Method::Copy => None,
            Method::Symlink => Some(directory::lock(&contents, directory, give_up)?),
        };
        let options = Installing {
            contents: lock.as_ref().map(|_| contents.as_path()),
            force,
        };
        let id = record.id.clone();
        let mut open = Directory::open(directory, give_up)?;
        let was = open.record(&id).cloned();
        open.install(record, files, options)?;
        let record = open.record(&id).cloned();
        drop((open, lock));
        self.clear(was.as_ref(), give_up)?;
        let record = record.ok_or_else(|| Error::not_installed(id.as_str(), [].into_iter()))?;
        Ok(Placed {
            directory: directory.to_owned(),
            record,
        })
    }

    /// Removes a skill from a directory.
    ///
    /// # Errors
    /// See [`Directory::uninstall`].
    pub fn uninstall(
        &self,
        directory: &Path,
        id: &SkillId,
        remove_data: bool,
        force: bool,
        give_up: &dyn Fn() -> bool,
    ) -> Result<Removed, Error> {
        let removed = Directory::open(directory, give_up)?.uninstall(id, remove_data, force)?;
        self.clear(Some(&removed.record), give_up)?;
        Ok(removed)
    }

    /// Removes the copy that a link led to, where no other link does.
    fn clear(&self, gone: Option<&Record>, give_up: &dyn Fn() -> bool) -> Result<(), Error> {
        let contents = self.contents();
        let Some(gone) = gone.filter(|gone| gone.method == Method::Symlink) else {
            return Ok(());
        };
        let _lock = match directory::lock(&contents, &contents, give_up) {
            // It is cleared away with the next one.
            Err(Error::Busy { .. }) => return Ok(()),
            lock => lock?,
        };
        let links = self.list()?.into_iter();
        let links = links.filter(|placed| placed.record.method == Method::Symlink);
        let used: HashSet<Digest> = links.map(|placed| placed.record.digest).collect();
        contents::clear(&contents, &used, Some(gone))
    }

    /// The order of all installed skills, and whether anybody gave one a place: those that
    /// nobody did come last, the ones that were installed earlier first.
    ///
    /// # Errors
    /// A record, or the order, cannot be read.
    pub fn order(&self) -> Result<(Order, bool), Error> {
        let kept: Order = read_json(&self.priorities_file())?.unwrap_or_default();
        let mut all = self.list()?;
        all.sort_by_key(|placed| placed.record.installed_at);
        let ids: Vec<SkillId> = all.into_iter().map(|placed| placed.record.id).collect();
        let order = kept.of(&ids);
        let is_manual = order
            .places()
            .iter()
            .any(|place| kept.place(&place.id.key()).is_some());
        Ok((order, is_manual))
    }

    /// Gives an installed skill a place: see [`Order::put`].
    ///
    /// # Errors
    /// It is not installed; the order cannot be read or written.
    pub fn set_priority(
        &self,
        key: &SkillKey,
        place: usize,
        lock: bool,
        give_up: &dyn Fn() -> bool,
    ) -> Result<Vec<Moved>, Error> {
        let _lock = directory::lock(&self.path, &self.path, give_up)?;
        let (mut order, _) = self.order()?;
        let moved = order.put(key, place, lock);
        let moved = moved.ok_or_else(|| {
            let there = order.places().iter().map(|place| &place.id);
            Error::not_installed(key.as_str(), there)
        })?;
        write_json(&self.priorities_file(), &order)?;
        Ok(moved)
    }
}

/// Those of a list that are this skill, by its id or its short name.
fn find(all: &[Placed], skill: &str) -> Result<Vec<Placed>, Error> {
    let name = skill.trim();
    let is_meant = |placed: &&Placed| {
        let id = &placed.record.id;
        name.eq_ignore_ascii_case(id.as_str()) || name.eq_ignore_ascii_case(id.slug())
    };
    let found: Vec<Placed> = all.iter().filter(is_meant).cloned().collect();
    let ids: HashSet<SkillKey> = found.iter().map(|placed| placed.record.id.key()).collect();
    match ids.len() {
        1 => Ok(found),
        0 => Err(Error::not_installed(
            name,
            all.iter().map(|placed| &placed.record.id),
        )),
        _ => Err(Error::not_installed(
            name,
            found.iter().map(|placed| &placed.record.id),
        )),
    }
}
