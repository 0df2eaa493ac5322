//! The `ToolHost` service: converts the messages from and to workers.

use std::borrow::Cow;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::Extensions;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};
use tonic_types::StatusExt as _;

use super::convert::size;
use super::{access, wrong};
use ::access::Access;
use contract::handlers::{self, Answer, Messages, View};
use contract::{Checked as _, invalid, json, status, v1};
use handler::{Invocation, Output, Progress, ToolError, ToolErrorKind};
use model::{Code, Failure, NOT_EXACT, SkillIdError, inexact};
use tools::host::{FromWorker, Hello, Host, Served, ToWorker, Welcome};

/// The longest time that a worker may ask callers to wait: a message can hold a duration that
/// overflows a clock.
const MAX_RETRY: Duration = Duration::from_secs(24 * 3600);

/// The `ToolHost` service over a host.
#[derive(Debug, Clone)]
pub struct ToolHostService(pub Host);

impl View for ToolHostService {
    async fn view<'a>(&'a self, _: &Extensions) -> Cow<'a, Self> {
        // A worker sees no skills. Which ones it may serve is checked when it attaches.
        Cow::Borrowed(self)
    }
}

impl handlers::ToolHost for ToolHostService {
    async fn attach(
        &self,
        request: Request<Streaming<v1::AttachRequest>>,
    ) -> Answer<Messages<v1::AttachResponse>> {
        let Access {
            caller, signs_in, ..
        } = access(&request);
        let token = bearer(request.metadata()).map(str::to_owned);
        let messages = request.into_inner().map(|message| match message {
            Ok(message) => from_wire(message),
            Err(error) => Err(unreadable(&error)),
        });
        // The call layer has checked the right to serve. A worker that signed in serves the skills
        // that its rights name; others show a token of the config file, which the host checks.
        let answers = if signs_in && !caller.is_anonymous() {
            let skills = caller.rights.skills.clone();
            let attached = self.0.attach_caller(&caller.principal, skills, messages);
            attached.await
        } else {
            self.0.attach(token.as_deref(), messages).await
        };
        let answers = answers?.map(|message| message.map(to_wire).map_err(status));
        Ok(Response::new(Box::pin(answers)))
    }
}

/// Returns the token of `authorization: Bearer TOKEN`; the name of the scheme is compared
/// without case.
fn bearer(metadata: &MetadataMap) -> Option<&str> {
    let value = metadata.get("authorization")?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

/// Builds the failure for a message that the codec refused, which ends the stream.
fn unreadable(error: &Status) -> Failure {
    let message = format!(
        "A message of the worker cannot be read: {}",
        error.message()
    );
    let mut failure = Failure::new(Code::InvalidParameter, message);
    // The code of tonic for a message above the limit of its decoder.
    if error.code() == tonic::Code::OutOfRange {
        failure = failure.suggest("Keep results below `max_result_bytes` of `welcome`");
    }
    let fields = error.get_details_bad_request();
    for field in fields.into_iter().flat_map(|wrong| wrong.field_violations) {
        failure = failure.field(&field.field, field.description);
    }
    failure
}

/// Converts a message, and checks what the codec passes over: messages inside a `oneof`.
fn from_wire(message: v1::AttachRequest) -> Result<FromWorker, Failure> {
    use v1::attach_request::Message;
    Ok(match message.message {
        // A worker of a newer contract: the oneof is empty for a variant that this one lacks.
        None => FromWorker::Unknown,
        Some(Message::Hello(message)) => FromWorker::Hello(hello(message)?),
        Some(Message::Heartbeat(v1::Heartbeat {})) => FromWorker::Heartbeat,
        Some(Message::Drain(v1::Drain {})) => FromWorker::Drain,
        Some(Message::Outcome(message)) => outcome(message),
        Some(Message::Progress(message)) => {
            let v1::InvocationProgress {
                invocation_id: id,
                progress,
            } = message;
            let v1::ToolProgress {
                done,
                total,
                message,
            } = progress.unwrap_or_default();
            FromWorker::Progress {
                id,
                progress: Progress {
                    done,
                    total,
                    message,
                },
            }
        }
    })
}

fn hello(message: v1::Hello) -> Result<Hello, Failure> {
    let mut violations = Vec::new();
    message.check(&mut violations);
    if !violations.is_empty() {
        for violation in &mut violations {
            violation.field.insert_str(0, "hello.");
        }
        return Err(invalid(violations));
    }
    let v1::Hello {
        name,
        skills,
        concurrency,
    } = message;
    let served = |(at, served): (usize, v1::ServedSkill)| {
        let v1::ServedSkill { skill_id, methods } = served;
        let skill = skill_id.parse().map_err(|error: SkillIdError| {
            wrong(&format!("hello.skills[{at}].skill_id"), error)
                .suggest("Write the id in full: `source/author/slug`")
        })?;
        Ok(Served { skill, methods })
    };
    let skills = skills
        .into_iter()
        .enumerate()
        .map(served)
        .collect::<Result<_, Failure>>()?;
    Ok(Hello {
        name,
        skills,
        concurrency,
    })
}

/// An outcome that breaks the rules fails its call, not the worker's other calls.
fn outcome(message: v1::Outcome) -> FromWorker {
    use v1::outcome::Outcome;
    let v1::Outcome {
        invocation_id: id,
        outcome,
    } = message;
    let result = match outcome {
        None => {
            let why = "the outcome has neither `result` nor `error`".to_owned();
            return FromWorker::Malformed { id, why };
        }
        Some(Outcome::Result(v1::ToolResult {
            content,
            structured,
        })) => {
            let structured = structured.map(json::from_struct);
            let object = structured.clone().map(serde_json::Value::Object);
            // A `Struct` holds doubles: the caller would get another number than the tool returned.
            if let Some(path) = object.and_then(|object| inexact("structured", &object)) {
                let why = format!("result.{path}: {NOT_EXACT}");
                return FromWorker::Malformed { id, why };
            }
            Ok(Output {
                text: content,
                structured,
            })
        }
        Some(Outcome::Error(failed)) => {
            let mut violations = Vec::new();
            failed.check(&mut violations);
            if !violations.is_empty() {
                let wrong = violations
                    .into_iter()
                    .map(|one| format!("error.{}: {}", one.field, one.message));
                let why = wrong.collect::<Vec<_>>().join("; ");
                return FromWorker::Malformed { id, why };
            }
            Err(error(failed))
        }
    };
    FromWorker::Outcome { id, result }
}

fn error(failed: v1::ToolError) -> ToolError {
    let kind = match failed.kind() {
        v1::ToolErrorKind::Unspecified => ToolErrorKind::Failed,
        v1::ToolErrorKind::InvalidArgument => ToolErrorKind::Invalid,
        v1::ToolErrorKind::Denied => ToolErrorKind::Denied,
        v1::ToolErrorKind::Unavailable => ToolErrorKind::Unavailable,
    };
    let v1::ToolError {
        kind: _,
        message,
        suggestions,
        field,
        retry_after,
    } = failed;
    // The conversion fails for a negative duration, which asks for no pause.
    let retry_after = retry_after.and_then(|time| Duration::try_from(time).ok());
    ToolError {
        kind,
        message,
        suggestions,
        field,
        retry_after: retry_after.map(|time| time.min(MAX_RETRY)),
    }
}

fn duration(time: Duration) -> prost_types::Duration {
    // A duration that does not fit is longer than any call: about 136 years do.
    prost_types::Duration::try_from(time).unwrap_or(prost_types::Duration {
        seconds: i64::from(u32::MAX),
        nanos: 0,
    })
}

fn to_wire(message: ToWorker) -> v1::AttachResponse {
    use v1::attach_response::Message;
    let message = match message {
        ToWorker::Welcome(Welcome {
            worker,
            heartbeat,
            concurrency,
            max_result_bytes,
            audience,
        }) => Message::Welcome(v1::Welcome {
            worker_id: worker,
            heartbeat: Some(duration(heartbeat)),
            concurrency,
            max_result_bytes: size(max_result_bytes),
            audience,
        }),
        ToWorker::Invocation {
            invocation,
            caller_token,
        } => Message::Invocation(v1::Invocation {
            caller_token: caller_token.unwrap_or_default(),
            ..wire_invocation(*invocation)
        }),
        ToWorker::Cancel { id, reason } => Message::Cancel(v1::Cancel {
            invocation_id: id,
            reason: reason.to_owned(),
        }),
        ToWorker::Notice { id, message } => Message::Notice(v1::Notice {
            invocation_id: id,
            message,
        }),
        ToWorker::Heartbeat => Message::Heartbeat(v1::Heartbeat {}),
        ToWorker::Drain => Message::Drain(v1::Drain {}),
    };
    v1::AttachResponse {
        message: Some(message),
    }
}

fn wire_invocation(invocation: Invocation) -> v1::Invocation {
    v1::Invocation {
        invocation_id: invocation.id,
        skill_id: invocation.skill.to_string(),
        version_number: invocation.version.get(),
        digest: invocation.digest.to_string(),
        tool: invocation
            .tool
            .map(|tool| tool.to_string())
            .unwrap_or_default(),
        method: invocation.method,
        arguments: Some(json::to_struct(invocation.arguments)),
        context: (!invocation.context.is_empty()).then(|| json::to_struct(invocation.context)),
        timeout: Some(duration(invocation.timeout)),
        idempotency_key: invocation.idempotency_key,
        caller: invocation.caller.to_string(),
        caller_token: String::new(),
    }
}

#[cfg(test)]
mod tests;
