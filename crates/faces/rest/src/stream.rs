//! Answers that stream: server-sent events, and downloads.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::problem;
use gateway::{Answer, Refusal};

/// The field of a message with the position to continue from.
pub(super) const RESUME: &str = "resume_token";
/// How often an idle stream sends a comment, so that proxies do not close it.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Characters of a file name in a header that need no escape.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// Messages as server-sent events.
pub(super) fn events(
    answers: impl Stream<Item = Result<Answer, Refusal>> + Send + 'static,
) -> Response {
    let events = answers.map(|answer| match answer {
        Ok(answer) => {
            let event = Event::default().data(answer.text());
            let id = answer.fact(RESUME);
            // axum panics on an id with these, and a token may come from another server.
            match id.filter(|id| !id.contains(['\0', '\r', '\n'])) {
                Some(id) => event.id(id),
                None => event,
            }
        }
        Err(refusal) => {
            let problem = problem::json(&refusal).to_string();
            Event::default().event("error").data(problem)
        }
    });
    let events = events.map(Ok::<_, std::convert::Infallible>);
    let mut answer = Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEPALIVE_INTERVAL))
        .into_response();
    // nginx buffers answers by default, which would delay events.
    let headers = answer.headers_mut();
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// The bytes of a field of all messages as one file.
///
/// # Errors
/// The call is refused before its first message.
pub(super) async fn download(
    answers: impl Stream<Item = Result<Answer, Refusal>> + Send + 'static,
    field: &str,
    request: &HeaderMap,
) -> Result<Response, Refusal> {
    let mut answers: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(answers);
    let first = answers.next().await.transpose()?;
    let mut headers = HeaderMap::new();
    let fact = |name: &str| first.as_ref().and_then(|first| first.fact(name));
    let media = fact("mime_type").unwrap_or_else(|| "application/octet-stream".to_owned());
    set(&mut headers, header::CONTENT_TYPE, &media);
    if let Some(name) = fact("file_name") {
        let name = attachment(&name);
        set(&mut headers, header::CONTENT_DISPOSITION, &name);
    }
    sandbox(&mut headers);
    if let Some(digest) = fact("digest") {
        let tag = format!("\"{digest}\"");
        set(&mut headers, header::ETAG, &tag);
        if unchanged(request, &tag) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
    }
    // A stream that begins without bytes is a description only (`info_only`), so its size is not
    // that of the body.
    let begins = first
        .as_ref()
        .is_some_and(|first: &Answer| !first.bytes(field).is_empty());
    if let Some(size) = fact("size_bytes").filter(|_| begins) {
        set(&mut headers, header::CONTENT_LENGTH, &size);
    }
    let field = field.to_owned();
    let pieces = stream::iter(first.map(Ok)).chain(answers);
    let bytes = pieces.map(move |answer| answer.map(|answer| answer.bytes(&field)));
    // Left out, since some clients take an empty piece for the end.
    let bytes = bytes.filter(|piece: &Result<Bytes, Refusal>| {
        let says = piece.as_ref().map_or(true, |bytes| !bytes.is_empty());
        std::future::ready(says)
    });
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// Sets a header, or leaves it out where no header can hold the value.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Marks the text of a skill's author as data: no page, no script, not of this origin.
pub(super) fn sandbox(headers: &mut HeaderMap) {
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        // Without it, a page in a skill would run with the origin of this server and could call it.
        HeaderValue::from_static("sandbox; default-src 'none'"),
    );
}

/// Returns whether `If-None-Match` names this tag, or any.
pub(super) fn unchanged(request: &HeaderMap, tag: &str) -> bool {
    // `If-None-Match` compares weakly (RFC 9110, 13.1.2).
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let tag = strong(tag);
    let known = request.get_all(header::IF_NONE_MATCH).iter();
    known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(strong)
        .any(|known| known == tag || known == "*")
}

/// Returns the `Content-Disposition` of a file with this name.
fn attachment(name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-+ ()".contains(c));
    if plain {
        return format!("attachment; filename=\"{name}\"");
    }
    let encoded = utf8_percent_encode(name, PLAIN);
    format!("attachment; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_header() {
        assert_eq!(
            attachment("refunds-1.2.0.tar.gz"),
            "attachment; filename=\"refunds-1.2.0.tar.gz\""
        );
        assert_eq!(
            attachment("a\"; é\r\n.zip"),
            "attachment; filename*=UTF-8''a%22%3B%20%C3%A9%0D%0A.zip"
        );
    }

    #[test]
    fn a_tag_is_known_in_any_of_its_spellings() {
        let asked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, value.parse().expect("a header"));
            unchanged(&headers, "\"a\"")
        };
        for known in ["\"a\"", "\"b\", W/\"a\"", "*"] {
            assert!(asked(known), "{known}");
        }
        for other in ["\"b\"", "a", ""] {
            assert!(!asked(other), "{other}");
        }
    }
}
