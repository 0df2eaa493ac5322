//! Watches the log: every event, without gaps and without repeats.
//!
//! A watcher reads the log from its own position, so a slow one costs nothing and misses
//! nothing, as long as the log reaches back to it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use super::{Error, Registry, Sees};
use model::{Event, EventKind, SkillId, SkillKey, open_token, seal_token};
use store::{LogPosition, Store};

const RESUME: &str = "resume";
/// Events read from the log at once.
const EVENTS_PER_PAGE: usize = 256;
/// Events that a filtered watcher skips before it gets a newer token.
const MAX_SKIPPED_EVENTS: usize = 256;

/// A filter for events.
#[derive(Debug, Clone, Default)]
pub struct WatchFilter {
    /// Of these skills; empty: of all.
    pub skills: HashSet<SkillKey>,
    /// Of these kinds; empty: of all.
    pub kinds: Vec<EventKind>,
    /// Of visible skills; none: of all. Its answers may change from one event to the next.
    pub sees: Option<Arc<dyn Sees>>,
}

impl WatchFilter {
    /// Adds a skill.
    #[must_use]
    pub fn skill(mut self, id: &SkillId) -> Self {
        self.skills.insert(id.key());
        self
    }

    /// Returns whether an event passes.
    #[must_use]
    pub fn wants(&self, event: &Event) -> bool {
        (self.skills.is_empty() || self.skills.contains(&event.skill_id.key()))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.sees.as_ref()).is_none_or(|sees| sees.sees(&event.skill_id))
    }
}

/// A step of a watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An event that passes the filter, with its position in the log.
    Event(u64, Event),
    /// It skipped many events: its token is a newer one.
    Moved,
}

/// A watcher of the log.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    filter: WatchFilter,
    position: watch::Receiver<LogPosition>,
    /// The position up to which everything was read.
    at: u64,
    read: VecDeque<(u64, Event)>,
    /// The number of events skipped since the last step.
    passed: usize,
}

impl Registry {
    /// Returns a token for the end of the log as it is now. Take it before you read the state
    /// that the watch is to continue.
    #[must_use]
    pub fn resume_token(&self) -> String {
        let end = self.inner.store.position().borrow().end;
        token(&self.inner.store, end)
    }

    /// Watches from a token on; from now on where it is empty.
    ///
    /// # Errors
    /// The token is no token, or the log no longer reaches back to it.
    pub fn watch(&self, resume: &str, filter: WatchFilter) -> Result<Watch, Error> {
        let store = self.inner.store.clone();
        let position = store.position();
        let LogPosition { start, end, .. } = *position.borrow();
        let at = match resume {
            "" => end,
            resume => {
                let place = open_token(RESUME, "", resume).ok_or(Error::ResumeToken)?;
                let (log, at) = place.split_once('/').ok_or(Error::ResumeToken)?;
                let at: u64 = at.parse().map_err(|_| Error::ResumeToken)?;
                // Another log, one that has dropped the position, or one restored from before
                // the token: the events since are not known.
                if log != store.log_id() || at < start || at > end {
                    return Err(Error::ResumeTokenExpired);
                }
                at
            }
        };
        Ok(Watch {
            store,
            filter,
            position,
            at,
            read: VecDeque::new(),
            passed: 0,
        })
    }
}

fn token(store: &Store, at: u64) -> String {
    seal_token(RESUME, "", &format!("{}/{at}", store.log_id()))
}

impl Watch {
    /// Returns a token to go on after what was handed out so far.
    #[must_use]
    pub fn resume_token(&self) -> String {
        token(&self.store, self.at)
    }

    /// Returns the position in the log up to which everything was handed out or skipped.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Waits for the next event; returns it with its position in the log.
    ///
    /// Cancelling loses nothing.
    ///
    /// # Errors
    /// As [`Watch::step`].
    pub async fn next(&mut self) -> Result<(u64, Event), Error> {
        loop {
            if let Step::Event(sequence, event) = self.step().await? {
                return Ok((sequence, event));
            }
        }
    }

    /// Waits for the next event, or until many were skipped.
    ///
    /// Cancelling loses nothing.
    ///
    /// # Errors
    /// The watcher is so slow that the log left it behind; a record is damaged;
    /// the store was closed.
    pub async fn step(&mut self) -> Result<Step, Error> {
        loop {
            while let Some((sequence, event)) = self.read.pop_front() {
                // Moved by skipped events too: a token that stayed behind would fall out of the
                // log.
                self.at = sequence;
                if self.filter.wants(&event) {
                    self.passed = 0;
                    return Ok(Step::Event(sequence, event));
                }
                self.passed += 1;
                if self.passed == MAX_SKIPPED_EVENTS {
                    self.passed = 0;
                    return Ok(Step::Moved);
                }
            }
            // Marked as seen before the log is read: an event that comes between wakes the
            // wait below at once.
            if self.at < self.position.borrow_and_update().end {
                let events = self.store.events_after(self.at, EVENTS_PER_PAGE)?;
                self.read = events.ok_or(Error::ResumeTokenExpired)?.into();
                if !self.read.is_empty() {
                    continue;
                }
            }
            if self.position.changed().await.is_err() {
                return Err(Error::Commit(store::CommitError::Closed));
            }
        }
    }
}
