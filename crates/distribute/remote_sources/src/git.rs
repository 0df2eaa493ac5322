//! Git repositories as places with skills.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::git::{CommitSkills, Earlier, Remote, RemoteOptions, Repository, Tip, Update};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{Error, Fetch, Files, Item, Limits, Listing, Look, Work, run_blocking};

/// Characters of a commit in a revision.
const SHORT_COMMIT_CHARS: usize = 12;
/// Folders that a place works in; there is one, but in tests.
const MAX_FOLDERS: usize = 16;

/// A Git repository, fetched bare and shallow. Its skills are the folders that hold a
/// SKILL.md; the fingerprint of one is the id of its tree.
///
/// Dropping a future ends the conversation with the server within a moment.
#[derive(Debug)]
pub struct Git {
    remote: Arc<Remote>,
    folder: String,
    /// By the folder that a caller names. Shared by all callers, since its lock keeps readers from
    /// a repository that is replaced.
    repositories: Mutex<HashMap<PathBuf, Arc<Repository>>>,
}

/// The state of a look.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    commit: String,
    committed_at: i64,
    reference: String,
}

fn failed(error: ::git::Error) -> Error {
    match error {
        ::git::Error::Invalid(words) => Error::Invalid(words),
        ::git::Error::Refused(words) => Error::Refused(words),
        ::git::Error::Address { address, what } => Error::Address { address, what },
        ::git::Error::TooLarge(words) => Error::TooLarge(words),
        ::git::Error::RateLimited { after } => Error::RateLimited { after, limit: None },
        ::git::Error::Unavailable(words) => Error::Unavailable(words),
        error @ ::git::Error::Damaged(_) => Error::Unavailable(error.to_string()),
        ::git::Error::Stopped => Error::Stopped,
    }
}

/// Stops the work when its future is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs blocking work, which stops when this is dropped.
async fn blocking<T: Send + 'static>(
    work: &Work,
    run: impl FnOnce(Arc<AtomicBool>) -> Result<T, ::git::Error> + Send + 'static,
) -> Result<T, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let _stops = StopOnDrop(Arc::clone(&stop));
    let task = run_blocking(move || run(stop).map_err(failed));
    let done = work.stop.run_until_cancelled(task).await;
    done.unwrap_or(Err(Error::Stopped))
}

impl Git {
    /// Checks URL, ref and folder; nothing is called. Only skills below the folder are listed, by
    /// their paths in the repository; empty: all of them.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn new(options: RemoteOptions, folder: &str) -> Result<Self, Error> {
        let folder = folder.trim_matches('/');
        if !folder.is_empty() && folder.parse::<model::FilePath>().is_err() {
            return Err(Error::Invalid(format!(
                "`{}` is no folder of a repository",
                model::shown(folder, 200)
            )));
        }
        Ok(Self {
            remote: Arc::new(Remote::new(options).map_err(failed)?),
            folder: folder.to_owned(),
            repositories: Mutex::default(),
        })
    }

    /// Its URL, for people: without a secret.
    #[must_use]
    pub fn url(&self) -> String {
        self.remote.url()
    }

    fn repository(&self, folder: &Path) -> Arc<Repository> {
        let known = self.repositories.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_FOLDERS && !known.contains_key(folder) {
            known.clear();
        }
        let new = || Arc::new(Repository::new(folder));
        Arc::clone(known.entry(folder.to_owned()).or_insert_with(new))
    }
}

/// The skills of the tip; none: nothing changed.
fn update(
    repository: &Repository,
    remote: &Remote,
    folder: &str,
    earlier: Option<&Earlier>,
    limits: &Limits,
    stop: &Arc<AtomicBool>,
) -> Result<Option<(Update, CommitSkills)>, ::git::Error> {
    let bounds = ::git::Limits {
        bytes: limits.bytes,
        time: limits.time,
        silence: limits.silence,
        redirects: limits.redirects,
        ..::git::Limits::default()
    };
    let max = (limits.files, limits.skills);
    let mut is_anew = false;
    loop {
        let update = repository.update(remote, earlier, &bounds, Arc::clone(stop))?;
        if update.is_unchanged && !is_anew {
            return Ok(None);
        }
        match repository.find(&update.tip.commit, folder, max, stop) {
            Ok(found) => return Ok(Some((update, found))),
            // The next update clones. Once: a server that sends broken objects does so again.
            Err(::git::Error::Damaged(_)) if !is_anew => is_anew = true,
            Err(error) => return Err(error),
        }
    }
}

/// Why the tip does not follow from the mark.
fn break_in_history(mark: &Mark, tip: &Tip, descends: bool) -> Option<String> {
    let name = model::shown(tip.name(), 100);
    // A branch and a tag of one name: whoever can push made the ref mean something else.
    let was_tag = mark.reference.starts_with("refs/tags/");
    if was_tag != tip.is_tag() {
        let (was, is) = if tip.is_tag() {
            ("branch", "tag")
        } else {
            ("tag", "branch")
        };
        return Some(format!("{name} was a {was}, and is a {is} now"));
    }
    if mark.commit == tip.commit {
        return None;
    }
    // Tags stand for releases, and should not move, be it to a descendant.
    if tip.is_tag() {
        return Some(format!("the tag {name} moved"));
    }
    (!descends).then(|| format!("the history of {name} was rewritten"))
}

fn listing(mark: Option<&Mark>, update: &Update, found: CommitSkills) -> Result<Listing, Error> {
    let Update { tip, descends, .. } = update;
    let next = Mark {
        commit: tip.commit.clone(),
        committed_at: tip.committed_at,
        reference: tip.reference.clone(),
    };
    let items = found.skills.into_iter().map(|skill| Item {
        path: skill.path,
        fingerprint: skill.tree.clone(),
        handle: skill.tree,
        ..Item::default()
    });
    Ok(Listing {
        mark: serde_json::to_string(&next)
            .map_err(|error| Error::Invalid(format!("the ref has no mark: {error}")))?,
        revision: tip.commit.chars().take(SHORT_COMMIT_CHARS).collect(),
        items: items.collect(),
        skipped: found.skipped,
        break_in_history: mark.and_then(|mark| break_in_history(mark, tip, *descends)),
        rate_limit: None,
    })
}

impl Fetch for Git {
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        work: &'a Work,
    ) -> BoxFuture<'a, Result<Look, Error>> {
        async move {
            // A mark that cannot be read is of another kind of place: the source was changed.
            let mark = mark.and_then(|mark| serde_json::from_str::<Mark>(mark).ok());
            let earlier = mark.as_ref().map(|mark| Earlier {
                commit: mark.commit.clone(),
                committed_at: mark.committed_at,
            });
            let repository = self.repository(&work.folder);
            let remote = Arc::clone(&self.remote);
            let (folder, limits) = (self.folder.clone(), work.limits.clone());
            let changed = blocking(work, move |stop| {
                let earlier = earlier.as_ref();
                update(&repository, &remote, &folder, earlier, &limits, &stop)
            });
            Ok(match changed.await? {
                None => Look::Unchanged { rate_limit: None },
                Some((update, found)) => Look::Listing(listing(mark.as_ref(), &update, found)?),
            })
        }
        .boxed()
    }

    fn read<'a>(&'a self, item: &'a Item, work: &'a Work) -> BoxFuture<'a, Result<Files, Error>> {
        async move {
            let repository = self.repository(&work.folder);
            let tree = item.handle.clone();
            let read = blocking(work, move |stop| repository.read(&tree, &stop)).await?;
            Ok(Files {
                files: read.files,
                problems: read.problems,
                version: None,
            })
        }
        .boxed()
    }
}
