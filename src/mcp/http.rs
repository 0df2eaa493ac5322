//! MCP over HTTP: the transport's settings, and a bound on its sessions.
//!
//! Host and Origin are checked before a request comes here, for all faces alike
//! (`server::guard`).

use std::sync::Arc;

use futures_util::Stream;
use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::gateway::MAX_JSON_BYTES;

/// A handler behind streamable HTTP.
pub type Service<H> = StreamableHttpService<H, Sessions>;

/// HTTP with the settings of this product, for any handler: `make` gives one for
/// each session, and for each request of the stateless era.
pub fn http_service<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
) -> Service<H> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_JSON_BYTES)
        .with_cancellation_token(stop)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    StreamableHttpService::new(move || Ok(make()), sessions, config)
}

/// Sessions of the era of `initialize`, so many at most. One that is idle for five
/// minutes ends.
#[derive(Debug)]
pub struct Sessions {
    inner: LocalSessionManager,
    most: usize,
}

impl Sessions {
    /// So many sessions at most.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            inner: LocalSessionManager::default(),
            most,
        }
    }

    /// No session can begin for now.
    pub async fn is_full(&self) -> bool {
        self.inner.sessions.read().await.len() >= self.most
    }
}

/// A session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There are as many as there may be.
    #[error("there are as many sessions as there may be")]
    Full,
    /// The session is broken.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        if self.is_full().await {
            return Err(SessionError::Full);
        }
        Ok(self.inner.create_session().await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.inner.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.inner.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.inner.resume(id, last_event_id).await?)
    }
}
