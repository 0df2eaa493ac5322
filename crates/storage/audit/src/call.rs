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

/// The outcome of a call that succeeded.
const OK: &str = "OK";
/// The outcome of a call whose caller left before its end.
const CANCELLED: &str = "CANCELLED";
/// The outcome of a stream that is still open.
const STARTED: &str = "STARTED";
/// Maximum number of items of a stream whose names wait for their outcomes.
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
    /// The action that its caller needs.
    pub action: Option<Action>,
    /// The trail has each of its calls, not only those that were refused to known callers.
    pub is_recorded: bool,
}

/// Returns the record of a call whose outcome is not known yet.
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
    // Checked below: it is text of the caller, and goes into the record as it is.
    let id = parent.split('-').nth(1)?;
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| id.to_ascii_lowercase())
}

/// The names in a message, as far as a record holds them.
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

    /// Puts the skill of the first write at the head.
    fn with(mut self, skill: &str) -> Self {
        self.names.retain(|name| name != skill);
        self.names.insert(0, skill.to_owned());
        if self.names.len() > MAX_NAMES {
            self.names.truncate(MAX_NAMES);
            // A request that names more than a record holds also names what is written: that one
            // takes the slot of the last name, which is left out instead.
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

    /// Returns the finished record with the names in its request.
    fn whole(&self, outcome: &str) -> Event {
        self.ended(self.first(), outcome)
    }

    /// Returns the names in the oldest message without an outcome.
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
        // The exchange lets one of two batches that are written at the same time carry the
        // record.
        let taken =
            self.state
                .compare_exchange(WAITING_STATE, WRITING_STATE, order, Ordering::Acquire);
        taken.ok()?;
        let record = match event {
            // First the skill of the write, then the names in the request.
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
    }
}

tokio::task_local! {
    static IN_WORK: Noted;
}

/// Names what the call in work is done to as it was found, instead of as its caller spelled it.
pub fn found_as(spelled: &str, found: &str) {
    // A call that is not recorded has no names.
    let _unrecorded = IN_WORK.try_with(|noted| {
        if let Some(named) = noted.0.named().back_mut() {
            let spelled = name(spelled);
            let mut same = named.names.iter_mut().filter(|text| **text == spelled);
            if let Some(text) = same.next() {
                *text = name(found);
            }
        }
    });
}

/// Takes the names of what a call is done to. Cheap to clone.
#[derive(Clone)]
pub struct Noted(Arc<Shared>);

impl Noted {
    /// Adds the names in a message of the call.
    pub fn names<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut items = self.0.named();
        // A peer may send items faster than they are answered: their names must not take all
        // memory.
        if items.len() < MAX_ITEMS {
            items.push_back(Named::new(names));
        }
    }

    /// Records the outcome of one item of a stream, of the oldest message without one; none: it
    /// succeeded.
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
    /// The outcome, as far as it is known.
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

    /// Returns what takes the names in its messages.
    #[must_use]
    pub fn noted(&self) -> Noted {
        Noted(Arc::clone(&self.shared))
    }

    /// Runs the work of the call: its first write carries the record.
    pub fn work<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let work = IN_WORK.scope(self.noted(), work);
        with_attached(Arc::clone(&self.shared) as Arc<dyn Attached>, work)
    }

    /// Records that the call goes on as a stream.
    pub fn goes_on(&self) {
        let event = self.shared.whole(STARTED);
        self.shared.audit.push(event);
    }

    /// Notes the outcome of a stream, which may still change.
    pub fn note(&mut self, outcome: Option<String>) {
        self.outcome = Some(outcome.unwrap_or_else(|| OK.to_owned()));
    }

    /// Ends the call with a code, or as a success: then its record is durable when this returns,
    /// unless it called a tool, which left no other trace here.
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
                // A caller that leaves during the write drops this future; `drop` then records
                // that.
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
        // A record that went with a write says `OK`. A stream that noted an outcome later gets a
        // second one.
        if self.is_done || (has_gone && self.outcome.is_none()) {
            return;
        }
        let outcome = self.outcome.as_deref().unwrap_or(CANCELLED);
        let event = self.shared.whole(outcome);
        match outcome {
            OK => self.shared.audit.push(event),
            // Something may have been done, so it has a record of its own and does not count
            // against the limit of failed calls.
            CANCELLED if !self.shared.is_anonymous() => self.shared.audit.push(event),
            _ => self.shared.audit.failed(event),
        }
    }
}
