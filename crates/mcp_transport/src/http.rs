//! MCP over HTTP: the transport's settings.
//!
//! Host and Origin are checked before a request comes here, for all faces alike
//! (`server::guard`).

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::sessions::Sessions;
use gateway::MAX_JSON_BYTES;

/// A handler behind streamable HTTP.
pub type HttpService<H> = StreamableHttpService<H, Sessions>;

/// HTTP with the settings of this product, for any handler: `make` gives one for
/// each session, and for each request of the stateless era.
pub fn http_service<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
) -> HttpService<H> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_JSON_BYTES)
        .with_cancellation_token(stop)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    StreamableHttpService::new(move || Ok(make()), sessions, config)
}
