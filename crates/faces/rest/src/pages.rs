//! Pages that are no calls: the start page, health, the codes.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::rest::Rest;
use super::stream::unchanged;
use model::Digest;

/// The meaning of every code, which a problem's `type` points to.
const ERRORS: &str = include_str!("../../../../docs/errors.md");

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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

/// What a browser gets at the address of the server.
const WELCOME: &str = include_str!("welcome.html");
/// The page has a style of its own, and nothing else.
const WELCOME_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Returns whether the caller is a browser: programs, which accept anything, get JSON.
fn is_browser(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// Returns the start page, with the address by which the caller came.
fn page(headers: &HeaderMap) -> Response {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // A proxy with TLS sets it. Who forges it only sees a wrong address on its own page.
    let is_secure = text(FORWARDED_PROTO) == Some("https");
    let scheme = if is_secure { "https" } else { "http" };
    // The host goes into HTML unescaped, so only characters that mean nothing there.
    let named = text(header::HOST).filter(|host| {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        !host.is_empty() && host.chars().all(plain)
    });
    let url = format!("{scheme}://{}", named.unwrap_or("HOST"));
    let page = WELCOME
        .replace("{url}", &url)
        .replace("{version}", env!("CARGO_PKG_VERSION"));
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, WELCOME_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::VARY, "accept"),
    ];
    (headers, page).into_response()
}

async fn welcome(headers: HeaderMap) -> Response {
    if is_browser(&headers) {
        return page(&headers);
    }
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

    /// Answers with the page, or that the caller has it already.
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

async fn errors(headers: HeaderMap) -> Response {
    // A browser would download Markdown instead of showing it.
    let kind = if is_browser(&headers) {
        "text/plain; charset=utf-8"
    } else {
        "text/markdown; charset=utf-8"
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::VARY, "accept")];
    (headers, ERRORS).into_response()
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
