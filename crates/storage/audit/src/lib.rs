//! The audit trail: who did what, by which call, from where, and what came of it.
//!
//! Rules:
//!
//! * **One record each** for a call that changes something or calls a tool, however it ended;
//!   for a refusal of a caller who is known; for each start and stop of a server. Which calls
//!   these are, the contract says (`server` asks it once for all faces).
//! * **A chain.** Records are appended to the chain of the store (`store::chain`): one that was
//!   changed, removed or moved is detected ([`verify()`]). The body of a record is the canonical
//!   encoding: JSON with its fields in one order, and without those that are empty.
//! * **A write and its record are durable together.** The record goes with the first batch
//!   that the call commits ([`store::with_attached`]), and costs no write of its own. A call that
//!   committed nothing has its record appended before it is answered.
//! * **What changes nothing need not wait**: calls of tools and refusals wait in a queue with a
//!   limit. What does not fit is counted, and the count becomes a record.
//! * **Refusals cannot push out the records of others.** Refusals of anonymous callers, and
//!   those of one caller beyond a number in an hour, are counted by caller, origin and reason; a
//!   few records an hour hold the counts.
//! * No secret and no argument is in a record: only the names of what a call was done to.
//! * Old records are pruned by age and number. The chain then starts after the last of them, and
//!   a record names it.
//!
//! Not here: which calls are recorded (the contract), who calls (`tokens`), the list of tool
//! calls for the users of agents (`tools`), the log of the server.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod call;
mod error;
mod event;
mod list;
mod pending_events;
mod retention;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::watch;

pub use call::{Call, Noted, Rpc, found_as};
pub use error::Error;
pub use event::{Entry, Event, EventKind, LEFT_OUT};
pub use list::{Filter, Follow, Page};
pub use verify::{Verified, verify};

use access::{Access, Origin};
use model::{Clock, Code, Digest, Principal};
use pending_events::PendingEvents;
use retention::Retention;
use store::{Batch, CommitError, Revision, Store, StoreError, Table, TableId};

/// Facts about the trail as a whole.
const STATE: Table<str, String> = Table::new(TableId::AuditState);
/// The log that the trail belongs to: a store that was restored has another.
const LOG: &str = "log";
/// The secret that keys digests of config files: these may hold secrets that could be guessed.
const KEY: &str = "key";
/// Records in one write.
const RECORDS_PER_WRITE: usize = 256;

/// The retention of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Days.
    pub keep_days: u64,
    /// The maximum number: beyond it the oldest are pruned before their time.
    pub max_records: u64,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            keep_days: 400,
            max_records: 1_000_000,
        }
    }
}

/// The audit trail of a store. Cheap to clone.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    config: AuditConfig,
    waiting: Mutex<PendingEvents>,
    /// Notified of each record that waits.
    pending: tokio::sync::Notify,
    /// Held by the one write at a time.
    writing: tokio::sync::Mutex<Retention>,
    /// Changes with each durable record, whichever writer it is from.
    appended: watch::Receiver<Revision>,
    /// A server has recorded its start.
    serves: AtomicBool,
    /// A write of a full queue is in progress.
    writes: AtomicBool,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Audit {
    /// The trail of a store. A writer calls [`Audit::resume`] first.
    #[must_use]
    pub fn new(store: Store, config: AuditConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            appended: store.watch_table(TableId::Audit),
            store,
            clock,
            config,
            waiting: Mutex::default(),
            pending: tokio::sync::Notify::new(),
            writing: tokio::sync::Mutex::default(),
            serves: AtomicBool::new(false),
            writes: AtomicBool::new(false),
        }))
    }

    fn waiting(&self) -> MutexGuard<'_, PendingEvents> {
        let waiting = self.0.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues where the trail ends. In a store that was restored from a backup, or salvaged,
    /// it records that, with the records that are missing.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn resume(&self) -> Result<(), Error> {
        let store = &self.0.store;
        let last = store.links_back(0, u64::MAX).next();
        // A trail whose last record cannot be read loses none by its age.
        let last = last.map(|link| link.and_then(|link| Self::read(&link)));
        let last = last.map(|entry| entry.map_or(Timestamp::UNIX_EPOCH, |entry| entry.event.at));
        self.0.writing.lock().await.begin(last);
        let known = store.get(&STATE, LOG)?;
        let (revision, known) = known.map(|known| (known.revision, known.value)).unzip();
        // A restore or a salvage gives the log another identity: only then the trail may have
        // lost its end.
        if known.as_deref() == Some(store.log_id()) {
            return Ok(());
        }
        let mut batch = Batch::new();
        batch.expect(&STATE, LOG, revision.into());
        batch.put(&STATE, LOG, &store.log_id().to_owned());
        if store.get(&STATE, KEY)?.is_none() {
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(|error| Error::Fault(error.to_string()))?;
            batch.put(&STATE, KEY, &Digest::from(key).hex());
        }
        let is_empty = store.links(0, u64::MAX).next().is_none();
        if !is_empty || store.chain_start()?.number > 0 {
            let read = store.clone();
            // Start-up: once, before any call.
            let found = tokio::task::spawn_blocking(move || verify(&read));
            let found = found
                .await
                .map_err(|error| Error::Fault(error.to_string()))?;
            // In one commit: only the stored end shows that records after the last are missing,
            // so it goes with the record that names them.
            batch.forget_end();
            let mut event = Event::new(self.0.clock.now(), EventKind::Restored);
            event.details = found.missing_details();
            batch.append(event.encode());
        }
        store.commit(batch).await?;
        Ok(())
    }

    /// Records that a server starts: its version, and the digest of its config file.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn started(&self, version: &str, config: Option<Digest>) -> Result<(), CommitError> {
        let mut event = Event::new(self.0.clock.now(), EventKind::Start);
        let version = ("version".to_owned(), version.to_owned());
        let config = self.config_detail(config)?;
        event.details = std::iter::once(version).chain(config).collect();
        self.append(&event).await?;
        self.0.serves.store(true, Ordering::Release);
        Ok(())
    }

    /// Records that a server has read its config file again.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn reloaded(&self, config: Option<Digest>) -> Result<(), CommitError> {
        let mut event = Event::new(self.0.clock.now(), EventKind::Reload);
        event.details = self.config_detail(config)?.into_iter().collect();
        self.append(&event).await
    }

    /// Returns the digest of a config file as a detail. It is keyed, so that a reader of the
    /// trail cannot try out what a short secret in the file may have been.
    fn config_detail(
        &self,
        config: Option<Digest>,
    ) -> Result<Option<(String, String)>, CommitError> {
        let key = self.0.store.get(&STATE, KEY)?.map(|key| key.value);
        let keyed = |digest: Digest| {
            let key = key.unwrap_or_default();
            Digest::of(&[key.as_bytes(), digest.as_bytes()].concat())
        };
        Ok(config.map(|digest| ("config".to_owned(), keyed(digest).to_string())))
    }

    /// Writes the whole queue and, for a server, the record of its stop.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn close(&self) -> Result<(), CommitError> {
        let now = self.0.clock.now();
        self.waiting().summarize(now, true);
        if self.0.serves.swap(false, Ordering::AcqRel) {
            self.waiting().push(Event::new(now, EventKind::Stop));
        }
        self.write().await
    }

    /// Begins the record of a call.
    pub fn begin(&self, rpc: &Arc<Rpc>, access: &Access, headers: &HeaderMap) -> Call {
        Call::begin(self, rpc, access, headers)
    }

    /// Records that a call was refused because of its caller.
    pub fn refused(&self, rpc: &Rpc, access: &Access, headers: &HeaderMap, code: Code) {
        let event = call::event(self.0.clock.now(), rpc, access, headers);
        self.failed(Event {
            outcome: code.name().to_owned(),
            ..event
        });
    }

    /// Records that a request was refused before its rpc was known; `caller` is anonymous where
    /// that was not known either.
    pub fn refused_early(&self, caller: &Principal, origin: Origin, code: Code) {
        let mut event = Event::new(self.0.clock.now(), EventKind::Call);
        event.came_from(caller, origin);
        code.name().clone_into(&mut event.outcome);
        self.failed(event);
    }

    /// Records or counts a call that failed.
    fn failed(&self, event: Event) {
        self.waiting().failed(event);
        self.write_soon();
    }

    /// Queues a record that need not be durable before an answer.
    fn push(&self, event: Event) {
        self.waiting().push(event);
        self.write_soon();
    }

    /// Waits until a record waits to be written. One caller at a time.
    pub async fn pending(&self) {
        self.0.pending.notified().await;
    }

    /// Writes a queue that grows full without waiting for the next periodic write: a command
    /// that publishes thousands of skills has no periodic write.
    fn write_soon(&self) {
        self.0.pending.notify_one();
        if !self.waiting().are_due() || self.0.writes.swap(true, Ordering::AcqRel) {
            return;
        }
        let audit = self.clone();
        let write = async move {
            // What is not written stays queued, and the next writer gets the error.
            let _waits = audit.write().await;
            audit.0.writes.store(false, Ordering::Release);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(write)),
            Err(_none) => self.0.writes.store(false, Ordering::Release),
        }
    }

    async fn append(&self, event: &Event) -> Result<(), CommitError> {
        let mut batch = Batch::new();
        batch.append(event.encode());
        self.0.store.commit(batch).await?;
        Ok(())
    }

    /// Writes the queue, and prunes what is too old.
    ///
    /// # Errors
    /// The store refuses; what was not written stays queued.
    pub async fn write(&self) -> Result<(), CommitError> {
        let mut retention = self.0.writing.lock().await;
        self.waiting().summarize(self.0.clock.now(), false);
        loop {
            let (bodies, records, lost) = {
                let waiting = self.waiting();
                let (records, lost) = waiting.next(RECORDS_PER_WRITE);
                let mut bodies: Vec<_> = records.map(Event::encode).collect();
                let count = bodies.len();
                if lost > 0 {
                    let mut event = Event::new(self.0.clock.now(), EventKind::Lost);
                    event.count = lost;
                    bodies.push(event.encode());
                }
                (bodies, count, lost)
            };
            if bodies.is_empty() {
                break;
            }
            let mut batch = Batch::new();
            for body in bodies {
                batch.append(body);
            }
            self.0.store.commit(batch).await?;
            // Removed only now, so a failed commit loses none. New records join at the end, and
            // only this task removes any.
            self.waiting().written(records, lost);
        }
        self.prune(&mut retention).await
    }

    fn read(link: &store::Link) -> Result<Entry, StoreError> {
        let event = Event::decode(link)?;
        Ok(Entry {
            number: link.mark.number,
            digest: link.mark.digest,
            event,
        })
    }
}

/// Facts of a record, by name.
type Details = BTreeMap<String, String>;
