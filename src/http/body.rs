//! The body of a request, within bounds.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::LengthLimitError;
use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::gateway::{MAX_JSON_BYTES, Refusal, strict_json};
use crate::model::{Code, Failure};

/// All bodies in work at once, in KiB. A body without a length counts as the
/// largest.
const MAX_KIB_IN_WORK: u32 = 256 * 1024;
/// How long a client may take to send a body.
const PATIENCE: Duration = Duration::from_secs(120);

/// Room for the bodies of all faces. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bodies(Arc<Semaphore>);

/// A body that was read, and its room.
#[derive(Debug)]
pub(super) struct Read {
    /// None: it was empty.
    pub(super) json: Option<Json>,
    pub(super) room: OwnedSemaphorePermit,
}

impl Default for Bodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_KIB_IN_WORK as usize)))
    }
}

impl Bodies {
    /// Reads a body, whatever it holds, and its room, to be kept for as long as the
    /// bytes are in work.
    ///
    /// # Errors
    /// It is too large, too slow, or there is no room for it.
    pub async fn take(&self, body: Body) -> Result<(Bytes, OwnedSemaphorePermit), Refusal> {
        let length = body.size_hint().exact();
        if length.is_some_and(|length| length > MAX_JSON_BYTES as u64) {
            return Err(too_large());
        }
        let bytes = length.unwrap_or(MAX_JSON_BYTES as u64);
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(MAX_KIB_IN_WORK);
        let room = Arc::clone(&self.0).try_acquire_many_owned(kib);
        let room = room.map_err(|_| {
            Failure::new(
                Code::Overloaded,
                "The server reads as many large requests as it takes on at once",
            )
            .suggest("Try again a little later, or publish over gRPC, skill by skill")
        })?;
        let bytes = tokio::time::timeout(PATIENCE, collect(body)).await;
        let bytes = bytes.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            let sentence = format!("The body did not arrive within {seconds} seconds");
            Failure::new(Code::Timeout, sentence).suggest("Send it again over a faster line")
        })??;
        Ok((bytes, room))
    }

    /// Reads a body of JSON.
    ///
    /// # Errors
    /// It is too large, too slow, no JSON, or there is no room for it.
    pub(super) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Read, Refusal> {
        if body.size_hint().exact() != Some(0) {
            // Before anything is read: the answer will be no other.
            encoding(headers)?;
            if headers.contains_key(header::CONTENT_TYPE) {
                content_type(headers)?;
            }
        }
        let (bytes, room) = self.take(body).await?;
        if bytes.is_empty() {
            return Ok(Read { json: None, room });
        }
        content_type(headers)?;
        Ok(Read {
            json: Some(strict_json(&bytes)?),
            room,
        })
    }
}

async fn collect(body: Body) -> Result<Bytes, Refusal> {
    let long = |error: &axum::Error| {
        let cause = std::error::Error::source(error);
        cause.is_some_and(<dyn std::error::Error>::is::<LengthLimitError>)
    };
    match axum::body::to_bytes(body, MAX_JSON_BYTES).await {
        Ok(bytes) => Ok(bytes),
        Err(error) if long(&error) => Err(too_large()),
        Err(error) => Err(Failure::new(
            Code::InvalidParameter,
            format!("The body cannot be read: {error}"),
        )
        .suggest("Send it whole, as long as its length says")
        .into()),
    }
}

fn too_large() -> Refusal {
    let mib = MAX_JSON_BYTES >> 20;
    Failure::new(
        Code::BodyTooLarge,
        format!("The body is larger than {mib} MiB"),
    )
    .suggest("Send less: a skill has 16 MiB at most, and in base64 a third more")
    .into()
}

fn encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let encoding = headers.get(header::CONTENT_ENCODING);
    match encoding.map(|value| value.as_bytes().to_ascii_lowercase()) {
        None => Ok(()),
        Some(name) if name == b"identity" => Ok(()),
        Some(_) => Err(Failure::new(
            Code::MediaTypeRefused,
            "The server reads no body with a Content-Encoding",
        )
        .suggest("Send the body as it is, without the header Content-Encoding")
        .into()),
    }
}

fn content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(header::CONTENT_TYPE);
    let text = given.and_then(|value| value.to_str().ok());
    let (media, parameters) = text
        .map(|text| text.split_once(';').unwrap_or((text, "")))
        .unwrap_or_default();
    let json = media.trim().eq_ignore_ascii_case("application/json");
    let parameters = parameters.trim().to_ascii_lowercase();
    // JSON is UTF-8 anyway; another charset would be another text.
    let utf8 = matches!(
        parameters.as_str(),
        "" | "charset=utf-8" | "charset=\"utf-8\""
    );
    if json && utf8 {
        return Ok(());
    }
    let sentence = match text {
        None => "The body has no Content-Type".to_owned(),
        Some(text) => {
            let shown: String = text.chars().take(80).collect();
            format!("The server reads no body of the Content-Type '{shown}'")
        }
    };
    Err(Failure::new(Code::MediaTypeRefused, sentence)
        .suggest("Send JSON with the header Content-Type: application/json")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(content_type: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            let value = content_type.parse().expect("a header");
            headers.insert(header::CONTENT_TYPE, value);
        }
        headers
    }

    async fn read(content_type: &str, body: impl Into<Body>) -> Result<Option<Json>, String> {
        let (bodies, headers) = (Bodies::default(), headers(content_type));
        let read = bodies.read(&headers, body.into()).await;
        Ok(read.map_err(|refusal| refusal.code)?.json)
    }

    #[tokio::test]
    async fn a_body_is_json_and_says_so_or_is_empty() {
        for fine in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
        ] {
            assert_eq!(
                read(fine, "{}").await,
                Ok(Some(Json::Object(Default::default())))
            );
        }
        assert_eq!(read("", "").await, Ok(None));
        assert_eq!(read("text/plain", "").await, Ok(None));
        for bad in [
            "",
            "text/json",
            "application/jsonx",
            "application/json; charset=latin1",
            "multipart/form-data",
            "application/x-www-form-urlencoded",
        ] {
            assert_eq!(
                read(bad, "{}").await,
                Err("MEDIA_TYPE_REFUSED".to_owned()),
                "{bad}"
            );
        }
        let mut packed = headers("application/json");
        packed.insert(header::CONTENT_ENCODING, "gzip".parse().expect("a header"));
        let refused = Bodies::default().read(&packed, "{}".into()).await;
        assert_eq!(refused.expect_err("a refusal").code, "MEDIA_TYPE_REFUSED");
    }

    /// A body that does not say how long it is.
    fn unmeasured(bytes: usize) -> Body {
        let pieces = vec![b' '; bytes];
        let pieces: Vec<_> = pieces
            .chunks(1 << 20)
            .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
            .collect();
        Body::from_stream(futures_util::stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_may_have_the_limit_and_no_byte_more() {
        let json = "application/json";
        let mut full = vec![b' '; MAX_JSON_BYTES - 1];
        full.push(b'1');
        assert_eq!(read(json, full.clone()).await, Ok(Some(1.into())));
        full.push(b' ');
        let too_large = Err("BODY_TOO_LARGE".to_owned());
        assert_eq!(read(json, full).await, too_large);
        assert_eq!(read(json, unmeasured(MAX_JSON_BYTES + 1)).await, too_large);
        // Spaces are no JSON, but they were read.
        let spaces = read(json, unmeasured(MAX_JSON_BYTES)).await;
        assert_eq!(spaces, Err("INVALID_PARAMETER".to_owned()));
    }

    #[tokio::test]
    async fn bodies_without_room_are_refused_at_once() {
        let bodies = Bodies(Arc::new(Semaphore::new(1)));
        let first = bodies.read(&headers("application/json"), "1".into()).await;
        let refused = bodies.read(&headers("application/json"), "1".into()).await;
        assert_eq!(refused.expect_err("no room").code, "OVERLOADED");
        bodies
            .read(&headers(""), Body::empty())
            .await
            .expect("an empty body takes none");
        drop(first);
        bodies
            .read(&headers("application/json"), "1".into())
            .await
            .expect("room again");
    }
}
