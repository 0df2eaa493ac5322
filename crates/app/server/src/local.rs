//! The local socket, `DATA/socket`: by it everything on this machine that has the same data
//! directory reaches the one server that has it open.
//!
//! * The data directory lets in its owner alone, and so does the socket (0600); the system is
//!   also asked which user connects. That user could open the directory as well, so calls
//!   through it have all rights ([`Access::local`]).
//! * Nobody else can bind the socket. A TCP address that is written to a file
//!   outlives a killed server, and the next process to bind its port would be sent
//!   private skills.
//! * It serves gRPC only, with the admission, deadlines and metrics of every other call,
//!   and `repertoire.v1.Admin`, which no other listener offers.
//! * Where it is all that a server listens on, the server leaves when nothing has been
//!   connected for a while. No call is lost by that: the socket's name is removed first, and
//!   what connected before that is served. The other way round a connection could wait in the
//!   queue of a socket that closes, and its window would get an error for no reason.
//!
//! Not here: the listener on the network (`listen`), and the client side (`window`).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::answer::unbooked;
use super::calls::CallService;
use super::window::Caller;
use access::{Access, Origin};
use connection::ShortPath;
use contract::status;

const NAME: &str = "socket";
/// The socket's name until clients may connect to it.
const UNFINISHED: &str = "socket.new";
/// Connections at once. A command opens one, and so does a window.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take to send its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server waits for its first connection, at least.
const FIRST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);
/// The user who may open every directory.
const ROOT_USER_ID: u32 = 0;

/// The name of a socket. Dropping it removes the file.
#[derive(Debug)]
struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        // A socket that stays behind refuses connections, and clients take that for no server.
        let _gone = fs::remove_file(&self.0);
    }
}

/// The socket of an open data directory.
#[derive(Debug)]
pub(super) struct LocalSocket {
    listener: UnixListener,
    name: Name,
    directory: PathBuf,
    /// The number of connections.
    connected: Arc<watch::Sender<usize>>,
    /// Subscribed when the socket was bound, so that no change since is missed.
    changes: watch::Receiver<usize>,
}

/// A connection, which counts until it is dropped.
struct Connection {
    _permit: Option<OwnedSemaphorePermit>,
    connected: Arc<watch::Sender<usize>>,
}

impl Connection {
    fn new(permit: Option<OwnedSemaphorePermit>, connected: &Arc<watch::Sender<usize>>) -> Self {
        connected.send_modify(|count| *count += 1);
        Self {
            _permit: permit,
            connected: Arc::clone(connected),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connected.send_modify(|count| *count -= 1);
    }
}

/// Serves connections.
struct Serving {
    service: CallService<Router>,
    stop: CancellationToken,
    open: GracefulShutdown,
    connected: Arc<watch::Sender<usize>>,
    /// The user who owns the socket.
    owner: u32,
}

impl LocalSocket {
    /// Binds the socket. One that an earlier server left is replaced: this server has the lock
    /// of the directory.
    pub(super) fn bind(directory: &Path) -> io::Result<Self> {
        Self::bind_for(directory, Arc::new(watch::Sender::new(0)))
    }

    fn bind_for(directory: &Path, connected: Arc<watch::Sender<usize>>) -> io::Result<Self> {
        let short = ShortPath::new(directory)?;
        let unfinished = short.path.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Between bind and chmod the umask decides who may connect. Under this name nobody does.
        let listener = UnixListener::bind(&unfinished)?;
        fs::set_permissions(&unfinished, Permissions::from_mode(0o600))?;
        fs::rename(&unfinished, short.path.join(NAME))?;
        Ok(Self {
            changes: connected.subscribe(),
            listener,
            name: Name(directory.join(NAME)),
            directory: directory.to_owned(),
            connected,
        })
    }

    /// The number of connections.
    pub(super) fn connected(&self) -> watch::Receiver<usize> {
        self.connected.subscribe()
    }

    /// The same count to write: a change makes the server check whether it is used.
    pub(super) fn connections(&self) -> Arc<watch::Sender<usize>> {
        Arc::clone(&self.connected)
    }

    /// Serves until `stop`, or until nothing was connected for `linger`, where that is given;
    /// then gives open connections `grace` to finish.
    pub(super) async fn serve(
        mut self,
        service: CallService<Router>,
        stop: CancellationToken,
        grace: Duration,
        linger: Option<Duration>,
    ) {
        // Where the socket cannot be inspected only root gets in.
        let owner = fs::metadata(&self.name.0).map_or(ROOT_USER_ID, |socket| socket.uid());
        let serving = Serving {
            service,
            stop: stop.clone(),
            open: GracefulShutdown::new(),
            connected: Arc::clone(&self.connected),
            owner,
        };
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connected = self.changes.clone();
        let mut unused_until =
            linger.map(|time| Instant::now() + time.max(FIRST_CONNECTION_TIMEOUT));
        loop {
            // The permit first: a connection that is accepted without one could not be given back
            // to the queue.
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit.ok(),
                () = stop.cancelled() => break,
            };
            let unused = tokio::time::sleep_until(unused_until.unwrap_or_else(Instant::now));
            // In this order, so that a connection that is there keeps the server from leaving.
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                // It cannot end: this socket has the sender.
                _ = connected.changed() => {
                    let is_used = *connected.borrow_and_update() > 0;
                    unused_until = linger.filter(|_| !is_used).map(|time| Instant::now() + time);
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => serving.begin(stream, permit),
                    Err(error) => {
                        // As in `listen`.
                        tracing::warn!(%error, "a local connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = unused, if unused_until.is_some() => {
                    drop(permit);
                    match self.leave() {
                        Ok(None) => return,
                        // It came while the server left: stay, under the same name.
                        Ok(Some((socket, streams))) => {
                            self = socket;
                            for stream in streams {
                                let permit = Arc::clone(&permits).try_acquire_owned();
                                serving.begin(stream, permit.ok());
                            }
                        }
                        Err(error) => {
                            tracing::warn!(%error, "the local socket cannot be removed");
                            return;
                        }
                    }
                }
            }
        }
        // The name goes before the grace period: who comes now starts a server of its own.
        drop(self);
        if tokio::time::timeout(grace, serving.open.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("local connections were still open at the end of the grace period");
        }
    }

    /// Removes the name. What had connected by then is served, by a new socket with the same
    /// name; none: nothing had, and the server may end.
    fn leave(self) -> io::Result<Option<(Self, Vec<UnixStream>)>> {
        let Self {
            listener,
            name,
            directory,
            connected,
            changes: _,
        } = self;
        drop(name);
        let listener = listener.into_std()?;
        let mut came = Vec::new();
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    came.push(UnixStream::from_std(stream)?);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if came.is_empty() {
            return Ok(None);
        }
        Ok(Some((Self::bind_for(&directory, connected)?, came)))
    }
}

impl Serving {
    /// Serves a connection, on a task of its own.
    fn begin(&self, stream: UnixStream, permit: Option<OwnedSemaphorePermit>) {
        let connection = Connection::new(permit, &self.connected);
        let is_let_in = match stream.peer_cred() {
            Ok(peer) => is_let_in(peer.uid(), self.owner),
            Err(error) => {
                tracing::warn!(%error, "the user of a local connection is unknown");
                false
            }
        };
        if !is_let_in {
            return;
        }
        let access = Access::local().from(Origin::local("socket"));
        let service = self.service.clone();
        let service = tower::service_fn(move |mut request: Request<Incoming>| {
            let (service, access) = (service.clone(), access.clone());
            async move {
                match Caller::of(request.headers()) {
                    Ok(caller) => {
                        let extensions = request.extensions_mut();
                        if let Some(folder) = caller.folder {
                            extensions.insert(folder);
                        }
                        if let Some(place) = caller.place {
                            extensions.insert(place);
                        }
                        extensions.insert(access);
                        service.oneshot(request.map(Body::new)).await
                    }
                    Err(refusal) => Ok(unbooked(status(refusal).into_http())),
                }
            }
        });
        let mut builder = Builder::new(TokioExecutor::new()).http2_only();
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(KEEPALIVE_INTERVAL);
        let (watcher, stop) = (self.open.watcher(), self.stop.clone());
        tokio::spawn(async move {
            // Counted, and with its permit, until this task ends.
            let _counts = connection;
            let first = tokio::time::timeout(FIRST_BYTE_TIMEOUT, stream.readable());
            if !matches!(stop.run_until_cancelled(first).await, Some(Ok(Ok(())))) {
                return;
            }
            let service = TowerToHyperService::new(service);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            if let Err(error) = watcher.watch(connection.into_owned()).await {
                tracing::debug!(%error, "a local connection ended early");
            }
        });
    }
}

/// Returns whether a user who connects could open the directory as well.
fn is_let_in(user: u32, owner: u32) -> bool {
    if user == owner || user == ROOT_USER_ID {
        return true;
    }
    tracing::warn!(user, owner, "another user connected to the local socket");
    false
}

/// Connects to the server that has a data directory open.
pub(super) async fn connect(directory: &Path) -> io::Result<UnixStream> {
    let short = ShortPath::new(directory)?;
    UnixStream::connect(short.path.join(NAME)).await
}

#[cfg(test)]
mod tests {
    use tower::Layer as _;

    use super::*;
    use crate::calls::{CallLayer, Guards};
    use crate::window::connect_local;
    use model::SystemClock;
    use namespaces::Namespaces;
    use tokens::{SignIn, SignInConfig, Tokens};

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

    #[test]
    fn nobody_but_the_owner_and_root_is_let_in() {
        let let_in = [(1000, 1000), (0, 1000), (1001, 1000), (1000, 0)];
        let let_in = let_in.map(|(user, owner)| is_let_in(user, owner));
        assert_eq!(let_in, [true, true, false, false]);
    }

    #[tokio::test]
    async fn a_socket_that_nobody_listens_on_is_no_server() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(UnixListener::bind(folder.path().join(NAME)).expect("a socket"));
        assert!(connect_local(folder.path()).await.is_none());
    }

    /// Services of which there are none.
    fn services() -> CallService<Router> {
        let (limits, stop) = (crate::Limits::default(), CancellationToken::new());
        let store = store::Store::in_memory(&store::Options::default());
        let audit = audit::Audit::new(store.clone(), Default::default(), Arc::new(SystemClock));
        let tokens = Tokens::open(store.clone()).expect("tokens");
        let namespaces = Namespaces::open(store, Default::default()).expect("namespaces");
        let sign_in = SignIn::new(&SignInConfig::default(), tokens, Arc::new(SystemClock))
            .expect("a sign-in");
        let guards = Guards {
            sign_in,
            audit,
            namespaces,
        };
        let calls = CallLayer::new((limits.admission(), &limits), guards, stop, false);
        calls.layer(Router::new())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_nobody_uses_leaves_after_its_time_and_not_before() {
        const LINGER_TIMEOUT: Duration = Duration::from_secs(60);
        let second = Duration::from_secs(1);
        let folder = tempfile::tempdir().expect("a folder");
        let serve = |linger| {
            let socket = LocalSocket::bind(folder.path()).expect("a socket");
            let (connected, stop) = (socket.connected(), CancellationToken::new());
            let serving = socket.serve(services(), stop, second, linger);
            (tokio::spawn(serving), connected)
        };
        // Nobody ever came.
        let began = Instant::now();
        serve(Some(LINGER_TIMEOUT)).0.await.expect("it leaves");
        assert!(began.elapsed() >= LINGER_TIMEOUT && began.elapsed() < LINGER_TIMEOUT + second);
        assert!(!folder.path().join(NAME).exists());
        // Where it does not linger, whoever started it has time to come all the same.
        let began = Instant::now();
        serve(Some(Duration::ZERO)).0.await.expect("it leaves");
        assert!(began.elapsed() >= FIRST_CONNECTION_TIMEOUT);
        // For as long as one of two is connected, it stays.
        let (serving, mut connected) = serve(Some(LINGER_TIMEOUT));
        let first = connect_local(folder.path()).await.expect("a connection");
        let second_one = connect_local(folder.path()).await.expect("a connection");
        connected.wait_for(|count| *count == 2).await.expect("two");
        tokio::time::sleep(2 * LINGER_TIMEOUT).await;
        drop(first);
        connected.wait_for(|count| *count == 1).await.expect("one");
        tokio::time::sleep(2 * LINGER_TIMEOUT).await;
        assert!(!serving.is_finished());
        drop(second_one);
        let began = Instant::now();
        serving.await.expect("it leaves");
        assert!(began.elapsed() >= LINGER_TIMEOUT && began.elapsed() < LINGER_TIMEOUT + second);
        // One that was started to stay does.
        let (serving, _) = serve(None);
        tokio::time::sleep(100 * LINGER_TIMEOUT).await;
        assert!(!serving.is_finished());
        serving.abort();
    }

    #[tokio::test]
    async fn whoever_connected_before_the_name_was_gone_is_served_and_found_by_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        let bound = LocalSocket::bind(folder.path()).expect("a socket");
        let early = UnixStream::connect(&path).await.expect("a connection");
        let (bound, came) = bound.leave().expect("looked").expect("somebody came");
        assert_eq!(came.len(), 1);
        came[0].writable().await.expect("a connection");
        came[0].try_write(b"x").expect("a connection");
        early.readable().await.expect("bytes");
        UnixStream::connect(&path).await.expect("a connection");
        assert_eq!(mode(&path), 0o600);
        drop(bound);
        let bound = LocalSocket::bind(folder.path()).expect("a socket");
        assert!(bound.leave().expect("looked").is_none());
        assert!(!path.exists());
    }
}
