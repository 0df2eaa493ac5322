//! A place whose skills a test puts there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use model::{Digest, FilePath};
use registry::Registry;
use secrecy::SecretString;
use sources::{Fetch, Files, Item, Listing, Look, RepositoryFacts, Work};
use store::Store;
use testing::Hands;
use tokio::sync::Notify;

use crate::{Engine, Fetchers, Kind, Options, Request, Source, SourceKind, SourceResult};

/// A SKILL.md; an empty version is not stated.
pub(super) fn skill(name: &str, version: &str, body: &str) -> String {
    let version = match version {
        "" => String::new(),
        version => format!("\nversion: {version}"),
    };
    testing::skill_md(
        &format!("name: {name}\ndescription: Does {name}.{version}"),
        body,
    )
}

/// A source of the address `https://github.com/acme/ID`.
pub(super) fn source(id: &str) -> Source {
    Source {
        id: id.to_owned(),
        name: String::new(),
        kind: SourceKind::Git,
        location: format!("https://github.com/acme/{id}.git"),
        reference: String::new(),
        path: String::new(),
        select: Vec::new(),
        namespace: None,
        interval_seconds: None,
        credential: None,
        webhook_secret: None,
        named_by: secret::NamedBy::Operator,
    }
}

/// What is at a place.
#[derive(Debug, Default)]
pub(super) struct Place {
    skills: Mutex<BTreeMap<String, String>>,
    rewritten: Mutex<Option<String>>,
    failures: Mutex<(usize, Option<sources::Error>)>,
    waits: Mutex<Option<Arc<Notify>>>,
    dies_after: Mutex<Option<usize>>,
    /// Beginnings of paths that nobody may read.
    locked: Mutex<Option<String>>,
    stars: Mutex<u64>,
    looks: AtomicUsize,
    reads: AtomicUsize,
}

impl Place {
    pub(super) fn put(&self, path: &str, text: &str) {
        self.skills
            .lock()
            .unwrap()
            .insert(path.to_owned(), text.to_owned());
    }

    pub(super) fn remove(&self, path: &str) {
        self.skills.lock().unwrap().remove(path);
    }

    pub(super) fn clear(&self) {
        self.skills.lock().unwrap().clear();
    }

    /// The next look does not follow from the one before it.
    pub(super) fn rewrite(&self, why: &str) {
        *self.rewritten.lock().unwrap() = Some(why.to_owned());
    }

    /// The next looks fail.
    pub(super) fn fail(&self, times: usize, error: sources::Error) {
        *self.failures.lock().unwrap() = (times, Some(error));
    }

    /// The next look waits for this.
    pub(super) fn wait(&self) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        *self.waits.lock().unwrap() = Some(Arc::clone(&notify));
        notify
    }

    /// After so many reads nothing is answered, until the next look.
    pub(super) fn die_after(&self, reads: usize) {
        *self.dies_after.lock().unwrap() = Some(self.reads() + reads);
    }

    /// What is at paths that begin so cannot be read; none: all can.
    pub(super) fn lock(&self, beginning: Option<&str>) {
        *self.locked.lock().unwrap() = beginning.map(str::to_owned);
    }

    /// Stars of the repository.
    pub(super) fn star(&self, stars: u64) {
        *self.stars.lock().unwrap() = stars;
    }

    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

impl Fetch for Place {
    fn look<'a>(
        &'a self,
        mark: Option<&'a str>,
        _: &'a Work,
    ) -> BoxFuture<'a, Result<Look, sources::Error>> {
        Box::pin(async move {
            self.looks.fetch_add(1, Ordering::SeqCst);
            let waits = self.waits.lock().unwrap().take();
            if let Some(waits) = waits {
                waits.notified().await;
            }
            {
                let mut failures = self.failures.lock().unwrap();
                if let (1.., Some(error)) = &*failures {
                    let error = error.clone();
                    failures.0 -= 1;
                    return Err(error);
                }
            }
            let skills = self.skills.lock().unwrap().clone();
            let stars = *self.stars.lock().unwrap();
            let all = Digest::of(format!("{stars} {skills:?}").as_bytes()).hex();
            let break_in_history = self.rewritten.lock().unwrap().take();
            if mark == Some(all.as_str()) {
                return Ok(Look::Unchanged { rate_limit: None });
            }
            let mut items: Vec<Item> = skills
                .iter()
                .map(|(path, text)| Item {
                    path: path.clone(),
                    fingerprint: Digest::of(text.as_bytes()).hex(),
                    facts: Some(RepositoryFacts {
                        stars,
                        ..RepositoryFacts::default()
                    }),
                    ..Item::default()
                })
                .collect();
            items.sort_by_key(|item| (item.path.split('/').count(), item.path.clone()));
            Ok(Look::Listing(Listing {
                revision: all.chars().take(7).collect(),
                mark: all,
                items,
                break_in_history,
                ..Listing::default()
            }))
        })
    }

    fn read<'a>(
        &'a self,
        item: &'a Item,
        _: &'a Work,
    ) -> BoxFuture<'a, Result<Files, sources::Error>> {
        Box::pin(async move {
            let reads = self.reads.fetch_add(1, Ordering::SeqCst);
            if self
                .dies_after
                .lock()
                .unwrap()
                .is_some_and(|at| reads >= at)
            {
                // The next sync finds it alive.
                *self.dies_after.lock().unwrap() = None;
                return Err(sources::Error::RateLimited {
                    after: Duration::ZERO,
                    limit: None,
                });
            }
            let locked = self.locked.lock().unwrap().clone();
            if locked.is_some_and(|beginning| item.path.starts_with(&beginning)) {
                return Err(sources::Error::Refused("nobody may read it".to_owned()));
            }
            let text = self.skills.lock().unwrap().get(&item.path).cloned();
            let text = text.ok_or_else(|| sources::Error::Unavailable("it is gone".to_owned()))?;
            let files = [(FilePath::skill_md(), Bytes::from(text))];
            Ok(Files {
                files: files.into(),
                ..Files::default()
            })
        })
    }
}

type Places = Arc<Mutex<BTreeMap<String, Arc<Place>>>>;

#[derive(Clone, Default)]
struct Doubles(Places);

impl Doubles {
    fn place(&self, id: &str) -> Arc<Place> {
        Arc::clone(self.0.lock().unwrap().entry(id.to_owned()).or_default())
    }
}

impl Fetchers for Doubles {
    fn open(
        &self,
        source: &Source,
        _: Option<&SecretString>,
    ) -> Result<Arc<dyn Fetch>, sources::Error> {
        Ok(self.place(&source.id))
    }
}

/// A registry with sources.
pub(super) struct Here {
    pub(super) registry: Registry,
    pub(super) engine: Engine,
    pub(super) clock: Arc<Hands>,
    store: Store,
    places: Doubles,
    folder: tempfile::TempDir,
}

impl Here {
    pub(super) fn new(configured: &[Source]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Hands::new();
        let store = Store::in_memory(&testing::options());
        let registry = Registry::open(store.clone(), Arc::clone(&clock) as _).expect("a registry");
        let places = Doubles::default();
        let engine = engine(&store, &registry, &places, folder.path(), configured);
        Self {
            registry,
            engine,
            clock,
            store,
            places,
            folder,
        }
    }

    /// Another engine over the same store.
    pub(super) fn engine_again(&self, configured: &[Source]) -> Engine {
        engine(
            &self.store,
            &self.registry,
            &self.places,
            self.folder.path(),
            configured,
        )
    }

    pub(super) fn place(&self, id: &str) -> Arc<Place> {
        self.places.place(id)
    }

    /// Syncs the first source.
    pub(super) async fn sync(&self) -> SourceResult {
        self.sync_as(Kind::Incremental).await
    }

    pub(super) async fn sync_as(&self, kind: Kind) -> SourceResult {
        let first = self.engine.sources().remove(0).id;
        self.run(vec![first], kind).await.remove(0)
    }

    pub(super) async fn sync_all(&self) -> Vec<SourceResult> {
        self.run(Vec::new(), Kind::Incremental).await
    }

    async fn run(&self, sources: Vec<String>, kind: Kind) -> Vec<SourceResult> {
        let request = Request {
            sources,
            kind,
            force_check: false,
        };
        let mut begun = self.engine.begin(&request).expect("begun");
        let record = begun
            .wait(Duration::from_secs(3_600))
            .await
            .expect("it ends");
        record.sources
    }

    pub(super) fn version(&self, id: &str) -> Arc<model::Version> {
        let head = self
            .registry
            .head(&id.parse().expect("an id"))
            .expect("a skill");
        self.registry
            .version(&head, &model::VersionSelector::Active)
            .expect("a version")
    }

    pub(super) fn version_numbers(&self, id: &str) -> Vec<u32> {
        let page = self
            .registry
            .list_versions(&id.parse().expect("an id"), 100, "")
            .expect("versions");
        page.versions
            .iter()
            .map(|described| described.version.number.get())
            .collect()
    }

    pub(super) async fn instructions(&self, id: &str) -> String {
        let id = id.parse().expect("an id");
        let text = self
            .registry
            .instructions(&id, &model::VersionSelector::Active);
        text.await.expect("a text").1
    }

    /// Waits until a place was looked at so often.
    pub(super) async fn until_looks(&self, id: &str, times: usize) {
        let place = self.place(id);
        let looked = async {
            while place.looks.load(Ordering::SeqCst) < times
                || !self.engine.running().sources.is_empty()
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3_600), looked)
            .await
            .expect("it is synced");
    }
}

fn engine(
    store: &Store,
    registry: &Registry,
    places: &Doubles,
    folder: &std::path::Path,
    configured: &[Source],
) -> Engine {
    let options = Options {
        limits: sources::Limits::default(),
        attempts: 3,
        pause: Duration::from_millis(1),
        jitter: Arc::new(|| 0.5),
        secrets: secret::Secrets::listing(&[listed("HOME", "https://github.com")]),
    };
    let (store, registry, places) = (store.clone(), registry.clone(), places.clone());
    Engine::open(
        store,
        registry,
        places,
        folder.join("sources"),
        configured.to_vec(),
        options,
    )
    .expect("an engine")
}

/// A variable of the environment that callers on the network may name for an origin.
fn listed(variable: &str, origin: &str) -> secret::ListedSecret {
    let entry = serde_json::json!({"env": variable, "origin": origin});
    serde_json::from_value(entry).expect("an entry")
}
