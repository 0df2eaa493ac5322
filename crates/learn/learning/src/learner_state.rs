//! The state of a learner: the stored records, compared with the paths that there are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use courses::{Catalog, Exercise, LearningPath};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use store::Revision;

use crate::record::{Attempted, EXERCISES, LEARNERS, Profile};
use crate::{Error, Learner, Learning};

/// The status of an exercise for a learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// What it builds on was not learned yet.
    Locked,
    /// It can be begun.
    Available,
    /// It was begun.
    InProgress,
    /// A solution passed.
    Completed,
}

/// How far a learner is with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Exercises that are completed.
    pub completed: usize,
    /// Exercises that there are.
    pub total: usize,
    /// When the learner last did something in it.
    pub last_activity: Option<Timestamp>,
}

impl Completion {
    /// Exercises that are not completed.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.total - self.completed
    }

    /// The completed share, 0 to 100, rounded.
    #[must_use]
    pub fn percent(&self) -> usize {
        percent(self.completed, self.total)
    }
}

pub(crate) fn percent(part: usize, all: usize) -> usize {
    (part * 100 + all / 2).checked_div(all).unwrap_or(0)
}

/// The stored records of a learner, read at one time.
#[derive(Debug, Clone)]
pub struct LearnerState {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) learner: Learner,
    pub(crate) now: Timestamp,
    pub(crate) profile: Profile,
    /// None: nothing is stored of the learner yet.
    pub(crate) revision: Option<Revision>,
    /// By exercise, also for those that left the catalog.
    attempted: HashMap<String, (Attempted, Revision)>,
    learned: HashSet<String>,
}

impl Learning {
    /// Reads the state of a learner.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn state(&self, learner: &Learner) -> Result<LearnerState, Error> {
        let profile = self.store().get(&LEARNERS, learner.as_str())?;
        let revision = profile.as_ref().map(|stored| stored.revision);
        // The learner is read before its exercises. A write between the two raises its revision, so
        // a change that mixes old and new is refused at its commit.
        let prefix = store::prefix(learner.as_str());
        let mut attempted = HashMap::new();
        // Nothing is stored of an exercise before there is a learner, so a new one costs one read.
        if revision.is_some() {
            for record in self.store().scan(&EXERCISES, &prefix) {
                let (key, stored) = record?;
                // What follows the prefix is the id, and the NUL that ends a part of a key.
                let id = String::from_utf8_lossy(&key);
                let id = id.trim_end_matches('\0').to_owned();
                attempted.insert(id, (stored.value, stored.revision));
            }
        }
        let mut state = LearnerState {
            catalog: self.catalog(),
            learner: learner.clone(),
            now: self.now(),
            profile: profile.map(|stored| stored.value).unwrap_or_default(),
            revision,
            attempted,
            learned: HashSet::new(),
        };
        state.learn();
        Ok(state)
    }
}

impl LearnerState {
    /// The paths that there are.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Computes which concepts are learned.
    fn learn(&mut self) {
        let exercises = self.catalog.exercises();
        let completed = exercises.filter(|it| self.attempt(&it.id).completed.is_some());
        self.learned = completed
            .flat_map(|exercise| exercise.teaches.iter().cloned())
            .collect();
    }

    /// The state after a change of an exercise.
    pub(crate) fn with(&self, exercise: &str, changed: Attempted) -> Self {
        let mut after = self.clone();
        after
            .attempted
            // No stored record has this revision, so this state could not be committed by mistake.
            .insert(exercise.to_owned(), (changed, Revision::MAX));
        after.learn();
        after
    }

    /// The progress in an exercise; none where it was not begun.
    pub(crate) fn attempt(&self, exercise: &str) -> Attempted {
        let found = self.attempted.get(exercise);
        found
            .map(|(attempted, _)| attempted.clone())
            .unwrap_or_default()
    }

    pub(crate) fn revision_of(&self, exercise: &str) -> Option<Revision> {
        self.attempted.get(exercise).map(|(_, revision)| *revision)
    }

    pub(crate) fn has_learned(&self, concept: &str) -> bool {
        self.learned.contains(concept)
    }

    /// The round in which a solution would be handed in now.
    pub(crate) fn round(&self, exercise: &str) -> u32 {
        let attempted = self.attempt(exercise);
        let due = self.due(&attempted);
        // A due review begins a new round, once: else the solution of the last round would be found
        // as a submission that is graded already, and nothing would be reviewed.
        attempted.round + u32::from(due.is_some() && due != attempted.raised)
    }

    /// When an exercise became due, if it still is.
    pub(crate) fn due(&self, attempted: &Attempted) -> Option<Timestamp> {
        let memory = attempted.memory.filter(|memory| memory.is_due(self.now));
        memory.map(|memory| memory.due)
    }

    /// The status of an exercise.
    #[must_use]
    pub fn status(&self, exercise: &Exercise) -> Status {
        let attempted = self.attempt(&exercise.id);
        if attempted.completed.is_some() {
            Status::Completed
        } else if attempted.started.is_some() {
            Status::InProgress
        } else if self.missing(exercise).is_empty() {
            Status::Available
        } else {
            Status::Locked
        }
    }

    /// Concepts that an exercise builds on and that were not learned.
    pub(crate) fn missing(&self, exercise: &Exercise) -> Vec<String> {
        let required = exercise.requires.iter();
        required
            .filter(|concept| !self.has_learned(concept))
            .cloned()
            .collect()
    }

    /// A path by its id.
    pub(crate) fn path(&self, id: &str) -> Result<&Arc<LearningPath>, Error> {
        let path = self.catalog.path(id);
        path.ok_or_else(|| Error::no_path(&self.catalog, id))
    }

    /// An exercise by its id.
    pub(crate) fn exercise(&self, id: &str) -> Result<Arc<Exercise>, Error> {
        let found = self.catalog.exercise(id).cloned();
        found.ok_or_else(|| Error::no_exercise(&self.catalog, id))
    }

    /// Refuses an exercise that is locked.
    pub(crate) fn open(&self, exercise: &Exercise) -> Result<(), Error> {
        if self.status(exercise) != Status::Locked {
            return Ok(());
        }
        let missing = self.missing(exercise);
        let exercises = self.catalog.exercises();
        let teaches = |it: &&Arc<Exercise>| it.teaches.iter().any(|it| missing.contains(it));
        Err(Error::Locked {
            id: exercise.id.clone(),
            teachers: exercises.filter(teaches).map(|it| it.id.clone()).collect(),
            missing,
        })
    }

    /// How far the learner is with a path.
    #[must_use]
    pub fn completion(&self, path: &LearningPath) -> Completion {
        let completed = |exercise: &&Arc<Exercise>| self.status(exercise) == Status::Completed;
        Completion {
            completed: path.exercises.iter().filter(completed).count(),
            total: path.exercises.len(),
            last_activity: self.begun(&path.id).map(|begun| begun.last_activity),
        }
    }

    pub(crate) fn begun(&self, path: &str) -> Option<crate::record::StartedPath> {
        self.profile.paths.get(path).copied()
    }

    /// Hints of an exercise that the learner has seen.
    #[must_use]
    pub fn hints<'a>(&self, exercise: &'a Exercise) -> &'a [String] {
        let revealed = usize::try_from(self.attempt(&exercise.id).hints).unwrap_or(usize::MAX);
        let seen = exercise.hints.free.saturating_add(revealed);
        let all = &exercise.hints.all;
        all.get(..seen.min(all.len())).unwrap_or_default()
    }

    /// The best score that a solution can have now.
    pub(crate) fn max_score(&self, exercise: &Exercise) -> f64 {
        (1.0 - crate::SCORE_PER_HINT * f64::from(self.attempt(&exercise.id).hints)).max(0.0)
    }

    /// The learner's day.
    pub(crate) fn today(&self, zone: &TimeZone) -> Date {
        self.now.to_zoned(zone.clone()).date()
    }

    /// Skills of which every exercise is completed, with a score of 0.8 on average.
    pub(crate) fn skills_mastered(&self) -> Vec<String> {
        let mut by_skill: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
        for exercise in self.catalog.exercises() {
            let attempted = self.attempt(&exercise.id);
            let score = attempted.completed.map(|_| attempted.best);
            for skill in &exercise.skills_practiced {
                by_skill.entry(skill).or_default().push(score);
            }
        }
        let mastered = by_skill.into_iter().filter(|(_, scores)| {
            let all: Option<Vec<f64>> = scores.iter().copied().collect();
            #[expect(clippy::cast_precision_loss, reason = "as many as there are exercises")]
            all.is_some_and(|all| all.iter().sum::<f64>() >= 0.8 * all.len() as f64)
        });
        mastered.map(|(skill, _)| skill.to_owned()).collect()
    }
}

/// The zone of a name; of an empty one UTC.
pub(crate) fn zone(name: &str) -> Result<TimeZone, Error> {
    if name.is_empty() {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|_| {
        let name = model::shown(name, 64);
        let message = format!("'{name}' is no time zone; write an IANA name, such as Europe/Paris");
        Error::parameter("time_zone", message)
    })
}
