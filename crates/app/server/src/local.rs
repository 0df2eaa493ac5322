//! The local socket, `DATA/socket`: how everything on this machine that has the same data
//! directory reaches the one server that has it open.
//!
//! * The data directory lets in its owner alone, and so does the socket (0600); who
//!   connects is also asked of the system. Whoever comes in could open the directory as
//!   well. Calls that come through it are those of [`Access::local`].
//! * Nobody else can take the socket's place. A TCP address that is written to a file
//!   outlives a killed server, and the next process to bind its port would be sent
//!   private skills.
//! * It serves gRPC only, with the admission, deadlines and metrics of every other call,
//!   and `repertoire.v1.Admin`, which no other listener offers.
//! * Where it is all that a server listens on, the server leaves when nobody has been
//!   connected for a while. Nobody's call is lost by that: the socket's name goes first, and
//!   whoever connected before that is served. The other way round a connection could wait in
//!   the queue of a socket that closes, and its window be told of an error that nobody made.
//!
//! Not here: the listener for everybody (`listen`), and who connects (`window`).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
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

use super::answer::AnswerBody;
use super::calls::CallService;
use super::window::Caller;
use access::{Access, Origin};
use connection::ShortPath;
use contract::status;

const NAME: &str = "socket";
/// The socket's name until it may be connected to.
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
        // A socket that stays behind refuses connections, which says the same.
        let _gone = fs::remove_file(&self.0);
    }
}

/// The socket of an open data directory.
#[derive(Debug)]
pub(super) struct LocalSocket {
    listener: UnixListener,
    name: Name,
    directory: PathBuf,
    /// How many are connected.
    connected: Arc<watch::Sender<usize>>,
    /// Whose first change is the first one since the socket was bound.
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

/// What serves connections.
struct Serving {
    service: CallService<Router>,
    stop: CancellationToken,
    open: GracefulShutdown,
    connected: Arc<watch::Sender<usize>>,
    /// Whose socket it is.
    owner: u32,
}

impl LocalSocket {
    /// Binds the socket. What an earlier server left is replaced: this one has the lock
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
        // Nobody connects before the mode is set: it gets its name last.
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

    /// How many are connected.
    pub(super) fn connected(&self) -> watch::Receiver<usize> {
        self.connected.subscribe()
    }

    /// The same count, whose change has the server look whether it is used.
    pub(super) fn connections(&self) -> Arc<watch::Sender<usize>> {
        Arc::clone(&self.connected)
    }

    /// Serves until `stop`, or until nobody was connected for so long, where that is an end;
    /// then gives open connections `grace` to finish.
    pub(super) async fn serve(
        mut self,
        service: CallService<Router>,
        stop: CancellationToken,
        grace: Duration,
        linger: Option<Duration>,
    ) {
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
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit.ok(),
                () = stop.cancelled() => break,
            };
            let unused = async {
                match unused_until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                // Its sender is with the socket.
                _ = connected.changed() => {
                    let is_used = *connected.borrow_and_update() > 0;
                    unused_until = linger.filter(|_| !is_used).map(|time| Instant::now() + time);
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => serving.begin(stream, permit),
                    Err(error) => {
                        // Out of descriptors, mostly: wait for some to come back.
                        tracing::warn!(%error, "a local connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = unused => {
                    drop(permit);
                    match self.leave() {
                        Ok(None) => return,
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
        // From here on nobody waits for a server that takes no connections.
        drop(self);
        if tokio::time::timeout(grace, serving.open.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("local connections were still open at the end of the grace period");
        }
    }

    /// Gives the name up. Whoever had connected by then has to be served, by a socket that
    /// others find.
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
                tracing::warn!(%error, "the peer of the local socket cannot be identified");
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
                        if let Some(folder) = caller.folder {
                            request.extensions_mut().insert(folder);
                        }
                        if let Some(place) = caller.place {
                            request.extensions_mut().insert(place);
                        }
                        request.extensions_mut().insert(access);
                        service.oneshot(request.map(Body::new)).await
                    }
                    Err(refusal) => {
                        let answer: Response<Body> = status(refusal).into_http();
                        Ok(answer.map(|body| AnswerBody::new(body, None, None)))
                    }
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

/// Whether who connects, by what the system says of the process, is somebody whom the
/// directory would let in.
fn is_let_in(user: u32, owner: u32) -> bool {
    if user == owner || user == ROOT_USER_ID {
        return true;
    }
    tracing::warn!(user, owner, "another user connected to the local socket");
    false
}

/// A connection to the server that has a data directory open.
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
