//! Refusals of calls, for every face.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use model::{Failure, Kind};

/// Why a call came to nothing. Read from a status and its `google.rpc` details.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The gRPC code.
    pub status: Code,
    /// Stable code, such as `SKILL_NOT_FOUND`.
    pub code: String,
    /// What happened to the caller's things.
    pub message: String,
    /// Facts for programs, by name.
    pub details: Map<String, Json>,
    /// Fields of the request that are wrong, each with a sentence.
    pub fields: Vec<(String, String)>,
    /// What to do next, most useful first.
    pub suggestions: Vec<String>,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// It is the server that is broken; the caller can change nothing.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(self.status, Code::Internal | Code::Unknown | Code::DataLoss)
    }

    /// What was asked for is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.status == Code::NotFound
    }

    /// It is not for this caller, which may have other calls.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.status, Code::PermissionDenied | Code::Unauthenticated)
    }

    /// The request is wrong, whatever the state.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.status, Code::InvalidArgument | Code::OutOfRange)
    }

    /// The position asked for is no longer in the log.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code == model::Code::ResumeTokenExpired.name()
    }

    /// `ErrorInfo` of the tool specification.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut details = self.details.clone();
        if !self.fields.is_empty() {
            let fields = self.fields.iter();
            let fields = fields.map(|(field, text)| json!({"field": field, "message": text}));
            details.insert("fields".to_owned(), fields.collect());
        }
        if let Some(delay) = self.retry_after {
            details.insert("retry_after_ms".to_owned(), json!(delay.as_millis()));
        }
        json!({
            "code": self.code,
            "message": self.message,
            "details": details,
            "recovery_suggestions": self.suggestions,
        })
    }

    /// Returns the text for a reader: the message, the fields it is about, and what to do
    /// next.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        for (field, sentence) in &self.fields {
            // The message of a single wrong field often is that field already.
            if field.is_empty() || text == format!("{field}: {sentence}") {
                continue;
            }
            text.push_str("\nField ");
            text.push_str(field);
            if *sentence != self.message {
                text.push_str(": ");
                text.push_str(sentence);
            }
        }
        for step in &self.suggestions {
            text.push_str("\nNext: ");
            text.push_str(step);
        }
        text
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

/// A code for a status that came without one: from a proxy, or from a server that
/// is no Repertoire.
fn code(status: Code) -> model::Code {
    match status {
        // Out of range: a message larger than the other side takes.
        Code::InvalidArgument | Code::OutOfRange => model::Code::InvalidParameter,
        Code::DeadlineExceeded | Code::Cancelled => model::Code::Timeout,
        Code::ResourceExhausted => model::Code::Overloaded,
        Code::Unavailable => model::Code::ServerUnreachable,
        _ => model::Code::InternalError,
    }
}

/// The detail that has code and skill of each field of a refused set of skills.
const VALIDATION_ERRORS: &str = "validation_errors";

/// The same with their messages, as `ValidateSkillSet` has them; none where the text was
/// cut on its way.
fn validation_errors(text: &str, fields: &[(String, String)]) -> Option<Json> {
    let errors: Vec<Map<String, Json>> = serde_json::from_str(text).ok()?;
    let errors = errors.into_iter().zip(fields).map(|(error, (_, sentence))| {
        let code = error.get("code").and_then(Json::as_str).unwrap_or_default();
        let message = sentence
            .strip_prefix(code)
            .and_then(|rest| rest.strip_prefix(": "));
        json!({"code": code, "message": message.unwrap_or(sentence), "skill": error.get("skill")})
    });
    Some(errors.collect())
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let rich = status.get_error_details();
        let mut details = Map::new();
        let mut named = None;
        if let Some(info) = rich.error_info() {
            named = Some(info.reason.clone());
            for (name, value) in &info.metadata {
                // Metadata of gRPC is text; programs get the number of the code as a number.
                let number = (name == "number")
                    .then(|| value.parse::<u16>().ok())
                    .flatten();
                details.insert(
                    name.clone(),
                    number.map_or_else(|| json!(value), Json::from),
                );
            }
        } else {
            details.insert("number".to_owned(), code(status.code()).number().into());
        }
        let fields = rich.bad_request().into_iter();
        let fields = fields.flat_map(|bad| &bad.field_violations);
        let fields: Vec<_> = fields
            .map(|one| (one.field.clone(), one.description.clone()))
            .collect();
        if let Some(text) = details.shift_remove(VALIDATION_ERRORS)
            && let Some(errors) = validation_errors(text.as_str().unwrap_or_default(), &fields)
        {
            details.insert(VALIDATION_ERRORS.to_owned(), errors);
        }
        let steps = rich.help().into_iter().flat_map(|help| &help.links);
        Self {
            status: status.code(),
            code: named.unwrap_or_else(|| code(status.code()).name().to_owned()),
            message: match status.message() {
                "" => code(status.code()).meaning().to_owned(),
                message => message.to_owned(),
            },
            details,
            fields,
            suggestions: steps.map(|link| link.description.clone()).collect(),
            retry_after: rich.retry_info().and_then(|retry| retry.retry_delay),
        }
    }
}

/// Returns the gRPC code of a kind of failure.
#[must_use]
pub fn grpc_code(kind: Kind) -> Code {
    match kind {
        Kind::Invalid => Code::InvalidArgument,
        Kind::NotFound => Code::NotFound,
        Kind::Unauthenticated => Code::Unauthenticated,
        Kind::Denied => Code::PermissionDenied,
        Kind::State => Code::FailedPrecondition,
        Kind::Conflict => Code::Aborted,
        Kind::Exhausted => Code::ResourceExhausted,
        Kind::OutOfRange => Code::OutOfRange,
        Kind::Timeout => Code::DeadlineExceeded,
        Kind::Unavailable => Code::Unavailable,
        Kind::DataLoss => Code::DataLoss,
        Kind::Fault => Code::Internal,
    }
}

/// For problems that the gateway finds in a request before it calls anything.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let mut details: Map<_, _> = failure
            .details
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        details.insert("number".to_owned(), failure.code.number().into());
        Self {
            status: grpc_code(failure.code.kind()),
            code: failure.code.name().to_owned(),
            message: failure.message,
            details,
            fields: failure
                .fields
                .into_iter()
                .map(|problem| (problem.field, problem.message))
                .collect(),
            suggestions: failure.suggestions,
            retry_after: failure.retry_after,
        }
    }
}
