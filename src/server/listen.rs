//! The listener: one port, HTTP/1.1 and HTTP/2, with bounds on connections.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::config::Limits;
use super::doors::Doors;
use super::gather::Gather;

/// How long a client may take to send the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an idle HTTP/2 connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of a request's headers.
const MAX_HEADER_BYTES: u32 = 16 * 1024;
/// Streams that a client may have reset before the server has looked at them
/// (rapid reset).
const MAX_PENDING_RESETS: usize = 32;
/// Bytes in flight on a stream and on a connection.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(64 * 1024);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(limits.streams_per_connection)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// Serves until `stop`; then `stopping` runs, no connection is taken any more, and
/// those that are open have `grace` to finish.
pub(super) async fn serve(
    listener: TcpListener,
    service: Doors,
    limits: Limits,
    stop: CancellationToken,
    grace: Duration,
    stopping: impl Future<Output = ()>,
) {
    let builder = builder(&limits);
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(limits.connections));
    let connections = GracefulShutdown::new();
    loop {
        // A connection without a place waits in the system's queue.
        let place = tokio::select! {
            place = std::sync::Arc::clone(&places).acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, mostly: wait for some to come back.
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection goes without TCP_NODELAY");
        }
        let service = TowerToHyperService::new(service.clone());
        let connection = builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = Gather::new(connection).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    stopping.await;
    drop(listener);
    if tokio::time::timeout(grace, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(
            "connections were still open after {} seconds",
            grace.as_secs()
        );
    }
}
