//! The running server: how it is assembled, in which order, and how it stops.
//!
//! Rules:
//!
//! * One port serves gRPC (HTTP/2), and gRPC-Web, REST and MCP (HTTP/1.1 and
//!   HTTP/2); a socket in the data directory serves this machine (`local`). A server that
//!   a window started has the socket alone (`window`, `background`).
//! * Every call passes one call layer (`calls`): a permit among those in work, for which it
//!   waits a little (`admission`), the caller's deadline, a span, the caller's name.
//! * Nothing waits for a client without a limit: for its first bytes, its headers, its
//!   body, or until it has read its answer (`listen`, `answer`). What it holds
//!   meanwhile is its share (`admission`).
//! * Stopping: `NOT_SERVING`, no new connections, streams are ended, calls in work
//!   finish, counts are written, the store is closed; five seconds at most.
//!
//! Not here: what calls do (`grpc` and below), commands (`cli`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod answer;
mod background;
mod bundled;
mod calls;
mod config;
mod config_check;
mod domain;
mod fallback;
mod features;
mod guard;
mod health;
mod in_process;
#[cfg(feature = "learning")]
pub mod learning;
#[cfg(not(feature = "learning"))]
#[path = "without/learning.rs"]
pub mod learning;
mod learning_config;
mod limits;
mod listen;
mod local;
mod mcp;
mod metrics;
mod protocol;
mod reload;
#[cfg(feature = "remote-sources")]
mod remote_sources;
#[cfg(not(feature = "remote-sources"))]
#[path = "without/remote_sources.rs"]
mod remote_sources;
mod rpc;
mod search;
mod services;
mod sources;
mod start_error;
mod tools;
mod trust;
mod vitals;
mod window;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::pb::health_server::{Health, HealthServer};
use tower::{Layer as _, ServiceExt as _};

pub use ::telemetry::{LogFile, LogFormat, Otlp, Telemetry};
pub use background::Background;
pub use bundled::bundled_skills;
pub use config::{Config, ConfigError, LOG, Settings, default_data_directory, listen_address};
pub use config_check::check_settings;
pub use domain::Domain;
pub use features::{Feature, listed as features, require, version};
pub use guard::guard;
pub use learning_config::LearningConfig;
pub use limits::Limits;
pub use reload::{ConfigFile, Reread};
pub use search::{AnalysisConfig, Meaning, SearchConfig};
pub use sources::{SourceConfig, SourceTrust, SyncConfig};
pub use start_error::{SettingError, StartError};
pub use tools::{JiraConfig, SqlConfig, ToolsConfig, WorkerConfig};
pub use trust::TrustConfig;
pub use window::{BACKGROUND, NotStarted, Started, Window, connect_local};

use ::mcp::McpServer;
use ::tls::Tls;
use ::tokens::Tokens;
use ::tools::Tools;
use access_log::AccessLog;
use admission::Admission;
use audit::Audit;
use contract::FILE_DESCRIPTOR_SET;
use contract::handlers::Handlers;
use contract::v1::admin_server::AdminServer;
use gateway::Gateway;
use grpc::admin::{AdminService, Kind};
use listen::Port;
use local::LocalSocket;
use model::{Clock as _, SystemClock};
use protocol::Protocols;
use registry::Registry;
use vitals::ServerVitals;

/// How often counts of use are written.
const USAGE_INTERVAL: Duration = Duration::from_secs(5);
/// How soon after a change sessions and records of calls are written.
const SESSION_INTERVAL: Duration = Duration::from_millis(25);
/// How long calls in work may take when the server stops.
const CALLS_STOP_TIMEOUT: Duration = Duration::from_secs(4);
/// How long workers may take to answer the calls that they have when the server stops: less,
/// so that their answers still reach the callers.
const WORKERS_STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest message a client may send: a skill of 16 MiB with its paths.
const MAX_MESSAGE_BYTES: usize = 20 * 1024 * 1024;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    tls: Option<Tls>,
    domain: Domain,
    front: calls::CallLayer,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Server {
    /// Starts the work in the background: the search index, the operator's learning paths,
    /// scans by new rules.
    pub async fn follow(&self) {
        if let Some(tls) = self.tls.clone() {
            tokio::spawn(tls.follow(self.stop.clone()));
        }
        self.domain.follow().await;
    }

    /// Opens the data directory, binds the address and serves. `announce` is called with the
    /// URL once port and local socket are bound, and before anybody is served: a client that
    /// waited for this server is logged after what `announce` writes.
    ///
    /// # Errors
    /// The directory cannot be opened, the address cannot be had, or `announce` fails.
    pub async fn start(
        settings: Settings,
        telemetry: &Telemetry,
        announce: &(dyn Fn(&str) -> std::io::Result<()> + Sync),
    ) -> Result<Self, StartError> {
        // The cheap checks of settings first, so that a wrong one opens nothing.
        permit(&settings)?;
        let tls = Tls::start(&settings.config.tls).await;
        let tls = tls.map_err(|error| StartError::Tls(error).located(&settings.config.places))?;
        let domain = Domain::open(&settings).await?;
        let (listener, address) = bind(settings.listen).await?;
        let services = services::routes(&domain);
        let stop = CancellationToken::new();
        let (health_service, takes_writes, health) = health::start(&domain, &stop);
        let others = supporting(health_service)?;
        let admission = admission(&settings);
        let limits = (admission.clone(), &settings.config.limits);
        let exports = telemetry.exports();
        let front = calls::CallLayer::new(limits, domain.guards(), stop.clone(), exports);
        let contract = contract::load()?;
        let inside = services.clone().fallback(unknown);
        let gateway = Gateway::new(contract, front.transport(inside.clone()));
        let access = Arc::new(AccessLog::new(settings.access_log));
        let vitals = ServerVitals::new(&domain, settings.data.clone(), access.clone(), tls.clone());
        let metrics = metrics::reader(front.clone(), &domain, vitals);
        let hooks = rest::hooks(domain.engine.clone());
        let http = rest::router(&gateway, stop.clone(), takes_writes)?
            .route("/metrics", metrics::page(metrics.clone()))
            .route("/hooks/{source}", hooks)
            .merge(rest::caller_keys(domain.host().caller_keys()));
        let face = McpServer::for_viewers(gateway, in_process::inside(inside), domain.viewer());
        let web = Arc::new(settings.config.web.clone());
        let idle = settings.config.limits.session_time();
        let mcp = mcp::Endpoints::new(&face, &domain, (idle, web.clone()), &stop);
        let routes = services.merge(others);
        let (local, kept_front) = ((front.clone(), routes.clone()), front.clone());
        let service = Protocols {
            grpc: front.layer(routes.clone().fallback(unknown)),
            // Before CORS, which answers for itself.
            web: guard::guard(
                settings.config.web.clone(),
                routes
                    .layer(front)
                    // Outside the call layer, so that its refusals reach a browser too.
                    .layer(tonic_web::GrpcWebLayer::new())
                    .merge(mcp.routes())
                    .fallback_service(any(no_rpc).with_state(http))
                    .layer(guard::cors()),
            ),
            pages: web,
            mcp,
            peer: admission.local(),
            caller: OnceLock::new(),
            admission: admission.clone(),
            address: settings.listen.ip(),
            access,
            sign_in: domain.sign_in.clone(),
            audit: domain.audit.clone(),
        };
        domain.starts(settings.config.digest).await?;

        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{address}");
        // Before the announcement: its reader may connect to either at once.
        let socket = LocalSocket::bind(&settings.data);
        announce(&url).map_err(StartError::Announce)?;
        let local = serve_locally(socket, &settings.data, (&domain, url), local, &stop);
        let (counting, keeping) = keep(&domain, &stop);
        let measuring = telemetry.measure(metrics);
        let (followed, renewed) = (domain.clone(), tls.clone());
        let running = tokio::spawn({
            let (stop, host) = (stop.clone(), domain.host().clone());
            async move {
                listen::serve(
                    Port { listener, tls },
                    service,
                    admission,
                    settings.config.limits,
                    stop.clone(),
                    CALLS_STOP_TIMEOUT,
                    async move {
                        stop.cancelled().await;
                        host.stop(WORKERS_STOP_TIMEOUT);
                        let _stopped = health.await;
                    },
                )
                .await;
                // Callers are answered first; then what they did is written, measured once more,
                // and the store is closed last.
                if let Ok(local) = local {
                    let _stopped = local.await;
                }
                let _stopped = keeping.await;
                measuring.end().await;
                domain.close().await;
                let _stopped = counting.await;
            }
        });
        Ok(Self {
            address,
            tls: renewed,
            domain: followed,
            front: kept_front,
            stop,
            running,
        })
    }

    /// Stops: see the module. Returns when all is closed.
    pub async fn stop(self) {
        self.stop.cancel();
        background::ended(self.running.await);
    }
}

/// Serves the socket in the data directory. Without one the server goes on: not every file
/// system has sockets.
fn serve_locally(
    socket: std::io::Result<LocalSocket>,
    data: &Path,
    (domain, url): (&Domain, String),
    (front, routes): (calls::CallLayer, Router),
    stop: &CancellationToken,
) -> std::io::Result<JoinHandle<()>> {
    let local = socket.map(|socket| {
        let admin = admin(data, domain, &socket, Kind::Serve { url });
        let routes = front.layer(routes.merge(admin).fallback(unknown));
        tokio::spawn(socket.serve(routes, stop.clone(), CALLS_STOP_TIMEOUT, None))
    });
    if let Err(error) = &local {
        tracing::warn!(%error, "the local socket cannot be created; commands need --server");
    }
    local
}

/// Checks how callers sign in.
///
/// # Errors
/// Callers on other machines could not be told apart, or not safely; or the settings of the
/// sign-in contradict each other.
fn permit(settings: &Settings) -> Result<(), StartError> {
    let wrong = |key: &str, why: &str| {
        StartError::from(SettingError::new(key, why)).located(&settings.config.places)
    };
    if let Some((key, why)) = settings
        .config
        .access
        .mistake(settings.config.tls.asks_clients())
    {
        return Err(wrong(key, why));
    }
    let checked = settings.config.access.check();
    checked.map_err(|message| wrong("access.issuers", &message))?;
    match settings
        .config
        .access
        .why_unsafe(settings.config.tls.is_on())
    {
        Some(why) if !settings.listen.ip().is_loopback() => Err(StartError::Unsafe {
            address: settings.listen,
            why,
        }),
        _ => Ok(()),
    }
}

/// Returns the limits on what callers hold at once.
fn admission(settings: &Settings) -> Admission {
    let admission = settings.config.limits.admission();
    if settings.config.access.names_callers() {
        // Behind a proxy all callers have its address, and would share what one may have.
        return admission.by_caller();
    }
    admission
}

/// Binds the port, and returns which it is: port 0 is a free one.
async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |cause| StartError::Listen { address, cause };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

/// Starts the tasks that write counts, sessions and records until the server stops.
fn keep(domain: &Domain, stop: &CancellationToken) -> (JoinHandle<()>, JoinHandle<()>) {
    let (registry, tokens) = (domain.registry().clone(), domain.tokens.clone());
    let counting = tokio::spawn(write_usage(registry, tokens, stop.clone()));
    let (tools, audit) = (domain.tools.clone(), domain.audit.clone());
    let keeping = tokio::spawn(write_sessions(tools, audit, stop.clone()));
    (counting, keeping)
}

/// The admin service, which the local socket alone has.
fn admin(data: &Path, domain: &Domain, socket: &LocalSocket, kind: Kind) -> Router {
    let service = AdminService {
        directory: std::path::absolute(data).unwrap_or_else(|_| data.to_owned()),
        kind,
        started_at: SystemClock.now(),
        registry: domain.registry().clone(),
        connected: socket.connected(),
    };
    let routes = Routes::new(AdminServer::new(Handlers::new(service))).into_axum_router();
    routes.reset_fallback()
}

/// The routes that every listener has in addition to the services: health and reflection.
fn supporting(health: HealthServer<impl Health>) -> Result<Router, StartError> {
    let routes = Routes::new(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .into_axum_router();
    Ok(routes.reset_fallback())
}

/// The contract that reflection describes: `Admin` is not on the network, so not in it.
fn reflection() -> tonic_reflection::server::Builder<'static> {
    services::offered()
        .into_iter()
        .chain(["grpc.health.v1.Health".to_owned()])
        .fold(
            tonic_reflection::server::Builder::configure(),
            tonic_reflection::server::Builder::with_service_name,
        )
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        // So that a client can read the details of a refusal.
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// Writes counts of use at an interval: losing the last few in a crash does no harm.
async fn write_usage(registry: Registry, tokens: Tokens, stop: CancellationToken) {
    while stop
        .run_until_cancelled(tokio::time::sleep(USAGE_INTERVAL))
        .await
        .is_some()
    {
        if let Err(error) = registry.write_usage().await {
            tracing::warn!(%error, "usage counts are not written yet");
        }
        if let Err(error) = tokens.write_uses().await {
            tracing::warn!(%error, "the last use of tokens is not written yet");
        }
    }
}

/// Writes sessions, records of calls and the audit trail, soon after they change.
async fn write_sessions(tools: Tools, audit: Audit, stop: CancellationToken) {
    // What was not written stays pending: without a pause after a failure this would spin.
    let mut failed = false;
    loop {
        let due = async {
            tokio::select! {
                () = tools.pending(), if !failed => {}
                () = audit.pending(), if !failed => {}
                // Also for what is due without a change: sessions expire, old records go.
                () = tokio::time::sleep(USAGE_INTERVAL) => return,
            }
            // One write for a burst of changes, as each costs an fsync.
            tokio::time::sleep(SESSION_INTERVAL).await;
        };
        if stop.run_until_cancelled(due).await.is_none() {
            return;
        }
        failed = false;
        if let Err(error) = tools.write().await {
            tracing::warn!(%error, "sessions and records of calls are not written yet");
            failed = true;
        }
        if let Err(error) = audit.write().await {
            tracing::warn!(%error, "the audit trail is not written yet");
            failed = true;
        }
    }
}

/// Answers what is no rpc: a gRPC client gets a gRPC answer, others go on to HTTP.
async fn no_rpc(State(http): State<Router>, request: Request) -> Response {
    let content_type = request.headers().get(http::header::CONTENT_TYPE);
    if content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc")) {
        return unknown(request).await;
    }
    let Ok(answer) = http.oneshot(request).await;
    answer
}

/// Answers an rpc that does not exist.
async fn unknown(request: Request) -> Response {
    let asked = request.headers().get(http::header::CONTENT_TYPE).cloned();
    let status =
        tonic::Status::unimplemented(format!("this server has no rpc {}", request.uri().path()));
    let mut answer = status.into_http::<axum::body::Body>();
    // tonic answers as native gRPC; gRPC-Web clients refuse another type than their own.
    if let Some(content_type) = asked {
        answer
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, content_type);
    }
    answer
}
