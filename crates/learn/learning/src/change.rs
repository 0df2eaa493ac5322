//! All changes of a call, as one batch.

use jiff::Timestamp;
use store::{Batch, CommitError, Expect};

use crate::record::{
    ACTIVITIES, Activity, ActivityKind, Attempted, EXERCISES, LEARNERS, Profile, StartedPath,
};
use crate::{Error, LearnerState, Learning};

/// A longer pause is no work, in seconds, where nothing was handed in at its end.
const PAUSE_SECONDS: u64 = 30 * 60;

/// A change on its way to the store.
pub(crate) struct Change<'a> {
    state: &'a LearnerState,
    pub(crate) batch: Batch,
    pub(crate) profile: Profile,
}

/// The work of the learner until now.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Something else, or nothing.
    Elsewhere,
    /// An exercise that takes this many minutes.
    On(u32),
}

impl<'a> Change<'a> {
    pub(crate) fn of(state: &'a LearnerState) -> Self {
        let mut batch = Batch::new();
        let revision = state.revision;
        // Every change writes the learner, so this one expectation orders all of them: of two calls
        // at once the second writes nothing, and begins again from what is there.
        batch.expect(&LEARNERS, state.learner.as_str(), Expect::from(revision));
        Self {
            state,
            batch,
            profile: state.profile.clone(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.state.now
    }

    /// The learner did something in a path.
    pub(crate) fn step(&mut self, path: &courses::LearningPath, work: Work) {
        let now = self.now();
        if let Some(last) = self.profile.last_activity {
            // Negative where the clock was set back: no time passed then.
            let gap = u64::try_from(now.as_second() - last.as_second()).unwrap_or(0);
            self.profile.seconds += match work {
                // Somebody who hands in after a night did not work all night.
                Work::On(minutes) => gap.min(u64::from(minutes) * 60),
                Work::Elsewhere if gap <= PAUSE_SECONDS => gap,
                Work::Elsewhere => 0,
            };
        }
        self.profile.last_activity = Some(now);
        let begun = self.profile.paths.get_mut(&path.id);
        if let Some(begun) = begun {
            begun.last_activity = now;
            return;
        }
        let begun = StartedPath {
            started: now,
            last_activity: now,
        };
        self.profile.paths.insert(path.id.clone(), begun);
        let details = format!("Started '{}'", path.name);
        self.activity(ActivityKind::PathStarted, details, None);
    }

    /// Stores what was done with an exercise.
    pub(crate) fn attempted(&mut self, exercise: &str, attempted: &Attempted) {
        let key = (self.state.learner.as_str().to_owned(), exercise.to_owned());
        let revision = self.state.revision_of(exercise);
        self.batch.expect(&EXERCISES, &key, Expect::from(revision));
        self.batch.put(&EXERCISES, &key, attempted);
    }

    pub(crate) fn activity(&mut self, kind: ActivityKind, details: String, score: Option<f64>) {
        self.profile.activities += 1;
        let activity = Activity {
            number: self.profile.activities,
            time: self.now(),
            kind,
            details,
            score,
        };
        let key = (self.state.learner.as_str().to_owned(), activity.number);
        // A number that is taken is a conflict, never a history with one event less.
        self.batch.expect(&ACTIVITIES, &key, Expect::Absent);
        self.batch.put(&ACTIVITIES, &key, &activity);
    }

    /// Commits it. False: another write came between, and nothing was written.
    pub(crate) async fn commit(mut self, learning: &Learning) -> Result<bool, Error> {
        let learner = self.state.learner.as_str();
        self.batch.put(&LEARNERS, learner, &self.profile);
        match learning.store().commit(self.batch).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(Error::Commit(error)),
        }
    }
}
