//! What the services work on, over an open data directory, without a listener.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use super::learning::Learning;
use super::{LearningConfig, Limits, Settings, StartError};
use super::{bundled, calls, features, learning, services, sources, unknown};
use ::checks::Checks;
use ::search::SearchIndex;
use ::sync::Engine;
use ::tools::Tools;
use ::tools::host::Host;
use access::Access;
use audit::Audit;
use caller_tokens::CallerTokens;
use composition::Composition;
use executor::Executor;
use gateway::Transport;
use grpc::{self, AccessService};
use local::Overlays;
use model::{Clock, Digest, Principal, SystemClock};
use namespaces::{Namespaces, Views};
use preflight::Installer;
use recommend::Advisor;
use registry::{Caller, Feed, Policy, Registry};
use store::Store;
use tokens::{SignIn, Tokens};

/// How long work may take to end when it is told to stop.
const WORK_STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The domain over an open data directory, without a listener.
#[derive(Debug, Clone)]
pub struct Domain {
    pub(super) registry: Registry,
    pub(super) composition: Composition,
    pub(super) tools: Tools,
    pub(super) checks: Checks,
    pub(super) host: Host,
    pub(super) search: SearchIndex,
    pub(super) advisor: Advisor,
    pub(super) learning: Learning,
    pub(super) feed: Feed,
    pub(super) installer: Installer,
    pub(super) engine: Engine,
    pub(super) local: Overlays,
    pub(super) views: Views,
    pub(super) namespaces: Namespaces,
    pub(super) tokens: Tokens,
    pub(super) sign_in: SignIn,
    pub(super) access: AccessService,
    pub(super) audit: Audit,
    paths: LearningConfig,
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
        let opened = Self::opened(settings).await;
        opened.map_err(|error| error.located(&settings.places))
    }

    async fn opened(settings: &Settings) -> Result<Self, StartError> {
        features::require(settings, None)?;
        let (directory, options) = (settings.data.clone(), settings.store.clone());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let wanted = settings.sign_in.clone();
        let kept = settings.audit;
        let issuer = settings.sign_in.public_url.as_ref();
        let issuer = issuer.map_or("repertoire", |url| url.as_str());
        let caller_tokens = CallerTokens::new(issuer.to_owned(), Arc::clone(&clock))?;
        let host = Host::new(settings.tools.host()?, caller_tokens);
        let mut handlers = settings.tools.handlers()?;
        handlers.push(Arc::new(host.clone()));
        let limits = settings.tools.options(settings.limits.share_percent);
        let (search, roots) = (settings.search.clone(), settings.analysis.roots.clone());
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let executor = Executor::new(processors);
        let is_shared = settings.is_shared();
        let paths = settings.learning.clone();
        let feed = Feed::new(settings.trust.blocklist_feed.clone());
        let person = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
        let installs = settings.install.policy(&settings.data, person);
        let tiers = sources::tiers(settings.trust.tiers(), &settings.sources);
        let (hold, of_namespaces) = (settings.trust.hold, settings.namespaces);
        let storage = settings.limits.storage();
        let configured = sources::configured(&settings.sources)?;
        let sync = settings.sync.clone();
        // Start-up: once, before any call.
        let opened = tokio::task::spawn_blocking(move || {
            let store = Store::open(&directory, &options)?;
            let namespaces = Namespaces::open(store.clone(), of_namespaces);
            let namespaces = namespaces.map_err(StartError::Namespaces)?;
            let policy = Policy {
                names: bundled::names(&contract::load()?, is_shared),
                hold,
                tiers,
                audience: Some(namespaces.as_audience()),
                claims: Some(namespaces.as_claims()),
                storage,
            };
            let (read, at) = (store.clone(), Arc::clone(&clock));
            let open = move || Registry::open_with(read, at, executor, policy);
            let registry = store::bounded(&directory, open)??;
            let search = search.index(&directory, registry.clone())?;
            let composition = Composition::new(registry.clone(), search.clone());
            let (reads, sets) = (registry.clone(), composition.clone());
            let tokens = Tokens::open(store.clone()).map_err(StartError::Tokens)?;
            let sign_in = SignIn::new(&wanted, tokens.clone(), Arc::clone(&clock))
                .map_err(StartError::Setting)?;
            let access = AccessService::new(tokens.clone(), namespaces.clone(), Arc::clone(&clock));
            let audit = Audit::new(store.clone(), kept, Arc::clone(&clock));
            let (stored, at) = (store.clone(), Arc::clone(&clock));
            let learning = learning::open(stored, at, &paths, &host, &registry)?;
            let stored = (store.clone(), registry.clone());
            let engine = sources::open(stored, &directory, &sync, configured)?;
            let tools = Tools::open(store, reads, sets, Arc::clone(&clock), handlers, limits)
                .map_err(registry::Error::from)?;
            let (home, at) = (directory.join("installed"), Arc::clone(&clock));
            let installer = Installer::new(registry.clone(), home, installs, at);
            let (installs, budget) = (Arc::new(installer.clone()), installer.budget_chars());
            let checks = Checks::new(registry.clone(), installs, budget);
            let advisor = Advisor::new(registry.clone(), search.clone(), roots, clock);
            let around = local::Options::default();
            let local = Overlays::new(registry.clone(), search.clone(), around);
            let views = Views::new(namespaces.clone(), registry.clone(), search.clone());
            Ok::<_, StartError>(Self {
                registry,
                composition,
                tools,
                checks,
                host,
                search,
                advisor,
                learning,
                feed,
                installer,
                engine,
                local,
                views,
                namespaces,
                tokens,
                sign_in,
                access,
                audit,
                paths,
                following: Arc::new(Following {
                    stop: CancellationToken::new(),
                    task: Default::default(),
                }),
            })
        });
        let domain = opened
            .await
            .map_err(|error| registry::Error::Internal(error.to_string()))??;
        domain.audit.resume().await.map_err(StartError::Audit)?;
        bundled::publish(&domain.registry).await?;
        domain.block_by_feed().await;
        Ok(domain)
    }

    /// Records that a server starts, and which config file it has read.
    pub(super) async fn starts(&self, config: Option<Digest>) -> Result<(), StartError> {
        let started = self.audit.started(env!("CARGO_PKG_VERSION"), config).await;
        started.map_err(|error| StartError::Audit(error.into()))
    }

    /// The registry.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Keeps the search index in step from now on, and takes the operator's learning paths
    /// in. Once is enough.
    pub async fn follow(&self) {
        let mut task = self.following.task.lock().await;
        if task.is_none() {
            let (domain, stop) = (self.clone(), self.following.stop.clone());
            *task = Some(tokio::spawn(async move {
                let paths = learning::admit_all(&domain.learning, &domain.paths);
                let paths = stop.run_until_cancelled(paths);
                let facets = stop.run_until_cancelled(domain.registry.keep_facets());
                let scans = stop.run_until_cancelled(domain.rescan());
                let sync = stop.run_until_cancelled(domain.engine.keep());
                let index = domain.search.follow(stop.clone());
                let keys = domain.sign_in.keep(stop.clone());
                tokio::join!(index, paths, facets, scans, sync, keys);
            }));
        }
    }

    /// Scans what was not scanned by the rules that hold now.
    async fn rescan(&self) {
        match self.registry.rescan().await {
            Ok(done) if done.scanned == 0 => {}
            Ok(done) => tracing::info!(
                scanned = done.scanned,
                held = done.held,
                "versions were scanned by the rules that hold now"
            ),
            Err(error) => tracing::warn!(%error, "some versions were not scanned"),
        }
    }

    /// Takes the feed of blocked skills in, before anybody is served. Without it the list is
    /// what it was: a server that does not start would help nobody who is to be protected.
    async fn block_by_feed(&self) {
        if !self.feed.is_there() {
            return;
        }
        let system = Caller::new(Principal::system());
        match self.feed.take_in(&self.registry, &system).await {
            Ok(refreshed) => tracing::info!(
                added = refreshed.added,
                removed = refreshed.removed,
                blocked = refreshed.size,
                "the feed of blocked skills was taken in"
            ),
            Err(error) => tracing::error!(%error, "the blocklist was not changed"),
        }
    }

    /// Takes the operator's learning paths in, those that pass their gate.
    pub async fn admit_paths(&self) {
        learning::admit(&self.learning, &self.paths, false).await;
    }

    /// The index of all skills.
    #[must_use]
    pub fn search(&self) -> &SearchIndex {
        &self.search
    }

    /// What calls pass before their handlers.
    pub(super) fn guards(&self) -> calls::Guards {
        calls::Guards {
            sign_in: self.sign_in.clone(),
            audit: self.audit.clone(),
            namespaces: self.namespaces.clone(),
        }
    }

    /// What finds out what each caller sees.
    pub(super) fn viewer(&self) -> grpc::Viewer {
        grpc::Viewer::new(self.local.clone(), self.views.clone())
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
        let guards = self.guards();
        let front = calls::CallLayer::new((admission, limits), guards, stop, false);
        let transport = front.transport(services::routes(self).fallback(unknown));
        let local = transport.map_request(|mut request: http::Request<tonic::body::Body>| {
            request.extensions_mut().insert(Access::local());
            request
        });
        BoxCloneSyncService::new(local)
    }

    /// Ends work that runs, writes what waits, and closes the data directory.
    pub async fn close(&self) {
        if tokio::time::timeout(WORK_STOP_TIMEOUT, self.engine.close())
            .await
            .is_err()
        {
            tracing::warn!("a sync did not stop when it was cancelled");
        }
        let running = self.registry.executor().stop(WORK_STOP_TIMEOUT).await;
        if running > 0 {
            tracing::warn!(running, "work did not stop when it was cancelled");
        }
        if let Err(error) = self.registry.write_usage().await {
            tracing::warn!(%error, "usage counts were not written");
        }
        if let Err(error) = self.tools.write().await {
            tracing::warn!(%error, "sessions and records of calls were not written");
        }
        if let Err(error) = self.tokens.write_uses().await {
            tracing::warn!(%error, "the last use of tokens was not written");
        }
        if let Err(error) = self.audit.close().await {
            tracing::warn!(%error, "the last audit events were not written");
        }
        self.following.stop.cancel();
        self.local.stop();
        if let Some(task) = self.following.task.lock().await.take()
            && let Err(error) = task.await
        {
            tracing::warn!(%error, "the search index did not stop in time");
        }
        self.registry.close().await;
    }
}
