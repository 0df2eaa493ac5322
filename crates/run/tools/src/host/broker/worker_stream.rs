//! Messages to a worker, and its answers.

use tokio::time::Instant;

use super::{Broker, CallNo, MAX_NOTICES, Outgoing, WorkerNo};
use crate::host::ToWorker;
use crate::{Invocation, Output, Progress, ToolError};

/// The next step of a worker's stream.
pub(in crate::host) enum Next {
    /// Sends this.
    Send(ToWorker),
    /// Sends a call to make.
    Invoke(Box<Invocation>),
    /// Waits; not beyond this time.
    Wait(Option<Instant>),
    /// Ends: the worker drains, and has answered all.
    Done,
    /// Ends: the server is about to stop.
    Stopped,
    /// The worker is not known any more.
    Gone,
}

impl Broker {
    /// Returns when a worker's stream last asked for a message; none: it is gone.
    pub(in crate::host) fn asked(&self, no: WorkerNo) -> Option<Instant> {
        Some(self.workers.get(&no)?.asked)
    }

    /// Returns the next step of a worker's stream.
    pub(in crate::host) fn next(&mut self, no: WorkerNo, now: Instant) -> Next {
        loop {
            let Some(worker) = self.workers.get_mut(&no) else {
                return Next::Gone;
            };
            worker.asked = now;
            let Some(outgoing) = worker.outbox.pop_front() else {
                return match self.stopping {
                    Some(at) if worker.held.is_empty() || at <= now => Next::Stopped,
                    Some(at) => Next::Wait(Some(at)),
                    None if worker.drains && worker.held.is_empty() => Next::Done,
                    None => Next::Wait(None),
                };
            };
            match outgoing {
                Outgoing::Drain => return Next::Send(ToWorker::Drain),
                Outgoing::Notice { id, message } => {
                    worker.notices = worker.notices.saturating_sub(1);
                    return Next::Send(ToWorker::Notice { id, message });
                }
                Outgoing::Cancel(call) => {
                    if let Some(call) = self.calls.get(&call) {
                        let reason = if call.deadline <= now {
                            "the deadline passed"
                        } else {
                            "the caller gave up"
                        };
                        return Next::Send(ToWorker::Cancel {
                            id: call.id.clone(),
                            reason,
                        });
                    }
                }
                Outgoing::Invoke(call) => {
                    // One whose time is over is withdrawn in a moment: it need not run.
                    let due = self.calls.get_mut(&call).filter(|call| call.deadline > now);
                    let taken = due.and_then(|call| {
                        let mut invocation = call.invocation.take()?;
                        invocation.timeout = call.deadline.saturating_duration_since(now);
                        Some(invocation)
                    });
                    if let Some(invocation) = taken {
                        return Next::Invoke(Box::new(invocation));
                    }
                }
            }
        }
    }

    /// The call of this id, where this worker has it.
    fn held(&self, worker: WorkerNo, id: &str) -> Option<CallNo> {
        let no = *self.ids.get(id)?;
        let call = self.calls.get(&no)?;
        (call.worker == Some(worker) && call.invocation.is_none()).then_some(no)
    }

    /// Handles a worker's answer; one for a call that it does not have is dropped.
    pub(in crate::host) fn outcome(
        &mut self,
        worker: WorkerNo,
        id: &str,
        result: Result<Output, ToolError>,
    ) {
        match self.held(worker, id) {
            Some(call) => self.end(call, result),
            None => self.notice(
                worker,
                id,
                "the outcome was dropped: this worker has no such invocation, or has answered it"
                    .to_owned(),
            ),
        }
    }

    /// Passes a worker's progress on; a listener that is too slow misses some.
    pub(in crate::host) fn progress(&mut self, worker: WorkerNo, id: &str, progress: Progress) {
        let Some(call) = self.held(worker, id).and_then(|no| self.calls.get(&no)) else {
            let why =
                "the progress was dropped: this worker has no such invocation, or has answered it";
            return self.notice(worker, id, why.to_owned());
        };
        if let Some(listener) = &call.progress {
            // Full, or nobody is there any more: both are the listener's affair.
            let _missed = listener.try_send(progress);
        }
    }

    /// Notifies a worker that a message of its was dropped.
    pub(in crate::host) fn notice(&mut self, no: WorkerNo, id: &str, message: String) {
        self.dropped += 1;
        if let Some(worker) = self.workers.get_mut(&no)
            && worker.notices < MAX_NOTICES
        {
            worker.notices += 1;
            let id = id.to_owned();
            worker.outbox.push_back(Outgoing::Notice { id, message });
            worker.notify.notify_one();
        }
    }
}
