//! The audit trail: who did what, by which call, from where, and what came of it.
//!
//! Rules:
//!
//! * **One record each** for a call that changes something or calls a tool, however it ended;
//!   for a refusal of a caller who is known; for each start and stop of a server. Which calls
//!   these are, the contract says (`server` asks it once for all faces).
//! * **A chain.** Records are appended to the chain of the store (`store::chain`): one that was
//!   changed, removed or put elsewhere shows ([`verify()`]). The body of a record is the
//!   canonical encoding: JSON with its fields in one order, and without those that are empty.
//! * **A write and its record are durable together.** The record goes with the first batch
//!   that the call commits ([`store::with_attached`]), and costs no write of its own. A call that
//!   committed nothing has its record appended before it is answered.
//! * **What changes nothing need not wait**: calls of tools and refusals wait in a queue with a
//!   limit. What it has no place for is counted, and the count becomes a record.
//! * **Nobody pushes out the records of others by being refused.** Refusals of callers who do
//!   not say who they are, and those of one caller beyond some in an hour, are counted by who,
//!   where and why; some records an hour have the counts.
//! * No secret and no argument is in a record: what a call was done to, and nothing else of it.
//! * Old records are pruned by age and number. The chain then starts behind the last of them,
//!   and a record says which that was.
//!
//! Not here: which calls are recorded (the contract), who calls (`tokens`), the list of calls of
//! tools that agents' users look at (`tools`), the log of the server.

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
use serde::Deserialize;
use tokio::sync::watch;

pub use call::{Call, Noted, Rpc};
pub use error::Error;
pub use event::{Entry, Event, EventKind, LEFT_OUT};
pub use list::{Filter, Follow, Page};
pub use verify::{Verified, verify};

use access::{Access, Origin};
use model::{Clock, Code, Digest, Principal};
use pending_events::PendingEvents;
use retention::Retention;
use store::{Batch, CommitError, Store, StoreError, Table, TableId};

/// What is known of the trail as a whole.
const STATE: Table<str, String> = Table::new(TableId::AuditState);
/// The log that the trail belongs to: a store that was restored has another.
const LOG: &str = "log";
/// What the digest of a config file is keyed with: it may have secrets that could be guessed.
const KEY: &str = "key";
/// Records in one write.
const RECORDS_PER_WRITE: usize = 256;

/// How long records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Days.
    pub keep_days: u64,
    /// How many at most: the oldest are pruned before their time.
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
    /// Told of each record that waits.
    pending: tokio::sync::Notify,
    /// One write of what waits at a time.
    writing: tokio::sync::Mutex<Retention>,
    /// Changes with each record that is durable.
    appended: watch::Sender<u64>,
    /// A server has said that it starts.
    serves: AtomicBool,
    /// Many wait, and are being written.
    writes: AtomicBool,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Audit {
    /// The trail of a store. Whoever opens it to write calls [`Audit::resume`] before all else.
    #[must_use]
    pub fn new(store: Store, config: AuditConfig, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            config,
            waiting: Mutex::default(),
            pending: tokio::sync::Notify::new(),
            writing: tokio::sync::Mutex::default(),
            appended: watch::Sender::new(0),
            serves: AtomicBool::new(false),
            writes: AtomicBool::new(false),
        }))
    }

    fn waiting(&self) -> MutexGuard<'_, PendingEvents> {
        let waiting = self.0.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on where the trail ends. In a store that was restored from a backup, or salvaged, it
    /// says so, with the records that are missing.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn resume(&self) -> Result<(), Error> {
        let store = &self.0.store;
        let known = store.get(&STATE, LOG)?.map(|known| known.value);
        if known.as_deref() == Some(store.log_id()) {
            return Ok(());
        }
        let mut batch = Batch::new();
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
            // In one commit: the end is what tells that records after the last are missing.
            batch.forget_end();
            let mut event = Event::new(self.0.clock.now(), EventKind::Restored);
            event.details = found.missing_details();
            batch.append(event.encode());
        }
        store.commit(batch).await?;
        Ok(())
    }

    /// A server starts: its version, and the digest of the config file that it read.
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

    /// A server has read its config file again.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn reloaded(&self, config: Option<Digest>) -> Result<(), CommitError> {
        let mut event = Event::new(self.0.clock.now(), EventKind::Reload);
        event.details = self.config_detail(config)?.into_iter().collect();
        self.append(&event).await
    }

    /// The digest of a config file as it is told: nobody can try out what a short secret in it
    /// may have been.
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

    /// Writes all that waits and, of a server, that it stops.
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

    /// What a call of an rpc that is recorded leaves.
    pub fn begin(&self, rpc: &Arc<Rpc>, access: &Access, headers: &HeaderMap) -> Call {
        Call::begin(self, rpc, access, headers)
    }

    /// A call was refused because of who makes it.
    pub fn refused(&self, rpc: &Rpc, access: &Access, headers: &HeaderMap, code: Code) {
        let event = call::event(self.0.clock.now(), rpc, access, headers);
        self.failed(Event {
            outcome: code.name().to_owned(),
            ..event
        });
    }

    /// A request was refused before it was known which call it is; `caller` is anonymous where
    /// that was not known either.
    pub fn refused_early(&self, caller: &Principal, origin: Origin, code: Code) {
        let mut event = Event::new(self.0.clock.now(), EventKind::Call);
        event.came_from(caller, origin);
        code.name().clone_into(&mut event.outcome);
        self.failed(event);
    }

    /// A call that failed is recorded, or counted.
    fn failed(&self, event: Event) {
        self.waiting().failed(event);
        self.write_soon();
    }

    /// What need not be durable before an answer.
    fn push(&self, event: Event) {
        self.waiting().push(event);
        self.write_soon();
    }

    /// Waits until a record waits to be written. One caller at a time.
    pub async fn pending(&self) {
        self.0.pending.notified().await;
    }

    /// Has many that wait written, beside those who write now and then: a command that
    /// publishes thousands of skills has none of these.
    fn write_soon(&self) {
        self.0.pending.notify_one();
        if !self.waiting().are_many() || self.0.writes.swap(true, Ordering::AcqRel) {
            return;
        }
        let audit = self.clone();
        let write = async move {
            // What is not written waits, and whoever writes next is told why.
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
        self.grew();
        Ok(())
    }

    fn grew(&self) {
        self.0.appended.send_modify(|count| *count += 1);
    }

    /// Writes what waits, and prunes what is too old.
    ///
    /// # Errors
    /// The store refuses; what was not written waits for the next time.
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
            self.waiting().written(records, lost);
            self.grew();
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
