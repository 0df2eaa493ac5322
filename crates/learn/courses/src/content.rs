//! What a path and an exercise are, once they are read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::Digest;
use serde::{Deserialize, Serialize};

use crate::grading::Validation;

/// A learning path.
#[derive(Debug, Clone)]
pub struct LearningPath {
    /// Its folder's name.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// One word, such as `testing`.
    pub category: String,
    /// For whom it is.
    pub difficulty: Difficulty,
    /// How long it takes.
    pub estimated_hours: f64,
    /// Skills that it teaches.
    pub skills_covered: Vec<String>,
    /// Paths to take before it, by id.
    pub prerequisites: Vec<String>,
    /// What the learner can do afterwards.
    pub objectives: Vec<String>,
    /// Other paths, by id.
    pub related_paths: Vec<String>,
    /// What stands below the front matter of `PATH.md`.
    pub introduction: String,
    /// What can be earned in it.
    pub achievements: Vec<Achievement>,
    /// Its exercises, in order.
    pub exercises: Vec<Arc<Exercise>>,
}

/// For whom a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    /// Who knows nothing of it.
    Beginner,
    /// Who knows the beginnings.
    Intermediate,
    /// Who does it already.
    Advanced,
}

/// An exercise.
#[derive(Debug, Clone)]
pub struct Exercise {
    /// Its folder's name without the number; one in all paths.
    pub id: String,
    /// The path that it is in.
    pub path_id: String,
    /// One line.
    pub title: String,
    /// What sort of work it is.
    pub kind: ExerciseKind,
    /// How hard it is.
    pub difficulty: ExerciseDifficulty,
    /// How long it takes.
    pub estimated_minutes: u32,
    /// Concepts that are learned by it.
    pub teaches: Vec<String>,
    /// Concepts that must be learned before it opens.
    pub requires: Vec<String>,
    /// Skills that it practises.
    pub skills_practiced: Vec<String>,
    /// Where to read on.
    pub related_docs: Vec<String>,
    /// What stands below the front matter of `EXERCISE.md`.
    pub instructions: String,
    /// What the learner starts from.
    pub starter: Solution,
    /// Its hints.
    pub hints: Hints,
    /// How it is graded.
    pub validation: ValidationKind,
    /// Language of a solution, such as `javascript`; empty where it is prose.
    pub language: String,
    /// Name of the one text that a solution is; none where it is a folder.
    pub file_name: Option<String>,
    /// What a reviewer looks at, where a person grades.
    pub(crate) checklist: Vec<String>,
    /// What an `output` exercise must print, where that may be seen.
    pub expected_output: Option<String>,
    /// Cases that may be seen.
    pub shown_cases: Vec<ShownCase>,
    /// Over all files of the exercise, so that a changed one is told from what it was.
    pub digest: Digest,
    /// What grades it. Only this crate looks inside.
    pub(crate) grading: crate::Grading,
}

/// What sort of work an exercise is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExerciseKind {
    /// Step by step.
    Tutorial,
    /// The same once more, alone.
    Practice,
    /// Something new from what is known.
    Challenge,
    /// A whole.
    Project,
}

/// How hard an exercise is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExerciseDifficulty {
    /// A few minutes.
    Easy,
    /// Some thought.
    Medium,
    /// More than that.
    Hard,
}

/// How solutions are graded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValidationKind {
    /// By what is printed.
    Output,
    /// By what the text must and must not hold.
    Pattern,
    /// By a person.
    Manual,
    /// By what it does.
    Test,
}

impl Exercise {
    /// What a reviewer looks at, where a person grades; else nothing.
    #[must_use]
    pub fn checklist(&self) -> &[String] {
        &self.checklist
    }

    /// What a learner starts from, where a solution is one text; none where it is files.
    #[must_use]
    pub fn starter_text(&self) -> Option<String> {
        self.file_name.as_ref()?;
        Some(self.starter.files.values().map(String::as_str).collect())
    }

    /// It is graded by what reads configs, which the server brings.
    #[must_use]
    pub fn is_about_configs(&self) -> bool {
        matches!(self.grading.validation, Validation::Config { .. })
    }

    /// A solution of one text, under the name that the exercise wants.
    #[must_use]
    pub fn one_text(&self, text: impl Into<String>) -> Solution {
        let name = self.file_name.as_deref();
        let name = name.unwrap_or(match self.language.as_str() {
            "markdown" => "SKILL.md",
            _ => "solution.txt",
        });
        Solution {
            files: BTreeMap::from([(name.to_owned(), text.into())]),
        }
    }
}

/// Hints, from the vaguest to the one that nearly says it.
#[derive(Clone, Default)]
pub struct Hints {
    /// Shown from the start: the first ones of `all`.
    pub free: usize,
    /// All of them. No more than what was revealed leaves the server.
    pub all: Vec<String>,
}

impl fmt::Debug for Hints {
    /// How many: whatever prints an exercise may end in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints")
            .field("free", &self.free)
            .field("all", &self.all.len())
            .finish()
    }
}

/// What a learner hands in, or starts from: files by path. Where an exercise wants one
/// text, that is its only file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Solution {
    /// Text by path.
    pub files: BTreeMap<String, String>,
}

impl Solution {
    /// Its text, where it is one file.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let mut texts = self.files.values();
        match (texts.next(), texts.next()) {
            (Some(text), None) => Some(text),
            _ => None,
        }
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.files.values().map(String::len).sum()
    }
}

/// A case that may be seen, as the tool specification has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCase {
    /// What is called, or asked.
    pub input: String,
    /// What should come of it.
    pub expected: String,
    /// In words.
    pub description: String,
}

/// Something that can be earned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Achievement {
    /// One in all paths.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it was earned by.
    pub description: String,
    /// Name of a picture, such as `lightning`.
    pub icon: String,
    /// When it is earned.
    pub when: Condition,
}

/// When an achievement is earned: all of what is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// This exercise is completed.
    pub exercise_completed: Option<String>,
    /// All exercises of this path are completed.
    pub path_completed: Option<String>,
    /// An exercise that teaches this concept is completed.
    pub concept_learned: Option<String>,
    /// So many exercises are completed, of all paths.
    pub exercises_completed: Option<u32>,
    /// So many exercises were completed with the first submission.
    pub first_tries: Option<u32>,
    /// So many exercises were completed without a hint that costs.
    pub without_hints: Option<u32>,
    /// The longest streak has so many days.
    pub streak_days: Option<u32>,
}
