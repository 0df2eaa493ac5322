//! The stored records.
//!
//! Every change reads and writes the learner's record, so its size is bounded: days are stored
//! as runs, and of paths and achievements there are only so many. Activities are records of
//! their own, numbered by learner.

use std::collections::BTreeMap;

use courses::{Achievement, Feedback, Verdict};
use jiff::Timestamp;
use model::Digest;
use serde::{Deserialize, Serialize};
use store::{Table, TableId};

use crate::Streak;
use crate::schedule::Memory;

/// By learner.
pub(crate) const LEARNERS: Table<str, Profile> = Table::new(TableId::Learners);
/// By learner and exercise.
pub(crate) const EXERCISES: Table<(String, String), Attempted> =
    Table::new(TableId::LearnerExercises);
/// By [`submission`].
pub(crate) const SUBMISSIONS: Table<Digest, Submission> = Table::new(TableId::Submissions);
/// By learner and number, from 1.
pub(crate) const ACTIVITIES: Table<(String, u64), Activity> = Table::new(TableId::Activities);
/// Paths of submissions that wait for a reviewer, by [`queue_time`] and submission.
pub(crate) const WAITING: Table<(u64, Digest), String> = Table::new(TableId::WaitingSubmissions);

/// A learner.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Profile {
    /// IANA name of the zone in which the learner's days begin; empty: UTC.
    #[serde(default)]
    pub(crate) time_zone: String,
    /// Days with a submission.
    #[serde(default)]
    pub(crate) streak: Streak,
    /// Achievements, the oldest first.
    #[serde(default)]
    pub(crate) achievements: Vec<Earned>,
    /// Seconds between steps.
    #[serde(default)]
    pub(crate) seconds: u64,
    /// When the learner last did something.
    #[serde(default)]
    pub(crate) last_activity: Option<Timestamp>,
    /// Number of the last activity.
    #[serde(default)]
    pub(crate) activities: u64,
    /// Paths that were begun.
    #[serde(default)]
    pub(crate) paths: BTreeMap<String, StartedPath>,
}

/// A path that was begun.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StartedPath {
    /// When.
    pub(crate) started: Timestamp,
    /// When the learner last did something in it.
    pub(crate) last_activity: Timestamp,
}

/// Something that was earned, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earned {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The deed that it was earned by.
    pub description: String,
    /// Name of a picture.
    pub icon: String,
    /// When.
    pub time: Timestamp,
}

impl Earned {
    pub(crate) fn of(achievement: &Achievement, time: Timestamp) -> Self {
        Self {
            id: achievement.id.clone(),
            name: achievement.name.clone(),
            description: achievement.description.clone(),
            icon: achievement.icon.clone(),
            time,
        }
    }
}

/// The progress of a learner in an exercise.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Attempted {
    /// Grows with each review that is due and with each reset: the same solution is another
    /// submission then.
    #[serde(default)]
    pub(crate) round: u32,
    /// When it was due where a review last raised the round: it does so once.
    #[serde(default)]
    pub(crate) raised: Option<Timestamp>,
    /// When it was begun. None: it was reset.
    #[serde(default)]
    pub(crate) started: Option<Timestamp>,
    /// When the learner last did something with it.
    #[serde(default)]
    pub(crate) last: Option<Timestamp>,
    /// Submissions before it was completed, that one included.
    #[serde(default)]
    pub(crate) attempts: u32,
    /// Hints that were revealed and cost.
    #[serde(default)]
    pub(crate) hints: u32,
    /// The best score.
    #[serde(default)]
    pub(crate) best: f64,
    /// When it was completed.
    #[serde(default)]
    pub(crate) completed: Option<Timestamp>,
    /// It was completed without a hint that costs.
    #[serde(default)]
    pub(crate) unaided: bool,
    /// Submissions that wait for a reviewer.
    #[serde(default)]
    pub(crate) waiting: u32,
    /// The last review.
    #[serde(default)]
    pub(crate) review: Option<LastReview>,
    /// When it is about to be forgotten. None: it is not completed.
    #[serde(default)]
    pub(crate) memory: Option<Memory>,
}

/// A reviewer's verdict on a solution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReview {
    /// The reviewer.
    pub reviewer: String,
    /// Whether the solution does what was asked.
    pub passed: bool,
    /// In their words.
    pub comment: String,
    /// When.
    pub time: Timestamp,
}

/// A solution that was handed in, and its result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Submission {
    pub(crate) learner: String,
    pub(crate) exercise: String,
    pub(crate) path: String,
    pub(crate) time: Timestamp,
    pub(crate) verdict: Verdict,
    /// Less what hints cost.
    pub(crate) score: f64,
    pub(crate) feedback: Feedback,
    /// Achievements that it earned.
    #[serde(default)]
    pub(crate) earned: Vec<Earned>,
    /// The solution, where a person reviews it.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// The reviewer.
    #[serde(default)]
    pub(crate) reviewer: Option<String>,
    /// The reviewer's comment.
    #[serde(default)]
    pub(crate) comment: String,
}

/// Something that a learner did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Its number, from 1, without gaps.
    // Watchers go by it, not by the time: a clock may be set back.
    pub number: u64,
    /// When.
    pub time: Timestamp,
    /// What.
    pub kind: ActivityKind,
    /// The same as a sentence.
    pub details: String,
    /// The score of the solution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// The kind of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// A solution of an exercise passed that had none before.
    ExerciseCompleted,
    /// The first exercise of a path was begun.
    PathStarted,
    /// An achievement was earned.
    AchievementEarned,
    /// The last exercise of a path was completed.
    PathCompleted,
    /// A path was set back.
    ProgressReset,
    /// A person reviewed a solution.
    SubmissionReviewed,
}

/// The key of a time in [`WAITING`]: microseconds since 1970.
pub(crate) fn queue_time(time: Timestamp) -> u64 {
    u64::try_from(time.as_microsecond()).unwrap_or(0)
}

/// The name of a submission: the learner, the exercise as it is now, and the solution.
pub(crate) fn submission(
    learner: &str,
    exercise: &courses::Exercise,
    round: u32,
    solution: &courses::Solution,
) -> Digest {
    let mut bytes = Vec::new();
    // Each with its length, so that no two lists of parts are the same bytes: a learner `ab` with
    // the exercise `c` is not `a` with `bc`.
    let mut part = |text: &[u8]| {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text);
    };
    part(learner.as_bytes());
    part(exercise.id.as_bytes());
    // An exercise that was changed grades the same solution anew.
    part(exercise.digest.as_bytes());
    part(&round.to_be_bytes());
    for (path, text) in &solution.files {
        part(path.as_bytes());
        part(text.as_bytes());
    }
    Digest::of(&bytes)
}
