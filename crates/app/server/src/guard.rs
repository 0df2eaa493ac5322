//! Checks what browsers may send (`origins`), for every face, and lets pages of other origins
//! read the answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use gateway::Refusal;
use origins::WebConfig;
use rest::refused;

/// Puts the check of `origins` before routes.
pub fn guard(web: WebConfig, routes: Router) -> Router {
    routes.layer(middleware::from_fn_with_state(Arc::new(web), check))
}

async fn check(State(web): State<Arc<WebConfig>>, request: Request, next: Next) -> Response {
    match web.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => refused(failure),
    }
}

/// Answers a request that was refused before it came to any route: checked by the same guard,
/// and readable by the same pages.
pub(super) async fn refuse(web: Arc<WebConfig>, request: Request, refusal: Refusal) -> Response {
    // First the origin: a page that may not call is not to learn whether a token was right.
    if let Err(failure) = web.check(request.uri(), request.headers()) {
        return refused(failure);
    }
    let answer = service_fn(|_: Request| {
        let answer = refused(refusal.clone());
        async { Ok::<_, Infallible>(answer) }
    });
    let Ok(answer) = cors().layer(answer).oneshot(request).await;
    answer
}

/// The CORS layer. The guard has let in allowed origins only, so it allows each that comes.
pub(super) fn cors() -> CorsLayer {
    // CORS hides all other headers from a page.
    let exposed = [
        "grpc-status",
        "grpc-message",
        "grpc-status-details-bin",
        "content-disposition",
        "etag",
        "index-version",
        "mcp-protocol-version",
        "mcp-session-id",
        "retry-after",
        "www-authenticate",
        "x-request-id",
    ];
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .allow_methods(AllowMethods::mirror_request())
        .expose_headers(exposed.map(http::HeaderName::from_static))
        .max_age(Duration::from_secs(600))
}
