//! The durable records, for readers.
//!
//! sled shows a batch to every reader as soon as it is applied. A reader that acted on
//! it could acknowledge what a crash then takes back. So the committer hands over the
//! *before-image* of every record that a group changes, and until the group is durable
//! readers see those. A read never waits for a write, and a disk that stalls stalls the
//! writers alone. Nothing of the database is held between two pages of a scan.
//!
//! A reader reads sled first and the before-images then. The committer shows them before it
//! applies the group, and takes them away when the group is durable: so what was read and has no
//! before-image is durable.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use sled::IVec;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

use super::backend::{Order, Page, Records};
use super::engine::Engine;
use super::follow::ChangedKeys;
use super::snapshot::Snapshot;
use super::{Options, Revision, StoreError, guarded, locked};

/// Records as they were before a group; none: there was none.
pub(super) type Before = BTreeMap<Vec<u8>, Option<IVec>>;

const READERS_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum number of checks whether readers still hold a database that is to be closed.
// The old handle has to be the last one: sled closes its file when that is dropped.
const MAX_READERS_CHECKS: u32 = 1000;
/// Tasks that may wait at once for a database that is opened again: each takes a thread.
pub(super) const MAX_WAITING_TASKS: usize = 64;

#[derive(Debug, Default)]
struct Durable {
    revision: Revision,
    snapshots: Vec<Weak<Snapshot>>,
    /// The keys that changed since a compaction began.
    changes: Option<ChangedKeys>,
}

/// The durable records.
#[derive(Debug)]
pub(super) struct View {
    /// The database; none while it is opened again.
    engine: ArcSwapOption<Engine>,
    in_flight: ArcSwap<Before>,
    durable: Mutex<Durable>,
    /// The time of its failure, until it is open again.
    failed: Mutex<Option<Instant>>,
    opened: Condvar,
    patience: Duration,
    /// Permits of tasks that wait for it.
    permits: Semaphore,
    /// See [`Options`].
    backup_bytes: usize,
    compaction_bytes: usize,
}

impl View {
    /// Reads that need a database that is opened again wait for a while, counted from
    /// the failure; then they fail at once.
    pub(super) fn new(engine: Engine, revision: Revision, options: &Options) -> Self {
        Self {
            engine: ArcSwapOption::from_pointee(engine),
            in_flight: ArcSwap::default(),
            durable: Mutex::new(Durable {
                revision,
                ..Durable::default()
            }),
            failed: Mutex::new(None),
            opened: Condvar::new(),
            patience: options.reopen_patience,
            permits: Semaphore::new(MAX_WAITING_TASKS),
            backup_bytes: options.backup_bytes,
            compaction_bytes: options.compaction_bytes,
        }
    }

    /// Returns the database. The answer must not be held for long: a reopening waits for it.
    pub(super) fn engine(&self) -> Result<Arc<Engine>, StoreError> {
        match self.engine.load_full() {
            Some(engine) => Ok(engine),
            None => self.opened_again(None)?.ok_or(StoreError::Reopening),
        }
    }

    /// The database that takes the place of the one that was tried, or of none. None: it has
    /// not failed, so there will be no other. An error: that takes too long, or too many tasks
    /// wait for it.
    fn opened_again(
        &self,
        tried: Option<&Weak<Engine>>,
    ) -> Result<Option<Arc<Engine>>, StoreError> {
        // Read before the database: one that is opened between the two reads is found by the
        // second.
        let has_failed = locked(&self.failed).is_some();
        let found = self.other_than(tried);
        if found.is_some() || !has_failed {
            return Ok(found);
        }
        let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        // `block_in_place` panics on a runtime of one thread; outside of a runtime a thread may
        // block as it is.
        if !matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
            return self.wait(tried);
        }
        // Many callers read on the threads of the runtime, which must not all wait here.
        let permit = self.permits.try_acquire();
        let _permit = permit.map_err(|_| StoreError::Reopening)?;
        tokio::task::block_in_place(|| self.wait(tried))
    }

    fn other_than(&self, tried: Option<&Weak<Engine>>) -> Option<Arc<Engine>> {
        let found = self.engine.load_full();
        // By address, which is safe: the weak reference keeps the memory of the old one from
        // being used for another.
        found.filter(|found| tried.is_none_or(|tried| tried.as_ptr() != Arc::as_ptr(found)))
    }

    /// Waits for a database other than the one that was tried.
    fn wait(&self, tried: Option<&Weak<Engine>>) -> Result<Option<Arc<Engine>>, StoreError> {
        let mut failed = locked(&self.failed);
        loop {
            let found = self.other_than(tried);
            let Some(since) = failed.filter(|_| found.is_none()) else {
                return Ok(found);
            };
            let left = self.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(StoreError::Reopening);
            }
            failed = self
                .opened
                .wait_timeout(failed, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Reads from the database; once more where it has failed and was opened again.
    pub(super) fn read<T>(
        &self,
        read: impl Fn(&sled::Tree) -> sled::Result<T>,
    ) -> Result<T, StoreError> {
        let engine = self.engine.load();
        let Some(open) = engine.as_ref() else {
            drop(engine);
            let engine = self.engine()?;
            return guarded(|| read(&engine.tree));
        };
        let error = match guarded(|| read(&open.tree)) {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        // It is not held here meanwhile, since it is to be closed.
        let tried = Arc::downgrade(open);
        drop(engine);
        match self.opened_again(Some(&tried))? {
            Some(engine) => guarded(|| read(&engine.tree)),
            None => Err(error),
        }
    }

    /// Shows readers the before-images of a group, before it is applied.
    pub(super) fn begin(&self, before: Before) {
        let mut durable = locked(&self.durable);
        durable
            .snapshots
            .retain(|snapshot| snapshot.strong_count() > 0);
        for snapshot in durable.snapshots.iter().filter_map(Weak::upgrade) {
            snapshot.keep(&before);
        }
        // Still under the lock: a snapshot begins before this group or after it, never in
        // between.
        self.in_flight.store(Arc::new(before));
    }

    /// Ends a group that is durable, or was taken back.
    pub(super) fn settle(&self, revision: Revision) {
        let mut durable = locked(&self.durable);
        durable.revision = revision;
        let before = self.in_flight.swap(Arc::default());
        // Not earlier: a compaction that takes a key from there must read the group's record.
        if let Some(changes) = &mut durable.changes {
            changes.add(before.keys());
        }
    }

    /// Keeps the keys that are written from now on, until [`View::unfollow`]. False: they
    /// are kept for somebody else.
    pub(super) fn follow(&self) -> bool {
        let mut durable = locked(&self.durable);
        let is_free = durable.changes.is_none();
        durable
            .changes
            .get_or_insert_with(|| ChangedKeys::new(self.compaction_bytes));
        is_free
    }

    /// Returns the keys that changed since the last call.
    pub(super) fn changes(&self) -> ChangedKeys {
        let mut durable = locked(&self.durable);
        let none = || ChangedKeys::new(self.compaction_bytes);
        durable.changes.replace(none()).unwrap_or_else(none)
    }

    /// Returns whether [`View::changes`] would return at most `max` keys now.
    pub(super) fn changed_at_most(&self, max: usize) -> bool {
        let durable = locked(&self.durable);
        durable
            .changes
            .as_ref()
            .is_none_or(|changes| changes.fit(max))
    }

    pub(super) fn unfollow(&self) {
        locked(&self.durable).changes = None;
    }

    /// Returns the before-images of the group in flight, or of one that failed.
    pub(super) fn in_flight(&self) -> Arc<Before> {
        self.in_flight.load_full()
    }

    /// The records as they are now, whatever is written from now on.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        let mut durable = locked(&self.durable);
        let snapshot = Arc::new(Snapshot::new(durable.revision, self.backup_bytes));
        // sled may show the group in flight already: its before-images belong to the snapshot.
        snapshot.keep(&self.in_flight.load());
        durable.snapshots.push(Arc::downgrade(&snapshot));
        snapshot
    }

    /// The database has failed: it is opened again soon, and reads that it cannot answer
    /// wait for that.
    pub(super) fn fail(&self) {
        *locked(&self.failed) = Some(Instant::now());
    }

    /// Takes the database away, to open it again. False where readers do not let go of
    /// it.
    pub(super) fn close(&self) -> bool {
        let Some(old) = self.engine.swap(None) else {
            return true;
        };
        match close_when_unused(old) {
            Ok(()) => true,
            Err(old) => {
                // `failed` stays set: it is still the database that has failed.
                let _failed = locked(&self.failed);
                self.engine.store(Some(old));
                self.opened.notify_all();
                false
            }
        }
    }

    /// Puts a database that holds the same in the place of the one that there is, which
    /// reads that are under way still have. Nothing is written meanwhile.
    pub(super) fn replace(&self, engine: Engine) -> Option<Arc<Engine>> {
        self.engine.swap(Some(Arc::new(engine)))
    }

    /// Puts a database in the place of the one that there is, or was.
    pub(super) fn open(&self, engine: Engine) {
        let mut failed = locked(&self.failed);
        self.engine.store(Some(Arc::new(engine)));
        *failed = None;
        self.opened.notify_all();
    }
}

impl Records for View {
    fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        let value = self.read(|tree| tree.get(key));
        // Also where the database cannot be read: the before-image is in memory.
        match self.in_flight.load().get(key) {
            Some(before) => Ok(before.clone()),
            None => value,
        }
    }

    fn page(&self, range: &Range<Vec<u8>>, order: Order, limit: usize) -> Result<Page, StoreError> {
        if range.start >= range.end {
            return Ok(Page::default());
        }
        let mut page =
            self.read(|tree| Page::take(range, order, limit, tree.range(range.clone())))?;
        let in_flight = self.in_flight.load();
        let mut before = in_flight.range(page.covered.clone()).peekable();
        if before.peek().is_some() {
            let mut records: BTreeMap<IVec, IVec> = page.records.into_iter().collect();
            for (key, before) in before {
                match before {
                    Some(value) => records.insert(key.as_slice().into(), value.clone()),
                    None => records.remove(key.as_slice()),
                };
            }
            page.records = match order {
                Order::Ascending => records.into_iter().collect(),
                Order::Descending => records.into_iter().rev().collect(),
            };
        }
        Ok(page)
    }
}

/// Closes a database that no reader gets any more, once the last one is done.
pub(super) fn close_when_unused(old: Arc<Engine>) -> Result<(), Arc<Engine>> {
    for _ in 0..MAX_READERS_CHECKS {
        if Arc::strong_count(&old) == 1 {
            // sled writes what it has when its last handle is dropped, and may panic.
            let _closed = guarded(|| {
                drop(old);
                Ok(())
            });
            return Ok(());
        }
        std::thread::sleep(READERS_CHECK_INTERVAL);
    }
    Err(old)
}
