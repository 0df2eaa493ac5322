//! MCP over HTTP: settings of the transport.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Request, StatusCode};

    use super::*;

    struct Silent;

    impl ServerHandler for Silent {}

    const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;

    fn service(stop: CancellationToken) -> HttpService<Silent> {
        http_service(|| Silent, Arc::new(Sessions::new(IDLE_TIMEOUT)), stop)
    }

    fn post(session: Option<&str>, body: String) -> Request<String> {
        let mut request = Request::post("/mcp")
            .header("host", "skills.example.com")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(body).expect("a request")
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_outlives_the_timer_of_the_library() {
        let service = service(CancellationToken::new());
        let begun = service.handle(post(None, INITIALIZE.to_owned())).await;
        let session = begun.headers()["mcp-session-id"].clone();
        let session = session.to_str().expect("text");
        let status = async |body: &str| {
            let answer = service.handle(post(Some(session), body.to_owned()));
            let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
            answer.map(|answer| answer.status())
        };
        let begun = status(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!(begun, Ok(StatusCode::ACCEPTED));
        tokio::time::sleep(IDLE_TIMEOUT / 2).await;
        let ping = status(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
        assert_eq!(ping, Ok(StatusCode::OK));
    }

    #[tokio::test]
    async fn a_message_over_http_is_as_long_as_one_over_stdin() {
        let service = service(CancellationToken::new());
        let mut body = INITIALIZE.to_owned();
        body.push_str(&" ".repeat(MAX_JSON_BYTES - body.len()));
        let longer = format!("{body} ");
        let status = async |body| service.handle(post(None, body)).await.status();
        assert_eq!(status(body).await, StatusCode::OK);
        assert_eq!(status(longer).await, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn what_runs_for_a_client_ends_when_the_server_stops() {
        let stop = CancellationToken::new();
        let service = service(stop.clone());
        stop.cancel();
        assert!(service.config.cancellation_token.is_cancelled());
    }
}
