//! Webhooks of the hosts of repositories: `POST /hooks/SOURCE`.

use axum::extract::{Path, Request};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, post};
use http::StatusCode;

use super::body::read_bytes;
use super::problem::refused;
use ::sync::{Engine, Refused, Webhook};
use admission::Peer;
use model::{Code, Failure};

/// Receives webhooks, each of which has its source synced soon. Their bodies are not parsed.
pub fn hooks<S: Clone + Send + Sync + 'static>(engine: Engine) -> MethodRouter<S> {
    post(move |Path(source): Path<String>, request: Request| {
        let engine = engine.clone();
        async move { receive(&engine, &source, request).await }
    })
}

async fn receive(engine: &Engine, source: &str, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = Peer::of(&parts.extensions);
    // The signature covers the bytes as sent, so the whole body is read first.
    let (body, _memory) = match read_bytes(&peer, body).await {
        Ok(taken) => taken,
        Err(refusal) => return refused(refusal),
    };
    let header = |name: &str| parts.headers.get(name)?.to_str().ok();
    let webhook = Webhook {
        signature: header("x-hub-signature-256"),
        token: header("x-gitlab-token"),
        body: &body,
    };
    match engine.receive(source, &webhook) {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(error @ Refused::NotOurs) => {
            refused(Failure::new(Code::SourceNotFound, error.to_string()))
        }
        Err(error @ Refused::Secret(_)) => {
            // The sender of a webhook must not learn where the secret is stored.
            tracing::warn!(%error, source, "a webhook was refused");
            let message = "the server cannot check the signature now; its log says why";
            refused(Failure::new(Code::SourceUnavailable, message))
        }
    }
}
