//! A few connections, opened when they are needed.
//!
//! Not the pool of sqlx, which takes a connection back in the middle of a query
//! and reads that query to its end. Here a connection comes back only by
//! [`Pool::give_back`], after all of its answer was read; dropping
//! it in any other way, such as by a call that nobody waits for any more, closes it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error;
use super::session::Server;
use handler::ToolError;

/// Connections at once.
pub(super) const MAX_CONNECTIONS: usize = 4;

/// Time that a call waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// One permit of the few, or a refusal that says when to try again.
pub(super) async fn permit(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ToolError> {
    if let Ok(Ok(permit)) = timeout(ACQUIRE_TIMEOUT, Arc::clone(permits).acquire_owned()).await {
        return Ok(permit);
    }
    let mut busy = ToolError::unavailable("All connections to the database are busy.")
        .suggest("Try again in a moment");
    busy.retry_after = Some(Duration::from_secs(1));
    Err(busy)
}

/// A few connections.
pub(super) struct Pool<S: Server> {
    server: S,
    idle: Mutex<Vec<S::ServerConnection>>,
    permits: Arc<Semaphore>,
}

/// A connection, and its permit among the few.
pub(super) struct Lease<C> {
    /// The connection.
    pub(super) connection: C,
    /// Free once this is dropped.
    pub(super) permit: OwnedSemaphorePermit,
}

impl<S: Server> Pool<S> {
    pub(super) fn new(server: S) -> Self {
        Self {
            server,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    fn idle(&self) -> Option<S::ServerConnection> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    /// A connection that answers.
    pub(super) async fn acquire(&self) -> Result<Lease<S::ServerConnection>, ToolError> {
        let permit = permit(&self.permits).await?;
        // A connection that does not answer is dropped, which closes it, and the next one is
        // tried.
        while let Some(mut connection) = self.idle() {
            // The server may have gone away since.
            if let Ok(Ok(())) = timeout(ACQUIRE_TIMEOUT, connection.as_mut().ping()).await {
                return Ok(Lease { connection, permit });
            }
        }
        match timeout(ACQUIRE_TIMEOUT, self.server.open()).await {
            Ok(Ok(connection)) => Ok(Lease { connection, permit }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(error::unreachable()),
        }
    }

    /// Of connections, free or not.
    #[cfg(test)]
    pub(super) fn permits(&self) -> &Arc<Semaphore> {
        &self.permits
    }

    /// Returns a connection for the next call. Its last answer was read, and nothing of
    /// the call is left in its session.
    pub(super) fn give_back(&self, lease: Lease<S::ServerConnection>) {
        let Lease { connection, permit } = lease;
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        // Last, so that a call that waits for the permit finds the connection.
        drop(permit);
    }
}
