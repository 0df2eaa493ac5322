//! Beginning an exercise, and its hints.

use std::sync::Arc;

use courses::{Exercise, LearningPath};

use crate::change::{Change, Work};
use crate::{Error, LastReview, Learner, LearnerState, Learning, Status};

/// An exercise as a learner sees it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The exercise. Of its hints only these are for the learner.
    pub exercise: Arc<Exercise>,
    /// Hints that are free, or were revealed.
    pub hints: Vec<String>,
    /// Where the learner is with it.
    pub status: Status,
    /// What the last reviewer said of it.
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
    /// An exercise of an id.
    pub(crate) fn exercise(standing: &LearnerState, id: &str) -> Result<Arc<Exercise>, Error> {
        let found = standing.catalog.exercise(id).cloned();
        found.ok_or_else(|| Error::no_exercise(&standing.catalog, id))
    }

    /// The path that an exercise is in.
    pub(crate) fn path_of<'a>(
        standing: &'a LearnerState,
        exercise: &Exercise,
    ) -> Result<&'a LearningPath, Error> {
        let path = standing.catalog.path(&exercise.path_id);
        let path = path.map(|path| &**path);
        path.ok_or_else(|| Error::no_path(&standing.catalog, &exercise.path_id))
    }

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
            let standing = self.standing(learner)?;
            let exercise = Self::exercise(&standing, exercise_id)?;
            if !practice {
                standing.open(&exercise)?;
            }
            if let Some(opened) = self.begin(&standing, &exercise).await? {
                return Ok(opened);
            }
        }
        Err(Error::Contention)
    }

    /// Records that an exercise was begun, where it was not. None: another write came
    /// between.
    pub(crate) async fn begin(
        &self,
        standing: &LearnerState,
        exercise: &Arc<Exercise>,
    ) -> Result<Option<Opened>, Error> {
        let mut attempted = standing.attempt(&exercise.id);
        let opened = Opened {
            exercise: Arc::clone(exercise),
            hints: standing.hints(exercise).to_vec(),
            status: match standing.status(exercise) {
                Status::Completed => Status::Completed,
                _ => Status::InProgress,
            },
            review: attempted.review.clone(),
        };
        if attempted.started.is_some() {
            return Ok(Some(opened));
        }
        attempted.started = Some(standing.now);
        attempted.last = Some(standing.now);
        let mut change = Change::of(standing);
        change.step(Self::path_of(standing, exercise)?, Work::Elsewhere);
        change.attempted(&exercise.id, &attempted);
        Ok(change.commit(self).await?.then_some(opened))
    }

    /// Reveals a hint of an exercise: the next one, or again one of those that were. With
    /// `practice` of a locked one too.
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
            let standing = self.standing(learner)?;
            let exercise = Self::exercise(&standing, exercise_id)?;
            if !practice {
                standing.open(&exercise)?;
            }
            let seen = standing.hints(&exercise).len();
            let all = exercise.hints.all.len();
            let wanted = if number == 0 { seen + 1 } else { number };
            if wanted > all {
                return Err(Error::NoHints {
                    id: exercise_id.to_owned(),
                });
            }
            if wanted > seen + 1 {
                return Err(Error::Parameter {
                    field: "number".into(),
                    message: format!(
                        "hint {wanted} comes after hint {}, which was not revealed yet",
                        seen + 1
                    ),
                });
            }
            let hint = |standing: &LearnerState, seen: usize| Hint {
                text: exercise
                    .hints
                    .all
                    .get(wanted - 1)
                    .cloned()
                    .unwrap_or_default(),
                number: wanted,
                remaining: all - seen,
                max_score: standing.max_score(&exercise),
            };
            if wanted <= seen {
                return Ok(hint(&standing, seen));
            }
            let mut attempted = standing.attempt(&exercise.id);
            attempted.hints += 1;
            attempted.started = attempted.started.or(Some(standing.now));
            attempted.last = Some(standing.now);
            let mut change = Change::of(&standing);
            let work = Work::On(exercise.estimated_minutes);
            change.step(Self::path_of(&standing, &exercise)?, work);
            change.attempted(&exercise.id, &attempted);
            if change.commit(self).await? {
                let after = standing.with(&exercise.id, attempted);
                return Ok(hint(&after, wanted));
            }
        }
        Err(Error::Contention)
    }
}
