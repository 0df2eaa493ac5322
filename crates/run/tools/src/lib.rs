//! The tools that skills unlock: sessions, the gate, and what makes tools run.
//!
//! Rules:
//!
//! * A skill declares tools; only a [`Handler`] makes one run. Nothing of a
//!   skill is ever executed, and no command line is taken from one.
//! * The skills that an agent has loaded are held here, under a handle that nobody can
//!   guess. A tool is called only where its skill is loaded, as it was loaded.
//! * Every call leaves a record, however it ends.
//! * Handlers have their connections and secrets from the operator's settings,
//!   never from a skill or a caller.
//!
//! Not here: which patterns a set of skills permits (`composition`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod arguments;
mod error;
mod found_tool;
mod gate;
pub mod host;
mod journal;
mod level;
mod list;
mod load;
mod pages;
mod quota;
mod recorded;
mod session;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use jiff::SignedDuration;
use jsonschema::Validator;

pub use arguments::ArgumentProblem;
pub use error::Error;
pub use gate::{Called, LOAD_DETAILS, ToolCall, Verdict};
pub use journal::{CallPage, CallRecord};
pub use list::{ListedTool, ToolQuery};
pub use load::{Detail, Load, LoadedSkill, LoadedStatus, SessionPage, SessionSkill};
pub use session::Loaded;
pub use view::{FileView, View, Viewed};

use composition::Composition;
use handler::{Handler, Invocation, LOAD_CORE, Output, Progress, ToolError, Work};
use lookup::Lookup;
use model::{Clock, Digest, Principal, SkillId};
use registry::{Head, Registry};
use store::{CommitError, Store, StoreError};

/// Bounds of sessions and tools.
#[derive(Debug, Clone)]
pub struct ToolsOptions {
    /// How long after its last use a session ends.
    pub session_idle: SignedDuration,
    /// Sessions at most; beyond that the one unused for longest ends.
    pub sessions: usize,
    /// Share of one caller that signed in, in percent; beyond that its own oldest sessions end.
    pub share_percent: u8,
    /// Calls of one session in work at once.
    pub calls_per_session: usize,
    /// Bytes that a result may have.
    pub result_bytes: usize,
    /// Calls over which the list of calls reaches back.
    pub keep_calls: u64,
    /// Skills whose tools are listed in addition to those that handlers serve.
    pub skills: Vec<SkillId>,
}

/// Bytes that sessions take in memory at most, about.
const SESSION_BYTES: usize = 256 * 1024 * 1024;
/// Bytes of instructions that are cached in memory.
const BODY_BYTES: u64 = 16 * 1024 * 1024;

/// Sessions, and the tools that are called in them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tools {
    inner: Arc<Inner>,
    registry: Registry,
    lookup: Lookup,
    composition: Composition,
}

type Bodies = quick_cache::sync::Cache<Digest, Arc<str>, BodyWeight>;
type Validators = quick_cache::sync::Cache<(Digest, String), Arc<Validator>>;

struct Inner {
    clock: Arc<dyn Clock>,
    options: ToolsOptions,
    sessions: session::Sessions,
    journal: journal::Journal,
    quota: quota::Quota,
    handlers: Vec<Arc<dyn Handler>>,
    /// Instructions, by the digest of the version.
    bodies: Bodies,
    validators: Validators,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools")
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

/// Bytes that instructions take in memory.
#[derive(Debug, Clone)]
struct BodyWeight;

impl quick_cache::Weighter<Digest, Arc<str>> for BodyWeight {
    fn weight(&self, _: &Digest, body: &Arc<str>) -> u64 {
        100 + body.len() as u64
    }
}

impl Tools {
    /// Tools of a registry's skills; sessions and records of calls are in the store. Of the handlers that serve a method, the
    /// first is called.
    ///
    /// # Errors
    /// Stored sessions or records of calls cannot be read.
    pub fn open(
        store: Store,
        registry: Registry,
        composition: Composition,
        clock: Arc<dyn Clock>,
        handlers: Vec<Arc<dyn Handler>>,
        options: ToolsOptions,
    ) -> Result<Self, StoreError> {
        let bounds = session::Bounds {
            idle: options.session_idle,
            sessions: options.sessions.max(1),
            bytes: SESSION_BYTES,
            share_percent: options.share_percent,
        };
        Ok(Self {
            lookup: Lookup::new(registry.clone()),
            registry,
            composition,
            inner: Arc::new(Inner {
                sessions: session::Sessions::open(store.clone(), Arc::clone(&clock), bounds)?,
                journal: journal::Journal::open(store, options.keep_calls)?,
                quota: quota::Quota::new(options.calls_per_session),
                bodies: Bodies::with_weighter(1_000, BODY_BYTES, BodyWeight),
                validators: Validators::new(2_000),
                clock,
                options,
                handlers,
            }),
        })
    }

    /// The same sessions, handlers and records, with the skills of another registry: that of
    /// a caller who has some of their own in front.
    #[must_use]
    pub fn with_skills(&self, registry: Registry, composition: Composition) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            lookup: Lookup::new(registry.clone()),
            registry,
            composition,
        }
    }

    /// The composition that decides what a set of skills permits.
    #[must_use]
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// Sessions that are open.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.inner.sessions.len()
    }

    /// Waits until a session or a record of a call waits to be written. One caller at a time.
    pub async fn pending(&self) {
        tokio::select! {
            () = self.inner.sessions.pending.notified() => {}
            () = self.inner.journal.pending.notified() => {}
        }
    }

    /// Writes sessions and records of calls that changed, and ends sessions that have run out.
    /// One caller at a time: called soon after a change, now and then, and before the server
    /// stops.
    ///
    /// # Errors
    /// The store refuses; what was not written waits for the next time.
    pub async fn write(&self) -> Result<(), CommitError> {
        self.inner.sessions.write().await?;
        self.inner.journal.write().await
    }

    /// Calls that were made, newest first.
    ///
    /// # Errors
    /// The token is none of ours, or the store cannot be read.
    pub fn calls(&self, limit: usize, token: &str) -> Result<CallPage, Error> {
        self.inner.journal.list(limit, token)
    }

    /// Skills whose tools are known without a session.
    fn served(&self) -> Vec<Arc<Head>> {
        let catalog = self.registry.catalog();
        let mut ids: Vec<SkillId> = self
            .inner
            .handlers
            .iter()
            .flat_map(|handler| handler.skills())
            .chain(self.inner.options.skills.iter().cloned())
            .collect();
        ids.sort_by_key(SkillId::key);
        ids.dedup_by_key(|id| id.key());
        let heads = ids.iter().filter_map(|id| catalog.get(&id.key()).cloned());
        heads.collect()
    }
}

impl Inner {
    fn handler(&self, skill: &SkillId, method: &str) -> Option<&Arc<dyn Handler>> {
        self.handlers
            .iter()
            .find(|handler| handler.serves(skill, method))
    }
}

/// Shortens a caller's text for messages and records.
fn shown(text: &str) -> String {
    model::shown(text, 64)
}

/// The key by which a handler knows a call again, which nobody but its caller can repeat.
fn idempotency_key(id: &str, given: &str, caller: &Principal) -> String {
    match caller.namespace() {
        _ if given.is_empty() => id.to_owned(),
        Some(namespace) => format!("{namespace}/{given}"),
        None => given.to_owned(),
    }
}
