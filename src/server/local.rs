//! The local socket, `DATA/socket`: how commands on this machine reach the server that
//! has a data directory open.
//!
//! * The data directory lets in its owner alone, and so does the socket (0600): whoever
//!   connects could open the directory as well. Calls that come through it are those of
//!   [`Principal::local`].
//! * Nobody else can take the socket's place. A TCP address that is written to a file
//!   outlives a killed server, and the next process to bind its port would be sent
//!   private skills.
//! * It serves gRPC only, with the admission, deadlines and metrics of every other call,
//!   and `repertoire.v1.Admin`, which no other listener offers.
//!
//! Not here: the listener for everybody (`listen`).

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt as _;

use super::calls::CallService;
use model::Principal;

const NAME: &str = "socket";
/// The socket's name until it may be connected to.
const UNFINISHED: &str = "socket.new";
/// Bytes of a path that every Unix takes as a socket's (`sockaddr_un`, 104 on the BSDs).
const MAX_PATH_BYTES: usize = 100;
/// Connections at once. A command opens one.
const MAX_CONNECTIONS: usize = 64;
/// How long a client may take to send its first byte.
const FIRST_BYTE: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A directory, and a path to it that is short enough for a socket below it.
struct Short {
    path: PathBuf,
    // The path may lead through it.
    _directory: Option<File>,
}

impl Short {
    fn new(directory: &Path) -> io::Result<Self> {
        let longest = directory.join(UNFINISHED);
        if !cfg!(target_os = "linux") || longest.as_os_str().len() <= MAX_PATH_BYTES {
            return Ok(Self {
                path: directory.to_owned(),
                _directory: None,
            });
        }
        let open = File::open(directory)?;
        Ok(Self {
            path: PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())),
            _directory: Some(open),
        })
    }

    fn socket(&self) -> PathBuf {
        self.path.join(NAME)
    }
}

/// The socket of an open data directory. Dropping it removes its file.
#[derive(Debug)]
pub(super) struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl LocalSocket {
    /// Binds the socket. What an earlier server left is replaced: this one has the lock
    /// of the directory.
    pub(super) fn bind(directory: &Path) -> io::Result<Self> {
        let short = Short::new(directory)?;
        let unfinished = short.path.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Nobody connects before the mode is set: it gets its name last.
        let listener = UnixListener::bind(&unfinished)?;
        fs::set_permissions(&unfinished, Permissions::from_mode(0o600))?;
        fs::rename(&unfinished, short.socket())?;
        Ok(Self {
            listener,
            path: directory.join(NAME),
        })
    }

    /// Serves until `stop`, then gives open connections `grace` to finish.
    pub(super) async fn serve(
        self,
        service: CallService<Router>,
        stop: CancellationToken,
        grace: Duration,
    ) {
        let mut builder = Builder::new(TokioExecutor::new()).http2_only();
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(KEEPALIVE);
        let service = service.map_request(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(Principal::local());
            request.map(Body::new)
        });
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let connections = GracefulShutdown::new();
        loop {
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit,
                () = stop.cancelled() => break,
            };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, mostly: wait for some to come back.
                    tracing::warn!(%error, "a local connection was not taken");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (builder, watcher) = (builder.clone(), connections.watcher());
            let service = TowerToHyperService::new(service.clone());
            let stop = stop.clone();
            tokio::spawn(async move {
                let first = tokio::time::timeout(FIRST_BYTE, stream.readable());
                if !matches!(stop.run_until_cancelled(first).await, Some(Ok(Ok(())))) {
                    return;
                }
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                if let Err(error) = watcher.watch(connection.into_owned()).await {
                    tracing::debug!(%error, "a local connection ended early");
                }
                drop(permit);
            });
        }
        // From here on nobody waits for a server that takes no connections.
        drop(self);
        if tokio::time::timeout(grace, connections.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("local connections were still open at the end of the grace period");
        }
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // A socket that stays behind refuses connections, which says the same.
        let _gone = fs::remove_file(&self.path);
    }
}

/// A channel to the server that has a data directory open; none where there is none.
pub async fn connect_local(directory: &Path) -> Option<Channel> {
    let directory = directory.to_owned();
    let connector = tower::service_fn(move |_: http::Uri| {
        let directory = directory.clone();
        async move {
            let short = Short::new(&directory)?;
            let stream = UnixStream::connect(short.socket()).await?;
            Ok::<_, io::Error>(TokioIo::new(stream))
        }
    });
    // Only the connector knows the address; HTTP/2 wants a host all the same.
    Endpoint::from_static("http://localhost")
        .connect_timeout(CONNECT_TIMEOUT)
        .connect_with_connector(connector)
        .await
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_is_bound_for_its_owner_alone_and_replaces_one_that_was_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        let killed = UnixListener::bind(&path).expect("a socket");
        drop(killed);
        let bound = LocalSocket::bind(folder.path()).expect("a socket");
        assert_eq!(mode(&path), 0o600);
        UnixStream::connect(&path).await.expect("a connection");
        drop(bound);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_directory_may_have_a_path_longer_than_a_socket_may() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("d".repeat(150));
        fs::create_dir(&deep).expect("a folder");
        let bound = LocalSocket::bind(&deep).expect("a socket");
        let short = Short::new(&deep).expect("a path");
        let (connected, accepted) =
            tokio::join!(UnixStream::connect(short.socket()), bound.listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
    }

    #[tokio::test]
    async fn a_socket_that_nobody_listens_on_is_no_server() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(UnixListener::bind(folder.path().join(NAME)).expect("a socket"));
        assert!(connect_local(folder.path()).await.is_none());
    }
}
