//! The record of a call, while the call is in work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use jiff::Timestamp;

use crate::error::unrecorded;
use crate::event::{LEFT_OUT, MAX_NAMES, name};
use crate::{Audit, Event, EventKind};
use access::{Access, Action};
use model::{Failure, Principal};
use store::{Attached, with_attached};

/// How a call ends that did what it was to do.
const OK: &str = "OK";
/// How a call ends whose caller left before.
const CANCELLED: &str = "CANCELLED";
/// A stream that goes on.
const STARTED: &str = "STARTED";
/// Items of a stream whose names wait for their outcomes, at most.
const MAX_ITEMS: usize = 1024;

/// The record has not gone with a write yet; it is on its way with one; it has gone.
const WAITING_STATE: u8 = 0;
const WRITING_STATE: u8 = 1;
const WRITTEN_STATE: u8 = 2;

/// An rpc, as records name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rpc {
    /// Such as `Registry.PublishSkill`.
    pub name: String,
    /// What its caller must be allowed to do.
    pub action: Option<Action>,
    /// The trail has each of its calls, not only those that are refused to who is known.
    pub is_recorded: bool,
}

/// What a call says of itself, before it is known how it ends.
pub(crate) fn event(at: Timestamp, rpc: &Rpc, access: &Access, headers: &HeaderMap) -> Event {
    let mut event = Event::new(at, EventKind::Call);
    event.came_from(&access.caller.principal, access.origin);
    event.rpc.clone_from(&rpc.name);
    event.action = rpc.action;
    event.trace = trace(headers).unwrap_or_default();
    event
}

/// The trace id of a W3C `traceparent`.
fn trace(headers: &HeaderMap) -> Option<String> {
    let parent = headers.get("traceparent")?.to_str().ok()?;
    let id = parent.split('-').nth(1)?;
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| id.to_ascii_lowercase())
}

/// What a message names, as far as a record has it.
#[derive(Debug, Clone, Default)]
struct Named {
    names: Vec<String>,
    /// Names beyond these.
    left_out: usize,
}

impl Named {
    fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = names.into_iter().filter(|text| !text.is_empty());
        Self {
            names: names.by_ref().take(MAX_NAMES).map(name).collect(),
            left_out: names.count(),
        }
    }

    /// The same with what was written first at its head.
    fn with(mut self, skill: &str) -> Self {
        self.names.retain(|name| name != skill);
        self.names.insert(0, skill.to_owned());
        if self.names.len() > MAX_NAMES {
            self.names.truncate(MAX_NAMES);
            // Of a request that names more than are kept, what is written is one of these: it
            // changes places with the last that was kept.
            self.left_out = self.left_out.max(1);
        }
        self
    }
}

struct Shared {
    audit: Audit,
    event: Event,
    named: Mutex<VecDeque<Named>>,
    state: AtomicU8,
}

impl Shared {
    fn named(&self) -> MutexGuard<'_, VecDeque<Named>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, named: Named, outcome: &str) -> Event {
        let mut event = Event {
            at: self.audit.0.clock.now(),
            names: named.names,
            outcome: outcome.to_owned(),
            ..self.event.clone()
        };
        if named.left_out > 0 {
            let left_out = named.left_out.to_string();
            event.details.insert(LEFT_OUT.to_owned(), left_out);
        }
        event
    }

    /// As it ended, with what its request named.
    fn whole(&self, outcome: &str) -> Event {
        self.ended(self.first(), outcome)
    }

    /// What its oldest message names.
    fn first(&self) -> Named {
        self.named().front().cloned().unwrap_or_default()
    }

    fn is_anonymous(&self) -> bool {
        self.event.principal == Principal::anonymous().as_str()
    }
}

impl Attached for Shared {
    fn take(&self, event: Option<&model::Event>) -> Option<Vec<u8>> {
        let order = Ordering::AcqRel;
        let taken =
            self.state
                .compare_exchange(WAITING_STATE, WRITING_STATE, order, Ordering::Acquire);
        taken.ok()?;
        let record = match event {
            // What its first write was done to, then what its request named.
            Some(event) => self.ended(self.first().with(event.skill_id.as_str()), OK),
            None => self.whole(OK),
        };
        Some(record.encode())
    }

    fn ended(&self, written: bool) {
        let state = if written {
            WRITTEN_STATE
        } else {
            WAITING_STATE
        };
        self.state.store(state, Ordering::Release);
        if written {
            self.audit.grew();
        }
    }
}

/// Where a call is told what it is done to. Cheap to clone.
#[derive(Clone)]
pub struct Noted(Arc<Shared>);

impl Noted {
    /// A message of the call names these.
    pub fn names<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut items = self.0.named();
        if items.len() < MAX_ITEMS {
            items.push_back(Named::new(names));
        }
    }

    /// What the oldest message without an outcome came to; none: it went well. It is one item
    /// of a stream.
    pub fn item(&self, code: Option<&str>) {
        let named = self.0.named().pop_front().unwrap_or_default();
        let event = self.0.ended(named, code.unwrap_or(OK));
        match code {
            None => self.0.audit.push(event),
            Some(_) => self.0.audit.failed(event),
        }
    }
}

/// The record of a call, which is written however the call ends.
#[must_use]
pub struct Call {
    shared: Arc<Shared>,
    /// How it ended, as far as it is known.
    outcome: Option<String>,
    is_done: bool,
}

impl Call {
    pub(crate) fn begin(
        audit: &Audit,
        rpc: &Arc<Rpc>,
        access: &Access,
        headers: &HeaderMap,
    ) -> Self {
        let shared = Shared {
            event: event(audit.0.clock.now(), rpc, access, headers),
            audit: audit.clone(),
            named: Mutex::default(),
            state: AtomicU8::new(WAITING_STATE),
        };
        Self {
            shared: Arc::new(shared),
            outcome: None,
            is_done: false,
        }
    }

    /// Where its messages say what it is done to.
    #[must_use]
    pub fn noted(&self) -> Noted {
        Noted(Arc::clone(&self.shared))
    }

    /// Does the work of the call: what it writes first takes the record along.
    pub fn work<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        with_attached(Arc::clone(&self.shared) as Arc<dyn Attached>, work)
    }

    /// It goes on as a stream.
    pub fn goes_on(&self) {
        let event = self.shared.whole(STARTED);
        self.shared.audit.push(event);
    }

    /// How a stream ended, or seems to.
    pub fn note(&mut self, outcome: Option<String>) {
        self.outcome = Some(outcome.unwrap_or_else(|| OK.to_owned()));
    }

    /// It ended with a code, or did what it was to do: then its record is durable when this
    /// returns, unless it called a tool, which has left no other trace here.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn end(mut self, code: Option<&str>) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        let has_gone = shared.state.load(Ordering::Acquire) == WRITTEN_STATE;
        match code {
            None if has_gone => self.is_done = true,
            None if shared.event.action == Some(Action::Call) => {
                self.is_done = true;
                shared.audit.push(shared.whole(OK));
            }
            None => {
                // Who leaves while it is written leaves a record that says so.
                let written = shared.audit.append(&shared.whole(OK)).await;
                self.is_done = true;
                if let Err(error) = written {
                    shared.audit.push(shared.whole(OK));
                    return Err(unrecorded(error));
                }
            }
            Some(code) => {
                self.is_done = true;
                shared.audit.failed(shared.whole(code));
            }
        }
        Ok(())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let has_gone = self.shared.state.load(Ordering::Acquire) == WRITTEN_STATE;
        if self.is_done || (has_gone && self.outcome.is_none()) {
            return;
        }
        let outcome = self.outcome.as_deref().unwrap_or(CANCELLED);
        let event = self.shared.whole(outcome);
        match outcome {
            OK => self.shared.audit.push(event),
            // Something may have been done, so it has a record, whoever called.
            CANCELLED if !self.shared.is_anonymous() => self.shared.audit.push(event),
            _ => self.shared.audit.failed(event),
        }
    }
}
