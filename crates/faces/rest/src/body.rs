//! The body of a request, within limits.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Body as _;
use serde_json::Value as Json;

use admission::{Intake, IntakeError, Length, Peer, Permit};
use gateway::{MAX_JSON_BYTES, Refusal, strict_json};
use model::{Code, Failure, shown};

/// A body that was read, and the permit for its memory.
#[derive(Debug)]
pub(super) struct ReadBody {
    /// None: it was empty.
    pub(super) json: Option<Json>,
    pub(super) memory: Option<Permit>,
}

/// Reads the body of a peer, whatever it holds, with the permit for its memory, to be held for
/// as long as the bytes are in work.
///
/// # Errors
/// It is too large, too slow, or there is no memory for it.
pub async fn read_bytes(peer: &Peer, body: Body) -> Result<(Bytes, Option<Permit>), Refusal> {
    let length = body.size_hint().exact();
    let length = length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    // Refused by its stated length, before a byte of it is read or booked.
    if length.is_some_and(|length| length > MAX_JSON_BYTES) {
        return Err(too_large());
    }
    let collected = Intake::collect(peer, body, Length::Bytes(length), MAX_JSON_BYTES).await;
    match collected {
        Ok(collected) => Ok(collected.into_bytes()),
        Err(IntakeError::TooLarge { .. }) => Err(too_large()),
        Err(error) => Err(Failure::from(error).into()),
    }
}

/// Reads a body of JSON.
///
/// # Errors
/// It is too large, too slow, no JSON, or there is no memory for it.
pub(super) async fn read_json(
    peer: &Peer,
    headers: &HeaderMap,
    body: Body,
) -> Result<ReadBody, Refusal> {
    if body.size_hint().exact() != Some(0) {
        // Before anything is read: a body of 24 MiB would not change the answer.
        encoding(headers)?;
        if headers.contains_key(header::CONTENT_TYPE) {
            content_type(headers)?;
        }
    }
    let (bytes, memory) = read_bytes(peer, body).await?;
    if bytes.is_empty() {
        return Ok(ReadBody { json: None, memory });
    }
    content_type(headers)?;
    Ok(ReadBody {
        json: Some(strict_json(&bytes)?),
        memory,
    })
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
    // JSON is always UTF-8, so another charset would make another text of the same bytes.
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
            let shown = shown(text, 80);
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
        let read = read_json(&Peer::unlimited(), &headers(content_type), body.into()).await;
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
        let refused = read_json(&Peer::unlimited(), &packed, "{}".into()).await;
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
}
