//! Where MCP is served: `/mcp` with all tools, `/mcp/<toolset>` with some.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode, header};
use tokio_util::sync::CancellationToken;

use crate::http::{Bodies, refused};
use crate::mcp::{Face, Kind, Sessions, check, http_service};
use crate::model::{Code, Failure};

/// The routes of a face. `most` sessions at once; requests of the stateless era
/// need none.
pub(super) fn routes(face: &Face, most: usize, bodies: Bodies, stop: &CancellationToken) -> Router {
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
            refused(
                Failure::new(
                    Code::RouteNotFound,
                    format!("There is no MCP endpoint {asked}"),
                )
                .suggest(format!("Use /mcp, or /mcp/TOOLSET with one of {names}")),
            )
        }
    };
    routes
        .route("/mcp/{*other}", axum::routing::any(unknown))
        .layer(middleware::from_fn_with_state((sessions, bodies), admit))
}

/// Refuses what no handler should see: a session for which there is no place, and
/// a text that is no message, or has a key twice.
async fn admit(
    State((sessions, bodies)): State<(Arc<Sessions>, Bodies)>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let (body, _room) = match bodies.take(body).await {
        Ok(taken) => taken,
        Err(refusal) => return refused(refusal),
    };
    let kind = match check(&body) {
        Ok(kind) => kind,
        Err(answer) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            return (StatusCode::BAD_REQUEST, json, answer).into_response();
        }
    };
    if kind == Kind::Initialize && sessions.is_full().await {
        let mut full = Failure::new(
            Code::Overloaded,
            "The server has as many MCP sessions as it takes on at once",
        )
        .suggest(
            "Try again in a minute, or use protocol version 2026-07-28, which needs no session",
        );
        full.retry_after = Some(Duration::from_secs(60));
        return refused(full);
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}
