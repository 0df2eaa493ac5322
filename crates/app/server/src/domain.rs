//! The domain that the services work on, over an open data directory, without a listener.

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

/// How long work may take to end once it is asked to stop.
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
        // Boxed, as it holds all settings: every future that opens a domain would be as large.
        let opened = Box::pin(Self::opened(settings.clone())).await;
        opened.map_err(|error| error.located(&settings.config.places))
    }

    async fn opened(settings: Settings) -> Result<Self, StartError> {
        features::require(&settings, None)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let issuer = settings.config.access.public_url.as_ref();
        let issuer = issuer.map_or("repertoire", |url| url.as_str());
        let caller_tokens = CallerTokens::new(issuer.to_owned(), Arc::clone(&clock))?;
        // Settings that cannot be used are refused before the directory is opened, which may
        // take long.
        let host = Host::new(settings.config.tools.host()?, caller_tokens);
        let mut handlers = settings.config.tools.handlers()?;
        // After the bundled ones: of handlers that serve a skill the first runs its tools.
        handlers.push(Arc::new(host.clone()));
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let executor = Executor::new(processors);
        let configured = sources::configured(&settings.config.sources)?;
        // Before any call, so it needs no permit of the executor.
        let opened = tokio::task::spawn_blocking(move || {
            let is_shared = settings.is_shared();
            let Settings {
                data: directory,
                store: options,
                config,
                ..
            } = settings;
            let store = Store::open(&directory, &options)?;
            let namespaces = Namespaces::open(store.clone(), config.namespaces);
            let namespaces = namespaces.map_err(StartError::Namespaces)?;
            let policy = Policy {
                names: bundled::names(&contract::load()?, is_shared),
                hold: config.trust.hold,
                tiers: sources::tiers(&config.trust, &config.sources),
                audience: Some(namespaces.as_audience()),
                claims: Some(namespaces.as_claims()),
                storage: config.limits.storage(),
            };
            let (read, at) = (store.clone(), Arc::clone(&clock));
            let open = move || Registry::open_with(read, at, executor, policy);
            // A damaged directory must not keep a server from saying so: it could take for ever.
            let registry = store::bounded(&directory, open)??;
            let search = config.search.index(&directory, registry.clone())?;
            let composition = Composition::new(registry.clone(), search.clone());
            let (reads, sets) = (registry.clone(), composition.clone());
            let tokens = Tokens::open(store.clone()).map_err(StartError::Tokens)?;
            let sign_in = SignIn::new(&config.access, tokens.clone(), Arc::clone(&clock))
                .map_err(StartError::Setting)?;
            let (named, skills) = (namespaces.clone(), registry.clone());
            let access = AccessService::new(tokens.clone(), named, skills, Arc::clone(&clock));
            let audit = Audit::new(store.clone(), config.audit, Arc::clone(&clock));
            let (stored, at) = (store.clone(), Arc::clone(&clock));
            let learning = learning::open(stored, at, &config.learning, &host, &registry)?;
            let stored = (store.clone(), registry.clone());
            let engine = sources::open(stored, &directory, &config.sync, configured)?;
            let limits = config.tools.options(config.limits.share_percent);
            let tools = Tools::open(store, reads, sets, Arc::clone(&clock), handlers, limits)
                .map_err(registry::Error::from)?;
            let person = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
            let installs = config.install.policy(&directory, person);
            let (home, at) = (directory.join("installed"), Arc::clone(&clock));
            let installer = Installer::new(registry.clone(), home, installs, at);
            let (installs, budget) = (Arc::new(installer.clone()), installer.budget_chars());
            let checks = Checks::new(registry.clone(), installs, budget);
            let roots = config.analysis.roots;
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
                feed: Feed::new(config.trust.blocklist_feed),
                installer,
                engine,
                local,
                views,
                namespaces,
                tokens,
                sign_in,
                access,
                audit,
                paths: config.learning,
                following: Arc::new(Following {
                    stop: CancellationToken::new(),
                    task: Default::default(),
                }),
            })
        });
        let domain = opened
            .await
            .map_err(|error| registry::Error::Internal(error.to_string()))??;
        // Before anything is written: each write goes on with the chain of records.
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

    /// Starts the background work: keeps the search index up to date, scans by new rules, syncs
    /// sources, and takes the operator's learning paths in. Once is enough.
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
                // These two end with the token themselves, at a point where nothing is lost.
                let index = domain.search.follow(stop.clone());
                let keys = domain.sign_in.keep(stop.clone());
                tokio::join!(index, paths, facets, scans, sync, keys);
            }));
        }
    }

    /// Scans the versions that were last scanned by older rules.
    async fn rescan(&self) {
        match self.registry.rescan().await {
            Ok(done) if done.scanned == 0 => {}
            Ok(done) => tracing::info!(
                scanned = done.scanned,
                held = done.held,
                "versions were scanned by the current rules"
            ),
            Err(error) => tracing::warn!(%error, "some versions were not scanned"),
        }
    }

    /// Takes the feed of blocked skills in, before any call. Where it cannot be read the
    /// blocklist stays as it was: a server that does not start protects nobody.
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
            Err(error) => tracing::error!(%error, "the blocklist stays as it was"),
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

    /// Returns the checks that calls pass before their handlers.
    pub(super) fn guards(&self) -> calls::Guards {
        calls::Guards {
            sign_in: self.sign_in.clone(),
            audit: self.audit.clone(),
            namespaces: self.namespaces.clone(),
        }
    }

    /// Returns the viewer, which decides which skills each caller sees.
    pub(super) fn viewer(&self) -> grpc::Viewer {
        grpc::Viewer::new(self.local.clone(), self.views.clone())
    }

    /// The host of workers.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns a transport for calls in process: the services behind a call layer.
    #[must_use]
    pub fn transport(&self, limits: &Limits) -> Transport {
        let (admission, stop) = (limits.admission(), CancellationToken::new());
        let guards = self.guards();
        let front = calls::CallLayer::new((admission, limits), guards, stop, false);
        let transport = front.transport(services::routes(self).fallback(unknown));
        // Whoever opened the directory could read its files as well: no right is missing.
        let local = transport.map_request(|mut request: http::Request<tonic::body::Body>| {
            request.extensions_mut().insert(Access::local());
            request
        });
        BoxCloneSyncService::new(local)
    }

    /// Ends work that runs, writes what waits, and closes the data directory.
    pub async fn close(&self) {
        // What begins work ends first, then the work, then what it left to be written; the
        // registry, whose store all of it is written to, is closed last.
        if tokio::time::timeout(WORK_STOP_TIMEOUT, self.engine.close())
            .await
            .is_err()
        {
            tracing::warn!("a sync did not stop in time");
        }
        let running = self.registry.executor().stop(WORK_STOP_TIMEOUT).await;
        if running > 0 {
            tracing::warn!(running, "work did not stop in time");
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
            tracing::warn!(%error, "the search index failed while it stopped");
        }
        self.registry.close().await;
    }
}
