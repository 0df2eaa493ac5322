//! The listener: one port, HTTP/1.1 and HTTP/2, with TLS or without, with limits on
//! connections.
//!
//! Each step of a client has a timeout: its handshake (`tls`), its first bytes (`socket`), the
//! headers of a request, an answer to a ping, and what it reads (`socket`, `reader`). Bodies
//! have a minimum rate (`admission`). So a connection that stalls at any of them ends.

use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::{self, Builder};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::limits::Limits;
use super::protocol::{ProtocolRouter, Protocols};
use admission::{Admission, Full, Resource};
use connection::{
    Coalesce, Socket, WatchedExecutor, gives_peer_users, own_user, peer_user, served_until,
};
use tls::{ClientCertificate, Secured, Tls};

/// Bytes of a request's headers.
const MAX_HEADER_BYTES: u32 = 16 * 1024;
/// Streams that a client may have reset before the server has taken them: CVE-2023-44487
/// (rapid reset) opens and resets them without end.
const MAX_PENDING_RESETS: usize = 32;
/// Bytes in flight on a stream and on a connection. A stream that waits (for memory, or
/// for a skill that is being written) leaves its window full; so that it neither stops
/// the other streams of its connection, nor has more small frames unread than HTTP/2's
/// bound on them allows, a stream has little of what a connection has.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

fn builder(limits: &Limits) -> Builder<WatchedExecutor> {
    let mut builder = Builder::new(WatchedExecutor(limits.read_time()));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time())
        // hyper would buffer 400 KiB of headers a connection.
        .max_buf_size(64 * 1024);
    builder
        .http2()
        .timer(TokioTimer::new())
        // Also ends a client that stalls within a frame, as it cannot answer a ping.
        .keep_alive_interval(limits.header_time().saturating_mul(2))
        .keep_alive_timeout(limits.header_time())
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(limits.streams_per_connection)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder
}

/// The port that connections come in by.
pub(super) struct Port {
    pub(super) listener: TcpListener,
    /// None: plain TCP.
    pub(super) tls: Option<Tls>,
}

/// An accepted connection, with all that it takes to serve it.
struct AcceptedConnection {
    service: Protocols,
    builder: Builder<WatchedExecutor>,
    /// Timeout of its handshake, and of its first bytes.
    first: Duration,
    /// Timeout of a client that does not read.
    read: Duration,
    /// Cancelled when it is to finish.
    closing: CancellationToken,
    /// What it may do depends on the user of its client.
    asks_user: bool,
}

impl AcceptedConnection {
    /// Limits what another user of this machine may do, where that matters.
    fn of_user(mut self, stream: &TcpStream, address: SocketAddr) -> Self {
        // Whatever its address: a client here may call a loopback port from any address of this
        // machine, and none from elsewhere can.
        if self.asks_user {
            let here = stream.local_addr().ok();
            let user = here.and_then(|here| peer_user(address, here));
            self.service.sign_in = self.service.sign_in.of_user(user, own_user());
        }
        self
    }

    /// Serves it after a handshake, which needs a permit.
    async fn secured(self, stream: TcpStream, tls: Tls) {
        // Handshakes that hold a permit now end within `first`; it may be second in line.
        let until = Instant::now() + self.first.saturating_mul(2);
        let peer = &self.service.peer;
        let permit = peer.take_until(Resource::Handshakes, 1, until);
        let Some(Ok(permit)) = self.closing.run_until_cancelled(permit).await else {
            tracing::debug!("a connection got no permit for its handshake");
            return;
        };
        let handshake = tls.accept(stream, self.first);
        let handshake = self.closing.run_until_cancelled(handshake).await;
        // It is for the work of a handshake alone; the connection has a permit of its own.
        drop(permit);
        match handshake {
            Some(Ok(Secured { stream, client })) => self.serve(stream, client).await,
            Some(Err(error)) => tracing::debug!(%error, "a connection has no TLS"),
            None => {}
        }
    }

    /// Serves it until it ends, or the certificate that it signed in with expires.
    async fn serve<S>(mut self, stream: S, client: Option<ClientCertificate>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let ended = CancellationToken::new();
        if let Some(it) = &client {
            let sign_in = &self.service.sign_in;
            self.service.sign_in = sign_in.of_certificate(&it.names, it.not_after, ended.clone());
        }
        let lapsed = async {
            match client {
                Some(client) => client.lapsed().await,
                None => std::future::pending().await,
            }
        };
        let end = async {
            tokio::select! {
                () = self.closing.cancelled() => {}
                // Its streams end at once, by this token; a call that runs is still answered.
                () = lapsed => ended.cancel(),
            }
        };
        let socket = TokioIo::new(Socket::new(stream, self.first, self.read));
        let service = TowerToHyperService::new(ProtocolRouter::from(self.service));
        let connection = self.builder.serve_connection(socket, service);
        let served = served_until(connection, end, auto::Connection::graceful_shutdown);
        if let Err(error) = Coalesce::new(served).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Serves until `stop`; then `stopping` runs, no more connections are accepted, and those that
/// are open have `grace` to finish.
pub(super) async fn serve(
    Port { listener, tls }: Port,
    service: Protocols,
    admission: Admission,
    limits: Limits,
    stop: CancellationToken,
    grace: Duration,
    stopping: impl Future<Output = ()>,
) {
    let builder = builder(&limits);
    let mut asks_user = service.sign_in.asks_user();
    if asks_user && !gives_peer_users() {
        tracing::warn!(
            "this system does not give the user of a connection, so every user of this machine may call: see access.loopback"
        );
        asks_user = false;
    }
    let (connections, closing) = (TaskTracker::new(), CancellationToken::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly out of descriptors: without a pause this would spin until one is free.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // By address: who calls is known with a request only.
        let peer = admission.peer(address.ip());
        let permit = match peer.try_take(Resource::Connections, 1) {
            Ok(permit) => permit,
            Err(Full::Share) => {
                // Closed, not queued: all others would queue behind it.
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
        // Answers are small and are written whole, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection goes without TCP_NODELAY");
        }
        let taken = AcceptedConnection {
            service: service.for_peer(peer, address.ip()),
            builder: builder.clone(),
            first: limits.header_time(),
            read: limits.read_time(),
            closing: closing.child_token(),
            asks_user,
        };
        let tls = tls.clone();
        connections.spawn(async move {
            let taken = taken.of_user(&stream, address);
            match tls {
                Some(tls) => taken.secured(stream, tls).await,
                None => taken.serve(stream, None).await,
            }
            drop(permit);
        });
    }
    // Open connections get the last news first: watchers of the health hear NOT_SERVING, and
    // workers send the answers that calls wait for.
    stopping.await;
    drop(listener);
    closing.cancel();
    connections.close();
    if tokio::time::timeout(grace, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            "connections were still open after {} seconds",
            grace.as_secs()
        );
    }
}
