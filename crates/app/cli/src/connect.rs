//! Clients of the services: over the network, over the socket in the data directory, or in
//! process.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, Request};
use tokio::time::Instant;
use tonic::ConnectError;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::args::Global;
use super::failed::{open_code, registry_code};
use super::output::{self, Done, Failed};
use super::remote::{Remote, chain};
use contract::status;
use contract::v1::access_client::AccessClient;
use contract::v1::admin_client::AdminClient;
use contract::v1::audit_client::AuditClient;
use contract::v1::composition_client::CompositionClient;
use contract::v1::learning_client::LearningClient;
use contract::v1::lookup_client::LookupClient;
use contract::v1::registry_client::RegistryClient;
use contract::v1::{GetStatusRequest, LeaveRequest};
use gateway::{MAX_MESSAGE_BYTES, Transport, TransportError};
use model::{Code, Failure};
use server::{Config, Domain, Settings, StartError, Window, connect_local};
use store::{Holder, OpenError};

/// How long a command waits until another one releases the data directory.
const DIRECTORY_LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The services, wherever they are.
pub(super) struct Client {
    /// The transport of the calls.
    pub(super) transport: Transport,
    /// The address of the server, where it was named.
    pub(super) url: Option<String>,
    domain: Option<Domain>,
}

impl Client {
    pub(super) fn registry(&self) -> RegistryClient<Transport> {
        RegistryClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn lookup(&self) -> LookupClient<Transport> {
        LookupClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn learning(&self) -> LearningClient<Transport> {
        LearningClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn access(&self) -> AccessClient<Transport> {
        AccessClient::new(self.transport.clone())
    }

    pub(super) fn audit(&self) -> AuditClient<Transport> {
        AuditClient::new(self.transport.clone())
    }

    pub(super) fn composition(&self) -> CompositionClient<Transport> {
        CompositionClient::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Keeps the search index up to date, where the services are in process: a server does
    /// that itself.
    pub(super) async fn follow(&self) {
        if let Some(domain) = &self.domain {
            domain.follow().await;
        }
    }

    /// The same, and waits until all skills can be found.
    pub(super) async fn index(&self) {
        if let Some(domain) = &self.domain {
            index(domain).await;
        }
    }

    /// Takes the operator's learning paths in, where the services are in process.
    pub(super) async fn admit_paths(&self) {
        if let Some(domain) = &self.domain {
            domain.admit_paths().await;
        }
    }

    /// Writes pending changes, where the services are in process.
    pub(super) async fn close(self) {
        if let Some(domain) = self.domain {
            domain.close().await;
        }
    }
}

/// The next message of a stream; none at its end, or on Ctrl-C, by which a person ends a watch:
/// that is no failure, and the client is closed as always.
pub(super) async fn next<M>(stream: &mut tonic::Streaming<M>) -> Result<Option<M>, Failed> {
    tokio::select! {
        message = stream.message() => Ok(message?),
        _ = tokio::signal::ctrl_c() => Ok(None),
    }
}

/// Requests all pages of a list. `next` takes in the page at a token, and returns the token of
/// the next one; an empty one ends it.
pub(super) async fn pages(mut next: impl AsyncFnMut(String) -> Result<String, Failed>) -> Done {
    let mut token = next(String::new()).await?;
    while !token.is_empty() {
        token = next(token).await?;
    }
    Ok(())
}

/// Brings the search index of services in process up to date, with a progress bar.
pub(super) async fn index(domain: &Domain) {
    domain.follow().await;
    let index = domain.search();
    let skills = domain.registry().catalog().live() as u64;
    let bar = output::bar(skills, "skills indexed");
    let mut every = tokio::time::interval(Duration::from_millis(100));
    let complete = index.complete();
    tokio::pin!(complete);
    loop {
        tokio::select! {
            () = &mut complete => break,
            _ = every.tick() => {
                let progress = index.progress();
                bar.set_position(progress.indexed.saturating_sub(progress.without_vector) as u64);
            }
        }
    }
    bar.finish_and_clear();
}

/// Returns the failure of a call that got no answer. `first`: another suggestion, where no call
/// before it got one.
fn unanswered(error: &tonic::transport::Error, first: Option<&str>) -> TransportError {
    // A failed connection lost nothing; any other error leaves open what the server did.
    let absent = chain(error).find_map(|error| error.downcast_ref::<ConnectError>());
    let failure = if let Some(said) = absent {
        Failure::new(
            Code::ServerUnreachable,
            format!("The server does not answer: {said}"),
        )
        .suggest("Call again when it is back; nothing else has to be restarted")
    } else {
        Failure::new(
            Code::ServerUnreachable,
            format!("The connection broke during the call ({error}); it may or may not have taken effect"),
        )
        .suggest("Check whether it took effect before you retry")
    };
    let failure = match first.filter(|_| absent.is_none()) {
        Some(next) => failure.suggest(next),
        None => failure,
    };
    TransportError::from(BoxError::from(status(failure)))
}

/// Asks a server to leave that a window started and that nothing uses any more: it would linger
/// for the next client, but the next is a command that needs the directory for itself.
pub(super) async fn vacate(settings: &Settings) {
    let until = Instant::now() + DIRECTORY_LOCK_TIMEOUT;
    while store::holder(&settings.data).is_ok_and(|holder| holder != Holder::None)
        && Instant::now() < until
    {
        // Without an answer it starts, it stops, or it is a command: none of that lasts.
        if let Some(channel) = connect_local(&settings.data).await {
            let mut admin = AdminClient::new(channel);
            if let Ok(status) = admin.get_status(GetStatusRequest {}).await {
                let status = status.into_inner();
                // This command is one of them.
                if !status.background || status.connections > 1 {
                    return;
                }
                // The lock is checked again, whatever it answers.
                let _left = admin.leave(LeaveRequest {}).await;
            }
        }
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
}

/// Makes a transport over a connection; each call has these headers. `first`: another suggestion
/// where the peer ends the first call.
pub(super) fn transport(
    channel: Channel,
    headers: HeaderMap,
    first: Option<&'static str>,
) -> Transport {
    let is_first = Arc::new(AtomicBool::new(true));
    let answered = Arc::clone(&is_first);
    let transport = channel
        .map_request(move |mut request: Request<Body>| {
            request.headers_mut().extend(headers.clone());
            request
        })
        .map_response(move |response| {
            answered.store(false, Ordering::Relaxed);
            response
        })
        .map_err(move |error| {
            unanswered(&error, first.filter(|_| is_first.load(Ordering::Relaxed)))
        });
    BoxCloneSyncService::new(transport)
}

impl From<Transport> for Client {
    fn from(transport: Transport) -> Self {
        Self {
            transport,
            url: None,
            domain: None,
        }
    }
}

/// Connects to the server that is named; none: none is.
async fn named(global: &Global) -> Result<Option<Client>, Failed> {
    let Some(remote) = Remote::new(global)? else {
        return Ok(None);
    };
    let client = Client::from(remote.connect().await?);
    let url = Some(remote.url().to_owned());
    Ok(Some(Client { url, ..client }))
}

/// Returns the settings of a command: the config file under the flags.
pub(super) fn settings(global: &Global, config: &Config) -> Settings {
    let mut settings = Settings::new(config);
    if let Some(data) = &global.data {
        settings.data.clone_from(data);
    }
    settings
}

/// Returns the settings of a command on the data directory itself. It refuses --server: the
/// directory of a server elsewhere is for a command on that machine.
pub(super) fn local_settings(global: &Global, config: &Config) -> Result<Settings, Failed> {
    if let Some(url) = &global.server {
        let message =
            format!("this command is for a data directory of this machine, not for {url}");
        let step = "leave --server and REPERTOIRE_SERVER away, and name the directory with --data";
        return Err(Failed::new(Code::InvalidParameter, message).hint(step));
    }
    Ok(settings(global, config))
}

/// Returns the failure of a start, with what to do next.
pub(super) fn start_failed(error: &StartError) -> Failed {
    let code = match error {
        StartError::Open(error) => open_code(error),
        StartError::Registry(error) => registry_code(error),
        StartError::Listen { .. } | StartError::Socket { .. } => Code::AddressUnusable,
        StartError::Setting(_)
        | StartError::Tls(_)
        | StartError::Unusable(_)
        | StartError::Unsafe { .. } => Code::ConfigInvalid,
        StartError::Announce(_) => Code::LocalFileFailed,
        StartError::NotBuilt(_) => Code::FeatureNotBuilt,
        StartError::Sync(_)
        | StartError::Tokens(_)
        | StartError::Namespaces(_)
        | StartError::Audit(_) => Code::StoreUnavailable,
        StartError::CallerKey(_)
        | StartError::Reflection(_)
        | StartError::Contract(_)
        | StartError::Route(_)
        | StartError::Sandbox(_) => Code::InternalError,
    };
    let failed = Failed::new(code, error.to_string());
    match error {
        StartError::Listen { .. } => {
            failed.hint("name another address with --listen; port 0 takes a free one")
        }
        StartError::Open(error @ OpenError::InUse { path, .. }) => in_use(failed, error, path),
        StartError::Open(OpenError::NotOurs { .. }) => {
            failed.hint("name another directory with --data; an empty or new one will do")
        }
        _ => failed,
    }
}

/// Adds what to do where a process has the directory open.
pub(super) fn in_use(failed: Failed, error: &OpenError, directory: &Path) -> Failed {
    let failed = failed.hint(format!(
        "`repertoire status --data {}` says whether it is a server, and who uses that",
        directory.display()
    ));
    match error {
        OpenError::InUse {
            process: Some(process),
            ..
        } => failed.hint(format!("to end it: kill {process}")),
        _ => failed,
    }
}

/// Connects to the server that is named, else to the one that has the data directory open, else
/// opens the directory in process.
///
/// Another command may have it open without serving: that ends soon.
pub(super) async fn connect(global: &Global, config: &Config) -> Result<Client, Failed> {
    if let Some(client) = named(global).await? {
        return Ok(client);
    }
    let settings = settings(global, config);
    let until = Instant::now() + DIRECTORY_LOCK_TIMEOUT;
    loop {
        if let Some(channel) = connect_local(&settings.data).await {
            return Ok(transport(channel, HeaderMap::new(), None).into());
        }
        match in_process(settings.clone()).await {
            // Opening waits a second for the lock, so the loop needs no pause.
            Err(StartError::Open(OpenError::InUse { .. })) if Instant::now() < until => {}
            opened => return opened.map_err(|error| start_failed(&error)),
        }
    }
}

/// The same for what stays: a window, or a watch. It never opens the directory itself, but
/// starts a server where there is none, so that others can connect as well.
/// `local`: the skills around an agent are served to it.
pub(super) async fn connect_window(
    global: &Global,
    config: &Config,
    local: bool,
) -> Result<Client, Failed> {
    if let Some(client) = named(global).await? {
        return Ok(client);
    }
    let settings = settings(global, config);
    let window = Window::new(&settings.data, global.config.as_deref())?;
    let window = if local { window.with_local() } else { window };
    match window.connect().await {
        Ok(transport) => {
            // A server of another contract refuses every call: better now than with the first one
            // of an agent.
            let mut admin = AdminClient::new(transport.clone());
            admin.get_status(GetStatusRequest {}).await?;
            Ok(transport.into())
        }
        // Not every file system has sockets: then this window has the directory to itself.
        Err(error) if error.code == Code::AddressUnusable.name() => {
            let opened = in_process(settings).await;
            opened.map_err(|error| start_failed(&error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn in_process(mut settings: Settings) -> Result<Client, StartError> {
    let roots = &mut settings.config.analysis.roots;
    if roots.is_empty() {
        // A person who starts this in a folder lets it read there; a server has no such folder.
        roots.extend(std::env::current_dir().ok());
    }
    // The same services behind the same generated clients as a server has: a command has one
    // path of code, and the same refusals.
    let domain = Domain::open(&settings).await?;
    let client = Client::from(domain.transport(&settings.config.limits));
    let domain = Some(domain);
    Ok(Client { domain, ..client })
}
