//! A path and its exercises, once they are read.

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
    /// The level that it is for.
    pub difficulty: Difficulty,
    /// How long it takes.
    pub estimated_hours: f64,
    /// Skills that it teaches.
    pub skills_covered: Vec<String>,
    /// Paths to take before it, by id.
    pub prerequisites: Vec<String>,
    /// The abilities of the learner afterwards.
    pub objectives: Vec<String>,
    /// Other paths, by id.
    pub related_paths: Vec<String>,
    /// The text below the front matter of `PATH.md`.
    pub introduction: String,
    /// The achievements that can be earned in it.
    pub achievements: Vec<Achievement>,
    /// Its exercises, in order.
    pub exercises: Vec<Arc<Exercise>>,
}

/// The level of the learners that a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    /// They know nothing of it.
    Beginner,
    /// They know the basics.
    Intermediate,
    /// They do it already.
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
    /// The text below the front matter of `EXERCISE.md`.
    pub instructions: String,
    /// The files that the learner starts from.
    pub starter: Solution,
    /// Its hints.
    pub hints: Hints,
    /// How it is graded.
    pub validation: ValidationKind,
    /// Language of a solution, such as `javascript`; empty where it is prose.
    pub language: String,
    /// Name of the one text that a solution is; none where it is a folder.
    pub file_name: Option<String>,
    /// The points that a reviewer checks, where a person grades; else none.
    pub checklist: Vec<String>,
    /// The output that an `output` exercise must print, unless it is hidden.
    pub expected_output: Option<String>,
    /// Cases that may be seen.
    pub shown_cases: Vec<ShownCase>,
    /// Over all files of the exercise, so that a change is noticed.
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
    /// By its output.
    Output,
    /// By patterns that the text must, or must not, match.
    Pattern,
    /// By a person.
    Manual,
    /// By what it does.
    Test,
}

impl Exercise {
    /// The text that a learner starts from; none where a solution is files.
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
    /// All of them. Only those that were revealed leave the server.
    pub all: Vec<String>,
}

impl fmt::Debug for Hints {
    /// Prints how many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not their texts: a hint costs points, and what prints an exercise may end in a log.
        f.debug_struct("Hints")
            .field("free", &self.free)
            .field("all", &self.all.len())
            .finish()
    }
}

/// A solution, or a starter: files by path. Where an exercise wants one text, that is its
/// only file.
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
    /// The call, or the question.
    pub input: String,
    /// The result that is expected.
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
    /// The deed that it was earned by.
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
    /// This many exercises are completed, of all paths.
    pub exercises_completed: Option<u32>,
    /// This many exercises were completed with the first submission.
    pub first_tries: Option<u32>,
    /// This many exercises were completed without a hint that costs.
    pub without_hints: Option<u32>,
    /// The longest streak has this many days.
    pub streak_days: Option<u32>,
}
