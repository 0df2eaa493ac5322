//! Where MCP is served: `/mcp` with all tools, `/mcp/<toolset>` with some.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, header};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::mcp::{Face, Sessions, http_service};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The routes of a face. `most` sessions at once; requests of the stateless era
/// need none.
pub(super) fn routes(face: &Face, most: usize, stop: &CancellationToken) -> Router {
    let sessions = Arc::new(Sessions::new(most));
    let names: Vec<_> = face.gateway().contract().toolsets().into_keys().collect();
    let mut routes = Router::new();
    let sets = names.iter().map(|name| Some(name.as_str()));
    for set in std::iter::once(None).chain(sets) {
        let Some(make) = face.handlers(set) else {
            continue;
        };
        let path = set.map_or_else(|| "/mcp".to_owned(), |set| format!("/mcp/{set}"));
        let service = http_service(make, Arc::clone(&sessions), stop.clone());
        routes = routes.route_service(&path, service);
    }
    let unknown = move |request: Request| {
        let asked = request.uri().path().to_owned();
        let names = names.join(", ");
        async move {
            let message = format!("There is no MCP endpoint {asked}; the toolsets are {names}");
            (StatusCode::NOT_FOUND, message)
        }
    };
    routes
        .route("/mcp/{*other}", axum::routing::any(unknown))
        .layer(middleware::from_fn_with_state(sessions, admit))
}

/// Refuses a session for which there is no place before anything is set up for it.
async fn admit(State(sessions): State<Arc<Sessions>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let begins = request.method() == Method::POST
        && !headers.contains_key(SESSION)
        // The stateless era names its method in a header, and has no sessions.
        && !headers.contains_key("mcp-method");
    if begins && sessions.is_full().await {
        let error = json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {
                "code": -32000,
                "message": "The server has as many MCP sessions as it takes on at once; try again in a minute, \
                            or use protocol version 2026-07-28, which needs none",
            },
        });
        let headers = [
            (header::RETRY_AFTER, "60"),
            (header::CONTENT_TYPE, "application/json"),
        ];
        return (StatusCode::SERVICE_UNAVAILABLE, headers, error.to_string()).into_response();
    }
    next.run(request).await
}
