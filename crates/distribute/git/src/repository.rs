//! The repository on this machine that is fetched into.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use gix::ObjectId;

use super::conversation::{Answer, Ask, RemoteRef, ask, chain, final_error};
use super::guard::Guard;
use super::pull::{Pull, descends};
use super::{CommitSkills, Error, Limits, Remote, SkillFiles, read, tree};

/// Bytes that one object may have: one that states more is refused before it is inflated. Gix
/// also bounds its memory for all objects of a pack by it.
pub(super) const MAX_OBJECT: u64 = 64 << 20;
/// Packs of a repository. Each fetch adds one and nothing merges them; with more the repository is
/// cloned again.
const MAX_PACKS: usize = 50;
/// How often an update checks whether another one has ended.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The name of the remote's ref here.
pub(super) const TIP: &str = "refs/repertoire/tip";
/// The repository, inside the folder that the caller gives.
const REPOSITORY: &str = "repository";
/// The next one, while it is cloned.
const NEXT: &str = "repository.next";
/// The one before, while it is deleted.
const LAST: &str = "repository.last";

/// The result of an earlier update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// The commit.
    pub commit: String,
    /// When it was committed, in seconds since 1970.
    pub committed_at: i64,
}

/// The commit that the remote's ref points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tip {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// When it was committed, in seconds since 1970, by the clock of the committer.
    pub committed_at: i64,
    /// The whole ref, such as `refs/heads/main`.
    pub reference: String,
}

impl Tip {
    /// It is a tag.
    #[must_use]
    pub fn is_tag(&self) -> bool {
        self.reference.starts_with("refs/tags/")
    }

    /// The name of the ref for people.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = &self.reference;
        name.strip_prefix("refs/heads/")
            .or_else(|| name.strip_prefix("refs/tags/"))
            .unwrap_or(name)
    }
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The commit of the ref now; it is in the repository.
    pub tip: Tip,
    /// It is the earlier commit, and was there already.
    pub is_unchanged: bool,
    /// The earlier commit is the tip, or an ancestor that could be shown within the limits.
    /// True where there is no earlier one.
    pub descends: bool,
}

/// The commits that were fetched of one remote. Several threads may read, also during an update;
/// two updates wait for each other. Use one of these for a folder: the locks are in it.
#[derive(Debug)]
pub struct Repository {
    folder: PathBuf,
    /// Write-locked while the repository is replaced.
    replacing: RwLock<()>,
    /// Locked by the one update at a time.
    updating: Mutex<()>,
    /// An object could not be read: the next update clones.
    is_doubted: AtomicBool,
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::Unavailable(format!(
        "`{}` cannot be written or read: {error}",
        path.display()
    ))
}

/// Deletes a folder, where there is one.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

fn options() -> gix::open::Options {
    let limit = format!("gitoxide.objects.allocLimit={MAX_OBJECT}");
    // Isolated: a configuration of the machine may rewrite URLs, and name helpers and hooks.
    gix::open::Options::isolated()
        .open_path_as_is(true)
        .config_overrides([
            limit.as_str(),
            "core.logAllRefUpdates=false",
            "core.hooksPath=/dev/null",
            "gitoxide.userAgent=git/repertoire",
        ])
}

fn packs_in(repository: &Path) -> PathBuf {
    repository.join("objects").join("pack")
}

/// The number of packs, and files in their folder that are left of a fetch that was cut off.
fn pack_files(repository: &Path) -> (usize, Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(packs_in(repository)) else {
        return (0, Vec::new());
    };
    let mut packs = 0;
    let mut others = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("pack") => packs += 1,
            Some("idx" | "rev" | "keep") => {}
            _ => others.push(path),
        }
    }
    (packs, others)
}

fn init(path: &Path, hash: gix::hash::Kind) -> Result<gix::Repository, Error> {
    remove(path)?;
    let create = gix::create::Options {
        object_hash: Some(hash),
        ..Default::default()
    };
    gix::ThreadSafeRepository::init_opts(path, gix::create::Kind::Bare, create, options())
        .map_err(|error| {
            let error = chain(&error);
            Error::Unavailable(format!("`{}` cannot be made: {error}", path.display()))
        })?;
    // Opened by the same options as everywhere.
    open(path)
}

pub(super) fn open(path: &Path) -> Result<gix::Repository, Error> {
    let opened = gix::open_opts(path, options());
    opened.map_err(tree::damaged)
}

/// The commit that was fetched last, if it and its tree can be read.
fn fetched(repository: &gix::Repository) -> Option<ObjectId> {
    let mut reference = repository.try_find_reference(TIP).ok()??;
    let commit = reference.peel_to_id().ok()?.detach();
    let tree = repository.find_commit(commit).ok()?.tree_id().ok()?;
    repository.find_tree(tree).ok()?;
    Some(commit)
}

/// The first of the candidates that the remote has.
fn chosen(answer: &Answer, candidates: &[String], remote: &Remote) -> Result<RemoteRef, Error> {
    let mut found = candidates
        .iter()
        .filter_map(|name| answer.refs.iter().find(|found| found.asked == *name));
    let Some(found) = found.next() else {
        return Err(Error::Refused(match remote.options.reference.as_str() {
            "" => "the repository has no commit yet, or shows no branch first".to_owned(),
            name => format!(
                "the repository has no branch and no tag `{}`",
                model::shown(name, 100)
            ),
        }));
    };
    Ok(found.clone())
}

impl Repository {
    /// A repository below a folder, which exists.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            replacing: RwLock::new(()),
            updating: Mutex::new(()),
            is_doubted: AtomicBool::new(false),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(REPOSITORY)
    }

    /// Waits for the lock of updates. In slices and not by `lock`: a caller that is stopped while
    /// it waits must go away, and the guard's time counts.
    fn turn(&self, guard: &Guard) -> Result<MutexGuard<'_, ()>, Error> {
        loop {
            guard.check()?;
            match self.updating.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOCK_RETRY_INTERVAL),
            }
        }
    }

    /// Remembers an error of the repository here, for the next update.
    fn doubting<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if matches!(result, Err(Error::Damaged(_))) {
            self.is_doubted.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Asks the remote for its ref, and fetches what is not here. With an earlier commit it finds
    /// out whether the new one follows from it, for which history is fetched back to the day of
    /// that commit.
    ///
    /// # Errors
    /// Any but [`Error::Damaged`], mostly: a repository that is broken is cloned anew.
    pub fn update(
        &self,
        remote: &Remote,
        earlier: Option<&Earlier>,
        limits: &Limits,
        stop: Arc<AtomicBool>,
    ) -> Result<Update, Error> {
        let guard = Arc::new(Guard::new(limits.clone(), stop));
        let _turn = self.turn(&guard)?;
        // Left behind by a process that was killed.
        remove(&self.folder.join(NEXT))?;
        remove(&self.folder.join(LAST))?;
        let path = self.path();
        let (packs, others) = pack_files(&path);
        for other in others {
            fs::remove_file(&other).map_err(|error| unwritable(&other, &error))?;
        }
        let is_doubted = self.is_doubted.swap(false, Ordering::Relaxed);
        let mut here = match open(&path) {
            Ok(here) if !is_doubted => here,
            _ => self.replaced(|| init(&path, gix::hash::Kind::Sha1))?,
        };
        let candidates = remote.candidates();
        let question = Ask::Refs(candidates.clone());
        let answer =
            watched(&guard, &path, || ask(&here, remote, &guard, question)).map_err(final_error)?;
        let found = chosen(&answer, &candidates, remote)?;
        let Some(target) = found.target else {
            return Err(Error::Refused(
                "the repository has no commit yet".to_owned(),
            ));
        };
        // The remote has SHA-256, which is known only by asking it.
        if here.object_hash() != answer.hash {
            here = self.replaced(|| init(&path, answer.hash))?;
        }
        let pull = Pull {
            remote,
            from: &found.name,
            earlier,
        };
        let before = fetched(&here);
        let is_here = before == Some(target);
        let added = match before {
            Some(_) if is_here => before,
            Some(_) if packs < MAX_PACKS => pull.add(&here, &guard)?,
            _ => None,
        };
        let tip = if let Some(tip) = added {
            tip
        } else {
            let tip = self.clone_anew(&pull, answer.hash, &guard)?;
            here = open(&path)?;
            tip
        };
        let commit = here.find_commit(tip).map_err(tree::damaged)?;
        let time = commit.time().map_err(tree::damaged)?;
        let is_same = earlier.is_some_and(|earlier| is_commit(tip, &earlier.commit));
        let descends = match earlier {
            Some(earlier) if !is_same => descends(&here, tip, &earlier.commit, &guard)?,
            _ => true,
        };
        Ok(Update {
            tip: Tip {
                commit: tip.to_string(),
                committed_at: time.seconds,
                reference: found.name,
            },
            is_unchanged: is_same && is_here,
            descends,
        })
    }

    /// Fetches into a new repository, which then replaces this one: readers go on with the old one
    /// for as long as that takes.
    fn clone_anew(
        &self,
        pull: &Pull<'_>,
        hash: gix::hash::Kind,
        guard: &Arc<Guard>,
    ) -> Result<ObjectId, Error> {
        let next = self.folder.join(NEXT);
        let fresh = init(&next, hash)?;
        let commit = match pull.run(&fresh, guard) {
            Ok(commit) => commit,
            Err(error) => {
                remove(&next)?;
                return Err(final_error(error));
            }
        };
        // Its files are closed before its folder is renamed.
        drop(fresh);
        self.swap()?;
        Ok(commit)
    }

    /// Replaces the repository, while nobody reads it.
    fn replaced<T>(&self, work: impl FnOnce() -> T) -> T {
        let _lock = self
            .replacing
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        work()
    }

    /// Replaces this repository by the next one. After a kill between the two renames there is
    /// none, and the next update clones.
    fn swap(&self) -> Result<(), Error> {
        let (path, last) = (self.path(), self.folder.join(LAST));
        let next = self.folder.join(NEXT);
        self.replaced(|| {
            match fs::rename(&path, &last) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unwritable(&path, &error));
                }
                _ => {}
            }
            fs::rename(&next, &path).map_err(|error| unwritable(&next, &error))
        })?;
        remove(&last)
    }

    /// Finds folders that hold a SKILL.md at a commit, below a folder (empty: all), the shortest
    /// path first. A skill inside a skill is one of its own as well.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no such folder, [`Error::TooLarge`] beyond the limits of
    /// entries or skills, [`Error::Damaged`], [`Error::Stopped`].
    pub fn find(
        &self,
        commit: &str,
        below: &str,
        (max_entries, max_skills): (usize, usize),
        stop: &AtomicBool,
    ) -> Result<CommitSkills, Error> {
        let _lock = self
            .replacing
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        self.doubting(open(&self.path()).and_then(|here| {
            let commit = here.find_commit(id(commit)?).map_err(tree::damaged)?;
            let root = commit.tree_id().map_err(tree::damaged)?.detach();
            tree::find(&here, root, below, (max_entries, max_skills), stop)
        }))
    }

    /// Reads the files of a skill, by the tree that [`Repository::find`] gave.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Stopped`].
    pub fn read(&self, tree: &str, stop: &AtomicBool) -> Result<SkillFiles, Error> {
        let _lock = self
            .replacing
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        self.doubting(open(&self.path()).and_then(|here| read::read(&here, id(tree)?, stop)))
    }
}

fn id(hex: &str) -> Result<ObjectId, Error> {
    ObjectId::from_hex(hex.as_bytes())
        .map_err(|_| Error::Invalid(format!("`{}` is no object", model::shown(hex, 80))))
}

fn is_commit(id: ObjectId, hex: &str) -> bool {
    ObjectId::from_hex(hex.as_bytes()).is_ok_and(|other| other == id)
}

pub(super) fn watched<T>(guard: &Guard, repository: &Path, work: impl FnOnce() -> T) -> T {
    guard.watch(&packs_in(repository), work)
}
