//! Skills and their versions: publishing, activating, withdrawing, deleting.
//!
//! Rules:
//!
//! * A version never changes and its number is never used again, not even after
//!   a delete. Numbers are given in the transaction that writes the version.
//! * One active version a skill; it is what the skill's name resolves to.
//! * Publishing the same bytes again is the version that has them; the same
//!   semantic version with other bytes is refused.
//! * Every write reads the head of its skill and commits only if the head is
//!   still what it read; otherwise it starts over. The lock of a skill only saves
//!   needless starting over: nothing here relies on being the only writer.
//! * Heads are also kept in memory, as the [`Catalog`]: an immutable snapshot that
//!   follows the log, whoever writes to it. A writer finds its own write there.
//!
//! Not here: names and addresses (`lookup`), reading `SKILL.md` (`skill_md`),
//! composition, wire formats.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod catalog;
mod delete;
mod diff;
mod error;
mod export;
mod follow;
mod head;
mod idempotency;
mod lines;
mod names;
mod outcome;
mod publish;
mod repair;
mod submit;
#[cfg(test)]
mod tests;
mod usage;
mod verify;
mod versions;
mod watch;
mod yanks;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch::Receiver;
use tokio::sync::{Mutex, MutexGuard};

pub use catalog::{Catalog, Facet};
pub use delete::Deleted;
pub use diff::{Change, ChangeKind, FieldChange, FileChange, Lines, VersionDiff};
pub use error::Error;
use executor::{Executor, Kind};
pub use export::{Archive, ArchiveFormat, ExportQuery};
pub use head::{Head, Summary};
pub use idempotency::{Caller, NamedWrite};
use model::{
    Clock, Digest, Event, FileEntry, SkillId, SkillKey, Version, VersionNumber, VersionSelector,
};
pub use names::Names;
pub use outcome::VersionState;
pub use publish::{Bundle, Candidate, Outcome, Prepared, Published};
pub use repair::Repaired;
pub use store::Compacted;
use store::{Batch, CommitError, LogPosition, Mode, Store, StoreError, Table, TableId};
pub use submit::{Submission, Submitted, Upload};
pub use usage::{SkillUsage, UsageKind, VersionUsage};
pub use verify::Audit;
pub use versions::{Activated, Described, Release, VersionPage, Withdrawn};
pub use watch::{Step, Watch, WatchFilter};

const HEADS: Table<SkillKey, Head> = Table::new(TableId::Heads);
const VERSIONS: Table<(SkillKey, VersionNumber), Version> = Table::new(TableId::Versions);
const SEMANTICS: Table<(SkillKey, String), head::SemanticEntry> = Table::new(TableId::Semantics);
const DIGESTS: Table<(SkillKey, Digest), VersionNumber> = Table::new(TableId::Digests);

/// How often a write starts over before it gives up.
const ATTEMPTS: usize = 100;
/// Locks over which the skills are spread.
const LOCKS: usize = 256;
/// Bytes of versions kept decoded in memory.
const VERSION_CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// Bytes that a version takes in memory, about.
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
}

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    executor: Executor,
    catalog: Arc<ArcSwap<Catalog>>,
    versions: VersionCache,
    usage: usage::Usage,
    locks: Vec<Mutex<()>>,
    hasher: RandomState,
    names: Names,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

/// What a write comes to, before it is committed.
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once, never kept"
)]
enum Plan<T> {
    /// Nothing needs to be written.
    Done(T),
    /// This batch makes it so, and this is what happened.
    Write(Batch, Event, T),
}

impl Registry {
    /// Reads the heads of all skills into memory. Work runs in an executor of the fewest
    /// permits.
    ///
    /// # Errors
    /// A head is damaged, or the store cannot be read.
    pub fn open(store: Store, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::open_with(store, clock, Executor::default(), Names::default())
    }

    /// The same with another executor, and with names that not everybody may give.
    ///
    /// # Errors
    /// A head is damaged, or the store cannot be read.
    pub fn open_with(
        store: Store,
        clock: Arc<dyn Clock>,
        executor: Executor,
        names: Names,
    ) -> Result<Self, Error> {
        let catalog = follow::catalog(&store, names.is_shared())?;
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                clock,
                executor,
                catalog,
                versions: VersionCache::with_weighter(10_000, VERSION_CACHE_BYTES, VersionWeight),
                usage: usage::Usage::default(),
                locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
                hasher: RandomState::new(),
                names,
            }),
        })
    }

    #[cfg(test)]
    fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Where the log begins and ends, now and whenever that changes.
    #[must_use]
    pub fn log(&self) -> Receiver<LogPosition> {
        self.inner.store.position()
    }

    /// Which log it is: another one after a restore.
    #[must_use]
    pub fn log_id(&self) -> &str {
        self.inner.store.log_id()
    }

    /// Whether writes are taken, now and whenever that changes.
    #[must_use]
    pub fn mode(&self) -> Receiver<Mode> {
        self.inner.store.mode()
    }

    /// Closes the store: what is acknowledged is on disk, and nothing more is written.
    pub async fn close(&self) {
        self.inner.store.close().await;
    }

    /// Where work runs that takes long or blocks.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    /// All skills as they are now. The snapshot does not change any more.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog.load_full()
    }

    /// The head of a skill that exists, whether or not a version is active.
    ///
    /// # Errors
    /// There is no such skill.
    pub fn head(&self, id: &SkillId) -> Result<Arc<Head>, Error> {
        self.inner
            .catalog
            .load()
            .get(&id.key())
            .cloned()
            .ok_or_else(|| Error::SkillNotFound {
                reference: id.to_string(),
            })
    }

    /// A version of a skill.
    ///
    /// # Errors
    /// There is no such version, or none is active, or its record is damaged.
    pub fn version(&self, head: &Head, selector: &VersionSelector) -> Result<Arc<Version>, Error> {
        let not_found = || Error::VersionNotFound {
            id: head.id.clone(),
            version: selector.clone(),
        };
        let key = head.id.key();
        let number = match selector {
            VersionSelector::Active => head.active.ok_or_else(|| Error::none_active(head))?,
            VersionSelector::Number(number) => *number,
            VersionSelector::Semantic(version) => {
                let entry = self
                    .inner
                    .store
                    .get(&SEMANTICS, &(key.clone(), version.to_string()))?;
                entry.ok_or_else(not_found)?.value.number
            }
        };
        if !(head.first_number..=head.last_number).contains(&number) {
            return Err(not_found());
        }
        let key = (key, number);
        if let Some(version) = self.inner.versions.get(&key) {
            return Ok(version);
        }
        let version = self
            .inner
            .store
            .get(&VERSIONS, &key)?
            .ok_or_else(not_found)?;
        let version = Arc::new(version.value);
        self.inner.versions.insert(key, Arc::clone(&version));
        Ok(version)
    }

    /// The bytes of a file of a version, checked against its digest. Blocks.
    ///
    /// # Errors
    /// The content is damaged.
    pub fn content(&self, file: &FileEntry) -> Result<bytes::Bytes, Error> {
        let content = self.inner.store.content(&file.digest)?;
        content.ok_or_else(|| Error::missing(&file.digest))
    }

    /// The same, off the async threads, once the answer that it is for has room for it.
    ///
    /// # Errors
    /// The version has no such file, or its content is damaged; there is no room.
    pub async fn file(
        &self,
        id: &SkillId,
        version: &Version,
        path: &str,
    ) -> Result<bytes::Bytes, Error> {
        let entry = version.file(path).ok_or_else(|| Error::FileNotFound {
            id: id.clone(),
            version: version.number,
            path: path.to_owned(),
        })?;
        let (this, entry) = (self.clone(), entry.clone());
        admission::reserve(entry.size).await?;
        let read = move |_: &_| this.content(&entry);
        let read = self.executor().run_fallible(Kind::Read, read).await;
        read.map_err(|error| self.gone(id, version.number, error))
    }

    /// A content of a version may be missing because the skill was deleted, and the store
    /// compacted, since the version was read: then that is the error.
    fn gone(&self, id: &SkillId, number: VersionNumber, error: Error) -> Error {
        let is_missing = matches!(error, Error::Store(StoreError::Damaged { .. }));
        let stored = |key| self.inner.store.get(&VERSIONS, &key);
        if is_missing && matches!(stored((id.key(), number)), Ok(None)) {
            return Error::VersionNotFound {
                id: id.clone(),
                version: VersionSelector::Number(number),
            };
        }
        error
    }

    /// Makes a plan of what is there now and commits it, starting over where
    /// another write came between.
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
                    // An earlier call under this name may have been done between
                    // the look at the answers and the look at the state.
                    let answer = answer.as_ref().map(|slot| slot.answered(&self.inner.store));
                    return answer.transpose()?.flatten().ok_or(refused);
                }
            };
            let (mut batch, event, outcome) = match planned {
                Plan::Done(outcome) if answer.is_none() => return Ok(outcome),
                Plan::Done(outcome) => (Batch::new(), None, outcome),
                Plan::Write(batch, event, outcome) => (batch, Some(event), outcome),
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
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Contention)
    }

    /// Holds the lock of a skill, so that writers of one skill queue up instead of
    /// starting over.
    async fn lock(&self, key: &SkillKey) -> MutexGuard<'_, ()> {
        let hash = usize::try_from(self.inner.hasher.hash_one(key) % LOCKS as u64).unwrap_or(0);
        #[expect(clippy::indexing_slicing, reason = "a remainder of the length")]
        self.inner.locks[hash].lock().await
    }

    /// The head of a skill as stored, with its revision. Deleted heads too.
    fn stored_head(&self, key: &SkillKey) -> Result<Option<store::Stored<Head>>, Error> {
        let mut stored = self.inner.store.get(&HEADS, key)?;
        // What the catalog has may be older: whoever depends on a version being withdrawn
        // looks at its record.
        if let Some(stored) = &mut stored
            && let Some(known) = self.inner.catalog.load().get(key)
        {
            stored.value.withdrawn = known.withdrawn.clone();
        }
        Ok(stored)
    }
}

/// Adds the new head to a batch. The catalog has it when it has the event of the batch.
fn put_head(batch: &mut Batch, revision: Option<u64>, mut head: Head) {
    let key = head.id.key();
    batch.expect(&HEADS, &key, revision.into());
    yanks::move_out(batch, &mut head);
    batch.put(&HEADS, &key, &head);
}
