//! Sources and syncs over a store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::record::{CLAIMS, SOURCES, STATES, State};
use super::{Error, Progress, Source, items, withdraw};
use jiff::Timestamp;
use model::{Principal, SkillKey};
use registry::{Caller, Registry};
use secrecy::SecretString;
use secret::{CredentialRef, NamedBy, Secrets};
use sources::{Fetch, Limits};
use store::{Batch, Change, CommitError, Expect, Fold, Mirror, Revision, Store, Stored};

/// Sources that a server may have.
const MAX_SOURCES: usize = 1_000;
/// Records that one batch writes or removes.
pub(crate) const RECORDS_PER_BATCH: usize = 256;

/// Makes the fetcher of a source.
pub trait Fetchers: Send + Sync + 'static {
    /// Makes the fetcher of a source, with the secret of its credential. Calls nobody.
    ///
    /// # Errors
    /// The address is wrong.
    fn open(
        &self,
        source: &Source,
        secret: Option<&SecretString>,
    ) -> Result<Arc<dyn Fetch>, sources::Error>;
}

/// Limits and retries of syncs.
#[derive(Clone)]
pub struct Options {
    /// Bounds of a look, and of the reads that follow it.
    pub limits: Limits,
    /// How often a look is tried when the error is transient.
    pub attempts: u32,
    /// The pause after the first attempt; each pause is four times the one before it.
    pub pause: Duration,
    /// Returns a number from 0 to 1, another one each time: pauses and intervals are spread by
    /// it, so that many servers do not call one place at the same moment.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// The secrets that sources may use.
    pub secrets: Secrets,
}

impl Default for Options {
    /// Nothing is spread.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            attempts: 3,
            pause: Duration::from_secs(1),
            jitter: Arc::new(|| 0.5),
            secrets: Secrets::default(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// Keeps skills in step with sources. Cheap to clone.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) fetchers: Box<dyn Fetchers>,
    /// Has a folder for each source: its cache between looks.
    pub(crate) folder: PathBuf,
    pub(crate) options: Options,
    /// From the config file.
    configured: BTreeMap<String, Source>,
    /// From calls; stored.
    added: Mirror<Added>,
    running: Mutex<Running>,
    /// The sync that began last.
    pub(crate) begun: watch::Sender<Option<watch::Receiver<Progress>>>,
    /// Wakes the schedule: sources may be due that were not before.
    pub(crate) nudged: Notify,
    /// Sources that are due now, whatever their interval.
    pub(crate) nudges: Mutex<BTreeSet<String>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// The sources that calls added, by id.
#[derive(Default)]
struct Added(BTreeMap<String, Stored<Source>>);

impl Fold for Added {
    type Record = Source;

    fn fold(&self, changes: Vec<Change<Source>>) -> Self {
        let mut added = self.0.clone();
        for Change { key, stored } in changes {
            match stored {
                Some(stored) => added.insert(key, stored),
                None => added.remove(&key),
            };
        }
        Self(added)
    }
}

/// The syncs that are running.
#[derive(Default)]
pub(crate) struct Running {
    /// By source, the sync that has it.
    pub(crate) sources: BTreeMap<String, String>,
    /// By id.
    pub(crate) syncs: BTreeMap<String, watch::Receiver<Progress>>,
    /// Ids given out in the current second.
    pub(crate) last_ids: Vec<String>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("folder", &self.0.folder)
            .finish_non_exhaustive()
    }
}

/// A source and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The source.
    pub source: Source,
    /// It is in the config file.
    pub is_configured: bool,
    /// Skills that are its own here.
    pub skills: u32,
    /// Its skills that were skipped.
    pub skips: Vec<super::Skip>,
    /// How many skips are not listed.
    pub skips_left_out: u32,
    /// Its revision at the last sync; empty: it was not synced yet.
    pub revision: String,
    /// When it was last synced without an error.
    pub last_success: Option<Timestamp>,
}

/// A source that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its id.
    pub id: String,
    /// Skills that were withdrawn with it.
    pub withdrawn: u32,
    /// Skills that stay, and are no longer synced.
    pub kept: u32,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Sources over a store, with those of the config file.
    ///
    /// # Errors
    /// A source of the config file is wrong, or a record is damaged.
    pub fn open(
        store: Store,
        registry: Registry,
        fetchers: impl Fetchers,
        folder: PathBuf,
        configured: Vec<Source>,
        options: Options,
    ) -> Result<Self, Error> {
        let mut by_id = BTreeMap::new();
        for source in configured {
            source.check()?;
            let id = source.id.clone();
            if by_id.insert(id.clone(), source).is_some() {
                return Err(Error::SourceExists { id });
            }
        }
        let added = store.follow_table(&SOURCES, &Added::default())?;
        Ok(Self(Arc::new(Inner {
            store,
            registry,
            fetchers: Box::new(fetchers),
            folder,
            options,
            configured: by_id,
            added,
            running: Mutex::default(),
            begun: watch::Sender::new(None),
            nudged: Notify::new(),
            nudges: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })))
    }

    /// Every source, by id. The config file goes before what was added by a call.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        let added = self.0.added.load();
        let added = added.0.iter().map(|(id, stored)| (id, &stored.value));
        let mut all: BTreeMap<_, _> = added.collect();
        // Last, so that it wins: a source of the config file may have the id of a stored one.
        all.extend(&self.0.configured);
        all.into_values().cloned().collect()
    }

    /// A source by its id.
    ///
    /// # Errors
    /// There is none.
    pub fn source(&self, id: &str) -> Result<Source, Error> {
        let added = self.0.added.load();
        let added = added.0.get(id).map(|stored| &stored.value);
        let known = self.0.configured.get(id).or(added);
        known.cloned().ok_or_else(|| {
            let known = self.sources().into_iter().map(|source| source.id);
            Error::SourceNotFound {
                id: model::shown(id, 80),
                known: known.take(20).collect(),
            }
        })
    }

    /// Makes the fetcher of a source, with its secret. Calls nobody.
    pub(crate) fn open_place(&self, source: &Source) -> Result<Arc<dyn Fetch>, sources::Error> {
        let credential = source.credential.as_ref();
        let secret = credential.map(|it| self.secret(it, source.named_by, source.address()));
        let secret = secret.transpose().map_err(sources::Error::Invalid)?;
        self.0.fetchers.open(source, secret.as_ref())
    }

    /// Reads the secret of a source at an address.
    ///
    /// # Errors
    /// It cannot be read, or whoever names it may not.
    pub fn secret(
        &self,
        reference: &CredentialRef,
        named_by: NamedBy,
        address: &str,
    ) -> Result<SecretString, String> {
        self.0.options.secrets.read(reference, named_by, address)
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, Running> {
        locked(&self.0.running)
    }

    pub(crate) fn state(&self, id: &str) -> Result<State, Error> {
        let stored = self.0.store.get(&STATES, id)?;
        Ok(stored.map_or_else(State::default, |stored| State {
            read_at: Some(stored.revision),
            ..stored.value
        }))
    }

    /// Writes for a source, where it is still what it was: once it was removed, whoever did
    /// that, a sync of it leaves nothing.
    pub(crate) async fn commit(
        &self,
        source: &Source,
        mut batch: Batch,
    ) -> Result<Revision, CommitError> {
        if !self.0.configured.contains_key(&source.id) {
            let added = self.0.added.load_full();
            let stored = added.0.get(&source.id);
            let stored = stored.filter(|stored| stored.value == *source);
            // No record is of revision 0.
            let revision = stored.map_or(0, |stored| stored.revision);
            batch.expect(&SOURCES, &source.id, Expect::Revision(revision));
        }
        self.0.store.commit(batch).await
    }

    /// Every source with its state, by id.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let sources = self.sources().into_iter();
        sources.map(|source| self.listed(source)).collect()
    }

    fn listed(&self, source: Source) -> Result<Listed, Error> {
        let state = self.state(&source.id)?;
        Ok(Listed {
            is_configured: self.0.configured.contains_key(&source.id),
            skills: state.skills,
            skips: state.skips,
            skips_left_out: state.skips_left_out,
            revision: state.revision,
            last_success: state.last_success,
            source,
        })
    }

    /// Adds a source. It is due at once.
    ///
    /// # Errors
    /// Its address is wrong, its secret cannot be read, or the id is in use.
    pub async fn add(&self, source: Source) -> Result<Listed, Error> {
        source.check()?;
        self.open_place(&source).map_err(|error| match error {
            sources::Error::NotBuilt(feature) => Error::NotBuilt { feature },
            error => Error::Parameter {
                field: "location",
                message: error.to_string(),
            },
        })?;
        let id = source.id.clone();
        if self.0.configured.contains_key(&id) {
            return Err(Error::Configured { id });
        }
        // Two calls at once may both pass, so the limit may be exceeded by a few.
        if self.sources().len() >= MAX_SOURCES {
            return Err(Error::TooMany { max: MAX_SOURCES });
        }
        let mut batch = Batch::new();
        // Of two calls that add one id at the same moment, the store lets one through.
        batch.expect(&SOURCES, &id, Expect::Absent);
        batch.put(&SOURCES, &id, &source);
        match self.0.store.commit(batch).await {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return Err(Error::SourceExists { id }),
            Err(error) => return Err(error.into()),
        }
        // Its state need not be empty: a source that left the config file keeps its records, and
        // goes on with its skills when it is added here.
        self.listed(source)
    }

    /// Removes a source. Its skills stay, or are withdrawn.
    ///
    /// # Errors
    /// There is none of this id, it is in the config file, or it is being synced.
    pub async fn remove(&self, id: &str, withdraws: bool) -> Result<Removed, Error> {
        let source = self.source(id)?;
        if self.0.configured.contains_key(id) {
            return Err(Error::Configured { id: id.to_owned() });
        }
        // Nothing syncs it from here on: a sync that ran meanwhile would claim skills again. The
        // text stands for a sync's id in the error that such a sync gets.
        let reserved = self.reserve(std::slice::from_ref(&source), |_| format!("removing {id}"))?;
        let mut removed = Removed {
            id: id.to_owned(),
            withdrawn: 0,
            kept: 0,
        };
        let owner = Caller::new(Principal::source(id));
        let reason = format!("the source `{id}` was removed");
        for keys in self.claimed(id)?.chunks(RECORDS_PER_BATCH) {
            let mut batch = Batch::new();
            for (key, revision) in keys {
                let head = self.0.registry.catalog().get(key).cloned();
                if let Some(head) = head {
                    let is_active = head.active.is_some();
                    let gone = withdraws
                        && withdraw::withdraw(&self.0.registry, &head.id, &reason, &owner).await?;
                    removed.withdrawn += u32::from(gone);
                    removed.kept += u32::from(is_active && !gone);
                }
                batch.expect(&CLAIMS, key, Expect::Revision(*revision));
                batch.delete(&CLAIMS, key);
            }
            self.commit(&source, batch).await?;
        }
        // Claims, then items, and the source itself last: after a kill it is still listed, and can
        // be removed again. The other way round its claims would stay for good.
        let paths: Vec<String> = items::of(&self.0.store, id)?.into_keys().collect();
        for paths in paths.chunks(RECORDS_PER_BATCH) {
            let mut batch = Batch::new();
            for path in paths {
                items::remove(&mut batch, id, path);
            }
            self.commit(&source, batch).await?;
        }
        let mut batch = Batch::new();
        batch.delete(&SOURCES, id);
        batch.delete(&STATES, id);
        self.commit(&source, batch).await?;
        let folder = self.0.folder.join(id);
        if let Err(error) = tokio::fs::remove_dir_all(&folder).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            // A cache alone: if the id is used again, its mark is gone, and all is read anew.
            tracing::warn!(%error, folder = %folder.display(), "the cache of a source was not removed");
        }
        drop(reserved);
        Ok(removed)
    }

    /// The skills that a source has claimed, and the commits that did. Reads the claims of all
    /// sources: they are keyed by skill, which every publish asks for, and by source only this.
    pub(crate) fn claimed(&self, id: &str) -> Result<Vec<(SkillKey, Revision)>, Error> {
        let mut found = Vec::new();
        for entry in self.0.store.scan(&CLAIMS, b"") {
            let (key, stored) = entry?;
            let skill = key
                .strip_suffix(&[0])
                .and_then(|key| std::str::from_utf8(key).ok());
            if let Some(skill) = skill.filter(|_| stored.value.source == id) {
                found.push((SkillKey::from_stored(skill), stored.revision));
            }
        }
        Ok(found)
    }

    /// Stops what runs, and waits for it.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
