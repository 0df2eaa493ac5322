//! The folders that skills of a project, or of a person, are installed to.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::Error;
use install::{
    AGENTS, Agent, Home, LOCK_FILE, Locked, NPX_LOCK_FILE, Scope, SkillsLock, below, resolved,
};
use model::{Failure, SkillId};

/// The options that say where to install.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Names of agents.
    pub agents: Vec<String>,
    /// A folder of skills, instead of those of agents.
    pub dir: Option<PathBuf>,
    /// For a user, not for a project.
    pub is_user: bool,
}

/// A folder of skills, and its name in the lock: the name of an agent, or its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFolder {
    /// Its name in the lock.
    pub name: String,
    /// The folder.
    pub directory: PathBuf,
}

/// The folders that skills are installed to, and the lock.
#[derive(Debug)]
pub struct Targets {
    project: PathBuf,
    person: PathBuf,
    data: PathBuf,
    scope: Scope,
    variables: fn(&str) -> Option<OsString>,
    places: Vec<TargetFolder>,
    /// The options named these folders.
    is_asked: bool,
}

impl Targets {
    /// The folders that the options mean: in a project, or below a user's home. `data` has the
    /// record of all installs. Without names: the agents whose own folder is in the project, else
    /// Claude Code.
    ///
    /// # Errors
    /// There is no such agent; a folder leads out of the project.
    pub fn new(
        wish: &Wish,
        project: &Path,
        (person, data): (PathBuf, PathBuf),
        variables: fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        let mut targets = Self {
            // No name of it is a link, so that none is followed below it.
            project: resolved(project)?,
            person,
            data: resolved(&data)?,
            scope: if wish.is_user {
                Scope::User
            } else {
                Scope::Project
            },
            variables,
            places: Vec::new(),
            is_asked: wish.dir.is_some() || !wish.agents.is_empty(),
        };
        if let Some(dir) = &wish.dir {
            // The person named it, wherever it leads.
            targets.places.push(TargetFolder {
                name: targets.named(dir)?,
                directory: resolved(&targets.project.join(dir))?,
            });
            return Ok(targets);
        }
        let mut names = wish.agents.clone();
        if names.is_empty() && targets.scope == Scope::Project {
            let used = AGENTS
                .iter()
                .filter(|agent| agent.is_used(&targets.project));
            names.extend(used.map(|agent| agent.name.to_owned()));
        }
        if names.is_empty() {
            names.push("claude".to_owned());
        }
        targets.places = targets.places_of(&names, None)?;
        Ok(targets)
    }

    /// The name of a folder in the lock: relative where it is below the project, so that the lock
    /// is right in every clone, and with a `/`, so that it is never the name of an agent.
    fn named(&self, dir: &Path) -> Result<String, Failure> {
        let inside = dir.strip_prefix(&self.project).unwrap_or(dir);
        match inside.to_str().filter(|name| !name.is_empty()) {
            Some(name) if name.contains('/') => Ok(name.to_owned()),
            Some(name) => Ok(format!("./{name}")),
            None => Err(Error::NoFolder {
                path: dir.to_owned(),
            }
            .into()),
        }
    }

    /// The folders of these names: of an entry of the lock, or of the options.
    fn places_of(
        &self,
        names: &[String],
        entry: Option<&SkillId>,
    ) -> Result<Vec<TargetFolder>, Failure> {
        let folders = names.iter().map(|name| {
            let directory = self.directory(name)?;
            // A lock and a link are the repository's words: what leads out of it needs the user's.
            let directory = directory.ok_or_else(|| Error::LeadsOut {
                name: name.clone(),
                entry: entry.map(|id| (self.lock_file(), id.clone())),
                path: self
                    .folder_of(name)
                    .unwrap_or_else(|_| self.project.join(name)),
            })?;
            let name = name.clone();
            Ok(TargetFolder { name, directory })
        });
        Ok(unique(folders.collect::<Result<_, Failure>>()?))
    }

    /// The path of a name, as it is written.
    fn path_of(&self, name: &str) -> Result<PathBuf, Error> {
        if name.contains('/') {
            return Ok(self.project.join(name));
        }
        let agent = Agent::named(name).ok_or_else(|| Error::UnknownAgent {
            name: name.to_owned(),
        })?;
        Ok(match self.scope {
            Scope::Project => agent.of_project(&self.project),
            Scope::User => agent.of_user(&self.person, self.variables),
        })
    }

    /// The folder of a name, wherever it leads.
    pub(crate) fn folder_of(&self, name: &str) -> Result<PathBuf, Failure> {
        Ok(resolved(&self.path_of(name)?)?)
    }

    /// The folder of a name; none: it leads out of the project.
    fn directory(&self, name: &str) -> Result<Option<PathBuf>, Failure> {
        Ok(match self.scope {
            Scope::Project => below(std::slice::from_ref(&self.project), &self.path_of(name)?).ok(),
            Scope::User => Some(self.folder_of(name)?),
        })
    }

    /// The options named these folders; else they are the usual ones.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// The folders that are meant.
    #[must_use]
    pub fn places(&self) -> &[TargetFolder] {
        &self.places
    }

    /// The folders of a skill of the lock: those of its entry, unless the options name others.
    pub(crate) fn of(&self, locked: &Locked) -> Result<Vec<TargetFolder>, Failure> {
        if self.is_asked || locked.targets.is_empty() {
            return Ok(self.places.clone());
        }
        self.places_of(&locked.targets, Some(&locked.id))
    }

    /// The folders of all skills of the lock.
    pub(crate) fn of_all(&self, lock: &SkillsLock) -> Result<Vec<TargetFolder>, Failure> {
        let all = lock.skills().iter().map(|locked| self.of(locked));
        let all: Vec<_> = all.collect::<Result<_, _>>()?;
        Ok(unique(all.concat()))
    }

    /// All folders that are known by name, and those of the lock; or those that the options name.
    pub(crate) fn all(&self, lock: &SkillsLock) -> Vec<TargetFolder> {
        if self.is_asked {
            return self.places.clone();
        }
        let mut names: Vec<String> = AGENTS.iter().map(|agent| agent.name.to_owned()).collect();
        names.extend(lock.skills().iter().flat_map(|l| l.targets.clone()));
        // A folder that leads out of the project is passed over: it must not keep the others from
        // being listed.
        let folders = names.into_iter().filter_map(|name| {
            let directory = self.directory(&name).ok()??;
            Some(TargetFolder { name, directory })
        });
        unique(folders.collect())
    }

    /// The home of some folders.
    pub(crate) fn home(&self, places: &[TargetFolder]) -> Home {
        let known = places.iter().map(|place| place.directory.clone());
        Home::new(self.data.clone(), known.collect())
    }

    /// The folder of the lock: the project, or one of the user's own.
    fn folder(&self) -> PathBuf {
        match self.scope {
            Scope::Project => self.project.clone(),
            Scope::User => self.data.join("user"),
        }
    }

    /// The path of the lock: that of the project, or of the user.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.folder().join(LOCK_FILE)
    }

    pub(crate) fn npx_lock_file(&self) -> PathBuf {
        self.project.join(NPX_LOCK_FILE)
    }

    /// Locks the lock file against other processes.
    pub(crate) fn hold(&self, give_up: &dyn Fn() -> bool) -> Result<File, Failure> {
        Ok(install::hold(&self.folder(), give_up)?)
    }

    /// Reads the lock; none: there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn lock(&self) -> Result<Option<SkillsLock>, Failure> {
        Ok(SkillsLock::read(&self.lock_file())?)
    }

    pub(crate) fn needed_lock(&self) -> Result<SkillsLock, Failure> {
        let lock = self.lock()?;
        Ok(lock.ok_or_else(|| Error::NoLock {
            path: self.lock_file(),
        })?)
    }

    pub(crate) fn write(&self, lock: &SkillsLock) -> Result<(), Failure> {
        Ok(lock.write(&self.lock_file())?)
    }
}

/// Each folder once: several agents share one.
fn unique(mut folders: Vec<TargetFolder>) -> Vec<TargetFolder> {
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.directory.clone()));
    folders
}
