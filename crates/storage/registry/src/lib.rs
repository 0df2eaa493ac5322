//! Skills and their versions: publishing, activating, withdrawing, deleting.
//!
//! Rules:
//!
//! * A version never changes and its number is never used again, not even after
//!   a delete. Numbers are given in the transaction that writes the version.
//! * One active version a skill; it is what the skill's name resolves to.
//! * Publishing the same bytes again is the version that has them; the same
//!   semantic version with other bytes is refused.
//! * Every write reads the head of its skill and commits only if the head is still what it read;
//!   otherwise it retries. The lock of a skill only saves needless retries: nothing here relies
//!   on being the only writer.
//! * Every version is scanned when it is published. A version that is held for review, and every
//!   version of a blocked skill, is not handed out.
//! * Heads are also kept in memory, as the [`Catalog`]: an immutable snapshot that follows the
//!   log, whichever process writes it. A writer finds its own write there.
//!
//! Not here: names and addresses (`lookup`), reading `SKILL.md` (`skill_md`), the rules of the
//! scanner (`trust`), composition, wire formats.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod blocklist;
mod bundle;
mod catalog;
mod claims;
mod counts;
mod delete;
mod dependents;
mod diff;
mod error;
mod export;
mod facet;
mod feed;
mod follow;
mod head;
mod holds;
mod idempotency;
mod in_review;
mod lines;
mod local;
mod local_past;
mod merge;
mod name_error;
mod name_moves;
mod names;
mod nearest;
mod numbers;
mod outcome;
mod policy;
mod prepared;
mod publish;
mod read;
mod renew;
mod repair;
mod rescan;
mod scans;
mod short_names;
mod storage;
mod submit;
#[cfg(test)]
mod tests;
mod usage;
mod verify;
mod versions;
mod view;
mod watch;
mod yanks;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch::Receiver;
use tokio::sync::{Mutex, MutexGuard};

pub use blocklist::{BlockPage, Blocked, Refreshed};
pub use bundle::{Bundle, Candidate};
pub use catalog::Catalog;
pub use claims::{Claim, Claims};
pub use delete::Deleted;
pub use diff::{Change, ChangeKind, FieldChange, FileChange, Lines, VersionDiff};
pub use error::Error;
use executor::Executor;
pub use export::{Archive, ArchiveFormat, ExportQuery};
pub use facet::Facet;
pub use feed::Feed;
pub use head::{Head, Summary};
pub use holds::{HeldPage, HeldVersion, Hold, Review, Reviewed};
pub use idempotency::{Caller, NamedWrite};
pub use local::{LocalSkill, LocalSkills};
pub use local_past::LocalPast;
use model::{Clock, Digest, Event, SkillKey, Version, VersionNumber};
pub use name_error::NameError;
pub use name_moves::NameMoved;
pub use names::Names;
pub use nearest::{Near, nearest_names, spellings};
pub use outcome::VersionState;
pub use policy::{HoldPolicy, Policy, Tiers};
pub use prepared::Prepared;
pub use publish::{Outcome, Published};
pub use repair::Repaired;
pub use rescan::Rescanned;
pub use scans::{Scan, ScanFacts, Scanned};
pub use storage::{Holding, StorageLimit, StorageLimits};
pub use store::Compacted;
use store::{Batch, CommitError, LogPosition, Mode, Store, Table, TableId};
pub use submit::{Submission, Submitted, Upload};
pub use usage::{SkillUsage, UsageKind, VersionUsage};
pub use verify::Audit;
pub use versions::{Activated, Described, Release, VersionPage, Withdrawn};
pub use view::{Audience, Sees, View};
pub use watch::{Step, Watch, WatchFilter};

const HEADS: Table<SkillKey, Head> = Table::new(TableId::Heads);
const VERSIONS: Table<(SkillKey, VersionNumber), Version> = Table::new(TableId::Versions);
const SEMANTICS: Table<(SkillKey, String), head::SemanticEntry> = Table::new(TableId::Semantics);
const DIGESTS: Table<(SkillKey, Digest), VersionNumber> = Table::new(TableId::Digests);

/// Maximum number of attempts of a write.
const ATTEMPTS: usize = 100;
/// Locks over which the skills are spread.
const LOCK_COUNT: usize = 256;
/// Bytes of decoded versions that are cached in memory.
const VERSION_CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// The approximate bytes of a version in memory.
#[derive(Debug, Clone)]
struct VersionWeight;

impl quick_cache::Weighter<(SkillKey, VersionNumber), Arc<Version>> for VersionWeight {
    fn weight(&self, _key: &(SkillKey, VersionNumber), version: &Arc<Version>) -> u64 {
        let skill = &version.skill;
        let text = skill.description.len() + skill.excerpt.len() + skill.long_description.len();
        (1_500 + 2 * text + 120 * version.files.len() + 80 * skill.front_matter.len()) as u64
    }
}

type VersionCache =
    quick_cache::sync::Cache<(SkillKey, VersionNumber), Arc<Version>, VersionWeight>;

/// The registry over a store. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
    /// Skills of folders that are in front of the store's: see [`Registry::with_local`].
    local: Option<Arc<LocalSkills>>,
    /// The view of its callers: see [`Registry::with_view`].
    view: Option<Arc<View>>,
}

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    executor: Executor,
    catalog: Arc<ArcSwap<Catalog>>,
    /// Skills whose facets were inferred anew, and are not written yet.
    renewed: Mutex<Vec<SkillKey>>,
    versions: VersionCache,
    scans: scans::ScanCache,
    usage: usage::Usage,
    locks: Vec<Mutex<()>>,
    hasher: RandomState,
    policy: Policy,
    storage: ArcSwap<StorageLimits>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

/// The plan of a write, before it is committed.
enum Plan<T> {
    /// Nothing needs to be written.
    Done(T),
    /// This batch makes it so, and this event announces it.
    Write(Batch, Event, T),
    /// This batch makes it so, without an event: no watcher needs to know.
    Quiet(Batch, T),
}

impl Registry {
    /// Reads the heads of all skills into memory. Work runs in an executor of the fewest
    /// permits.
    ///
    /// # Errors
    /// A head is damaged, or the store cannot be read.
    pub fn open(store: Store, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::open_with(store, clock, Executor::default(), Policy::default())
    }

    /// The same with another executor, and with the operator's policy.
    ///
    /// # Errors
    /// A head is damaged, or the store cannot be read.
    pub fn open_with(
        store: Store,
        clock: Arc<dyn Clock>,
        executor: Executor,
        policy: Policy,
    ) -> Result<Self, Error> {
        let (catalog, renewed) = follow::catalog(&store, &policy)?;
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                clock,
                executor,
                catalog,
                renewed: Mutex::new(renewed),
                versions: VersionCache::with_weighter(10_000, VERSION_CACHE_BYTES, VersionWeight),
                scans: scans::scan_cache(),
                usage: usage::Usage::default(),
                locks: (0..LOCK_COUNT).map(|_| Mutex::new(())).collect(),
                hasher: RandomState::new(),
                storage: ArcSwap::from_pointee(policy.storage.clone()),
                policy,
            }),
            local: None,
            view: None,
        })
    }

    #[cfg(test)]
    fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Returns the start and the end of the log, now and whenever they change.
    #[must_use]
    pub fn log(&self) -> Receiver<LogPosition> {
        self.inner.store.position()
    }

    /// Returns the identity of the log, which is another one after a restore.
    #[must_use]
    pub fn log_id(&self) -> &str {
        self.inner.store.log_id()
    }

    /// Returns whether writes are taken, now and whenever that changes.
    #[must_use]
    pub fn mode(&self) -> Receiver<Mode> {
        self.inner.store.mode()
    }

    /// Closes the store: what is acknowledged is on disk, and nothing more is written.
    pub async fn close(&self) {
        self.inner.store.close().await;
    }

    /// Returns the executor for work that takes long or blocks.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    /// Returns the time, by the clock that stamps versions.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Returns all skills as they are now. The snapshot does not change any more.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        let catalog = self.inner.catalog.load_full();
        let catalog = match &self.view {
            Some(view) => view.of(catalog),
            None => catalog,
        };
        match &self.local {
            Some(local) => local.before(self, catalog),
            None => catalog,
        }
    }

    /// Makes a plan from the current state and commits it; retries where another write came
    /// between.
    async fn write<T>(
        &self,
        caller: &Caller,
        mut plan: impl FnMut() -> Result<Plan<T>, Error>,
    ) -> Result<T, Error>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        let answer = idempotency::Slot::new(caller);
        for _ in 0..ATTEMPTS {
            if let Some(slot) = &answer
                && let Some(answer) = slot.answered(&self.inner.store)?
            {
                return Ok(answer);
            }
            let planned = match plan() {
                Ok(planned) => planned,
                Err(refused) => {
                    // An earlier call under this name may have committed between the reads of
                    // the answers and of the state.
                    let answer = answer.as_ref().map(|slot| slot.answered(&self.inner.store));
                    return answer.transpose()?.flatten().ok_or(refused);
                }
            };
            let (mut batch, event, outcome) = match planned {
                // The answer to a named call is remembered though it changed nothing: by the
                // time of its repeat it would change something.
                Plan::Done(outcome) if answer.is_none() => return Ok(outcome),
                Plan::Write(_, _, outcome) | Plan::Quiet(_, outcome) if caller.is_dry_run => {
                    return Ok(outcome);
                }
                Plan::Done(outcome) => (Batch::new(), None, outcome),
                Plan::Write(batch, event, outcome) => (batch, Some(event), outcome),
                Plan::Quiet(batch, outcome) => (batch, None, outcome),
            };
            if let Some(event) = &event {
                batch.event(event.clone());
            }
            if let Some(slot) = &answer {
                slot.remember(
                    &self.inner.store,
                    &mut batch,
                    &outcome,
                    self.inner.clock.now(),
                )?;
            }
            match self.inner.store.commit(batch).await {
                Ok(revision) => {
                    if let Some(event) = event {
                        outcome::log(revision, &event);
                    }
                    return Ok(outcome);
                }
                // Another write changed what this plan had read: it is made again from the
                // current state.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Contention)
    }

    /// Locks a skill, so that its writers queue up instead of retrying.
    async fn lock(&self, key: &SkillKey) -> MutexGuard<'_, ()> {
        // Skills share locks by their hash: a map by id would grow with every id that a caller
        // makes up.
        let hash =
            usize::try_from(self.inner.hasher.hash_one(key) % LOCK_COUNT as u64).unwrap_or(0);
        #[expect(clippy::indexing_slicing, reason = "a remainder of the length")]
        self.inner.locks[hash].lock().await
    }

    /// Reads the stored head of a skill, also a deleted one, with its revision.
    fn stored_head(&self, key: &SkillKey) -> Result<Option<store::Stored<Head>>, Error> {
        let mut stored = self.inner.store.get(&HEADS, key)?;
        // The catalog may be older than the head: a caller that depends on a withdrawal reads
        // its record.
        if let Some(stored) = &mut stored {
            renew::renew_from(&self.inner.store, &mut stored.value);
            if let Some(known) = self.inner.catalog.load().get(key) {
                stored.value.withdrawn = known.withdrawn.clone();
                stored.value.held = known.held.clone();
            }
            stored.value.set_tier(&self.inner.policy.tiers);
        }
        Ok(stored)
    }
}
