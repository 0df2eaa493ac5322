//! Failures as gRPC statuses, with the details of `google.rpc`.

use std::collections::HashMap;
use std::time::Duration;

use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::contract::{Violation, v1};
use crate::model::{Failure, FieldProblem, Kind, Severity, printable};

/// `domain` of every `google.rpc.ErrorInfo` of this server.
pub const DOMAIN: &str = "repertoire";

/// Details travel in a header, which clients cap at 8 KiB and more: so many
/// findings at most, and what is left out is said.
const MAX_DETAILS: usize = 16;
const MAX_MESSAGE_CHARS: usize = 600;

fn code(kind: Kind) -> tonic::Code {
    match kind {
        Kind::Invalid => tonic::Code::InvalidArgument,
        Kind::NotFound => tonic::Code::NotFound,
        Kind::Denied => tonic::Code::PermissionDenied,
        Kind::State => tonic::Code::FailedPrecondition,
        Kind::Conflict => tonic::Code::Aborted,
        Kind::Exhausted => tonic::Code::ResourceExhausted,
        Kind::OutOfRange => tonic::Code::OutOfRange,
        Kind::Timeout => tonic::Code::DeadlineExceeded,
        Kind::Unavailable => tonic::Code::Unavailable,
        Kind::DataLoss => tonic::Code::DataLoss,
        Kind::Fault => tonic::Code::Internal,
    }
}

/// What goes out of a text, which may repeat a caller's.
fn short(text: &str) -> String {
    let text = printable(text);
    if text.chars().nth(MAX_MESSAGE_CHARS).is_none() {
        return text.into_owned();
    }
    text.chars().take(MAX_MESSAGE_CHARS).chain(['…']).collect()
}

/// Spells a failure. A fault is logged here, once, with its cause, which the
/// caller does not see.
pub fn status(failure: impl Into<Failure>) -> Status {
    let failure = failure.into();
    if let Some(cause) = &failure.cause {
        tracing::error!(code = failure.code.name(), cause = %cause, "a call failed");
    }
    let Failure {
        code: reason,
        message,
        details,
        fields,
        problems,
        suggestions,
        retry_after,
        cause: _,
    } = failure;
    let mut metadata: HashMap<String, String> =
        details.into_iter().map(|(k, v)| (k, short(&v))).collect();
    metadata.insert("number".to_owned(), reason.number().to_string());
    let mut rich = ErrorDetails::with_error_info(reason.name(), DOMAIN, metadata);
    // What only warns is in the answer of ValidateSkill; here is what refuses.
    let refusing = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    let findings = refusing.map(|problem| {
        let place = match problem.line {
            0 => problem.file.clone(),
            line => format!("{}:{line}", problem.file),
        };
        (place, format!("{}: {}", problem.rule, problem.message))
    });
    let wrong: Vec<_> = fields
        .into_iter()
        .map(|f| (f.field, f.message))
        .chain(findings)
        .collect();
    for (field, description) in wrong.iter().take(MAX_DETAILS) {
        rich.add_bad_request_violation(short(field), short(description));
    }
    if wrong.len() > MAX_DETAILS {
        let more = wrong.len() - MAX_DETAILS;
        rich.add_bad_request_violation("", format!("and {more} more"));
    }
    for step in suggestions {
        rich.add_help_link(step, "");
    }
    let retry = retry_after.or_else(|| {
        matches!(
            reason.kind(),
            Kind::Exhausted | Kind::Unavailable | Kind::Conflict
        )
        .then_some(Duration::from_millis(250))
    });
    if let Some(delay) = retry {
        rich.set_retry_info(Some(delay));
    }
    Status::with_error_details(code(reason.kind()), short(&message), rich)
}

/// What a request says that breaks its rules.
pub(super) fn invalid(violations: Vec<Violation>) -> Failure {
    let mut hints: Vec<_> = violations.iter().map(|violation| violation.hint).collect();
    hints.retain(|hint| !hint.is_empty());
    hints.dedup();
    let fields = violations.into_iter().map(
        |Violation {
             field,
             rule,
             message,
             hint: _,
         }| FieldProblem {
            field,
            message,
            rule,
        },
    );
    let failure = Failure::invalid(fields.collect());
    hints.into_iter().fold(failure, Failure::suggest)
}

/// A failure inside an answer.
pub(super) fn refusal(failure: impl Into<Failure>) -> v1::Refusal {
    let failure = failure.into();
    if let Some(cause) = &failure.cause {
        tracing::error!(code = failure.code.name(), cause = %cause, "an item failed");
    }
    v1::Refusal {
        code: failure.code.name().to_owned(),
        message: failure.message,
        recovery_suggestions: failure.suggestions,
        problems: failure.problems.into_iter().map(Into::into).collect(),
    }
}
