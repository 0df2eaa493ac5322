//! The listener: one port, HTTP/1.1 and HTTP/2, with limits on connections.
//!
//! Each step of a client has a time: its first bytes (`socket`), the headers of a
//! request, an answer to a ping, and what it reads (`socket`, `reader`). Bodies have a
//! least rate (`admission`). So a connection that stalls at any of them ends.

use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use super::protocol::ProtocolRouter;
use super::reader::Watched;
use admission::{Admission, Full, Resource};
use connection::{Coalesce, Socket};

/// Bytes of a request's headers.
const MAX_HEADER_BYTES: u32 = 16 * 1024;
/// Streams that a client may have reset before the server has looked at them
/// (rapid reset).
const MAX_PENDING_RESETS: usize = 32;
/// Bytes in flight on a stream and on a connection. A stream that waits (for memory, or
/// for a skill that is being written) leaves its window full; so that it neither stops
/// the other streams of its connection, nor has more small frames unread than HTTP/2's
/// bound on them allows, a stream has little of what a connection has.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;

fn builder(limits: &Limits) -> Builder<Watched> {
    let mut builder = Builder::new(Watched(limits.read_time()));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time())
        .max_buf_size(64 * 1024);
    builder
        .http2()
        .timer(TokioTimer::new())
        // A client that has sent half a frame cannot answer: it is let go as well.
        .keep_alive_interval(limits.header_time().saturating_mul(2))
        .keep_alive_timeout(limits.header_time())
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
    service: ProtocolRouter,
    admission: Admission,
    limits: Limits,
    stop: CancellationToken,
    grace: Duration,
    stopping: impl Future<Output = ()>,
) {
    let builder = builder(&limits);
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: wait for some to come back.
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let peer = admission.peer(address.ip());
        let permit = match peer.try_take(Resource::Connections, 1) {
            Ok(permit) => permit,
            Err(Full::Share) => {
                tracing::debug!(%address, "an address has its share of connections");
                continue;
            }
            // This one waits for another to end, and those behind it wait in the
            // system's queue.
            Err(Full::All) => tokio::select! {
                permit = peer.take(Resource::Connections, 1) => match permit {
                    Ok(permit) => permit,
                    Err(_) => continue,
                },
                () = stop.cancelled() => break,
            },
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection goes without TCP_NODELAY");
        }
        let service = TowerToHyperService::new(service.clone().for_peer(peer, address.ip()));
        let socket = Socket::new(stream, limits.header_time(), limits.read_time());
        let connection = builder
            .serve_connection(TokioIo::new(socket), service)
            .into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = Coalesce::new(connection).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
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
