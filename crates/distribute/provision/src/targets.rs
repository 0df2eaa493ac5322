//! The folders that skills of a project, or of a person, are installed to.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::Error;
use install::{AGENTS, Agent, Home, LOCK_FILE, Locked, NPX_LOCK_FILE, Scope, SkillsLock, below};
use model::Failure;

/// What somebody asked for.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Names of agents.
    pub agents: Vec<String>,
    /// A folder of skills, instead of those of agents.
    pub dir: Option<PathBuf>,
    /// For a person, not for a project.
    pub is_user: bool,
}

/// A folder of skills, and what the lock calls it: the name of an agent, or its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFolder {
    /// What the lock calls it.
    pub name: String,
    /// The folder.
    pub directory: PathBuf,
}

/// Where skills are installed, and the lock that says which.
#[derive(Debug)]
pub struct Targets {
    project: PathBuf,
    person: PathBuf,
    data: PathBuf,
    scope: Scope,
    variables: fn(&str) -> Option<OsString>,
    places: Vec<TargetFolder>,
    /// Somebody asked for these places.
    is_asked: bool,
}

impl Targets {
    /// The folders that a wish means: in a project, or below a person's home. `data` is where
    /// it is kept what is installed anywhere. Without names those whose own folder is in the
    /// project, else Claude Code's.
    ///
    /// # Errors
    /// There is no such agent; a folder leads out of the project.
    pub fn new(
        wish: &Wish,
        project: PathBuf,
        (person, data): (PathBuf, PathBuf),
        variables: fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        let mut targets = Self {
            project,
            person,
            data,
            scope: if wish.is_user {
                Scope::User
            } else {
                Scope::Project
            },
            variables,
            places: Vec::new(),
            is_asked: wish.dir.is_some() || !wish.agents.is_empty(),
        };
        let mut names = match &wish.dir {
            Some(dir) => vec![targets.named(dir)?],
            None => wish.agents.clone(),
        };
        if names.is_empty() && targets.scope == Scope::Project {
            let used = AGENTS
                .iter()
                .filter(|agent| agent.is_used(&targets.project));
            names.extend(used.map(|agent| agent.name.to_owned()));
        }
        if names.is_empty() {
            names.push("claude".to_owned());
        }
        targets.places = targets.places_of(&names)?;
        Ok(targets)
    }

    /// A folder as the lock calls it: from here where it is below, never like an agent.
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

    fn places_of(&self, names: &[String]) -> Result<Vec<TargetFolder>, Failure> {
        let mut places: Vec<TargetFolder> = Vec::new();
        for name in names {
            let directory = self.directory(name)?;
            if !places.iter().any(|place| place.directory == directory) {
                places.push(TargetFolder {
                    name: name.clone(),
                    directory,
                });
            }
        }
        Ok(places)
    }

    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf, Failure> {
        if name.contains('/') {
            return Ok(self.project.join(name));
        }
        let agent = Agent::named(name).ok_or_else(|| Error::UnknownAgent {
            name: name.to_owned(),
        })?;
        Ok(match self.scope {
            // A link of the repository must not lead out of it.
            Scope::Project => below(
                std::slice::from_ref(&self.project),
                &agent.of_project(&self.project),
            )?,
            Scope::User => agent.of_user(&self.person, self.variables),
        })
    }

    /// Somebody asked for these folders; else they are those that are usual.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// The folders that are meant.
    #[must_use]
    pub fn places(&self) -> &[TargetFolder] {
        &self.places
    }

    /// Where a skill of the lock is: as it says, unless somebody asked for other places.
    pub(crate) fn of(&self, locked: &Locked) -> Result<Vec<TargetFolder>, Failure> {
        self.of_names(&locked.targets)
    }

    /// The same of these names.
    pub(crate) fn of_names(&self, names: &[String]) -> Result<Vec<TargetFolder>, Failure> {
        if self.is_asked || names.is_empty() {
            return Ok(self.places.clone());
        }
        self.places_of(names)
    }

    /// All that is known by name, and what was asked for.
    pub(crate) fn all(&self, lock: &SkillsLock) -> Vec<TargetFolder> {
        if self.is_asked {
            return self.places.clone();
        }
        let mut names: Vec<String> = AGENTS.iter().map(|agent| agent.name.to_owned()).collect();
        names.extend(
            lock.skills()
                .iter()
                .flat_map(|locked| locked.targets.clone()),
        );
        let mut places: Vec<TargetFolder> = Vec::new();
        for name in names {
            // A folder that leads elsewhere is none of this project.
            let Ok(directory) = self.directory(&name) else {
                continue;
            };
            if !places.iter().any(|place| place.directory == directory) {
                places.push(TargetFolder { name, directory });
            }
        }
        places
    }

    /// What is installed in some folders.
    pub(crate) fn home(&self, places: &[TargetFolder]) -> Home {
        let known = places.iter().map(|place| place.directory.clone());
        Home::new(self.data.clone(), known.collect())
    }

    /// The folder of the lock: the project, or one of the person's own.
    fn folder(&self) -> PathBuf {
        match self.scope {
            Scope::Project => self.project.clone(),
            Scope::User => self.data.join("user"),
        }
    }

    /// The lock: that of the project, or of the person.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.folder().join(LOCK_FILE)
    }

    pub(crate) fn npx_lock_file(&self) -> PathBuf {
        self.project.join(NPX_LOCK_FILE)
    }

    /// Keeps others from changing the lock meanwhile.
    pub(crate) fn hold(&self, give_up: &dyn Fn() -> bool) -> Result<File, Failure> {
        Ok(install::hold(&self.folder(), give_up)?)
    }

    /// What the lock says; none: there is none.
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
