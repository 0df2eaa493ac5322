//! How far a learner is.

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
    /// What the learner did last, the newest first.
    pub activities: Vec<Activity>,
    /// What was earned, the first first.
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
}

/// Where a learner is with a path.
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
    /// Where the learner is with it.
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

impl Overall {
    /// Hours between steps, with two digits.
    #[must_use]
    pub fn hours(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a human life")]
        let hours = self.seconds as f64 / 3_600.0;
        (hours * 100.0).round() / 100.0
    }
}

impl Learning {
    /// Paths by name, of a category and for learners where these are given, and where the
    /// learner stands.
    ///
    /// # Errors
    /// There is no such category, or the store cannot be read.
    pub fn paths(
        &self,
        learner: &Learner,
        category: &str,
        difficulty: Option<Difficulty>,
    ) -> Result<(LearnerState, Vec<Arc<LearningPath>>), Error> {
        let standing = self.standing(learner)?;
        let known = standing.catalog.categories();
        if !category.is_empty() && !known.contains(&category) {
            return Err(Error::CategoryUnknown {
                category: model::shown(category, 64),
                known: known.into_iter().map(str::to_owned).collect(),
            });
        }
        let all = standing.catalog.paths().iter();
        let mut paths: Vec<_> = all
            .filter(|path| category.is_empty() || path.category == category)
            .filter(|path| difficulty.is_none_or(|it| path.difficulty == it))
            .cloned()
            .collect();
        by_name(&mut paths);
        Ok((standing, paths))
    }

    /// A path, and where the learner stands.
    ///
    /// # Errors
    /// There is no such path, or the store cannot be read.
    pub fn path(
        &self,
        learner: &Learner,
        id: &str,
    ) -> Result<(LearnerState, Arc<LearningPath>), Error> {
        let standing = self.standing(learner)?;
        let path = standing.catalog.path(id).cloned();
        let path = path.ok_or_else(|| Error::no_path(&standing.catalog, id))?;
        Ok((standing, path))
    }

    /// How far a learner is, in all paths or in one, with so much of what was done last, where
    /// that is asked for.
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
        let standing = self.standing(learner)?;
        let asked = match time_zone {
            "" => standing.profile.time_zone.as_str(),
            asked => asked,
        };
        let today = standing.today(&zone(asked)?);
        let all = standing.catalog.paths().iter();
        let mut paths: Vec<_> = all
            .filter(|path| path_id.is_empty() || path.id == path_id)
            .cloned()
            .collect();
        if paths.is_empty() && !path_id.is_empty() {
            return Err(Error::no_path(&standing.catalog, path_id));
        }
        by_name(&mut paths);
        let exercises = || paths.iter().flat_map(|path| &path.exercises);
        let attempts = exercises().map(|it| standing.attempt(&it.id));
        let due = attempts.filter(|it| it.memory.is_some_and(|memory| memory.is_due(standing.now)));
        let overall = Overall {
            total: exercises().count(),
            completed: paths
                .iter()
                .map(|it| standing.completion(it).completed)
                .sum(),
            seconds: standing.profile.seconds,
            skills_mastered: standing.skills_mastered(),
            reviews_due: due.count(),
        };
        let paths = paths.iter().map(|path| PathProgress {
            id: path.id.clone(),
            name: path.name.clone(),
            started: standing.begun(&path.id).map(|begun| begun.started),
            completion: standing.completion(path),
        });
        let profile = &standing.profile;
        Ok(Progress {
            overall,
            paths: paths.collect(),
            activities: self.last_activities(&standing, history.unwrap_or(0))?,
            current_streak: profile.streak.current(today),
            longest_streak: profile.streak.longest(),
            last_day: profile.streak.last(),
            achievements: profile.achievements.clone(),
        })
    }

    fn last_activities(
        &self,
        standing: &LearnerState,
        count: usize,
    ) -> Result<Vec<Activity>, Error> {
        let learner = standing.learner.as_str();
        let prefix = store::prefix(learner);
        Ok(self.store().before(&ACTIVITIES, &prefix, None, count)?)
    }
}
