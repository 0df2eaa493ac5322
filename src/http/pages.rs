//! What there is to read that is no call: the way in, health, the codes.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::rest::Rest;

/// The meaning of every code, which a problem's `type` points to.
const ERRORS: &str = include_str!("../../docs/errors.md");

/// The pages. `stop` says that the server is about to stop.
pub(super) fn router(stop: CancellationToken) -> Router<Arc<Rest>> {
    Router::new()
        .route("/", get(welcome))
        .route("/healthz", get(async move || health(&stop)))
        .route("/errors", get(errors))
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

fn health(stop: &CancellationToken) -> Response {
    if stop.is_cancelled() {
        let body = json!({"status": "stopping"});
        return json_page(StatusCode::SERVICE_UNAVAILABLE, &body);
    }
    json_page(StatusCode::OK, &json!({"status": "serving"}))
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
        assert_eq!(health(&stop).status(), StatusCode::OK);
        stop.cancel();
        assert_eq!(health(&stop).status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
