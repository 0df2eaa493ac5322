//! Refusals as `application/problem+json`.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value as Json, json};
use tonic::Code as GrpcCode;

use gateway::Refusal;
use model::Code;

/// A refusal as an HTTP answer.
#[must_use]
pub fn refused(refusal: impl Into<Refusal>) -> Response {
    let refusal = refusal.into();
    let status = status(&refusal);
    let mut answer = (status, Body::from(json(&refusal).to_string())).into_response();
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(bearer) = bearer(&refusal) {
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    if let Some(after) = retry_after(status, &refusal) {
        headers.insert(header::RETRY_AFTER, after.into());
    }
    answer
}

/// Returns the challenge that tells a client which token it needs (RFC 6750, 3).
fn bearer(refusal: &Refusal) -> Option<HeaderValue> {
    let error = match refusal.status {
        GrpcCode::Unauthenticated if refusal.code == Code::TokenRefused.name() => "invalid_token",
        GrpcCode::Unauthenticated => {
            return Some(HeaderValue::from_static("Bearer realm=\"repertoire\""));
        }
        _ => "insufficient_scope",
    };
    let mut text = format!("Bearer realm=\"repertoire\", error=\"{error}\"");
    if error == "insufficient_scope" {
        let scope = refusal.details.get("scope").and_then(Json::as_str)?;
        text = format!("{text}, scope=\"{scope}\"");
    }
    HeaderValue::from_str(&text).ok()
}

/// Whole seconds, as the header wants them, and at least one.
fn retry_after(status: StatusCode, refusal: &Refusal) -> Option<u64> {
    let later = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    later.then(|| {
        let delay = refusal.retry_after.unwrap_or(Duration::ZERO);
        // Rounded up: a client that comes back too early is refused again.
        (delay + Duration::from_millis(999)).as_secs().max(1)
    })
}

/// The problem, whose members are those of the refusal on other faces.
pub(super) fn json(refusal: &Refusal) -> Json {
    let status = status(refusal);
    let known = Code::ALL.iter().find(|code| code.name() == refusal.code);
    let title = known.map_or(status.canonical_reason().unwrap_or("Refused"), |code| {
        code.meaning()
    });
    let mut problem = Map::new();
    let mut say = |name: &str, value: Json| problem.insert(name.to_owned(), value);
    // Relative, since every server answers it itself, and an address of the project might not
    // outlive it.
    say("type", json!(format!("/errors#{}", refusal.code)));
    say("title", json!(title));
    say("status", json!(status.as_u16()));
    say("detail", json!(refusal.message));
    say("code", json!(refusal.code));
    let mut details = refusal.details.clone();
    if let Some(number) = details.remove("number") {
        say("number", number);
    }
    if !details.is_empty() {
        say("details", Json::Object(details));
    }
    if !refusal.fields.is_empty() {
        let fields = refusal.fields.iter();
        let fields = fields.map(|(field, text)| json!({"field": field, "message": text}));
        say("errors", fields.collect());
    }
    say("recovery_suggestions", json!(refusal.suggestions));
    if let Some(delay) = refusal.retry_after {
        say("retry_after_ms", json!(delay.as_millis()));
    }
    Json::Object(problem)
}

/// The status of a refusal: of its code where HTTP knows better, else of its gRPC
/// status.
fn status(refusal: &Refusal) -> StatusCode {
    let own = [
        (Code::MethodNotAllowed, StatusCode::METHOD_NOT_ALLOWED),
        (Code::BodyTooLarge, StatusCode::PAYLOAD_TOO_LARGE),
        (Code::MediaTypeRefused, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ];
    let own = own.iter().find(|(code, _)| code.name() == refusal.code);
    if let Some((_, status)) = own {
        return *status;
    }
    match refusal.status {
        GrpcCode::InvalidArgument | GrpcCode::OutOfRange => StatusCode::BAD_REQUEST,
        GrpcCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        GrpcCode::PermissionDenied => StatusCode::FORBIDDEN,
        GrpcCode::NotFound => StatusCode::NOT_FOUND,
        GrpcCode::FailedPrecondition | GrpcCode::Aborted | GrpcCode::AlreadyExists => {
            StatusCode::CONFLICT
        }
        GrpcCode::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        // The client is gone; 499 is what proxies log for that.
        GrpcCode::Cancelled => {
            StatusCode::from_u16(499).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        GrpcCode::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        GrpcCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        GrpcCode::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        GrpcCode::Ok | GrpcCode::Unknown | GrpcCode::Internal | GrpcCode::DataLoss => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Failure;

    fn refusal(code: GrpcCode) -> Refusal {
        tonic::Status::new(code, "x").into()
    }

    #[test]
    fn every_grpc_code_has_its_http_status() {
        let statuses: Vec<_> = (1..=16)
            .map(|code| status(&refusal(GrpcCode::from(code))).as_u16())
            .collect();
        assert_eq!(
            statuses,
            [
                499, 500, 400, 504, 404, 409, 403, 429, 409, 409, 400, 501, 500, 503, 500, 401
            ]
        );
    }

    #[test]
    fn a_problem_says_what_the_refusal_says() {
        let failure = Failure::new(Code::SkillNotFound, "No skill 'x'")
            .detail("skill_id", "x")
            .field("skill_id", "not there")
            .suggest("List the skills");
        assert_eq!(
            json(&failure.into()),
            json!({
                "type": "/errors#SKILL_NOT_FOUND",
                "title": "No skill of this id or name.",
                "status": 404,
                "detail": "No skill 'x'",
                "code": "SKILL_NOT_FOUND",
                "number": 2000,
                "details": {"skill_id": "x"},
                "errors": [{"field": "skill_id", "message": "not there"}],
                "recovery_suggestions": ["List the skills"],
            })
        );
    }

    #[test]
    fn who_has_to_wait_is_told_how_long_in_whole_seconds() {
        let mut busy: Refusal = Failure::new(Code::Overloaded, "x").into();
        for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2")] {
            busy.retry_after = Some(Duration::from_millis(millis));
            let answer = refused(busy.clone());
            assert_eq!(answer.headers()[header::RETRY_AFTER], seconds);
            assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        }
        let answer = refused(Failure::new(Code::SkillNotFound, "x"));
        assert!(!answer.headers().contains_key(header::RETRY_AFTER));
    }
}
