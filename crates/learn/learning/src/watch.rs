//! The activities of a learner as they happen: each once, in order.

use std::collections::VecDeque;

use crate::record::{ACTIVITIES, Activity, LEARNERS};
use crate::{Error, Learner, Learning};
use store::{Revision, TableId};

/// Activities that are read at once.
const ACTIVITIES_PER_PAGE: u64 = 64;

/// A watcher of a learner.
#[derive(Debug)]
pub struct Watch {
    learning: Learning,
    learner: Learner,
    /// Changes when the history of any learner grows.
    grown: tokio::sync::watch::Receiver<Revision>,
    read: VecDeque<Activity>,
    at: u64,
}

impl Learning {
    /// Watches a learner from after an activity; none: from now on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn watch(&self, learner: &Learner, after: Option<u64>) -> Result<Watch, Error> {
        // Before the count is read, so that an activity between the two is not missed.
        let grown = self.store().watch_table(TableId::Activities);
        let at = match after {
            Some(after) => after,
            None => self.activities(learner)?,
        };
        Ok(Watch {
            learning: self.clone(),
            learner: learner.clone(),
            grown,
            read: VecDeque::new(),
            at,
        })
    }

    /// How many activities a learner has.
    fn activities(&self, learner: &Learner) -> Result<u64, Error> {
        let profile = self.store().get(&LEARNERS, learner.as_str())?;
        Ok(profile.map_or(0, |stored| stored.value.activities))
    }
}

impl Watch {
    /// The next activity; waits for it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Activity, Error> {
        loop {
            if let Some(activity) = self.read.pop_front() {
                self.at = activity.number;
                return Ok(activity);
            }
            // Marked as seen before the read: what is written in between wakes the wait below.
            self.grown.borrow_and_update();
            self.read()?;
            if self.read.is_empty() {
                // The store has the sender, so this cannot fail while there is a store.
                let _woken = self.grown.changed().await;
            }
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        let end = self.learning.activities(&self.learner)?;
        // Activities that a salvage could not save are skipped, however many.
        while self.read.is_empty() && self.at < end {
            let last = end.min(self.at.saturating_add(ACTIVITIES_PER_PAGE));
            for number in self.at.saturating_add(1)..=last {
                let key = (self.learner.as_str().to_owned(), number);
                let stored = self.learning.store().get(&ACTIVITIES, &key)?;
                self.read.extend(stored.map(|stored| stored.value));
            }
            if self.read.is_empty() {
                self.at = last;
            }
        }
        Ok(())
    }
}
