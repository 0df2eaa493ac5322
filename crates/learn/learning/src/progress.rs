//! The progress of a learner.

use std::sync::Arc;

use courses::{Difficulty, LearningPath};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::learner_state::{percent, zone};
use crate::record::{ACTIVITIES, Activity, Earned};
use crate::{Completion, Error, Learner, LearnerState, Learning};

fn by_name(paths: &mut [Arc<LearningPath>]) {
    paths.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
}

/// A learner's progress.
#[derive(Debug, Clone)]
pub struct Progress {
    /// In all paths together, or in the one that was asked for.
    pub overall: Overall,
    /// Path by path, by name.
    pub paths: Vec<PathProgress>,
    /// The last activities, the newest first.
    pub activities: Vec<Activity>,
    /// Achievements, the oldest first.
    pub achievements: Vec<Earned>,
    /// Days in a row up to today, or yesterday.
    pub current_streak: u32,
    /// The longest there was.
    pub longest_streak: u32,
    /// The last day with a submission.
    pub last_day: Option<Date>,
}

/// Progress in several paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Overall {
    /// Exercises that there are.
    pub total: usize,
    /// Exercises that are completed.
    pub completed: usize,
    /// Seconds between steps.
    pub seconds: u64,
    /// Skills of which every exercise is completed.
    pub skills_mastered: Vec<String>,
    /// Exercises that are due for review.
    pub reviews_due: usize,
}

impl Overall {
    /// The completed share, 0 to 100, rounded.
    #[must_use]
    pub fn percent(&self) -> usize {
        percent(self.completed, self.total)
    }

    /// Hours between steps, with two digits.
    #[must_use]
    pub fn hours(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a human life")]
        let hours = self.seconds as f64 / 3_600.0;
        (hours * 100.0).round() / 100.0
    }
}

/// The status of a path for a learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStatus {
    /// It was not begun.
    NotStarted,
    /// It was begun.
    InProgress,
    /// All its exercises are completed.
    Completed,
}

/// Progress in a path.
#[derive(Debug, Clone)]
pub struct PathProgress {
    /// The path.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// When it was begun.
    pub started: Option<Timestamp>,
    /// How far the learner is.
    pub completion: Completion,
}

impl PathProgress {
    /// The status of the path.
    #[must_use]
    pub fn status(&self) -> PathStatus {
        if self.completion.remaining() == 0 {
            PathStatus::Completed
        } else if self.started.is_some() {
            PathStatus::InProgress
        } else {
            PathStatus::NotStarted
        }
    }
}

impl Learning {
    /// Paths by name, of a category and a difficulty where these are given, and the state of the
    /// learner.
    ///
    /// # Errors
    /// There is no such category, or the store cannot be read.
    pub fn paths(
        &self,
        learner: &Learner,
        category: &str,
        difficulty: Option<Difficulty>,
    ) -> Result<(LearnerState, Vec<Arc<LearningPath>>), Error> {
        let state = self.state(learner)?;
        let known = state.catalog.categories();
        if !category.is_empty() && !known.contains(&category) {
            return Err(Error::CategoryUnknown {
                category: model::shown(category, 64),
                known: known.into_iter().map(str::to_owned).collect(),
            });
        }
        let all = state.catalog.paths().iter();
        let mut paths: Vec<_> = all
            .filter(|path| category.is_empty() || path.category == category)
            .filter(|path| difficulty.is_none_or(|it| path.difficulty == it))
            .cloned()
            .collect();
        by_name(&mut paths);
        Ok((state, paths))
    }

    /// A path, and the state of the learner.
    ///
    /// # Errors
    /// There is no such path, or the store cannot be read.
    pub fn path(
        &self,
        learner: &Learner,
        id: &str,
    ) -> Result<(LearnerState, Arc<LearningPath>), Error> {
        let state = self.state(learner)?;
        let path = Arc::clone(state.path(id)?);
        Ok((state, path))
    }

    /// The progress of a learner, in all paths or in one, with the last `history` activities where
    /// these are asked for.
    ///
    /// # Errors
    /// There is no such path or time zone, or the store cannot be read.
    pub fn progress(
        &self,
        learner: &Learner,
        path_id: &str,
        history: Option<usize>,
        time_zone: &str,
    ) -> Result<Progress, Error> {
        let state = self.state(learner)?;
        let asked = match time_zone {
            "" => state.profile.time_zone.as_str(),
            asked => asked,
        };
        let today = state.today(&zone(asked)?);
        let mut paths = match path_id {
            "" => state.catalog.paths().to_vec(),
            id => vec![Arc::clone(state.path(id)?)],
        };
        by_name(&mut paths);
        let exercises = || paths.iter().flat_map(|path| &path.exercises);
        let attempts = exercises().map(|it| state.attempt(&it.id));
        let due = attempts.filter(|it| it.memory.is_some_and(|memory| memory.is_due(state.now)));
        let overall = Overall {
            total: exercises().count(),
            completed: paths.iter().map(|it| state.completion(it).completed).sum(),
            seconds: state.profile.seconds,
            skills_mastered: state.skills_mastered(),
            reviews_due: due.count(),
        };
        let paths = paths.iter().map(|path| PathProgress {
            id: path.id.clone(),
            name: path.name.clone(),
            started: state.begun(&path.id).map(|begun| begun.started),
            completion: state.completion(path),
        });
        let profile = &state.profile;
        let prefix = store::prefix(learner.as_str());
        Ok(Progress {
            overall,
            paths: paths.collect(),
            activities: self
                .store()
                .before(&ACTIVITIES, &prefix, None, history.unwrap_or(0))?,
            current_streak: profile.streak.current(today),
            longest_streak: profile.streak.longest(),
            last_day: profile.streak.last(),
            achievements: profile.achievements.clone(),
        })
    }
}
