//! What to do next in a path, and why.
//!
//! In this order: what is nearly forgotten, what was begun, what practises what went badly,
//! what is new, what was given up, what is due for review. Never what waits for a reviewer.
//! The same history at the same time gives the same answer.

use std::sync::Arc;

use courses::{Exercise, LearningPath};

use crate::open::Opened;
use crate::{Completion, Error, Learner, LearnerState, Learning, Status};

/// Below this chance that it is still known, a review comes before anything else.
const MIN_RECALL_PROBABILITY: f64 = 0.8;
/// After this many submissions that did not pass, another exercise may help more.
const MANY_ATTEMPTS: u32 = 3;
/// An exercise that was completed with less went badly.
const WEAK_SCORE: f64 = 0.7;

/// Why an exercise is the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It was begun and is not completed.
    Continue,
    /// It is the first that is open and new.
    New,
    /// It was completed, and is about to be forgotten.
    Review,
    /// It practises what went badly.
    Weak,
}

/// The next exercise.
#[derive(Debug, Clone)]
pub struct Next {
    /// The exercise, as the learner sees it.
    pub opened: Opened,
    /// How far the learner is with the path.
    pub completion: Completion,
    /// Why this one.
    pub reason: Reason,
    /// The same as a sentence.
    pub why: String,
}

impl Learning {
    /// The next exercise of a path; it counts as begun.
    ///
    /// # Errors
    /// There is no such path, or nothing to do in it.
    pub async fn next(&self, path_id: &str, learner: &Learner) -> Result<Next, Error> {
        for _ in 0..crate::MAX_CONFLICTS {
            let state = self.state(learner)?;
            let path = state.path(path_id)?;
            let (exercise, reason, why) = state.next(path)?;
            let completion = state.completion(path);
            if let Some(opened) = self.begin(&state, &exercise).await? {
                return Ok(Next {
                    opened,
                    completion,
                    reason,
                    why,
                });
            }
        }
        Err(Error::Contention)
    }
}

impl LearnerState {
    /// The next exercise of a path, and why.
    pub(crate) fn next(
        &self,
        path: &LearningPath,
    ) -> Result<(Arc<Exercise>, Reason, String), Error> {
        let of = |status: Status| {
            let exercises = path.exercises.iter();
            exercises.filter(move |exercise| self.status(exercise) == status)
        };
        let review = self.review(path);
        let forgotten = review.filter(|(_, known)| *known < MIN_RECALL_PROBABILITY);
        let waits = |it: &&Arc<Exercise>| self.attempt(&it.id).waiting > 0;
        let begun = || {
            let begun = of(Status::InProgress).filter(|it| !waits(it));
            begun.max_by_key(|it| self.attempt(&it.id).last)
        };
        let begun_well = begun().filter(|it| self.attempt(&it.id).attempts < MANY_ATTEMPTS);
        let weak = || {
            of(Status::Available).find_map(|it| self.weakness(it).map(|weakness| (it, weakness)))
        };
        let reviewed = |(exercise, known): (&Arc<Exercise>, f64)| {
            let why = format!(
                "You completed '{}' some time ago; the chance that you still know it is {:.0} %",
                exercise.title,
                known * 100.0
            );
            (Arc::clone(exercise), Reason::Review, why)
        };
        let continued = |exercise: &Arc<Exercise>| {
            let why = match self.attempt(&exercise.id).attempts {
                0 => format!("You began '{}'", exercise.title),
                1 => format!("You began '{}' and handed in one solution", exercise.title),
                n => format!("You began '{}' and handed in {n} solutions", exercise.title),
            };
            (Arc::clone(exercise), Reason::Continue, why)
        };
        if let Some(forgotten) = forgotten {
            return Ok(reviewed(forgotten));
        }
        if let Some(begun) = begun_well {
            return Ok(continued(begun));
        }
        if let Some((exercise, weakness)) = weak() {
            let why = format!(
                "'{}' practises '{weakness}', which did not go well",
                exercise.title
            );
            return Ok((Arc::clone(exercise), Reason::Weak, why));
        }
        if let Some(new) = of(Status::Available).next() {
            let why = if new.requires.is_empty() {
                format!("'{}' needs nothing that you have not learned", new.title)
            } else {
                format!(
                    "'{}' is open, since you learned {}",
                    new.title,
                    new.requires.join(", ")
                )
            };
            return Ok((Arc::clone(new), Reason::New, why));
        }
        if let Some(begun) = begun() {
            return Ok(continued(begun));
        }
        if let Some(due) = review {
            return Ok(reviewed(due));
        }
        if let Some(waiting) = path.exercises.iter().find(waits) {
            return Err(Error::Waiting {
                path_id: path.id.clone(),
                path: path.name.clone(),
                exercise: waiting.title.clone(),
            });
        }
        // All others are completed, and no exercise of this path can open the rest: the error names
        // what is missing.
        if let Some(locked) = of(Status::Locked).next() {
            self.open(locked)?;
        }
        let exercises = path.exercises.iter();
        let due = exercises
            .filter_map(|it| self.attempt(&it.id).memory)
            .map(|memory| memory.due)
            .min();
        Err(Error::NoneRemaining {
            path_id: path.id.clone(),
            path: path.name.clone(),
            count: path.exercises.len(),
            days: due.map(|due| (due.as_second() - self.now.as_second()).div_euclid(86_400) + 1),
        })
    }

    /// The exercise of a path that is due and least known, and the chance that it still is.
    fn review<'a>(&self, path: &'a LearningPath) -> Option<(&'a Arc<Exercise>, f64)> {
        let due = path.exercises.iter().filter_map(|exercise| {
            let attempted = self.attempt(&exercise.id);
            let memory = attempted.memory.filter(|_| attempted.waiting == 0)?;
            memory
                .is_due(self.now)
                .then(|| (exercise, memory.retrievability(self.now)))
        });
        // The first of equals, in the order of the path.
        due.min_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// A concept that an exercise builds on and that did not go well.
    fn weakness(&self, exercise: &Exercise) -> Option<String> {
        let went_badly = |concept: &String| {
            let exercises = self.catalog.exercises();
            let mut teachers = exercises
                .filter(|it| it.teaches.contains(concept))
                .map(|it| self.attempt(&it.id))
                .filter(|attempted| attempted.completed.is_some())
                .peekable();
            // All of them: where one went well, the concept is known.
            teachers.peek().is_some()
                && teachers.all(|attempted| {
                    attempted.attempts > MANY_ATTEMPTS
                        || attempted.best < WEAK_SCORE
                        || attempted.memory.is_some_and(|memory| memory.lapses > 0)
                })
        };
        exercise.requires.iter().find(|it| went_badly(it)).cloned()
    }
}
