//! Problems of several paths that are each right alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Problem;

use crate::{Condition, Exercise, LearningPath};

const PATH_MD: &str = "PATH.md";

/// Checks paths together: each id is there once, what paths refer to exists, and all concepts
/// can be learned. Each problem comes after the id of its path.
#[must_use]
pub fn check_together(paths: &[Arc<LearningPath>]) -> Vec<(String, Problem)> {
    let mut all = CrossCheck {
        paths: paths
            .iter()
            .map(|path| (path.id.as_str(), &**path))
            .collect(),
        problems: Vec::new(),
    };
    all.ids(paths);
    all.references(paths);
    all.prerequisites(paths);
    for path in paths {
        all.concepts(path);
    }
    all.problems
}

struct CrossCheck<'p> {
    paths: BTreeMap<&'p str, &'p LearningPath>,
    problems: Vec<(String, Problem)>,
}

impl<'p> CrossCheck<'p> {
    /// Adds a problem of the `PATH.md`.
    fn error(&mut self, path: &LearningPath, rule: &str, message: impl Into<String>) {
        self.error_at(path, rule, (PATH_MD, 0), message);
    }

    fn error_at(
        &mut self,
        path: &LearningPath,
        rule: &str,
        (file, line): (&str, usize),
        message: impl Into<String>,
    ) {
        let problem = Problem::error(rule, file, line, message);
        self.problems.push((path.id.clone(), problem));
    }

    fn ids(&mut self, paths: &'p [Arc<LearningPath>]) {
        let mut seen: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for path in paths {
            let own = std::iter::once(("path", path.id.as_str(), PATH_MD.to_owned()));
            let exercises = path.exercises.iter();
            let exercises = exercises.map(|e| ("exercise", e.id.as_str(), e.grading.file()));
            let achievements = path.achievements.iter();
            let achievements =
                achievements.map(|a| ("achievement", a.id.as_str(), PATH_MD.to_owned()));
            for (what, id, file) in own.chain(exercises).chain(achievements) {
                if let Some(other) = seen.insert((what, id), &path.id) {
                    let rule = format!("{what}-id-duplicate");
                    let message = format!("The {what} `{id}` is in the path `{other}` too");
                    self.error_at(path, &rule, (&file, 0), message);
                }
            }
        }
    }

    fn references(&mut self, paths: &'p [Arc<LearningPath>]) {
        let all = || paths.iter().flat_map(|path| &path.exercises);
        let exercises: BTreeSet<&str> = all().map(|exercise| exercise.id.as_str()).collect();
        let concepts: BTreeSet<&str> = all().flat_map(concepts).collect();
        for path in paths {
            for (key, rule, ids) in [
                (
                    "prerequisites",
                    "path-prerequisite-unknown",
                    &path.prerequisites,
                ),
                ("related_paths", "path-related-unknown", &path.related_paths),
            ] {
                for id in ids {
                    if !self.paths.contains_key(id.as_str()) {
                        let message = format!("`{key}` names `{id}`, and there is no such path");
                        self.error(path, rule, message);
                    }
                }
            }
            for achievement in &path.achievements {
                let Condition {
                    exercise_completed: exercise,
                    path_completed: path_id,
                    concept_learned: concept,
                    ..
                } = &achievement.when;
                let is_path = |id: &str| self.paths.contains_key(id);
                let exercise = exercise
                    .as_ref()
                    .filter(|it| !exercises.contains(it.as_str()));
                let path_id = path_id.as_ref().filter(|it| !is_path(it));
                let concept = concept
                    .as_ref()
                    .filter(|it| !concepts.contains(it.as_str()));
                let missing = [
                    ("exercise", exercise),
                    ("path", path_id),
                    ("concept", concept),
                ];
                for (what, id) in missing {
                    if let Some(id) = id {
                        let message = format!(
                            "The achievement `{}` waits for the {what} `{id}`, which there is not",
                            achievement.id
                        );
                        self.error(path, "achievement-when-unknown", message);
                    }
                }
            }
        }
    }

    /// No path comes before itself.
    fn prerequisites(&mut self, paths: &'p [Arc<LearningPath>]) {
        for path in paths {
            if self.before(path).contains(path.id.as_str()) {
                let message = "The path is before itself, by the `prerequisites` of others";
                self.error(path, "path-prerequisites-cycle", message);
            }
        }
    }

    /// Ids of all paths that come before a path.
    fn before(&self, path: &'p LearningPath) -> BTreeSet<&'p str> {
        let mut before = BTreeSet::new();
        let mut open: Vec<&'p LearningPath> = vec![path];
        while let Some(path) = open.pop() {
            for id in &path.prerequisites {
                if before.insert(id.as_str()) {
                    open.extend(self.paths.get(id.as_str()));
                }
            }
        }
        before
    }

    /// Every exercise of a path opens at some time.
    fn concepts(&mut self, path: &'p LearningPath) {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for id in self.before(path) {
            // In a cycle a path is before itself. It must still not count as learned.
            if let Some(other) = self.paths.get(id).filter(|other| other.id != path.id) {
                known.extend(other.exercises.iter().flat_map(concepts));
            }
        }
        let taught: BTreeSet<&str> = path.exercises.iter().flat_map(concepts).collect();
        // Learners may take exercises in any order, so their numbers do not count: each round opens
        // all that can be opened with what is known by then.
        let mut closed: Vec<&'p Arc<Exercise>> = path.exercises.iter().collect();
        loop {
            let opens = |requires: &[String]| requires.iter().all(|c| known.contains(c.as_str()));
            let (open, rest): (Vec<&'p Arc<Exercise>>, Vec<_>) = closed
                .into_iter()
                .partition(|exercise| opens(&exercise.requires));
            closed = rest;
            if open.is_empty() {
                break;
            }
            known.extend(open.into_iter().flat_map(concepts));
        }
        for exercise in closed {
            let missing = exercise.requires.iter();
            let missing: Vec<&str> = missing
                .map(String::as_str)
                .filter(|concept| !known.contains(concept))
                .collect();
            let nowhere: Vec<&str> = missing
                .iter()
                .copied()
                .filter(|concept| !taught.contains(concept))
                .collect();
            let (rule, message) = if nowhere.is_empty() {
                let message = format!(
                    "The exercise requires {}, and what teaches it requires the exercise in turn",
                    missing.join(", ")
                );
                ("concept-cycle", message)
            } else {
                let message = format!(
                    "The exercise requires {}, which neither this path nor one before it teaches",
                    nowhere.join(", ")
                );
                ("concept-not-taught", message)
            };
            let line = exercise.grading.lines.requires;
            self.error_at(path, rule, (&exercise.grading.file(), line), message);
        }
    }
}

/// The concepts that an exercise teaches.
fn concepts(exercise: &Arc<Exercise>) -> impl Iterator<Item = &str> {
    exercise.teaches.iter().map(String::as_str)
}
