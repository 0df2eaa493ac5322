//! What a call changes of a learner, as one batch.

use jiff::Timestamp;
use store::{Batch, CommitError, Expect};

use crate::record::{
    ACTIVITIES, Activity, ActivityKind, Attempted, EXERCISES, LEARNERS, Profile, StartedPath,
};
use crate::{Error, LearnerState, Learning};

/// A pause that is no work, in seconds, where nothing was handed in at its end.
const PAUSE_SECONDS: u64 = 30 * 60;

/// A change on its way to the store.
pub(crate) struct Change<'a> {
    standing: &'a LearnerState,
    pub(crate) batch: Batch,
    pub(crate) profile: Profile,
}

/// What the learner worked on until now.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Something else, or nothing.
    Elsewhere,
    /// This exercise, which takes so many minutes.
    On(u32),
}

impl<'a> Change<'a> {
    pub(crate) fn of(standing: &'a LearnerState) -> Self {
        let mut batch = Batch::new();
        let revision = standing.revision;
        // Two calls of one learner at once: the second finds that this has changed, and begins
        // again from what is there.
        batch.expect(&LEARNERS, standing.learner.as_str(), Expect::from(revision));
        Self {
            standing,
            batch,
            profile: standing.profile.clone(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.standing.now
    }

    /// The learner did something in a path.
    pub(crate) fn step(&mut self, path: &courses::LearningPath, work: Work) {
        let now = self.now();
        if let Some(last) = self.profile.last_activity {
            let gap = u64::try_from(now.as_second() - last.as_second()).unwrap_or(0);
            self.profile.seconds += match work {
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

    /// What was done with an exercise is something else now.
    pub(crate) fn attempted(&mut self, exercise: &str, attempted: &Attempted) {
        let key = (
            self.standing.learner.as_str().to_owned(),
            exercise.to_owned(),
        );
        let revision = self.standing.revision_of(exercise);
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
        let key = (self.standing.learner.as_str().to_owned(), activity.number);
        self.batch.expect(&ACTIVITIES, &key, Expect::Absent);
        self.batch.put(&ACTIVITIES, &key, &activity);
    }

    /// Writes it. False: another write came between, and nothing was written.
    pub(crate) async fn commit(mut self, learning: &Learning) -> Result<bool, Error> {
        let learner = self.standing.learner.as_str();
        self.batch.put(&LEARNERS, learner, &self.profile);
        let grew = self.profile.activities > self.standing.profile.activities;
        match learning.store().commit(self.batch).await {
            Ok(_) => {
                if grew {
                    learning.0.grown.send_replace(());
                }
                Ok(true)
            }
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(Error::Commit(error)),
        }
    }
}
