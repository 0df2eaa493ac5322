//! The broker under random events: no slot is ever exceeded, no call is sent twice,
//! every call ends exactly once, and nobody waits while a worker is free.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

use super::broker::{Broker, CallNo, Next, WorkerNo};
use super::tests::invocation;
use crate::{Output, ToolError};

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A worker comes, with slots, and methods by the bits of a number.
    Enroll(usize, u8),
    /// A call comes, of a method.
    Submit(usize),
    /// A worker's stream asks for so many messages.
    Read(usize, usize),
    /// A worker answers a call that anybody was sent, right or wrong.
    Answer(usize, usize),
    /// A caller gives up.
    Withdraw(usize),
    Drain(usize),
    Leave(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (1..4_usize, 1..8_u8).prop_map(|(slots, methods)| Event::Enroll(slots, methods)),
        8 => (0..3_usize).prop_map(Event::Submit),
        6 => (any::<usize>(), 1..4_usize).prop_map(|(worker, count)| Event::Read(worker, count)),
        6 => (any::<usize>(), any::<usize>()).prop_map(|(worker, call)| Event::Answer(worker, call)),
        2 => any::<usize>().prop_map(Event::Withdraw),
        1 => any::<usize>().prop_map(Event::Drain),
        1 => any::<usize>().prop_map(Event::Leave),
    ]
}

fn method(at: usize) -> String {
    format!("method_{at}")
}

struct Caller {
    call: CallNo,
    answer: oneshot::Receiver<Result<Output, ToolError>>,
    /// How it ended; none: it waits.
    ended: bool,
    withdrawn: bool,
}

/// What the workers and callers know, beside what the broker does.
#[derive(Default)]
struct Model {
    broker: Broker,
    callers: Vec<Caller>,
    workers: BTreeMap<WorkerNo, Seen>,
    /// Ids that were sent to a worker, ever.
    sent: BTreeSet<String>,
}

struct Seen {
    slots: usize,
    methods: Vec<usize>,
    drains: bool,
    /// Sent, and not answered.
    has: BTreeSet<String>,
}

impl Model {
    fn worker(&self, pick: usize) -> Option<WorkerNo> {
        let at = pick.checked_rem(self.workers.len())?;
        self.workers.keys().nth(at).copied()
    }

    fn apply(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Enroll(slots, bits) => {
                let methods: Vec<_> = (0..3).filter(|at| bits & (1 << at) != 0).collect();
                let skill = invocation("", "").skill;
                let served = methods.iter().map(|at| (skill.clone(), method(*at)));
                let (no, _bell) = self.broker.enroll(slots, served, now).expect("room");
                let seen = Seen {
                    slots,
                    methods,
                    drains: false,
                    has: BTreeSet::new(),
                };
                self.workers.insert(no, seen);
            }
            Event::Submit(at) => {
                let id = format!("call {}", self.callers.len());
                let (send, answer) = oneshot::channel();
                let deadline = now + Duration::from_secs(3600);
                let submitted = self
                    .broker
                    .submit(invocation(&id, &method(at)), deadline, send);
                let served = self
                    .workers
                    .values()
                    .any(|seen| !seen.drains && seen.methods.contains(&at));
                assert_eq!(submitted.is_ok(), served, "{submitted:?}");
                self.callers.push(Caller {
                    call: submitted.as_ref().copied().unwrap_or(0),
                    answer,
                    ended: submitted.is_err(),
                    withdrawn: submitted.is_err(),
                });
            }
            Event::Read(pick, count) => {
                let Some(no) = self.worker(pick) else { return };
                for _ in 0..count {
                    if let Next::Invoke(call) = self.broker.next(no, now) {
                        assert!(
                            self.sent.insert(call.id.clone()),
                            "{} was sent twice",
                            call.id
                        );
                        let seen = self.workers.get_mut(&no).expect("a worker");
                        seen.has.insert(call.id);
                        assert!(
                            seen.has.len() <= seen.slots,
                            "more than {} at once",
                            seen.slots
                        );
                    }
                }
            }
            Event::Answer(pick, call) => {
                let (Some(no), Some(at)) = (self.worker(pick), call.checked_rem(self.sent.len()))
                else {
                    return;
                };
                let id = self.sent.iter().nth(at).expect("an id").clone();
                let before = self.broker.stats().dropped;
                self.broker
                    .outcome(no, &id, Ok(Output::text(format!("{id} by {no}"))));
                let own = self.workers.get_mut(&no).expect("a worker").has.remove(&id);
                assert_eq!(self.broker.stats().dropped == before, own, "{id} by {no}");
            }
            Event::Withdraw(pick) => {
                let Some(at) = pick.checked_rem(self.callers.len()) else {
                    return;
                };
                let caller = &mut self.callers[at];
                if !caller.withdrawn {
                    self.broker.withdraw(caller.call);
                    caller.withdrawn = true;
                }
            }
            Event::Drain(pick) => {
                let Some(no) = self.worker(pick) else { return };
                self.broker.drain(no);
                self.workers.get_mut(&no).expect("a worker").drains = true;
            }
            Event::Leave(pick) => {
                let Some(no) = self.worker(pick) else { return };
                self.broker.leave(no);
                self.workers.remove(&no);
            }
        }
    }

    /// What must hold after every event.
    fn check(&mut self) {
        for caller in self.callers.iter_mut().filter(|caller| !caller.ended) {
            match caller.answer.try_recv() {
                Ok(_) => caller.ended = true,
                // The sender is dropped without an answer only where nobody waits.
                Err(TryRecvError::Closed) => {
                    assert!(caller.withdrawn, "call {} was lost", caller.call);
                    caller.ended = true;
                }
                Err(TryRecvError::Empty) => assert!(!caller.withdrawn, "an answer may still come"),
            }
        }
        let stats = self.broker.stats();
        let slots: usize = self.workers.values().map(|seen| seen.slots).sum();
        assert!(stats.held <= slots, "{stats:?}");
        let open = self.callers.iter().filter(|caller| !caller.ended).count();
        assert_eq!(
            stats.waiting + stats.held,
            open + stats.abandoned,
            "{stats:?}"
        );
        self.broker.check();
    }
}

proptest! {
    #[test]
    fn no_slot_is_exceeded_and_every_call_ends_once(events in vec(event(), 1..200)) {
        let mut model = Model::default();
        for event in events {
            model.apply(event);
            model.check();
        }
        // In the end everybody leaves: then nobody waits.
        while let Some(no) = model.worker(0) {
            model.apply(Event::Leave(0));
            model.check();
            prop_assert!(!model.workers.contains_key(&no));
        }
        prop_assert!(model.callers.iter().all(|caller| caller.ended));
        let stats = model.broker.stats();
        prop_assert_eq!((stats.workers, stats.waiting, stats.held, stats.abandoned), (0, 0, 0, 0));
    }
}
