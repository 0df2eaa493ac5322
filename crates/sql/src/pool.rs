//! A few connections, opened when they are needed.
//!
//! Not the pool of sqlx, which takes a connection back in the middle of a query
//! and reads that query to its end. Here a connection comes back only by
//! [`Pool::give_back`], after all of its answer was read; any other way to let go
//! of it, such as a call that nobody waits for any more, closes it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error;
use handler::{ToolError, ToolErrorKind};

/// Connections at once.
pub(super) const CONNECTIONS: usize = 4;

/// How long a call waits for a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// One permit of the few, or a refusal that says when to try again.
pub(super) async fn permit(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ToolError> {
    if let Ok(Ok(permit)) = timeout(PATIENCE, Arc::clone(permits).acquire_owned()).await {
        return Ok(permit);
    }
    let mut busy = ToolError::new(
        ToolErrorKind::Unavailable,
        "All connections to the database are busy.",
    )
    .suggest("Try again in a moment");
    busy.retry_after = Some(Duration::from_secs(1));
    Err(busy)
}

/// Opens connections.
pub(super) trait Opener: Send + Sync {
    /// What it opens.
    type Connection: Send;

    /// Opens one, and makes sure that it may be used.
    fn open(&self) -> impl Future<Output = Result<Self::Connection, ToolError>> + Send;

    /// It still answers.
    fn alive(connection: &mut Self::Connection) -> impl Future<Output = bool> + Send;
}

/// A few connections.
pub(super) struct Pool<O: Opener> {
    opener: O,
    idle: Mutex<Vec<O::Connection>>,
    places: Arc<Semaphore>,
}

/// A connection, and its place among the few.
pub(super) struct Lease<C> {
    /// The connection.
    pub(super) connection: C,
    /// Free once this is dropped.
    pub(super) place: OwnedSemaphorePermit,
}

impl<O: Opener> Pool<O> {
    pub(super) fn new(opener: O) -> Self {
        Self {
            opener,
            idle: Mutex::new(Vec::new()),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        }
    }

    fn idle(&self) -> Option<O::Connection> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    /// A connection that answers.
    pub(super) async fn take(&self) -> Result<Lease<O::Connection>, ToolError> {
        let place = permit(&self.places).await?;
        while let Some(mut connection) = self.idle() {
            // The server may have gone away since.
            if let Ok(true) = timeout(PATIENCE, O::alive(&mut connection)).await {
                return Ok(Lease { connection, place });
            }
        }
        match timeout(PATIENCE, self.opener.open()).await {
            Ok(Ok(connection)) => Ok(Lease { connection, place }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(error::unreachable()),
        }
    }

    /// Of connections, free or not.
    #[cfg(test)]
    pub(super) fn places(&self) -> &Arc<Semaphore> {
        &self.places
    }

    /// Keeps a connection for the next call. Its last answer was read, and nothing of
    /// the call is left in its session.
    pub(super) fn give_back(&self, lease: Lease<O::Connection>) {
        let Lease { connection, place } = lease;
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        // Then whoever waits for it finds the connection.
        drop(place);
    }
}
