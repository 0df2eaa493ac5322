//! MCP over stdin and stdout: one client, until it closes stdin.

use rmcp::ServiceExt as _;
use tokio_util::sync::CancellationToken;

use super::Handler;

/// The client did not speak MCP, or the talk broke off.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// It never began.
    #[error("the client did not begin as MCP clients do: {0}")]
    Begin(Box<rmcp::service::ServerInitializeError>),
    /// The task that served it is gone.
    #[error("serving stdin and stdout: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Serves one client until it closes stdin, or until `stop`.
///
/// # Errors
/// The client did not speak MCP.
pub async fn serve_stdio(handler: Handler, stop: CancellationToken) -> Result<(), StdioError> {
    let served = handler.serve_with_ct(rmcp::transport::stdio(), stop).await;
    let running = match served {
        Ok(running) => running,
        Err(
            rmcp::service::ServerInitializeError::ConnectionClosed(_)
            | rmcp::service::ServerInitializeError::Cancelled,
        ) => return Ok(()),
        Err(error) => return Err(StdioError::Begin(Box::new(error))),
    };
    running.waiting().await?;
    Ok(())
}
