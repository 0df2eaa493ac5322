//! What clients of OAuth look for, such as those of MCP: the metadata of the server as a
//! protected resource (RFC 9728), or what to send where no issuer is set up.

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::{Uri, header};

use super::refused;
use oidc::{Issuers, ProtectedResource};

/// Where clients look, one after the other, for who gives them a token.
const PATHS: [&str; 7] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/{*path}",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/{*path}",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/{*path}",
    "/register",
];

/// The routes of a server.
pub fn oauth(issuers: &Issuers) -> Router {
    PATHS.into_iter().fold(Router::new(), |routes, path| {
        let issuers = issuers.clone();
        let answer = move |uri: Uri| async move { answer(&issuers.resource(), uri.path()) };
        routes.route(path, any(answer))
    })
}

fn answer(resource: &ProtectedResource, path: &str) -> Response {
    match resource.metadata(path) {
        Ok(metadata) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, metadata.to_string()).into_response()
        }
        Err(failure) => refused(failure),
    }
}
