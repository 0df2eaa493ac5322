//! Git repositories as places with skills.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::git::{CommitSkills, Credential, Earlier, Remote, RemoteOptions, Repository, Tip};
use egress::Egress;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{Error, Fetch, Files, Item, Limits, Listing, Look, Work, run_blocking};

/// Characters of a commit that people read.
const SHORT_COMMIT_CHARS: usize = 12;
/// Folders that a place is asked to work in; there is one but in tests.
const MAX_FOLDERS: usize = 16;

/// What a [`Git`] is made of.
#[derive(Debug, Clone)]
pub struct GitOptions {
    /// `https://…`, `http://…`, `ssh://…`, `user@host:path`, or `file://…`.
    pub url: String,
    /// A branch, a tag, or a whole ref. Empty: the branch that the repository shows first.
    pub reference: String,
    /// Only skills below this folder are listed; their paths are those in the repository.
    /// Empty: all of them.
    pub folder: String,
    /// Who asks, over https.
    pub credential: Option<Credential>,
    /// The file of a private key for ssh, without a passphrase. None: what ssh finds.
    pub ssh_key: Option<PathBuf>,
    /// The file of hosts that ssh knows. None: those of the user and of the machine.
    pub known_hosts: Option<PathBuf>,
    /// `file://` may be fetched.
    pub permits_files: bool,
    /// Which addresses may be called.
    pub egress: Egress,
}

/// A Git repository, fetched bare and shallow. Its skills are the folders that hold a
/// SKILL.md; the fingerprint of one is the id of its tree.
///
/// Dropping a future ends the conversation with the server within a moment.
#[derive(Debug)]
pub struct Git {
    remote: Arc<Remote>,
    folder: String,
    /// By the folder that a caller names. One for all callers, since it keeps readers and
    /// what is replaced apart.
    repositories: Mutex<HashMap<PathBuf, Arc<Repository>>>,
}

/// Where a look stood.
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

/// Ends the work when nobody waits for it any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does the work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: &Work,
    does: impl FnOnce(Arc<AtomicBool>) -> Result<T, ::git::Error> + Send + 'static,
) -> Result<T, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let _stops = StopOnDrop(Arc::clone(&stop));
    let task = run_blocking(move || does(stop).map_err(failed));
    let done = work.stop.run_until_cancelled(task).await;
    done.unwrap_or(Err(Error::Stopped))
}

impl Git {
    /// Checks URL, ref and folder; nothing is called.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn new(options: GitOptions) -> Result<Self, Error> {
        let folder = options.folder.trim_matches('/');
        if !folder.is_empty() && folder.parse::<model::FilePath>().is_err() {
            return Err(Error::Invalid(format!(
                "`{}` is no folder of a repository",
                model::shown(folder, 200)
            )));
        }
        let remote = Remote::new(RemoteOptions {
            url: options.url,
            reference: options.reference,
            credential: options.credential,
            ssh_key: options.ssh_key,
            known_hosts: options.known_hosts,
            permits_files: options.permits_files,
            egress: options.egress,
        })
        .map_err(failed)?;
        Ok(Self {
            remote: Arc::new(remote),
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

fn bounds(limits: &Limits) -> ::git::Limits {
    ::git::Limits {
        bytes: limits.bytes,
        time: limits.time,
        silence: limits.silence,
        redirects: limits.redirects,
        ..::git::Limits::default()
    }
}

/// What is now, or that nothing changed.
enum RemoteState {
    Unchanged,
    Changed {
        tip: Tip,
        found: CommitSkills,
        descends: bool,
    },
}

fn see(
    repository: &Repository,
    remote: &Remote,
    folder: &str,
    earlier: Option<&Earlier>,
    limits: &Limits,
    stop: &Arc<AtomicBool>,
) -> Result<RemoteState, ::git::Error> {
    let bounds = bounds(limits);
    let max = (limits.files, limits.skills);
    let mut is_anew = false;
    loop {
        let update = repository.update(remote, earlier, &bounds, Arc::clone(stop))?;
        if update.is_unchanged && !is_anew {
            return Ok(RemoteState::Unchanged);
        }
        match repository.find(&update.tip.commit, folder, max, stop) {
            Ok(found) => {
                return Ok(RemoteState::Changed {
                    tip: update.tip,
                    found,
                    descends: update.descends,
                });
            }
            // Once: a server that sends what is broken does so again.
            Err(::git::Error::Damaged(_)) if !is_anew => is_anew = true,
            Err(error) => return Err(error),
        }
    }
}

/// Why the tip does not follow from the mark.
fn break_in_history(mark: &Mark, tip: &Tip, descends: bool) -> Option<String> {
    let name = model::shown(tip.name(), 100);
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
    if tip.is_tag() {
        return Some(format!("the tag {name} moved"));
    }
    (!descends).then(|| format!("the history of {name} was rewritten"))
}

fn listing(
    mark: Option<&Mark>,
    tip: &Tip,
    found: CommitSkills,
    descends: bool,
) -> Result<Listing, Error> {
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
        break_in_history: mark.and_then(|mark| break_in_history(mark, tip, descends)),
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
            // A mark that cannot be read is one of another kind of place: all is new.
            let mark = mark.and_then(|mark| serde_json::from_str::<Mark>(mark).ok());
            let earlier = mark.as_ref().map(|mark| Earlier {
                commit: mark.commit.clone(),
                committed_at: mark.committed_at,
            });
            let repository = self.repository(&work.folder);
            let remote = Arc::clone(&self.remote);
            let (folder, limits) = (self.folder.clone(), work.limits.clone());
            let seen = blocking(work, move |stop| {
                let earlier = earlier.as_ref();
                see(&repository, &remote, &folder, earlier, &limits, &stop)
            })
            .await?;
            Ok(match seen {
                RemoteState::Unchanged => Look::Unchanged { rate_limit: None },
                RemoteState::Changed {
                    tip,
                    found,
                    descends,
                } => Look::Listing(listing(mark.as_ref(), &tip, found, descends)?),
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
