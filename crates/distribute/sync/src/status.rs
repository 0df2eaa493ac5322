//! The syncs that run now, and those that ended.

use tokio::sync::watch;

use super::items;
use super::record::{ITEMS, MAX_HISTORY, SYNCS, SyncRecord};
use super::{Engine, Error, Kind, Progress, Source};
use model::SkillKey;
use sources::RepositoryFacts;

/// Estimate for a source that was never synced: a guess, to be replaced by its first sync.
const UNKNOWN_SOURCE_MILLIS: u64 = 60_000;
/// Estimate for each skill of a source that was never read in full.
const MILLIS_PER_SKILL: u64 = 20;

/// The syncs that run now, and those that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The sync that is running; of several, the one that began last.
    pub current: Option<Progress>,
    /// The requested sync, or the one that ended last.
    pub last: Option<SyncRecord>,
    /// Those that ended, the latest first.
    pub history: Vec<SyncRecord>,
}

impl Engine {
    /// The syncs that run now, and those that ended. With an id, that sync alone.
    ///
    /// # Errors
    /// There is no such sync; a record is damaged.
    pub fn status(&self, id: Option<&str>) -> Result<Status, Error> {
        let mut current: Vec<Progress> = {
            let running = self.running();
            running
                .syncs
                .values()
                .map(|sync| sync.borrow().clone())
                .collect()
        };
        current.retain(|progress| progress.ended.is_none());
        current.sort_by_key(|progress| progress.started_at);
        let limit = usize::try_from(MAX_HISTORY).unwrap_or(usize::MAX);
        let history = self.0.store.before(&SYNCS, b"", None, limit)?;
        let Some(id) = id else {
            return Ok(Status {
                current: current.pop(),
                last: history.first().cloned(),
                history,
            });
        };
        let current = current.into_iter().find(|progress| progress.id == id);
        let last = history.iter().find(|sync| sync.id == id).cloned();
        if current.is_none() && last.is_none() {
            return Err(Error::SyncNotFound {
                id: model::shown(id, 80),
                max: MAX_HISTORY,
            });
        }
        Ok(Status {
            current,
            last,
            history,
        })
    }

    /// Follows a sync: the one of an id, or the one that began last. None: no sync is running,
    /// or the one of the id has ended, and [`Engine::status`] has its record.
    ///
    /// # Errors
    /// There is no such sync.
    pub fn follow(&self, id: Option<&str>) -> Result<Option<watch::Receiver<Progress>>, Error> {
        let running = self.running();
        let found = match id {
            Some(id) => running.syncs.get(id),
            None => running
                .syncs
                .values()
                .max_by_key(|sync| sync.borrow().started_at),
        };
        let found = found.cloned();
        drop(running);
        if let (None, Some(id)) = (&found, id) {
            // For its error alone, where no such sync is known.
            self.status(Some(id))?;
        }
        Ok(found)
    }

    /// The sync that begins next, from now on. Cancelling loses nothing.
    pub fn next(&self) -> impl Future<Output = Option<watch::Receiver<Progress>>> + use<> {
        // Subscribed here and not in the future: a sync that begins before the first poll counts.
        let mut begun = self.0.begun.subscribe();
        async move {
            begun.changed().await.ok()?;
            begun.borrow().clone()
        }
    }

    /// The facts about the repository that a skill comes from; none: it comes from none, or
    /// they are not known.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn facts(&self, skill: &SkillKey) -> Result<Option<RepositoryFacts>, Error> {
        let Some(claim) = items::claim(&self.0.store, skill)? else {
            return Ok(None);
        };
        let key = (claim.value.source, claim.value.path);
        let item = self.0.store.get(&ITEMS, &key)?;
        Ok(item.and_then(|item| item.value.item.facts))
    }

    /// About how long a sync of everything takes, in milliseconds.
    ///
    /// # Errors
    /// There is no such source; a record is damaged.
    pub fn estimate(&self, sources: &[String]) -> Result<u64, Error> {
        let sources = self.requested(sources)?;
        let estimate = |source: &Source| {
            let state = self.state(&source.id)?;
            let counted = u64::from(state.skills) * MILLIS_PER_SKILL;
            let guess = if state.last_success.is_some() {
                counted
            } else {
                UNKNOWN_SOURCE_MILLIS
            };
            Ok(state.full_ms.unwrap_or(guess))
        };
        sources.iter().map(estimate).sum()
    }

    /// Refuses while one of the sources is being synced.
    ///
    /// # Errors
    /// One is; or there is no such source.
    pub fn refuse_running(&self, sources: &[String]) -> Result<(), Error> {
        let sources = self.requested(sources)?;
        // By the rule of a sync that starts, and given back at once.
        drop(self.reserve(&sources, |_| String::new())?);
        Ok(())
    }
}

impl Kind {
    /// Its name, as in the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Incremental => "incremental",
            Self::Full => "full",
        }
    }
}
