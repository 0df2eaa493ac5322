//! The key by which others check who calls a tool: `/.well-known/jwks.json`.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::header;

/// The route. `keys` is a JWK set (RFC 7517), which is for everybody.
pub fn caller_keys<S: Clone + Send + Sync + 'static>(keys: Arc<str>) -> Router<S> {
    let headers = [
        // RFC 7517, 8.5.1.
        (header::CONTENT_TYPE, "application/jwk-set+json"),
        // Short: the next start of the server has another key.
        (header::CACHE_CONTROL, "public, max-age=300"),
    ];
    let answer = move || async move { (headers, keys.to_string()) };
    Router::new().route("/.well-known/jwks.json", get(answer))
}
