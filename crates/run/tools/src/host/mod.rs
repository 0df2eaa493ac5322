//! Handlers written in any language: workers that dial in and are given calls.
//!
//! Rules:
//!
//! * **Admission.** A worker shows a token of the operator's, and serves only skills
//!   that the operator allows it (`admission`). A refusal never says which part of
//!   a token was wrong.
//! * **At most once.** A call is handed to one worker, once. A call that was
//!   handed over is never given to another worker, since the tool may have done its
//!   work; one that was not yet is.
//! * **A slot is held until the worker answers or is gone**, also where nobody waits
//!   for the answer any more: a worker that ignores `cancel` is never sent more than
//!   it takes at once.
//! * **First come, first served** for each worker, over all that it serves; among
//!   workers with free slots the one with most, then the one that waited longest.
//! * **Only the worker that has a call can answer it.** Any other answer is dropped,
//!   counted, and the worker is notified. A stream ends only where the worker breaks the
//!   order of messages, or sends what cannot be read.
//! * **The caller is signed** for the worker that is given the call, where the caller signed in
//!   (`caller_tokens`), so that a system behind a worker need not trust it.
//! * Everything is bounded: workers, what they serve, calls that wait, messages that
//!   wait to be sent (of which each but the few notices belongs to a held slot).
//!
//! Not here: sessions, arguments, limits of a caller (the gate), the messages of the
//! contract (`grpc`).

mod broker;
mod identity;
mod link;
mod message;
#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

pub use broker::Stats;
pub use identity::{Admitted, BUILT_IN};
pub use link::Outgoing;
pub use message::{FromWorker, Hello, Served, ToWorker, Welcome};

use caller_tokens::CallerTokens;

use super::{Handler, Invocation, Output, ToolError, Work};
use broker::{Broker, CallNo};
use identity::WorkerRegistry;
use model::SkillId;

/// How a [`Host`] is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Workers that may dial in.
    pub workers: Vec<Admitted>,
    /// How often each side gives a sign of life; a worker that is silent for three
    /// times as long is dead.
    pub heartbeat: Duration,
    /// Bytes that a result may have: its text, and its structure as JSON.
    pub max_result_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: Vec::new(),
            heartbeat: Duration::from_secs(10),
            max_result_bytes: 1024 * 1024,
        }
    }
}

/// Gives calls to workers: see the module.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    workers: WorkerRegistry,
    heartbeat: Duration,
    max_result_bytes: usize,
    caller_tokens: CallerTokens,
    broker: Mutex<Broker>,
}

impl Host {
    /// A host without workers.
    #[must_use]
    pub fn new(config: Config, caller_tokens: CallerTokens) -> Self {
        let Config {
            workers,
            heartbeat,
            max_result_bytes,
        } = config;
        Self(Arc::new(Inner {
            workers: WorkerRegistry::new(workers),
            heartbeat,
            max_result_bytes,
            caller_tokens,
            broker: Mutex::new(Broker::default()),
        }))
    }

    /// Bytes that a message of a worker may have. A result that is too large but
    /// no larger than this fails its own call; a larger message cannot be read, and
    /// ends the stream.
    #[must_use]
    pub fn max_message_bytes(&self) -> usize {
        self.0.max_result_bytes.saturating_mul(4) + 1024 * 1024
    }

    /// The key by which others verify callers, as text of a JWK set (RFC 7517).
    #[must_use]
    pub fn caller_keys(&self) -> Arc<str> {
        self.0.caller_tokens.keys()
    }

    /// Returns its load, and how many messages it dropped.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.broker().stats()
    }

    /// Notifies workers that the server is about to stop: calls that no worker has yet
    /// fail at once, those in work have `grace` to finish, then the streams end.
    pub fn stop(&self, grace: Duration) {
        self.broker().stop(Instant::now() + grace);
    }

    /// No code runs under the lock that can panic half-way through a change.
    fn broker(&self) -> MutexGuard<'_, Broker> {
        self.0.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, invocation: Invocation) -> Result<Output, ToolError> {
        let timeout = invocation.timeout;
        let what = format!("`{}` of {}", invocation.method, invocation.skill);
        let deadline = Instant::now() + timeout;
        let (answer, outcome) = oneshot::channel();
        let call = self.broker().submit(invocation, deadline, answer)?;
        // Withdraws the call however this future ends.
        let waiter = Waiter { host: self, call };
        match tokio::time::timeout_at(deadline, outcome).await {
            Ok(Ok(result)) => result,
            Ok(Err(_dropped)) => Err(ToolError::unavailable(format!(
                "The call of {what} was given up"
            ))),
            Err(_passed) => Err(waiter.late(&what, timeout)),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.stats()).finish()
    }
}

impl Handler for Host {
    fn serves(&self, skill: &SkillId, method: &str) -> bool {
        self.broker().serves(skill, method)
    }

    fn skills(&self) -> Vec<SkillId> {
        self.broker().skills()
    }

    fn call(&self, invocation: Invocation) -> Work<'_, Result<Output, ToolError>> {
        Box::pin(self.run(invocation))
    }
}

/// A caller that waits for a call; dropping it withdraws the call.
struct Waiter<'a> {
    host: &'a Host,
    call: CallNo,
}

impl Waiter<'_> {
    /// The error when the time is over.
    fn late(&self, what: &str, timeout: Duration) -> ToolError {
        let given = self.host.broker().is_given(self.call);
        let seconds = timeout.as_secs_f64();
        if given {
            ToolError::timeout(format!(
                "The worker did not answer the call of {what} within {seconds} s"
            ))
            .suggest("The tool may have done its work: check before calling it again")
        } else {
            ToolError::timeout(format!(
                "No worker had room for the call of {what} within {seconds} s"
            ))
            .suggest("Call again later: the tool has not run")
            .suggest("Start more workers for this skill, or raise their concurrency")
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.host.broker().withdraw(self.call);
    }
}
