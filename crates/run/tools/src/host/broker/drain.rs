//! Workers that take no more calls or are gone, and the end of the server.

use tokio::time::Instant;

use super::{Broker, Call, CallNo, Outgoing, Route, RouteNo, WorkerNo, nobody, stopping};
use crate::ToolError;

impl Broker {
    /// A worker takes no more calls. Those that it was not sent go to others.
    pub(in crate::host) fn drain(&mut self, no: WorkerNo) {
        let Some(worker) = self.workers.get_mut(&no) else {
            return;
        };
        worker.drains = true;
        worker.notify.notify_one();
        let unsent: Vec<_> = worker
            .held
            .iter()
            .copied()
            .filter(|call| {
                self.calls
                    .get(call)
                    .is_some_and(|call| call.invocation.is_some())
            })
            .collect();
        for call in &unsent {
            worker.held.remove(call);
        }
        worker
            .outbox
            .retain(|outgoing| !matches!(outgoing, Outgoing::Invoke(_)));
        // This must come before the calls are reassigned, or they would go back to this worker,
        // which is the freest now.
        let routes = std::mem::take(&mut worker.routes);
        self.close(no, routes);
        for call in unsent {
            if let Some(call) = self.calls.get_mut(&call) {
                call.worker = None;
            }
            self.slot(call);
        }
    }

    /// A worker serves these no more. Calls that nobody serves now fail.
    fn close(&mut self, no: WorkerNo, routes: Vec<RouteNo>) {
        for number in routes {
            let Some(route) = self.routes.get_mut(&number) else {
                continue;
            };
            route.workers.remove(&no);
            if !route.workers.is_empty() {
                continue;
            }
            let Some(Route {
                skill,
                method,
                queue,
                ..
            }) = self.routes.remove(&number)
            else {
                continue;
            };
            let key = skill.key();
            if let Some(methods) = self.numbers.get_mut(&key) {
                methods.remove(&method);
                if methods.is_empty() {
                    self.numbers.remove(&key);
                }
            }
            self.waiting -= queue.len();
            for call in queue {
                self.end(call, Err(nobody(&skill, &method)));
            }
        }
    }

    /// A worker is gone. Calls that it has fail, for it may have run them; those that
    /// it was not sent go to others.
    pub(in crate::host) fn leave(&mut self, no: WorkerNo) {
        // Draining first returns the unsent calls; whatever the worker still holds after that may
        // have run.
        self.drain(no);
        let Some(worker) = self.workers.remove(&no) else {
            return;
        };
        for call in worker.held {
            let Some((skill, method)) = self
                .calls
                .get(&call)
                .map(|call| (&call.skill, &call.method))
            else {
                continue;
            };
            let error = ToolError::unavailable(format!(
                "The worker that ran `{method}` of {skill} is gone, and did not answer"
            ))
            .suggest("The tool may have done its work: check before calling it again");
            self.end(call, Err(error));
        }
    }

    /// The server is about to stop: calls that no worker has yet fail, workers are
    /// notified, and streams end when their calls have, or at this time.
    pub(in crate::host) fn stop(&mut self, at: Instant) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(at);
        let unsent = |(no, call): (&CallNo, &Call)| call.invocation.is_some().then_some(*no);
        let unsent: Vec<_> = self.calls.iter().filter_map(unsent).collect();
        for call in unsent {
            self.unqueue(call);
            self.end(call, Err(stopping()));
        }
        for worker in self.workers.values_mut() {
            worker.outbox.push_back(Outgoing::Drain);
            worker.notify.notify_one();
        }
    }
}
