//! What there is to read that is no call: the way in, health, the codes.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::rest::Rest;
use super::stream::unchanged;
use model::Digest;

/// The meaning of every code, which a problem's `type` points to.
const ERRORS: &str = include_str!("../../docs/errors.md");

/// The pages. `stop` says that the server is about to stop, `writable` whether it takes
/// writes.
pub(super) fn router(
    stop: CancellationToken,
    writable: watch::Receiver<bool>,
) -> Router<Arc<Rest>> {
    Router::new()
        .route("/", get(welcome))
        .route(
            "/healthz",
            get(async move || health(&stop, *writable.borrow())),
        )
        .route("/errors", get(errors))
        .route("/openapi.json", get(openapi))
}

async fn welcome() -> Response {
    json_page(
        StatusCode::OK,
        &json!({
            "name": "repertoire",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A server for agent skills. It speaks gRPC, gRPC-Web, REST and MCP on this port.",
            "links": {
                "rest": "/api/v1/skills",
                "openapi": "/openapi.json",
                "mcp": "/mcp",
                "discovery": "/.well-known/agent-skills/index.json",
                "health": "/healthz",
                "metrics": "/metrics",
                "errors": "/errors",
            },
        }),
    )
}

fn health(stop: &CancellationToken, writable: bool) -> Response {
    let (status, word) = match (stop.is_cancelled(), writable) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "read-only"),
        (false, true) => (StatusCode::OK, "serving"),
    };
    json_page(status, &json!({"status": word}))
}

async fn openapi(State(rest): State<Arc<Rest>>, headers: HeaderMap) -> Response {
    rest.document.answer(&headers)
}

/// A page that was made once.
#[derive(Debug)]
pub(super) struct CachedPage {
    text: Bytes,
    tag: HeaderValue,
}

impl CachedPage {
    /// A page of JSON.
    pub(super) fn json(page: &Json) -> Self {
        let text = page.to_string();
        let tag = format!("\"{}\"", Digest::of(text.as_bytes()));
        Self {
            text: text.into(),
            // Digests are hex digits.
            tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")),
        }
    }

    /// The page, or that it is the one that the caller has.
    fn answer(&self, request: &HeaderMap) -> Response {
        let tag = (header::ETAG, self.tag.clone());
        if self.tag.to_str().is_ok_and(|tag| unchanged(request, tag)) {
            return (StatusCode::NOT_MODIFIED, [tag]).into_response();
        }
        let headers = [
            tag,
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            ),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        (headers, self.text.clone()).into_response()
    }
}

async fn errors() -> Response {
    let markdown = HeaderValue::from_static("text/markdown; charset=utf-8");
    ([(header::CONTENT_TYPE, markdown)], ERRORS).into_response()
}

fn json_page(status: StatusCode, page: &Json) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, json)], page.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_follows_the_server() {
        let stop = CancellationToken::new();
        assert_eq!(health(&stop, true).status(), StatusCode::OK);
        let read_only = health(&stop, false).status();
        assert_eq!(read_only, StatusCode::SERVICE_UNAVAILABLE);
        stop.cancel();
        assert_eq!(
            health(&stop, true).status(),
            StatusCode::SERVICE_UNAVAILABLE
        );
    }
}
