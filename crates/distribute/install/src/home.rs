//! All directories of a machine together: the skills in them, the copies that links lead to, and
//! the order of skills.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::directory::{self, Installing, Removed};
use super::priority::{Moved, Order};
use super::record::is_named;
use super::state::{self, read_json, write_json};
use super::{Directory, Error, Health, Method, Record, contents, health};
use model::{Digest, FilePath, SkillId, SkillKey};

/// Directories that are recorded.
const MAX_DIRECTORIES: usize = 1_024;

/// The record of all directories of a machine. Cheap to clone.
#[derive(Clone)]
pub struct Home {
    path: PathBuf,
    known: Vec<PathBuf>,
    shown: Option<Shown>,
}

/// Returns whether a skill may be shown.
type Shown = Arc<dyn Fn(&SkillId) -> bool + Send + Sync>;

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Home")
            .field("path", &self.path)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

/// An installed skill in its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The directory of skills.
    pub directory: PathBuf,
    /// Its record.
    pub record: Record,
}

impl Placed {
    /// Its folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(self.record.folder())
    }

    /// Compares its files with what was installed. Reads all of them.
    #[must_use]
    pub fn health(&self) -> Health {
        health::of(&self.directory, &self.record)
    }
}

impl Home {
    /// A home in a folder of the user's own, which is made by the first install, for these
    /// directories and those that something was installed to.
    #[must_use]
    pub fn new(path: PathBuf, known: Vec<PathBuf>) -> Self {
        // As they are where a link leads nowhere: they are refused when they are used.
        let real = |path: PathBuf| root_folder::resolved(&path).unwrap_or(path);
        Self {
            path: real(path),
            known: known.into_iter().map(real).collect(),
            shown: None,
        }
    }

    /// The same for a caller who may see some skills alone. For reading: an order that such a
    /// caller writes would lose all other skills.
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
    /// The record of them cannot be read.
    pub fn directories(&self) -> Result<Vec<PathBuf>, Error> {
        let remembered: Option<Vec<PathBuf>> = read_json(&self.directories_file())?;
        let mut all: Vec<PathBuf> = Vec::new();
        let known = self.known.iter().cloned();
        // A caller that installs several skills may name one more than once, and each skill in it
        // would be listed as often.
        let remembered = remembered.unwrap_or_default().into_iter();
        let remembered = remembered.map(|path| root_folder::resolved(&path).unwrap_or(path));
        for directory in known.chain(remembered) {
            if !all.contains(&directory) {
                all.push(directory);
            }
        }
        Ok(all)
    }

    fn remember(&self, directory: &Path, give_up: &dyn Fn() -> bool) -> Result<(), Error> {
        let file = self.directories_file();
        // Without the lock: nearly always it is known.
        let known: Option<Vec<PathBuf>> = read_json(&file)?;
        if known.is_some_and(|known| known.iter().any(|known| known == directory)) {
            return Ok(());
        }
        let _lock = directory::lock(&self.path, directory, give_up)?;
        let mut all: Vec<PathBuf> = read_json(&file)?.unwrap_or_default();
        // Read again under the lock. Directories that are gone make room.
        all.retain(|known| known.is_dir() && known != directory);
        if all.len() >= MAX_DIRECTORIES || directory.to_str().is_none() {
            return Err(Error::OutsideRoots {
                path: directory.display().to_string(),
            });
        }
        all.push(directory.to_owned());
        write_json(&file, &all)
    }

    /// All installed skills, by id, then by directory.
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

    /// The installs of a skill, by its id or its short name.
    ///
    /// # Errors
    /// It is not installed, or the short name is that of several; a record cannot be read.
    pub fn find(&self, skill: &str) -> Result<Vec<Placed>, Error> {
        find(&self.list()?, skill.trim())
    }

    /// Installs a version in a directory, as a copy or as a link. Waits for other processes until
    /// `give_up` returns true.
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
        // Before the link: a directory that is not recorded has links that no other process knows
        // of, and the copies that they lead to would be cleared away.
        let is_known = self.known.iter().any(|known| known == directory);
        if !is_known || record.method == Method::Symlink {
            self.remember(directory, give_up)?;
        }
        let contents = self.contents();
        // Held until the record has the link: else the copy may be cleared away as unused.
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
        // `clear` locks the copies itself.
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
            // A copy that is left over costs space and nothing else.
            Err(Error::Busy { .. }) => return Ok(()),
            lock => lock?,
        };
        let links = self.list()?.into_iter();
        let links = links.filter(|placed| placed.record.method == Method::Symlink);
        let used: HashSet<Digest> = links.map(|placed| placed.record.digest).collect();
        contents::clear(&contents, &used, gone)
    }

    /// The order of all installed skills, and whether anybody moved one: those that nobody moved
    /// come last, the ones that were installed earlier first.
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

    /// Moves an installed skill in the order: see [`Order::put`].
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

/// Finds the installs of a skill in a list, by its id or its short name.
///
/// # Errors
/// It is not installed, or the short name is that of several.
pub fn find(all: &[Placed], name: &str) -> Result<Vec<Placed>, Error> {
    let found = all
        .iter()
        .filter(|placed| is_named(name, &placed.record.id));
    let found: Vec<Placed> = found.cloned().collect();
    let ids: HashSet<SkillKey> = found.iter().map(|placed| placed.record.id.key()).collect();
    if ids.len() == 1 {
        return Ok(found);
    }
    let near = if found.is_empty() { all } else { &found };
    let near = near.iter().map(|placed| &placed.record.id);
    Err(Error::not_installed(name, near))
}
