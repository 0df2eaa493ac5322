//! The trait that runs the tools of a skill.
//!
//! Not here: handlers themselves (`sql`, `jira`, the workers of `tools`), and the checks
//! before a call (`tools`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use model::{Code, Digest, Failure, Principal, SkillId, ToolName, VersionNumber};

/// The method that returns the beginning of level 2, such as the schema of a
/// database. A handler need not have it.
pub const LOAD_CORE: &str = "load_core";

/// A future of a handler.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs methods of skills.
///
/// Its input was checked: the skill is loaded, the arguments match the tool's
/// schema, defaults are filled in. A future that is dropped is a call that
/// nobody waits for any more; the gate drops it at its deadline.
pub trait Handler: Send + Sync + fmt::Debug {
    /// Whether it runs this method of this skill now.
    fn serves(&self, skill: &SkillId, method: &str) -> bool;

    /// Returns the skills that it serves now, for lists of tools.
    fn skills(&self) -> Vec<SkillId>;

    /// Returns why none of its calls can succeed, for lists of tools; none: they may.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Runs a method.
    fn call(&self, invocation: Invocation) -> Work<'_, Result<Output, ToolError>>;
}

/// A call to make.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The call, as logs and the list of calls name it.
    pub id: String,
    /// Skill that declares the tool.
    pub skill: SkillId,
    /// The version that is loaded.
    pub version: VersionNumber,
    /// Its digest.
    pub digest: Digest,
    /// The tool; none where a resource or level 2 is asked for.
    pub tool: Option<ToolName>,
    /// Method to run.
    pub method: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
    /// Context that the session gave the skill.
    pub context: Map<String, Value>,
    /// Time that the caller waits.
    pub timeout: Duration,
    /// Key that a repeated call has again.
    pub idempotency_key: String,
    /// The caller.
    pub caller: Principal,
    /// Channel for progress; when it is full, a report is dropped.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// Progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Work that is done.
    pub done: f64,
    /// All of the work, where that is known.
    pub total: Option<f64>,
    /// The current step.
    pub message: String,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// As text.
    pub text: String,
    /// For programs.
    pub structured: Option<Map<String, Value>>,
}

impl Output {
    /// A result of text alone.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            structured: None,
        }
    }

    /// A result for people and for programs.
    #[must_use]
    pub fn structured(text: impl Into<String>, structured: Map<String, Value>) -> Self {
        Self {
            text: text.into(),
            structured: Some(structured),
        }
    }
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// The tool could not do it.
    Failed,
    /// An argument is wrong.
    Invalid,
    /// It is not allowed.
    Denied,
    /// Not now.
    Unavailable,
    /// It took longer than the caller waits.
    Timeout,
    /// This build of the program leaves out what runs it.
    NotBuilt,
}

/// A call failed, in words for the caller. Never holds a secret, nor a text of
/// another system that may hold one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// Its kind.
    pub kind: ToolErrorKind,
    /// Description of the failure.
    pub message: String,
    /// Next steps for the caller.
    pub suggestions: Vec<String>,
    /// Argument that is wrong; empty: none.
    pub field: String,
    /// Delay before another attempt.
    pub retry_after: Option<Duration>,
}

impl ToolError {
    /// A failure with nothing but a message.
    #[must_use]
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            suggestions: Vec::new(),
            field: String::new(),
            retry_after: None,
        }
    }

    /// The tool could not do it.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    /// An argument is wrong.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Invalid, message)
    }

    /// It is not allowed.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Denied, message)
    }

    /// It cannot be done now.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Unavailable, message)
    }

    /// It took longer than the caller waits.
    #[must_use]
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Timeout, message)
    }

    /// Adds a next step.
    #[must_use]
    pub fn suggest(mut self, step: impl Into<String>) -> Self {
        self.suggestions.push(step.into());
        self
    }

    /// Names the argument that is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let code = match error.kind {
            ToolErrorKind::Failed => Code::ToolFailed,
            ToolErrorKind::Invalid => Code::InvalidParameter,
            ToolErrorKind::Denied => Code::ToolDenied,
            ToolErrorKind::Unavailable => Code::ToolUnavailable,
            ToolErrorKind::Timeout => Code::Timeout,
            ToolErrorKind::NotBuilt => Code::FeatureNotBuilt,
        };
        let mut failure = Self::new(code, error.message.clone());
        failure.suggestions = error.suggestions;
        failure.retry_after = error.retry_after;
        if !error.field.is_empty() {
            failure = failure.field(&format!("arguments.{}", error.field), error.message);
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything of a failure that a caller gets to see.
    fn visible(
        error: ToolError,
    ) -> (
        Code,
        String,
        Vec<String>,
        Vec<[String; 2]>,
        Option<Duration>,
    ) {
        let failure = Failure::from(error);
        assert!(failure.details.is_empty() && failure.problems.is_empty());
        let fields = failure.fields.into_iter();
        let fields = fields.map(|field| [field.field, field.message]);
        (
            failure.code,
            failure.message,
            failure.suggestions,
            fields.collect(),
            failure.retry_after,
        )
    }

    #[test]
    fn each_sort_of_failure_has_its_code() {
        let codes = [
            ToolErrorKind::Failed,
            ToolErrorKind::Invalid,
            ToolErrorKind::Denied,
            ToolErrorKind::Unavailable,
            ToolErrorKind::Timeout,
            ToolErrorKind::NotBuilt,
        ]
        .map(|kind| Failure::from(ToolError::new(kind, "no")).code);
        assert_eq!(
            codes,
            [
                Code::ToolFailed,
                Code::InvalidParameter,
                Code::ToolDenied,
                Code::ToolUnavailable,
                Code::Timeout,
                Code::FeatureNotBuilt,
            ]
        );
    }

    #[test]
    fn a_failure_keeps_what_the_handler_said_of_it() {
        let mut busy = ToolError::new(ToolErrorKind::Unavailable, "The database is busy")
            .suggest("Ask for less")
            .suggest("Ask later");
        busy.retry_after = Some(Duration::from_secs(7));
        assert_eq!(busy.to_string(), "The database is busy");
        assert_eq!(
            visible(busy),
            (
                Code::ToolUnavailable,
                "The database is busy".to_owned(),
                vec!["Ask for less".to_owned(), "Ask later".to_owned()],
                Vec::new(),
                Some(Duration::from_secs(7))
            )
        );
    }

    #[test]
    fn a_wrong_argument_is_named_where_the_caller_wrote_it() {
        let wrong = ToolError::new(ToolErrorKind::Invalid, "There is no such table").field("table");
        assert_eq!(wrong.to_string(), "There is no such table");
        assert_eq!(
            visible(wrong),
            (
                Code::InvalidParameter,
                "There is no such table".to_owned(),
                Vec::new(),
                vec![["arguments.table", "There is no such table"].map(str::to_owned)],
                None
            )
        );
    }

    #[test]
    fn a_text_is_a_result_without_structure() {
        let expected = Output {
            text: "three rows".to_owned(),
            structured: None,
        };
        assert_eq!(Output::text("three rows"), expected);
    }

    #[test]
    fn a_handler_that_does_not_say_otherwise_is_available() {
        #[derive(Debug)]
        struct Plain;

        impl Handler for Plain {
            fn serves(&self, _: &SkillId, _: &str) -> bool {
                true
            }

            fn skills(&self) -> Vec<SkillId> {
                Vec::new()
            }

            fn call(&self, _: Invocation) -> Work<'_, Result<Output, ToolError>> {
                Box::pin(async { Ok(Output::default()) })
            }
        }

        assert_eq!(Plain.unavailable(), None);
    }
}
