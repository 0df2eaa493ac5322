//! The running server: what is put together, in which order, and how it stops.
//!
//! Rules:
//!
//! * One port serves gRPC (HTTP/2), and gRPC-Web, REST and MCP (HTTP/1.1 and
//!   HTTP/2); a socket in the data directory serves commands on this machine (`local`).
//! * Every call passes one call layer (`calls`): a permit among those in work or
//!   a refusal at once, the caller's deadline, a span, the caller's name.
//! * Nothing waits for a client without a limit: for its first bytes, its headers, its
//!   body, or until it has read its answer (`listen`, `answer`). What it holds
//!   meanwhile is its share (`admission`).
//! * Stopping: `NOT_SERVING`, no new connections, streams are told to go, calls in
//!   work finish, counts are written, the store is closed; five seconds at most.
//!
//! Not here: what calls do (`grpc` and below), commands (`cli`).

mod answer;
mod bundled;
mod calls;
mod coalesce;
mod config;
mod guard;
mod health;
mod limits;
mod listen;
mod local;
mod mcp;
mod metrics;
mod overload;
mod protocol;
mod reader;
mod rpc;
mod search;
mod secret;
mod services;
mod socket;
mod telemetry;
mod timeout;
mod tools;

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, ServiceExt as _};

pub use bundled::bundled_skills;
pub use config::{Config, ConfigError, Settings, default_data_directory};
pub use guard::{AllowedHost, AllowedOrigin, Origin, WebConfig};
pub use limits::Limits;
pub use local::connect_local;
pub use search::{AnalysisConfig, EmbedderError, Meaning, SearchConfig};
pub use secret::{SecretError, SecretRef};
pub use telemetry::{LogFormat, Telemetry};
pub use tools::{JiraConfig, SqlConfig, ToolsConfig, ToolsError, WorkerConfig};

use crate::contract::FILE_DESCRIPTOR_SET;
use crate::contract::v1::admin_server::AdminServer;
use crate::gateway::{self, Contract, Gateway, Transport};
use crate::grpc::AdminService;
use crate::mcp::McpServer;
use ::search::SearchIndex;
use ::tools::Tools;
use ::tools::host::Host;
use composition::Composition;
use executor::Executor;
use model::{Clock, Principal, SystemClock};
use protocol::ProtocolRouter;
use recommend::Advisor;
use registry::Registry;
use store::Store;

/// How often counts of use are written.
const USAGE_INTERVAL: Duration = Duration::from_secs(5);
/// How soon sessions and records of calls are written.
const SESSION_INTERVAL: Duration = Duration::from_millis(25);
/// How long calls in work may take when the server stops.
const GRACE: Duration = Duration::from_secs(4);
/// How long workers may take to answer the calls they have then: less, so that their
/// answers still reach the callers.
const WORKERS_GRACE: Duration = Duration::from_secs(3);
/// How long work may take to end when it is told to stop.
const WORK_GRACE: Duration = Duration::from_millis(500);
/// The largest message a client may send: a skill of 16 MiB with its paths.
const MAX_MESSAGE_BYTES: usize = 20 * 1024 * 1024;

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] store::OpenError),
    /// What is stored cannot be read.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// The contract cannot be reflected.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The contract cannot be read.
    #[error(transparent)]
    Contract(#[from] gateway::Error),
    /// A setting of the tools cannot be used.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// The model of the search cannot be used.
    #[error(transparent)]
    Embedder(#[from] EmbedderError),
    /// A route of the contract cannot be read.
    #[error(transparent)]
    Route(#[from] crate::http::TemplateError),
}

/// The domain over an open data directory, without a listener.
#[derive(Debug, Clone)]
pub struct Domain {
    registry: Registry,
    composition: Composition,
    tools: Tools,
    host: Host,
    search: SearchIndex,
    advisor: Advisor,
    following: Arc<Following>,
}

/// The task that keeps the index in step.
#[derive(Debug)]
struct Following {
    stop: CancellationToken,
    task: tokio::sync::Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Domain {
    /// Opens a data directory and publishes the skills that come with the server.
    ///
    /// # Errors
    /// The directory cannot be opened or read.
    pub async fn open(settings: &Settings) -> Result<Self, StartError> {
        let (directory, options) = (settings.data.clone(), settings.store.clone());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let host = Host::new(settings.tools.host()?);
        let mut handlers = settings.tools.handlers()?;
        handlers.push(Arc::new(host.clone()));
        let limits = settings.tools.options();
        let (search, roots) = (settings.search.clone(), settings.analysis.roots.clone());
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let executor = Executor::new(processors);
        let is_shared = settings.is_shared();
        // Start-up: once, before any call.
        let opened = tokio::task::spawn_blocking(move || {
            let store = Store::open(&directory, &options)?;
            let names = bundled::names(&Contract::load()?, is_shared);
            let (read, at) = (store.clone(), Arc::clone(&clock));
            let open = move || Registry::open_with(read, at, executor, names);
            let registry = store::bounded(&directory, open)??;
            let search = search.index(&directory, registry.clone())?;
            let composition = Composition::new(registry.clone(), search.clone());
            let (reads, sets) = (registry.clone(), composition.clone());
            let tools = Tools::open(store, reads, sets, Arc::clone(&clock), handlers, limits)
                .map_err(registry::Error::from)?;
            let advisor = Advisor::new(registry.clone(), search.clone(), roots, clock);
            Ok::<_, StartError>(Self {
                registry,
                composition,
                tools,
                host,
                search,
                advisor,
                following: Arc::new(Following {
                    stop: CancellationToken::new(),
                    task: Default::default(),
                }),
            })
        });
        let domain = opened
            .await
            .map_err(|error| registry::Error::Task(error.to_string()))??;
        bundled::publish(&domain.registry).await?;
        Ok(domain)
    }

    /// The registry.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Keeps the search index in step from now on. Once is enough.
    pub async fn follow(&self) {
        let mut task = self.following.task.lock().await;
        if task.is_none() {
            let (search, stop) = (self.search.clone(), self.following.stop.clone());
            *task = Some(tokio::spawn(async move { search.follow(stop).await }));
        }
    }

    /// The index of all skills.
    #[must_use]
    pub fn search(&self) -> &SearchIndex {
        &self.search
    }

    /// What gives calls to workers.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What calls in process go through: the services behind a call layer.
    #[must_use]
    pub fn transport(&self, limits: &Limits) -> Transport {
        let (admission, stop) = (limits.admission(), CancellationToken::new());
        let front = calls::CallLayer::new(admission, limits.times(), stop, false);
        let transport = front.transport(services::routes(self).fallback(unknown));
        let local = transport.map_request(|mut request: http::Request<tonic::body::Body>| {
            request.extensions_mut().insert(Principal::local());
            request
        });
        BoxCloneSyncService::new(local)
    }

    /// Ends work that runs, writes what waits, and closes the data directory.
    pub async fn close(&self) {
        let running = self.registry.executor().stop(WORK_GRACE).await;
        if running > 0 {
            tracing::warn!(running, "work did not stop when it was told to");
        }
        if let Err(error) = self.registry.write_usage().await {
            tracing::warn!(%error, "counts of use were not written");
        }
        if let Err(error) = self.tools.write().await {
            tracing::warn!(%error, "sessions and records of calls were not written");
        }
        self.following.stop.cancel();
        if let Some(task) = self.following.task.lock().await.take()
            && let Err(error) = task.await
        {
            tracing::warn!(%error, "the search index did not stop as it should");
        }
        self.registry.close().await;
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Opens the data directory, binds the address and serves.
    ///
    /// # Errors
    /// The directory cannot be opened, or the address cannot be had.
    pub async fn start(settings: Settings, telemetry: &Telemetry) -> Result<Self, StartError> {
        let domain = Domain::open(&settings).await?;
        domain.follow().await;
        let listener = tokio::net::TcpListener::bind(settings.listen).await;
        let refused = |cause| StartError::Listen {
            address: settings.listen,
            cause,
        };
        let listener = listener.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;

        let (health, health_service) = tonic_health::server::health_reporter();
        let others = Routes::new(health_service)
            .add_service(reflection().build_v1()?)
            .add_service(reflection().build_v1alpha()?)
            .into_axum_router()
            .reset_fallback();
        let services = services::routes(&domain);
        let stop = CancellationToken::new();
        let (admission, times) = (settings.limits.admission(), settings.limits.times());
        let exports = telemetry.exports();
        let front = calls::CallLayer::new(admission.clone(), times, stop.clone(), exports);
        let contract = Contract::load()?;
        let inside = services.clone().fallback(unknown);
        let gateway = Gateway::new(contract, front.transport(inside.clone()));
        let (writable, takes_writes) = watch::channel(true);
        let mode = domain.registry().mode();
        let health = tokio::spawn(health::follow(health, mode, writable, stop.clone()));
        let metrics = metrics::page(
            front.clone(),
            domain.registry().clone(),
            domain.host().clone(),
            domain.search().clone(),
        );
        let http =
            crate::http::router(&gateway, stop.clone(), takes_writes)?.route("/metrics", metrics);
        let face = McpServer::new(gateway, calls::inside(inside));
        let web = Arc::new(settings.web.clone());
        let idle = settings.limits.session_time();
        let mcp = mcp::Endpoints::new(&face, idle, web, &stop);
        let routes = services.merge(others);
        let local_front = front.clone();
        let service = ProtocolRouter {
            grpc: front.layer(routes.clone().fallback(unknown)),
            // Before CORS, which answers for itself.
            web: settings.web.guard(
                routes
                    .clone()
                    .layer(front)
                    // Outside the call layer, so that its refusals reach a browser too.
                    .layer(tonic_web::GrpcWebLayer::new())
                    .merge(mcp.routes())
                    .fallback_service(any(no_rpc).with_state(http))
                    .layer(guard::cors()),
            ),
            mcp,
            peer: admission.local(),
        };

        let url = format!("http://{address}");
        let admin = AdminService {
            directory: std::path::absolute(&settings.data).unwrap_or(settings.data.clone()),
            url,
            started_at: SystemClock.now(),
            registry: domain.registry().clone(),
        };
        let admin = Routes::new(AdminServer::new(admin)).into_axum_router();
        let local = routes.merge(admin.reset_fallback()).fallback(unknown);
        let local = serve_local(&settings.data, local_front.layer(local), stop.clone());
        let counting = tokio::spawn(write_usage(domain.registry().clone(), stop.clone()));
        let keeping = tokio::spawn(write_sessions(domain.tools.clone(), stop.clone()));
        let running = tokio::spawn({
            let (stop, host) = (stop.clone(), domain.host().clone());
            async move {
                listen::serve(
                    listener,
                    service,
                    admission,
                    settings.limits,
                    stop.clone(),
                    GRACE,
                    async move {
                        stop.cancelled().await;
                        host.stop(WORKERS_GRACE);
                        let _stopped = health.await;
                    },
                )
                .await;
                if let Some(local) = local {
                    let _stopped = local.await;
                }
                let _stopped = keeping.await;
                domain.close().await;
                let _stopped = counting.await;
            }
        });
        Ok(Self {
            address,
            stop,
            running,
        })
    }

    /// Stops: see the module. Returns when all is closed.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.running.await {
            tracing::error!(%error, "the server did not stop as it should");
        }
    }
}

/// Serves the local socket of a data directory. A directory that takes no sockets is
/// served all the same.
fn serve_local(
    data: &Path,
    services: calls::CallService<Router>,
    stop: CancellationToken,
) -> Option<tokio::task::JoinHandle<()>> {
    match local::LocalSocket::bind(data) {
        Ok(socket) => Some(tokio::spawn(socket.serve(services, stop, GRACE))),
        Err(error) => {
            tracing::warn!(%error, "the local socket cannot be made; commands need --server");
            None
        }
    }
}

/// What reflection tells on the network.
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

/// Writes counts of use, now and then.
async fn write_usage(registry: Registry, stop: CancellationToken) {
    while stop
        .run_until_cancelled(tokio::time::sleep(USAGE_INTERVAL))
        .await
        .is_some()
    {
        if let Err(error) = registry.write_usage().await {
            tracing::warn!(%error, "counts of use wait to be written");
        }
    }
}

/// Writes sessions and records of calls, soon after they change.
async fn write_sessions(tools: Tools, stop: CancellationToken) {
    let mut pause = SESSION_INTERVAL;
    while stop
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .is_some()
    {
        pause = SESSION_INTERVAL;
        if let Err(error) = tools.write().await {
            tracing::warn!(%error, "sessions and records of calls wait to be written");
            pause = USAGE_INTERVAL;
        }
    }
}

/// What is no rpc: a gRPC client gets a gRPC answer, whoever else what HTTP has.
async fn no_rpc(State(http): State<Router>, request: Request) -> Response {
    let content_type = request.headers().get(http::header::CONTENT_TYPE);
    if content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc")) {
        return unknown(request).await;
    }
    match http.oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}

/// An rpc that there is none of.
async fn unknown(request: Request) -> Response {
    let asked = request.headers().get(http::header::CONTENT_TYPE).cloned();
    let status =
        tonic::Status::unimplemented(format!("this server has no rpc {}", request.uri().path()));
    let mut answer = status.into_http::<axum::body::Body>();
    if let Some(content_type) = asked {
        answer
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, content_type);
    }
    answer
}
