//! Fetching a ref, with as much of its history as shows that it follows the earlier commit.

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use gix::ObjectId;
use gix::remote::fetch::Shallow;

use super::conversation::{Ask, ask};
use super::guard::Guard;
use super::repository::{TIP, open, watched};
use super::{Earlier, Error, Remote};

/// How much older than its parent a commit may claim to be: clocks differ.
const CLOCK_SECONDS: i64 = 24 * 60 * 60;
/// Commits that are visited to show that one is an ancestor of another.
const MAX_ANCESTORS: usize = 200_000;

pub(super) struct Pull<'a> {
    pub(super) remote: &'a Remote,
    pub(super) from: &'a str,
    pub(super) earlier: Option<&'a Earlier>,
}

impl Pull<'_> {
    /// Fetches into a repository that has commits; none: that fails, and the repository may be
    /// why.
    pub(super) fn add(
        &self,
        into: &gix::Repository,
        guard: &Arc<Guard>,
    ) -> Result<Option<ObjectId>, Error> {
        match self.run(into, guard) {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::Damaged(why)) => {
                guard.check()?;
                tracing::debug!(why, "the repository is cloned again");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The commit that is fetched.
    pub(super) fn run(
        &self,
        into: &gix::Repository,
        guard: &Arc<Guard>,
    ) -> Result<ObjectId, Error> {
        // A tag that moved is a break in history wherever it moved to.
        let shows_history = !self.from.starts_with("refs/tags/");
        if let Some(earlier) = self.earlier.filter(|_| shows_history) {
            let seconds = earlier.committed_at.saturating_sub(CLOCK_SECONDS).max(1);
            let cutoff = gix::date::Time::new(seconds, 0);
            // The history may be too large, or no server can cut it there. Half of the bytes are
            // left to fetch the tip alone then.
            guard.spend(1, 2);
            match self.fetch(into, guard, Shallow::Since { cutoff }) {
                Ok(commit) => {
                    guard.spend(1, 1);
                    return Ok(commit);
                }
                Err(error @ (Error::TooLarge(_) | Error::Damaged(_) | Error::Refused(_))) => {
                    guard.spend(1, 1);
                    guard.check()?;
                    tracing::debug!(%error, "the history cannot be fetched, only the tip");
                }
                Err(error) => return Err(error),
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
        let missing = || Error::Damaged("the server sent less than it was asked for".to_owned());
        // Opened anew, since the handle has a list of packs without the new one.
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

/// Whether the old commit is an ancestor of the tip, as far as the history was fetched.
pub(super) fn descends(
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
        // Beyond the shallow boundary nothing was fetched.
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
