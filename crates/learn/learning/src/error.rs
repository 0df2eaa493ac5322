//! What can go wrong.

use std::borrow::Cow;

use courses::Catalog;
use model::{Code, Failure};
use registry::nearest_names;
use store::{CommitError, StoreError};

/// Why a call is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such path.
    #[error("no learning path '{id}'")]
    PathNotFound {
        /// What was asked for.
        id: String,
        /// Ids that may have been meant.
        near: Vec<String>,
    },
    /// No such exercise.
    #[error("no exercise '{id}'")]
    ExerciseNotFound {
        /// What was asked for.
        id: String,
        /// Ids that may have been meant.
        near: Vec<String>,
    },
    /// No such group of paths.
    #[error("no category '{category}'; there are {}", known.join(", "))]
    CategoryUnknown {
        /// What was asked for.
        category: String,
        /// What there is.
        known: Vec<String>,
    },
    /// All exercises of a path are completed, and none is due.
    #[error("all {count} exercises of '{path}' are completed{}", review_in(*days))]
    NoneRemaining {
        /// The id of the path.
        path_id: String,
        /// Its name.
        path: String,
        /// How many there are.
        count: usize,
        /// Days until the first review.
        days: Option<i64>,
    },
    /// All that is left of a path waits for a reviewer, or requires what does.
    #[error("'{exercise}' waits for a reviewer, and nothing else is left in '{path}'")]
    Waiting {
        /// The id of the path.
        path_id: String,
        /// Its name.
        path: String,
        /// The exercise.
        exercise: String,
    },
    /// What an exercise builds on was not learned.
    #[error("exercise '{id}' is locked: it builds on {}", list(missing))]
    Locked {
        /// The exercise.
        id: String,
        /// Concepts that are missing.
        missing: Vec<String>,
        /// Exercises that teach them.
        teachers: Vec<String>,
    },
    /// All hints are shown.
    #[error("exercise '{id}' has no more hints")]
    NoHints {
        /// The exercise.
        id: String,
    },
    /// No such submission.
    #[error("no submission '{id}' waits for a review, or was reviewed")]
    SubmissionNotFound {
        /// What was asked for.
        id: String,
    },
    /// Another review was recorded.
    #[error("submission '{id}' was reviewed by '{reviewer}' with another verdict")]
    Reviewed {
        /// The submission.
        id: String,
        /// The reviewer.
        reviewer: String,
    },
    /// A value of the request is wrong.
    #[error("{message}")]
    Parameter {
        /// Which.
        field: Cow<'static, str>,
        /// What is wrong with it.
        message: String,
    },
    /// A value of the request is missing.
    #[error("{message}")]
    Missing {
        /// Which.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A page token is none of ours.
    #[error("the page token is not one of this list")]
    PageToken,
    /// There is more to grade than is taken. Nothing was recorded.
    #[error(transparent)]
    Busy(#[from] courses::Busy),
    /// Other writes of the learner kept coming between.
    #[error("other writes of the same learner kept interfering")]
    Contention,
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store does not take the write.
    #[error(transparent)]
    Commit(CommitError),
}

fn quoted<'a>(asked: &str, ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let near = nearest_names(asked, ids).into_iter();
    near.map(|id| format!("`{id}`")).collect()
}

impl Error {
    pub(crate) fn parameter(
        field: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self::Parameter {
            field: field.into(),
            message: message.into(),
        }
    }

    /// There is no path of this id.
    pub(crate) fn no_path(catalog: &Catalog, id: &str) -> Self {
        let ids = catalog.paths().iter().map(|path| path.id.as_str());
        Self::PathNotFound {
            near: quoted(id, ids),
            id: id.to_owned(),
        }
    }

    /// There is no exercise of this id.
    pub(crate) fn no_exercise(catalog: &Catalog, id: &str) -> Self {
        let ids = catalog.exercises().map(|it| it.id.as_str());
        Self::ExerciseNotFound {
            near: quoted(id, ids),
            id: id.to_owned(),
        }
    }
}

fn list(items: &[String]) -> String {
    let quoted: Vec<_> = items.iter().map(|item| format!("'{item}'")).collect();
    quoted.join(", ")
}

fn review_in(days: Option<i64>) -> String {
    match days {
        None => String::new(),
        Some(..=1) => "; the first review is due within a day".to_owned(),
        Some(days) => format!("; the first review is due in {days} days"),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let new = |code| Failure::new(code, message.clone());
        match error {
            Error::PathNotFound { id, near } => new(Code::PathNotFound)
                .did_you_mean(&near)
                .detail("path_id", &id)
                .suggest("List the paths, which gives their ids"),
            Error::ExerciseNotFound { id, near } => new(Code::ExerciseNotFound)
                .did_you_mean(&near)
                .detail("exercise_id", &id)
                .suggest("Get a path, which lists its exercises with their ids"),
            Error::CategoryUnknown { .. } => new(Code::InvalidParameter).field("category", message),
            Error::NoneRemaining { path_id, .. } => new(Code::NoExercisesRemaining)
                .detail("path_id", &path_id)
                .suggest("Continue with another path")
                .suggest("Reset the path's progress to take it again"),
            Error::Waiting { path_id, .. } => new(Code::NoExercisesRemaining)
                .detail("path_id", &path_id)
                .suggest("Continue with another path until it is reviewed"),
            Error::Locked { id, teachers, .. } => new(Code::ExerciseLocked)
                .detail("exercise_id", &id)
                .suggest(format!("Complete {} first", list(&teachers)))
                .suggest("Set `practice` to open it anyway"),
            Error::NoHints { id } => new(Code::NoHintsRemaining)
                .detail("exercise_id", &id)
                .suggest("Submit what you have: the feedback says what is missing"),
            Error::SubmissionNotFound { id } => new(Code::SubmissionNotFound)
                .detail("submission_id", &id)
                .suggest("List the submissions that wait, with their ids"),
            Error::Reviewed { id, .. } => {
                new(Code::SubmissionReviewed).detail("submission_id", &id)
            }
            Error::Parameter { field, .. } => new(Code::InvalidParameter).field(&field, message),
            Error::Missing { field, .. } => new(Code::MissingParameter).field(field, message),
            Error::PageToken => new(Code::PageTokenInvalid)
                .field("page_token", message)
                .suggest("Begin with the first page"),
            Error::Busy(busy) => {
                let wait = busy.retry_after();
                let mut failure = new(Code::Overloaded)
                    .suggest(format!("Try again in {} seconds", wait.as_secs()));
                failure.retry_after = Some(wait);
                failure
            }
            Error::Contention => new(Code::WriteContention).suggest("Try again"),
            Error::Store(error) => error.into(),
            Error::Commit(error) => error.into(),
        }
    }
}
