//! Beginning an exercise, and its hints.

use std::sync::Arc;

use courses::Exercise;

use crate::change::{Change, Work};
use crate::{Error, LastReview, Learner, LearnerState, Learning, Status};

/// An exercise as a learner sees it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The exercise. Of its hints only these are for the learner.
    pub exercise: Arc<Exercise>,
    /// Hints that are free, or were revealed.
    pub hints: Vec<String>,
    /// Its status for the learner.
    pub status: Status,
    /// The last review of it.
    pub review: Option<LastReview>,
}

/// A hint that was revealed.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// Its text.
    pub text: String,
    /// Its number, from 1.
    pub number: usize,
    /// Hints that are left.
    pub remaining: usize,
    /// The best score that a solution can have now.
    pub max_score: f64,
}

impl Opened {
    /// How many hints can still be revealed.
    #[must_use]
    pub fn hints_left(&self) -> usize {
        self.exercise.hints.all.len() - self.hints.len()
    }
}

impl Learning {
    /// An exercise to do; it counts as begun. With `practice` a locked one too.
    ///
    /// # Errors
    /// There is no such exercise, or it is locked.
    pub async fn open(
        &self,
        exercise_id: &str,
        learner: &Learner,
        practice: bool,
    ) -> Result<Opened, Error> {
        for _ in 0..crate::MAX_CONFLICTS {
            let state = self.state(learner)?;
            let exercise = state.exercise(exercise_id)?;
            if !practice {
                state.open(&exercise)?;
            }
            if let Some(opened) = self.begin(&state, &exercise).await? {
                return Ok(opened);
            }
        }
        Err(Error::Contention)
    }

    /// Records that an exercise was begun, where it was not. None: another write came
    /// between.
    pub(crate) async fn begin(
        &self,
        state: &LearnerState,
        exercise: &Arc<Exercise>,
    ) -> Result<Option<Opened>, Error> {
        let mut attempted = state.attempt(&exercise.id);
        let opened = Opened {
            exercise: Arc::clone(exercise),
            hints: state.hints(exercise).to_vec(),
            status: match state.status(exercise) {
                Status::Completed => Status::Completed,
                _ => Status::InProgress,
            },
            review: attempted.review.clone(),
        };
        // Opening it again writes nothing, so a reader that only looks costs no commit.
        if attempted.started.is_some() {
            return Ok(Some(opened));
        }
        attempted.started = Some(state.now);
        attempted.last = Some(state.now);
        let mut change = Change::of(state);
        change.step(state.path(&exercise.path_id)?, Work::Elsewhere);
        change.attempted(&exercise.id, &attempted);
        Ok(change.commit(self).await?.then_some(opened))
    }

    /// Reveals a hint of an exercise: the next one for a `number` of 0, or one that was revealed
    /// before. With `practice` of a locked one too.
    ///
    /// # Errors
    /// There is no such exercise, it is locked, or it has no such hint.
    pub async fn reveal_hint(
        &self,
        exercise_id: &str,
        number: usize,
        learner: &Learner,
        practice: bool,
    ) -> Result<Hint, Error> {
        for _ in 0..crate::MAX_CONFLICTS {
            let state = self.state(learner)?;
            let exercise = state.exercise(exercise_id)?;
            if !practice {
                state.open(&exercise)?;
            }
            let seen = state.hints(&exercise).len();
            let all = exercise.hints.all.len();
            let wanted = if number == 0 { seen + 1 } else { number };
            if wanted > all {
                return Err(Error::NoHints {
                    id: exercise_id.to_owned(),
                });
            }
            if wanted > seen + 1 {
                let before = seen + 1;
                let message =
                    format!("hint {wanted} comes after hint {before}, which was not revealed yet");
                return Err(Error::parameter("number", message));
            }
            let hint = |state: &LearnerState, seen: usize| Hint {
                text: exercise
                    .hints
                    .all
                    .get(wanted - 1)
                    .cloned()
                    .unwrap_or_default(),
                number: wanted,
                remaining: all - seen,
                max_score: state.max_score(&exercise),
            };
            // One that was revealed costs nothing more, so a retry after a lost answer is free, if
            // the caller named the number.
            if wanted <= seen {
                return Ok(hint(&state, seen));
            }
            let mut attempted = state.attempt(&exercise.id);
            attempted.hints += 1;
            attempted.started = attempted.started.or(Some(state.now));
            attempted.last = Some(state.now);
            let mut change = Change::of(&state);
            let work = Work::On(exercise.estimated_minutes);
            change.step(state.path(&exercise.path_id)?, work);
            change.attempted(&exercise.id, &attempted);
            if change.commit(self).await? {
                let after = state.with(&exercise.id, attempted);
                return Ok(hint(&after, wanted));
            }
        }
        Err(Error::Contention)
    }
}
