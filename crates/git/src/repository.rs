//! The folder on this machine that keeps what was fetched.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use gix::ObjectId;
use gix::remote::fetch::Shallow;

use super::conversation::{Answer, Ask, RemoteRef, all_words, ask};
use super::guard::Guard;
use super::{Error, Found, Limits, Remote, SkillFiles, tree};

/// Bytes that one object may have: what states more is refused before it is inflated. Gix
/// bounds by it what it keeps of all objects of a pack as well.
pub(super) const MAX_OBJECT: u64 = 64 << 20;
/// Each fetch adds a pack and nothing packs them anew; with more than these the repository is
/// cloned again.
const MAX_PACKS: usize = 50;
/// Commits that are looked at to show that one is an ancestor of another.
const MAX_ANCESTORS: usize = 200_000;
/// Clocks differ: commits that are so much older than their parents are still found.
const CLOCK_SECONDS: i64 = 24 * 60 * 60;
/// What the remote's ref is called here.
const TIP: &str = "refs/repertoire/tip";
/// The repository, inside the folder that the caller gives.
const REPOSITORY: &str = "repository";
/// The next one, while it is cloned.
const NEXT: &str = "repository.next";
/// The one before, while it is deleted.
const LAST: &str = "repository.last";

/// Where an update stood, for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// The commit.
    pub commit: String,
    /// When it was committed, in seconds since 1970.
    pub committed_at: i64,
}

/// What the remote's ref points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tip {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// When it was committed, in seconds since 1970, by the clock of who did.
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

    /// The ref as people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = &self.reference;
        name.strip_prefix("refs/heads/")
            .or_else(|| name.strip_prefix("refs/tags/"))
            .unwrap_or(name)
    }
}

/// What came of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// What the ref points to now; it is in the repository.
    pub tip: Tip,
    /// It is the earlier commit, and was there already.
    pub is_unchanged: bool,
    /// The earlier commit is the tip, or an ancestor that could be shown within the limits.
    /// True where there is no earlier one.
    pub descends: bool,
}

/// What was fetched of one remote. Several may read at once, also while it is updated.
#[derive(Debug)]
pub struct Repository {
    folder: PathBuf,
    /// Held to write while the repository is replaced.
    place: RwLock<()>,
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
    gix::open::Options::isolated()
        .open_path_as_is(true)
        .config_overrides([
            limit.as_str(),
            "core.logAllRefUpdates=false",
            "core.hooksPath=/dev/null",
            "gitoxide.userAgent=git/repertoire",
        ])
}

fn damaged(error: &gix::Error) -> Error {
    Error::Damaged(model::shown(&all_words(error).replace('\n', " "), 200))
}

fn packs_in(repository: &Path) -> PathBuf {
    repository.join("objects").join("pack")
}

/// Files of the folder for packs: the packs, and what is none of them.
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
            let error = all_words(&error);
            Error::Unavailable(format!("`{}` cannot be made: {error}", path.display()))
        })?;
    // By the options that hold for all others.
    open(path)
}

fn open(path: &Path) -> Result<gix::Repository, Error> {
    let opened = gix::open_opts(path, options());
    opened.map_err(|error| damaged(&error))
}

/// The commit that was fetched last, where all that points to it is whole.
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
        return Err(Error::Refused(match remote.reference.as_str() {
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
    /// Keeps what is fetched below a folder, which exists.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            place: RwLock::new(()),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(REPOSITORY)
    }

    /// Throws away what was fetched.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn discard(&self) -> Result<(), Error> {
        let _place = self.place.write().unwrap_or_else(PoisonError::into_inner);
        for name in [REPOSITORY, NEXT, LAST] {
            remove(&self.folder.join(name))?;
        }
        Ok(())
    }

    /// Asks the remote where its ref is, and fetches what is not here. With an earlier commit
    /// it finds out whether the new one follows from it, for which more is fetched, as far as
    /// that commit's day.
    ///
    /// # Errors
    /// Any but [`Error::Damaged`]: what is broken is cloned anew.
    pub fn update(
        &self,
        remote: &Remote,
        earlier: Option<&Earlier>,
        limits: &Limits,
        stop: Arc<AtomicBool>,
    ) -> Result<Update, Error> {
        let guard = Arc::new(Guard::new(limits.clone(), stop));
        guard.check()?;
        // What another process left behind when it ended.
        remove(&self.folder.join(NEXT))?;
        remove(&self.folder.join(LAST))?;
        let path = self.path();
        let (packs, others) = pack_files(&path);
        for other in others {
            fs::remove_file(&other).map_err(|error| unwritable(&other, &error))?;
        }
        let mut here = match open(&path) {
            Ok(here) => here,
            Err(_) => self.replaced(|| init(&path, gix::hash::Kind::Sha1))?,
        };
        let candidates = remote.candidates();
        let question = Ask::Refs(candidates.clone());
        let answer = watched(&guard, &path, || ask(&here, remote, &guard, question))?;
        let found = chosen(&answer, &candidates, remote)?;
        let Some(target) = found.target else {
            return Err(Error::Refused(
                "the repository has no commit yet".to_owned(),
            ));
        };
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
        let commit = here.find_commit(tip).map_err(|error| damaged(&error))?;
        let time = commit.time().map_err(|error| damaged(&error))?;
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

    /// Fetches into a repository of its own, which then takes the place of this one.
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
                return Err(error);
            }
        };
        drop(fresh);
        self.swap()?;
        Ok(commit)
    }

    /// Does something to the repository that nobody may read meanwhile.
    fn replaced<T>(&self, work: impl FnOnce() -> T) -> T {
        let _place = self.place.write().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    /// Puts the next repository in the place of this one. Who is stopped in between finds
    /// none, and clones.
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

    /// Folders that hold a SKILL.md at a commit, below a folder (empty: all), the shortest
    /// path first. A skill inside a skill is one of its own as well.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no such folder, [`Error::TooLarge`] beyond so many
    /// entries or skills, [`Error::Damaged`], [`Error::Stopped`].
    pub fn find(
        &self,
        commit: &str,
        below: &str,
        (max_entries, max_skills): (usize, usize),
        stop: &AtomicBool,
    ) -> Result<Found, Error> {
        let _place = self.place.read().unwrap_or_else(PoisonError::into_inner);
        let here = open(&self.path())?;
        let commit = here
            .find_commit(id(commit)?)
            .map_err(|error| damaged(&error))?;
        let root = commit.tree_id().map_err(|error| damaged(&error))?.detach();
        tree::find(&here, root, below, (max_entries, max_skills), stop)
    }

    /// The files of a skill, by the tree that [`Repository::find`] gave.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Stopped`].
    pub fn read(&self, tree: &str, stop: &AtomicBool) -> Result<SkillFiles, Error> {
        let _place = self.place.read().unwrap_or_else(PoisonError::into_inner);
        let here = open(&self.path())?;
        tree::read(&here, id(tree)?, stop)
    }
}

fn id(hex: &str) -> Result<ObjectId, Error> {
    ObjectId::from_hex(hex.as_bytes())
        .map_err(|_| Error::Invalid(format!("`{}` is no object", model::shown(hex, 80))))
}

fn is_commit(id: ObjectId, hex: &str) -> bool {
    ObjectId::from_hex(hex.as_bytes()).is_ok_and(|other| other == id)
}

fn watched<T>(guard: &Guard, repository: &Path, work: impl FnOnce() -> T) -> T {
    guard.watch(&packs_in(repository), work)
}

/// Brings a ref into a repository.
struct Pull<'a> {
    remote: &'a Remote,
    from: &'a str,
    earlier: Option<&'a Earlier>,
}

impl Pull<'_> {
    /// Fetches into a repository that has something; none: that cannot be, and what is here
    /// may be why.
    fn add(&self, into: &gix::Repository, guard: &Arc<Guard>) -> Result<Option<ObjectId>, Error> {
        match self.run(into, guard) {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::Unavailable(why) | Error::Damaged(why)) => {
                guard.check()?;
                tracing::debug!(why, "the repository is cloned anew");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The commit that is fetched.
    fn run(&self, into: &gix::Repository, guard: &Arc<Guard>) -> Result<ObjectId, Error> {
        let shows_history = !self.from.starts_with("refs/tags/");
        if let Some(earlier) = self.earlier.filter(|_| shows_history) {
            let seconds = earlier.committed_at.saturating_sub(CLOCK_SECONDS).max(1);
            let cutoff = gix::date::Time::new(seconds, 0);
            // The history may be what is too much; the tip alone is fetched then.
            guard.spend(1, 2);
            match self.fetch(into, guard, Shallow::Since { cutoff }) {
                Ok(commit) => {
                    guard.spend(1, 1);
                    return Ok(commit);
                }
                Err(
                    error @ (Error::Stopped | Error::Address { .. } | Error::RateLimited { .. }),
                ) => {
                    return Err(error);
                }
                Err(error) => {
                    guard.spend(1, 1);
                    guard.check()?;
                    tracing::debug!(%error, "the history cannot be fetched, only the tip");
                }
            }
        }
        self.fetch(into, guard, Shallow::DepthAtRemote(NonZeroU32::MIN))
    }

    fn fetch(
        &self,
        into: &gix::Repository,
        guard: &Arc<Guard>,
        shallow: Shallow,
    ) -> Result<ObjectId, Error> {
        let question = Ask::Pack {
            from: self.from.to_owned(),
            to: TIP,
            shallow,
        };
        watched(guard, into.path(), || {
            ask(into, self.remote, guard, question)
        })?;
        let missing =
            || Error::Unavailable("the server sent less than it was asked for".to_owned());
        // Opened anew, since what is cached knows nothing of the pack.
        let into = open(into.path())?;
        let mut tip = into.find_reference(TIP).map_err(|_| missing())?;
        let commit = tip.peel_to_id().map_err(|_| missing())?.detach();
        let object = into.find_object(commit).map_err(|_| missing())?;
        if object.kind != gix::objs::Kind::Commit {
            let kind = object.kind;
            return Err(Error::Invalid(format!(
                "the ref points to a {kind}, not to a commit"
            )));
        }
        Ok(commit)
    }
}

/// Whether the old commit is an ancestor of the tip, as far as can be seen from here.
fn descends(
    repository: &gix::Repository,
    tip: ObjectId,
    old: &str,
    guard: &Guard,
) -> Result<bool, Error> {
    let Ok(old) = ObjectId::from_hex(old.as_bytes()) else {
        return Ok(false);
    };
    let mut seen = HashSet::from([tip]);
    let mut next = VecDeque::from([tip]);
    while let Some(commit) = next.pop_front() {
        guard.check()?;
        // Behind the boundary there is nothing here.
        let Ok(Some(object)) = repository.try_find_object(commit) else {
            continue;
        };
        let Ok(commit) = object.try_into_commit() else {
            continue;
        };
        for parent in commit.parent_ids().map(gix::Id::detach) {
            if parent == old {
                return Ok(true);
            }
            if seen.len() < MAX_ANCESTORS && seen.insert(parent) {
                next.push_back(parent);
            }
        }
    }
    Ok(false)
}
