//! The HTTP face: REST, server-sent events, downloads, discovery.
//!
//! Rules:
//!
//! * No rpc is named where REST is served: routes come from `google.api.http`,
//!   requests and answers are read and written by `gateway`.
//! * A path leads to one template, whatever the method (`routes`).
//! * A call goes through the gateway's transport, so through the same call layer
//!   as gRPC. It ends when the client leaves.
//! * A body is booked by its bytes as they arrive, and comes at a least rate
//!   (`admission`).
//! * A refusal is `application/problem+json` (RFC 9457) with the code that every
//!   face gives. Its `type` is `/errors#CODE`, which this server answers.
//! * An rpc that streams its answer is `text/event-stream`: a message is the data
//!   of an event; its field `resume_token` is the event's id, and `Last-Event-ID`
//!   fills that field of the request. A refusal on the way is an event `error`.
//! * An rpc that streams bytes (`response_body` names a field of bytes) is a
//!   download, unless the client accepts `text/event-stream`. The fields
//!   `mime_type`, `file_name`, `size_bytes` and `digest` of its first message, or
//!   of a message right inside it, are the headers. A refusal before the first
//!   byte is a problem; after it, the connection breaks.
//! * Two protocols by which agents discover skills (`discovery`), and the read side
//!   of a registry protocol (`clawhub`), are written by hand, since they are not
//!   ours. They too call through the gateway's transport, and hold no logic of skills.
//! * What a skill's author wrote is never a page of this server's origin: it goes
//!   out in a sandbox.
//!
//! Not here: which hosts and origins may call (`server`), JSON and schemas
//! (`gateway`), what calls do.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod body;
mod caller_keys;
mod clawhub;
mod discovery;
mod fingerprint;
mod hooks;
mod oauth;
mod pages;
mod problem;
mod rest;
mod routes;
mod skill_reader;
mod stream;

use std::sync::Arc;

use axum::Router;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use body::read_bytes;
pub use caller_keys::caller_keys;
pub use hooks::hooks;
pub use oauth::oauth;
pub use problem::refused;
pub use rest::no_such_method;

use gateway::{Gateway, TemplateError};

/// The face of a gateway. `stop` says that the server is about to stop, `writable`
/// whether it takes writes.
///
/// Its fallback answers every path that no route takes.
///
/// # Errors
/// A route of the contract cannot be read.
pub fn router(
    gateway: &Gateway,
    stop: CancellationToken,
    writable: watch::Receiver<bool>,
) -> Result<Router, TemplateError> {
    let rest = Arc::new(rest::Rest::new(gateway.clone())?);
    let reader = skill_reader::SkillReader::new(gateway);
    Ok(pages::router(stop, writable)
        .merge(discovery::router(reader.clone()))
        .merge(clawhub::router(reader))
        .method_not_allowed_fallback(rest::no_such_method)
        .fallback(rest::answer)
        .with_state(rest))
}
