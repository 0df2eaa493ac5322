//! The way from a window to the server that has its data directory open.
//!
//! A window is whatever an agent or a person has in front of them: `repertoire mcp`, `watch`.
//! It never opens the directory itself. It connects to the socket in it, and where nobody
//! answers, it starts a server ([`Background`](super::Background)) and connects to that.
//!
//! * The lock alone decides which server has the directory. Windows that start at once start a
//!   server each; one of these gets the lock, the others find its socket and end.
//! * The connector of a channel does this, so a window whose server was killed does it again
//!   with its next call.
//! * A window sends with every call where it was started, where its user's skills are and which
//!   contract it speaks: what may be read for it depends on the window, and not on the server,
//!   which another one may have started.
//!
//! Were the first window the server, its end would take the directory from the others, and
//! handing it over is a protocol of its own; so is a choice among those that are left. A
//! process that is nobody's window has neither.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{ChildStdout, Command};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service as _, ServiceExt as _};

use super::local;
use ::local::AgentFolders;
use contract::{FILE_DESCRIPTOR_SET, status};
use gateway::{Contract, Transport, TransportError};
use grpc::{CallerFolder, CallerPlace};
use model::{Code, Failure};

/// The argument by which this program becomes the server of a data directory.
pub const BACKGROUND: &str = "background";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a window waits for a server to come up.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Servers that are started for one connection, where they end without a report.
const MAX_STARTS: usize = 5;
const MIN_RETRY_DELAY: Duration = Duration::from_millis(5);
/// The longest pause before a call is made again.
const MAX_PAUSE: Duration = Duration::from_millis(320);

/// The header with the folder in which a window was started.
const FOLDER: &str = "repertoire-folder-bin";
/// The header with the folders in which its user's agents look for skills; with it, skills there
/// and in its own folder are served to it.
const AROUND: &str = "repertoire-around-bin";
/// The separator of these paths, as no path has it.
const NUL_BYTE: u8 = 0;
/// The header with the digest of its contract.
const CONTRACT: &str = "repertoire-contract";

/// The first call of a window.
const GET_STATUS: &str = "/repertoire.v1.Admin/GetStatus";

/// The digest of this program's contract, shortened.
static OURS: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::digest(FILE_DESCRIPTOR_SET);
    STANDARD_NO_PAD.encode(digest.get(..12).unwrap_or_default())
});

/// Paths of the rpcs that change nothing.
static ONLY_READ: LazyLock<HashSet<String>> = LazyLock::new(|| {
    // It can be loaded: the window has done so.
    let contract = contract::load().ok();
    let methods = contract.iter().flat_map(Contract::methods);
    let paths = methods.filter(|method| method.only_reads());
    paths
        .map(|method| format!("/repertoire.v1.{}/{}", method.service, method.name))
        // It has neither route nor tool, by which `only_reads` knows the others.
        .chain([GET_STATUS.to_owned()])
        .collect()
});

/// The headers of a window.
#[derive(Debug, Default)]
pub(super) struct Caller {
    pub(super) folder: Option<CallerFolder>,
    pub(super) place: Option<CallerPlace>,
}

impl Caller {
    /// Reads it from the headers of a request. A command sends none of them.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        // Two builds would read each other's messages wrong, without an error, where a field
        // changed its meaning.
        let theirs = headers.get(CONTRACT);
        if theirs.is_some_and(|theirs| theirs != OURS.as_str()) {
            return Err(other_contract());
        }
        let bytes = |name| STANDARD_NO_PAD.decode(headers.get(name)?).ok();
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        let folder = bytes(FOLDER).map(|bytes| path(&bytes));
        let place = folder.as_ref().zip(bytes(AROUND)).map(|(project, user)| {
            let user = user
                .split(|byte| *byte == NUL_BYTE)
                .filter(|path| !path.is_empty());
            CallerPlace(Arc::new(AgentFolders {
                project: project.clone(),
                user: user.map(path).collect(),
            }))
        });
        Ok(Self {
            folder: folder.map(CallerFolder),
            place,
        })
    }
}

fn other_contract() -> Failure {
    let process = std::process::id();
    let version = env!("CARGO_PKG_VERSION");
    let sentence = format!(
        "The server that has the data directory open (version {version}, process {process}) \
         speaks another contract than this window: they are of different builds"
    );
    Failure::new(Code::ContractDiffers, sentence)
        .suggest(
            "Close the windows of the other version; the server stops when no window is connected",
        )
        .suggest(format!(
            "Or end the server (`kill {process}`) and use one version"
        ))
}

/// Why no server could be started, as the server itself reported it.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct NotStarted {
    /// Stable code.
    pub code: String,
    /// The error.
    pub message: String,
    /// Suggestions for what to do next.
    pub next: Vec<String>,
}

impl NotStarted {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.name().to_owned(),
            message: message.into(),
            next: Vec::new(),
        }
    }
}

impl From<NotStarted> for Failure {
    fn from(error: NotStarted) -> Self {
        let code = Code::ALL.iter().find(|code| code.name() == error.code);
        let mut failure = Self::new(*code.unwrap_or(&Code::InternalError), error.message);
        failure.suggestions = error.next;
        failure
    }
}

/// The report of a server to the window that started it: one line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Started {
    /// It serves, or another one does.
    Serving,
    /// It does not.
    Failed(NotStarted),
}

/// Connects to the server that has a data directory open; none where there is none.
pub async fn connect_local(directory: &Path) -> Option<Channel> {
    let directory = directory.to_owned();
    let connector = tower::service_fn(move |_: Uri| {
        let directory = directory.clone();
        async move { local::connect(&directory).await.map(TokioIo::new) }
    });
    endpoint().connect_with_connector(connector).await.ok()
}

fn endpoint() -> Endpoint {
    // Only the connector knows the address; HTTP/2 wants a host all the same.
    Endpoint::from_static("http://localhost").connect_timeout(CONNECT_TIMEOUT)
}

/// Reaches the server of a data directory, and starts one where there is none.
#[derive(Debug, Clone)]
pub struct Window {
    data: PathBuf,
    config: Option<PathBuf>,
    /// The folders around its agent are read for it.
    local: bool,
}

impl Window {
    /// A window on a data directory. A server that is started for it reads this config.
    ///
    /// # Errors
    /// There is no current directory to make a path absolute by.
    pub fn new(data: &Path, config: Option<&Path>) -> io::Result<Self> {
        Ok(Self {
            data: std::path::absolute(data)?,
            config: config.map(std::path::absolute).transpose()?,
            local: false,
        })
    }

    /// The skills of the folders around its agent are served to it, and to nobody else.
    #[must_use]
    pub fn with_local(mut self) -> Self {
        self.local = true;
        self
    }

    /// Connects, and starts a server where there is none.
    ///
    /// # Errors
    /// It does not start, for the reason that it reported.
    pub async fn connect(&self) -> Result<Transport, NotStarted> {
        let window = self.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let window = window.clone();
            async move { window.reach().await.map(TokioIo::new) }
        });
        // A server may take longer to come up than a connection does.
        let endpoint = endpoint().connect_timeout(START_LIMIT + CONNECT_TIMEOUT);
        let channel = endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| {
            not_started(&error)
                .cloned()
                .unwrap_or_else(|| NotStarted::new(Code::ServerUnreachable, error.to_string()))
        })?;
        Ok(transport(channel, self.local))
    }

    /// Connects to the socket, and starts a server as long as nobody answers.
    async fn reach(&self) -> Result<UnixStream, NotStarted> {
        let until = Instant::now() + START_LIMIT;
        let (mut report, mut starts) = (None, 0);
        while Instant::now() < until {
            match local::connect(&self.data).await {
                Ok(stream) => return Ok(stream),
                Err(error) if is_nobody(&error) => {}
                // Its backlog is full: it runs, and is busy.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(MIN_RETRY_DELAY).await;
                    continue;
                }
                Err(error) => {
                    let at = self.data.display();
                    let sentence = format!("the server of `{at}` cannot be reached: {error}");
                    return Err(NotStarted::new(Code::ServerUnreachable, sentence));
                }
            }
            let Some(lines) = &mut report else {
                starts += 1;
                if starts > MAX_STARTS {
                    break;
                }
                report = Some(self.start()?);
                continue;
            };
            // Not for longer: meanwhile the server of another window may have come up.
            let Ok(line) = tokio::time::timeout(MIN_RETRY_DELAY, next(lines)).await else {
                continue;
            };
            if let Some(Started::Failed(error)) = line {
                return Err(error);
            }
            // It serves, or it ended without a report: then another one is started.
            report = None;
        }
        let at = self.data.display();
        let mut error = NotStarted::new(
            Code::ServerUnreachable,
            format!("no server came up for the data directory `{at}`"),
        );
        error.next.push(format!("see its log, `{at}/server.log`"));
        Err(error)
    }

    /// Starts a server. It outlives this process.
    fn start(&self) -> Result<Lines<BufReader<ChildStdout>>, NotStarted> {
        let start = || {
            let mut command = Command::new(own_program()?);
            // `ps` would show /proc/self/exe.
            command.arg0("repertoire").arg(BACKGROUND);
            command.arg("--data").arg(&self.data);
            if let Some(config) = &self.config {
                command.arg("--config").arg(config);
            }
            // An agent that waits for the end of the window's stderr would wait for the server's.
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let stdout = command.spawn()?.stdout.take();
            stdout.ok_or_else(|| io::Error::other("it has no stdout"))
        };
        start()
            .map(|stdout| BufReader::new(stdout).lines())
            .map_err(|error| {
                let sentence = format!("no server can be started: {error}");
                NotStarted::new(Code::ServerUnreachable, sentence)
            })
    }
}

/// Nobody listens on the socket, if there is one, or its server ended before it accepted the
/// connection. Other errors of a path come up again when a server is started.
fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotADirectory, NotFound};
    matches!(
        error.kind(),
        ConnectionRefused | ConnectionReset | NotFound | NotADirectory
    )
}

/// Reads the report of a server; none where it ended without one.
async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<Started> {
    let line = lines.next_line().await.ok().flatten()?;
    serde_json::from_str(&line).ok()
}

/// Finds an error of the connector below the error of a channel.
fn not_started<'error>(
    error: &'error (dyn std::error::Error + 'static),
) -> Option<&'error NotStarted> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn causes<'error>(
    error: &'error (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'error (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// The request was never sent: the server was gone before.
fn is_unsent(error: &(dyn std::error::Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let hyper = cause.downcast_ref::<hyper::Error>();
        // hyper's word for a request that was still in its queue when the connection ended.
        hyper.is_some_and(hyper::Error::is_canceled)
    })
}

/// Returns the failure of a call that got no answer.
fn gone(error: &tonic::transport::Error) -> TransportError {
    let failure = match not_started(error) {
        Some(error) => Failure::from(error.clone()),
        None => Failure::new(
            Code::ServerUnreachable,
            "The server ended while it had this call; whether it was carried out is not known",
        )
        .suggest("Check whether it took effect before you retry: there is a server again"),
    };
    TransportError::from(BoxError::from(status(failure)))
}

/// Returns the transport of a window's calls.
///
/// A call that no server has seen is repeated, and so is one that only reads, whatever happened
/// to the first: the server may have been killed.
fn transport(channel: Channel, local: bool) -> Transport {
    let encoded = |bytes: &[u8]| HeaderValue::from_str(&STANDARD_NO_PAD.encode(bytes)).ok();
    let folder = std::env::current_dir().ok();
    let around = folder.as_ref().filter(|_| local).and_then(|folder| {
        let person = directories::BaseDirs::new();
        let home = person.as_ref().map(directories::BaseDirs::home_dir);
        let place = AgentFolders::new(folder, home, |name| std::env::var_os(name));
        let user: Vec<&[u8]> = place
            .user
            .iter()
            .map(|path| path.as_os_str().as_bytes())
            .collect();
        encoded(&user.join(&NUL_BYTE))
    });
    let folder = folder.and_then(|folder| encoded(folder.as_os_str().as_bytes()));
    let contract = HeaderValue::from_str(&OURS).ok();
    let headers = [(FOLDER, folder), (AROUND, around), (CONTRACT, contract)];
    let service = tower::service_fn(move |request: Request<Body>| {
        let (mut channel, headers) = (channel.clone(), headers.clone());
        async move {
            let (mut parts, body) = request.into_parts();
            for (name, value) in headers {
                if let Some(value) = value {
                    parts.headers.insert(name, value);
                }
            }
            // In whole, since it may be sent more than once.
            let body = body.collect().await.map_err(BoxError::from)?.to_bytes();
            let mut pause = MIN_RETRY_DELAY;
            loop {
                let body = Body::new(Full::new(body.clone()));
                let request = Request::from_parts(parts.clone(), body);
                let sent = async { channel.ready().await?.call(request).await };
                let error = match sent.await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                // A server that is being killed still accepts connections, so the next try may
                // fail as well.
                let may_repeat = is_unsent(&error) || ONLY_READ.contains(parts.uri.path());
                if not_started(&error).is_some() || !may_repeat || pause > MAX_PAUSE {
                    return Err(gone(&error));
                }
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
    });
    BoxCloneSyncService::new(service)
}

/// Returns the path by which this program starts itself once more.
pub(super) fn own_program() -> std::io::Result<PathBuf> {
    // An upgrade may replace the file while this runs: the link leads to the same build still.
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        return Ok(own.to_owned());
    }
    std::env::current_exe()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::is_nobody;

    #[test]
    fn a_server_that_ends_before_it_takes_a_connection_is_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let server = UnixListener::bind(&path).expect("a socket");
        let queued = UnixStream::connect(&path).expect("a connection");
        drop(server);
        let reset = queued.take_error().expect("a socket").expect("an error");
        assert!(is_nobody(&reset), "{reset}");
        let refused = UnixStream::connect(&path).expect_err("nobody is there");
        assert!(is_nobody(&refused), "{refused}");
    }
}
