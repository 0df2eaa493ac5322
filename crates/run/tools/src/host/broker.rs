//! Assigns calls to workers. It neither waits nor reads a clock: its methods are events,
//! and their effects are in the workers' outboxes and the callers' channels.

mod drain;
mod worker_stream;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

pub(super) use worker_stream::Next;

use crate::{Invocation, Output, Progress, ToolError};
use model::{Code, Failure, SkillId, SkillKey};

/// Workers attached at once.
const MAX_WORKERS: usize = 256;
/// Calls of one method that wait for a worker.
const MAX_WAITING_OF_METHOD: usize = 1024;
/// Calls that wait for a worker.
const MAX_WAITING: usize = 4096;
/// Notices that wait to be sent to a worker; further ones are counted only.
const MAX_NOTICES: usize = 16;

/// A call, in the order in which they came.
pub(super) type CallNo = u64;
pub(super) type WorkerNo = u64;
type RouteNo = u64;
/// Where the outcome of a call goes.
pub(super) type Answer = oneshot::Sender<Result<Output, ToolError>>;

/// Load of a host, and the messages that it dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Workers that are attached.
    pub workers: usize,
    /// Calls that wait for a worker.
    pub waiting: usize,
    /// Slots of workers that are held.
    pub held: usize,
    /// Calls that nobody waits for and whose worker has not answered yet.
    pub abandoned: usize,
    /// Messages of workers that were dropped, so far.
    pub dropped: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Broker {
    workers: BTreeMap<WorkerNo, Worker>,
    /// Methods that a worker serves which takes calls.
    routes: BTreeMap<RouteNo, Route>,
    numbers: HashMap<SkillKey, HashMap<String, RouteNo>>,
    calls: BTreeMap<CallNo, Call>,
    ids: HashMap<String, CallNo>,
    waiting: usize,
    last: u64,
    dropped: u64,
    /// The server is about to stop, at this time.
    stopping: Option<Instant>,
}

struct Worker {
    concurrency: usize,
    routes: Vec<RouteNo>,
    /// Calls that hold a slot.
    held: BTreeSet<CallNo>,
    outbox: VecDeque<Outgoing>,
    notices: usize,
    /// When it was last given a call.
    given: u64,
    drains: bool,
    notify: Arc<Notify>,
    /// When its stream last asked for a message.
    asked: Instant,
}

enum Outgoing {
    Invoke(CallNo),
    Cancel(CallNo),
    Notice { id: String, message: String },
    Drain,
}

struct Route {
    skill: SkillId,
    method: String,
    workers: BTreeSet<WorkerNo>,
    // Ordered by number and not by arrival: a call that comes back from a worker that left goes
    // before later calls.
    queue: BTreeSet<CallNo>,
}

struct Call {
    id: String,
    skill: SkillId,
    method: String,
    deadline: Instant,
    /// Until it is handed to a worker's stream.
    invocation: Option<Invocation>,
    progress: Option<mpsc::Sender<Progress>>,
    /// None: nobody waits any more.
    answer: Option<Answer>,
    /// The worker whose slot it holds.
    worker: Option<WorkerNo>,
}

impl Broker {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn stats(&self) -> Stats {
        let abandoned = |call: &&Call| call.answer.is_none();
        Stats {
            workers: self.workers.len(),
            waiting: self.waiting,
            held: self.workers.values().map(|worker| worker.held.len()).sum(),
            abandoned: self.calls.values().filter(abandoned).count(),
            dropped: self.dropped,
        }
    }

    fn route(&self, skill: &SkillId, method: &str) -> Option<RouteNo> {
        self.numbers.get(&skill.key())?.get(method).copied()
    }

    pub(super) fn serves(&self, skill: &SkillId, method: &str) -> bool {
        self.route(skill, method).is_some()
    }

    pub(super) fn skills(&self) -> Vec<SkillId> {
        let skills = self
            .routes
            .values()
            .map(|route| (route.skill.key(), &route.skill));
        let skills: BTreeMap<_, _> = skills.collect();
        skills.into_values().cloned().collect()
    }

    /// Whether the call was sent to a worker.
    pub(super) fn is_given(&self, call: CallNo) -> bool {
        self.calls
            .get(&call)
            .is_some_and(|call| call.invocation.is_none())
    }

    /// Lets a worker in; its notification comes when there is something to send.
    pub(super) fn enroll(
        &mut self,
        concurrency: usize,
        methods: impl IntoIterator<Item = (SkillId, String)>,
        now: Instant,
    ) -> Result<(WorkerNo, Arc<Notify>), Failure> {
        if self.stopping.is_some() {
            return Err(
                Failure::new(Code::ShuttingDown, "The server is about to stop")
                    .suggest("Attach again when it is back"),
            );
        }
        if self.workers.len() >= MAX_WORKERS {
            return Err(Failure::new(
                Code::Overloaded,
                format!("{MAX_WORKERS} workers are attached, as many as may be"),
            )
            .suggest("Raise the concurrency of one worker instead of starting more workers"));
        }
        let no = self.number();
        let mut routes = BTreeSet::new();
        for (skill, method) in methods {
            let route = self.route(&skill, &method).unwrap_or_else(|| {
                let route = self.number();
                let of_skill = self.numbers.entry(skill.key()).or_default();
                of_skill.insert(method.clone(), route);
                let new = Route {
                    skill,
                    method,
                    workers: BTreeSet::new(),
                    queue: BTreeSet::new(),
                };
                self.routes.insert(route, new);
                route
            });
            routes.insert(route);
        }
        for route in &routes {
            if let Some(route) = self.routes.get_mut(route) {
                route.workers.insert(no);
            }
        }
        let notify = Arc::new(Notify::new());
        let worker = Worker {
            concurrency,
            routes: routes.into_iter().collect(),
            held: BTreeSet::new(),
            outbox: VecDeque::new(),
            notices: 0,
            given: 0,
            drains: false,
            notify: Arc::clone(&notify),
            asked: now,
        };
        self.workers.insert(no, worker);
        // Calls may wait for just these methods.
        self.feed(no);
        Ok((no, notify))
    }

    /// Takes a call; the answer comes through the channel, unless it is refused here.
    pub(super) fn submit(
        &mut self,
        mut invocation: Invocation,
        deadline: Instant,
        answer: Answer,
    ) -> Result<CallNo, ToolError> {
        if self.stopping.is_some() {
            return Err(stopping());
        }
        let (skill, method) = (invocation.skill.clone(), invocation.method.clone());
        let Some(route) = self.route(&skill, &method) else {
            return Err(nobody(&skill, &method));
        };
        // What a worker sends names its call by this id, so no two in work may share one.
        if self.ids.contains_key(&invocation.id) {
            let message = format!("A call `{}` is in work already", invocation.id);
            return Err(ToolError::failed(message));
        }
        let free = self.freest(route);
        let waiting = self.routes.get(&route).map_or(0, |route| route.queue.len());
        if free.is_none() && (waiting >= MAX_WAITING_OF_METHOD || self.waiting >= MAX_WAITING) {
            let mut error = ToolError::unavailable(format!(
                "As many calls wait for `{method}` of {skill} as may"
            ))
            .suggest("Call again later: the tool has not run");
            error.retry_after = Some(Duration::from_secs(1));
            return Err(error);
        }
        let no = self.number();
        self.ids.insert(invocation.id.clone(), no);
        let call = Call {
            id: invocation.id.clone(),
            skill,
            method,
            deadline,
            progress: invocation.progress.take(),
            invocation: Some(invocation),
            answer: Some(answer),
            worker: None,
        };
        self.calls.insert(no, call);
        self.slot(no);
        Ok(no)
    }

    /// Of the workers with free slots the one with most, then the one that waited
    /// longest.
    fn freest(&self, route: RouteNo) -> Option<WorkerNo> {
        let workers = &self.routes.get(&route)?.workers;
        let free = workers.iter().filter_map(|no| {
            let worker = self.workers.get(no)?;
            let free = worker.concurrency.saturating_sub(worker.held.len());
            (free > 0).then_some((std::cmp::Reverse(free), worker.given, *no))
        });
        free.min().map(|(_, _, no)| no)
    }

    /// Gives a call that no worker has to one, or lets it wait, or ends it.
    fn slot(&mut self, no: CallNo) {
        let Some(call) = self.calls.get(&no) else {
            return;
        };
        let Some(route) = self.route(&call.skill, &call.method) else {
            let error = nobody(&call.skill, &call.method);
            self.end(no, Err(error));
            return;
        };
        if let Some(worker) = self.freest(route) {
            self.give(no, worker);
        } else if let Some(route) = self.routes.get_mut(&route) {
            route.queue.insert(no);
            self.waiting += 1;
        }
    }

    fn give(&mut self, no: CallNo, to: WorkerNo) {
        let given = self.number();
        if let (Some(call), Some(worker)) = (self.calls.get_mut(&no), self.workers.get_mut(&to)) {
            call.worker = Some(to);
            worker.held.insert(no);
            worker.given = given;
            worker.outbox.push_back(Outgoing::Invoke(no));
            worker.notify.notify_one();
        }
    }

    /// Fills a worker's free slots with the oldest calls that it serves.
    fn feed(&mut self, no: WorkerNo) {
        // Usually nothing waits, and then the queues need not be searched.
        while self.waiting > 0
            && let Some(worker) = self.workers.get(&no)
            && !worker.drains
            && worker.held.len() < worker.concurrency
        {
            let heads = worker
                .routes
                .iter()
                .filter_map(|route| Some((*self.routes.get(route)?.queue.first()?, *route)));
            let Some((call, route)) = heads.min() else {
                return;
            };
            if let Some(route) = self.routes.get_mut(&route) {
                route.queue.remove(&call);
            }
            self.waiting -= 1;
            self.give(call, no);
        }
    }

    /// Withdraws a call that nobody waits for any more. Its slot is free at once where the worker
    /// was not sent it, else when the worker answers or is gone.
    pub(super) fn withdraw(&mut self, no: CallNo) {
        let Some(call) = self.calls.get_mut(&no) else {
            return;
        };
        call.answer = None;
        call.progress = None;
        match call.worker {
            Some(worker) if call.invocation.is_none() => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.outbox.push_back(Outgoing::Cancel(no));
                    worker.notify.notify_one();
                }
            }
            // The call was never sent, so the tool cannot have run.
            Some(_) => self.forget(no),
            None => {
                self.unqueue(no);
                self.forget(no);
            }
        }
    }

    fn unqueue(&mut self, no: CallNo) {
        let Some(call) = self.calls.get(&no) else {
            return;
        };
        let Some(route) = self.route(&call.skill, &call.method) else {
            return;
        };
        if let Some(route) = self.routes.get_mut(&route)
            && route.queue.remove(&no)
        {
            self.waiting -= 1;
        }
    }

    /// Ends a call with a result.
    fn end(&mut self, no: CallNo, result: Result<Output, ToolError>) {
        if let Some(answer) = self.calls.get_mut(&no).and_then(|call| call.answer.take()) {
            // The caller may have gone a moment ago.
            let _gone = answer.send(result);
        }
        self.forget(no);
    }

    /// Removes a call that is in no queue; its slot goes to the next one.
    fn forget(&mut self, no: CallNo) {
        let Some(call) = self.calls.remove(&no) else {
            return;
        };
        self.ids.remove(&call.id);
        let Some(of) = call.worker else { return };
        if let Some(worker) = self.workers.get_mut(&of) {
            worker.held.remove(&no);
            worker.outbox.retain(|outgoing| {
                !matches!(outgoing, Outgoing::Invoke(call) | Outgoing::Cancel(call) if *call == no)
            });
            // It may have been the last that the stream waits for.
            worker.notify.notify_one();
        }
        self.feed(of);
    }
}

fn stopping() -> ToolError {
    ToolError::unavailable("The server is about to stop")
        .suggest("Call again when it is back: the tool has not run")
}

fn nobody(skill: &SkillId, method: &str) -> ToolError {
    ToolError::unavailable(format!("No worker serves `{method}` of {skill} at present"))
        .suggest("Start a worker that serves it (docs/tool-workers.md), or ask the operator to")
        .suggest("Call again later: the tool has not run")
}

#[cfg(test)]
impl Broker {
    /// What must hold whatever happened.
    pub(super) fn check(&self) {
        let queued: usize = self.routes.values().map(|route| route.queue.len()).sum();
        assert_eq!(queued, self.waiting);
        assert_eq!(self.ids.len(), self.calls.len());
        for worker in self.workers.values() {
            assert!(worker.held.len() <= worker.concurrency, "a slot too many");
            assert!(worker.outbox.len() <= 2 * worker.concurrency + MAX_NOTICES + 1);
        }
        for (no, route) in &self.routes {
            assert!(!route.workers.is_empty(), "a route to nobody");
            assert!(
                route.queue.is_empty() || self.freest(*no).is_none(),
                "a call waits while a worker is free"
            );
        }
    }
}
