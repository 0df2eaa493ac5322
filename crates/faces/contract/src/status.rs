//! Failures as gRPC statuses, with the details of `google.rpc`.

use std::collections::HashMap;
use std::time::Duration;

use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt as _};

use super::{Violation, v1};
use gateway::grpc_code;
use model::{Failure, FieldProblem, Kind, Severity, shown_lines};

/// `domain` of every `google.rpc.ErrorInfo` of this server.
pub const DOMAIN: &str = "repertoire";

/// Bytes that message and details may have on the wire, where they are trailers:
/// clients take 8 KiB of those at least (grpc-java takes no more), and the other
/// trailers need room, too.
const MAX_WIRE_BYTES: usize = 7 * 1024;
/// How much a status says: the most findings and next steps, and characters of each text.
/// The first that fits the wire is taken; what is left out is counted.
const LENGTHS: [(usize, usize); 7] = [
    (16, 600),
    (8, 600),
    (16, 200),
    (8, 200),
    (16, 60),
    (4, 60),
    (1, 60),
];

/// Characters of a message inside an answer, which no header limits.
const MAX_ITEM_CHARS: usize = 600;

/// Shortens a text, and removes credentials and what a terminal acts on: it may repeat text of a
/// caller.
fn short(text: &str, chars: usize) -> String {
    shown_lines(text, chars)
}

/// Estimates the bytes of message and details on the wire: the message escaped, the details in
/// base64.
fn wire_bytes(status: &Status) -> usize {
    // An upper bound: gRPC escapes fewer characters than all that are no letter or digit.
    let message = status.message().bytes();
    let escaped: usize = message
        .map(|byte| if byte.is_ascii_alphanumeric() { 1 } else { 3 })
        .sum();
    escaped + status.details().len().div_ceil(3) * 4
}

/// Converts a failure to a status. A fault is logged here, once, with its cause, which the
/// caller does not see.
pub fn status(failure: impl Into<Failure>) -> Status {
    let failure = failure.into();
    if let Some(cause) = &failure.cause {
        tracing::error!(code = failure.code.name(), cause = %cause, "a call failed");
    }
    let fits = |status: &Status| wire_bytes(status) <= MAX_WIRE_BYTES;
    LENGTHS
        .iter()
        .map(|&(max, chars)| spell(&failure, max, chars))
        .find(fits)
        // The code and its facts alone.
        .unwrap_or_else(|| spell(&failure, 0, 0))
}

/// Returns how a call ended, by the headers of its answer: none where it ended well, or where they
/// do not tell; else the stable code, or gRPC's own where another library refused it.
#[must_use]
pub fn outcome(headers: &http::HeaderMap) -> Option<String> {
    let status = Status::from_header_map(headers)?;
    if status.code() == tonic::Code::Ok {
        return None;
    }
    let info = status.get_details_error_info();
    Some(info.map_or_else(|| format!("{:?}", status.code()), |info| info.reason))
}

/// Builds the status with at most `max` findings and next steps, and `chars` characters of each
/// text.
fn spell(failure: &Failure, max: usize, chars: usize) -> Status {
    let reason = failure.code;
    let short = |text: &str| short(text, chars);
    let details = failure.details.iter();
    let mut metadata: HashMap<String, String> = details
        .map(|(name, value)| (name.clone(), short(value)))
        .collect();
    metadata.insert("number".to_owned(), reason.number().to_string());
    let mut rich = ErrorDetails::with_error_info(reason.name(), DOMAIN, metadata);
    // Only what refuses the call: warnings are for `ValidateSkill`, and would push errors out of
    // the limit.
    let refusing = failure
        .problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    let findings = refusing.map(|problem| {
        let place = match problem.line {
            0 => problem.file.clone(),
            line => format!("{}:{line}", problem.file),
        };
        (place, format!("{}: {}", problem.rule, problem.message))
    });
    let fields = failure.fields.iter();
    let wrong: Vec<_> = fields
        .map(|f| (f.field.clone(), f.message.clone()))
        .chain(findings)
        .collect();
    for (field, description) in wrong.iter().take(max) {
        rich.add_bad_request_violation(short(field), short(description));
    }
    if wrong.len() > max {
        let more = wrong.len() - max;
        rich.add_bad_request_violation("", format!("and {more} more"));
    }
    for step in failure.suggestions.iter().take(max) {
        rich.add_help_link(short(step), "");
    }
    // Kinds that pass by themselves get a pause, so that clients do not try again at once.
    let retry = failure.retry_after.or_else(|| {
        matches!(
            reason.kind(),
            Kind::Exhausted | Kind::Unavailable | Kind::Conflict
        )
        .then_some(Duration::from_millis(250))
    });
    if let Some(delay) = retry {
        rich.set_retry_info(Some(delay));
    }
    Status::with_error_details(grpc_code(reason.kind()), short(&failure.message), rich)
}

/// Builds the failure of a request that breaks its rules.
pub fn invalid(violations: Vec<Violation>) -> Failure {
    let mut hints: Vec<_> = violations.iter().map(|violation| violation.hint).collect();
    hints.retain(|hint| !hint.is_empty());
    // Wrong items of one list share the hint of their field, and are next to each other.
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
pub fn refusal(failure: impl Into<Failure>) -> v1::Refusal {
    let failure = failure.into();
    if let Some(cause) = &failure.cause {
        tracing::error!(code = failure.code.name(), cause = %cause, "an item failed");
    }
    v1::Refusal {
        code: failure.code.name().to_owned(),
        message: short(&failure.message, MAX_ITEM_CHARS),
        recovery_suggestions: failure.suggestions,
        problems: failure.problems.into_iter().map(Into::into).collect(),
    }
}

impl From<model::Problem> for v1::Problem {
    fn from(problem: model::Problem) -> Self {
        let model::Problem {
            rule,
            file,
            line,
            message,
            severity,
        } = problem;
        Self {
            rule,
            file,
            line,
            message,
            severity: v1::Severity::from(severity).into(),
        }
    }
}

impl From<Severity> for v1::Severity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Info,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use gateway::Refusal;
    use model::Code;
    use serde_json::json;

    /// Bytes of the trailers as they are sent.
    fn sent(status: &Status) -> usize {
        let mut headers = http::HeaderMap::new();
        status.add_header(&mut headers).expect("trailers");
        // The overhead of an entry is what HTTP/2 counts.
        let entries = headers.iter();
        entries
            .map(|(name, value)| name.as_str().len() + value.len() + 32)
            .sum()
    }

    fn failure(fields: usize, steps: usize, text: &str) -> Failure {
        let place = |at: usize| format!("files[{at}].{text}");
        let mut failure = Failure::new(Code::InvalidParameter, text).detail("given", text);
        for at in 0..fields {
            failure = failure.field(&place(at), text);
        }
        (0..steps).fold(failure, |failure, _| failure.suggest(text))
    }

    #[test]
    fn details_stay_below_what_clients_take_and_what_is_left_out_is_counted() {
        for text in [
            "x".repeat(5000),
            "\u{fc} \u{1f600}%".repeat(500),
            "short".to_owned(),
        ] {
            for (fields, steps) in [(0, 0), (1, 1), (16, 4), (40, 40), (1000, 0)] {
                let status = status(failure(fields, steps, &text));
                let bytes = sent(&status);
                assert!(bytes < 7600, "{bytes} bytes for {fields} and {steps}");
                let rich = status.get_error_details();
                let named = rich
                    .bad_request()
                    .map_or(&[][..], |bad| &bad.field_violations);
                let more = named
                    .last()
                    .and_then(|last| last.description.strip_prefix("and "))
                    .and_then(|rest| rest.strip_suffix(" more"))
                    .map_or(0, |count| count.parse::<usize>().expect("a count") - 1);
                assert_eq!(named.len() + more, fields, "{named:?}");
                assert_eq!(
                    rich.error_info().map(|info| info.reason.as_str()),
                    Some("INVALID_PARAMETER")
                );
            }
        }
    }

    #[test]
    fn errors_of_a_set_of_skills_keep_their_skill_and_code() {
        let failure = Failure::new(Code::SkillSetInvalid, "no")
            .field("skills[0]", "UNKNOWN_SKILL: there is no skill 'a'")
            .detail(
                "validation_errors",
                r#"[{"code":"UNKNOWN_SKILL","skill":"a"}]"#,
            );
        let refusal = Refusal::from(status(failure));
        assert_eq!(refusal.status, tonic::Code::FailedPrecondition);
        assert_eq!(
            refusal.details["validation_errors"],
            json!([{"code": "UNKNOWN_SKILL", "message": "there is no skill 'a'", "skill": "a"}])
        );
        // What was cut on its way is no JSON any more.
        let cut = format!("[{}", "{\"code\":\"X\",\"skill\":\"a\"},".repeat(60));
        let failure = Failure::new(Code::SkillSetInvalid, "no").detail("validation_errors", cut);
        assert_eq!(
            Refusal::from(status(failure))
                .details
                .get("validation_errors"),
            None
        );
    }

    proptest! {
        #[test]
        fn any_failure_fits(fields in 0_usize..40, steps in 0_usize..40, text in ".{0,700}") {
            let status = status(failure(fields, steps, &text));
            prop_assert!(sent(&status) < 7600);
        }
    }
}
