//! The limits of a server: how much at once, and how long each step may take.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;

use admission::{Admission, Amounts, Pace};
use executor::DEFAULT_DEADLINE;
use quotas::QuotasConfig;
use registry::{StorageLimit, StorageLimits};

/// The timeouts of calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// A unary call that brings no deadline.
    pub(super) deadline: Duration,
    /// A stream whose client sends nothing, where it is the client's turn.
    pub(super) idle: Duration,
    /// A call for which there is no permit.
    pub(super) wait: Duration,
}

/// Limits of the server. Of those marked as shared, one caller has a share at most.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The share that one caller may have of connections, calls, streams, sessions, and the
    /// bytes of requests and answers, in percent. A caller is who signs in, or else an address.
    pub share_percent: u8,
    /// Unary calls in work at once; more wait, then are refused. Shared.
    pub calls: usize,
    /// Streams open at once; more wait, then are refused. Shared.
    pub streams: usize,
    /// Streams of workers open at once; more wait, then are refused. Not shared: they have a
    /// token.
    pub workers: usize,
    /// Connections open at once; more wait. Shared by addresses: more of one are closed.
    pub connections: usize,
    /// Handshakes of TLS in work at once; more wait, then are closed. Shared.
    pub handshakes: usize,
    /// MCP sessions open at once; for more, the one idle for longest ends. Shared.
    /// Requests of protocol version 2026-07-28 need none.
    pub sessions: usize,
    /// Minutes after its client's last message, with no stream open, at which an MCP
    /// session ends.
    pub session_minutes: u64,
    /// Calls of one connection in work at once; more wait.
    pub streams_per_connection: u32,
    /// MiB of requests that arrive or are in work; more wait, then are refused. Shared.
    pub request_mib: usize,
    /// MiB of answers that wait for their readers; more wait, then are refused. Shared.
    pub answer_mib: usize,
    /// Seconds that a unary call, or the work in a stream, may take; a caller's own deadline
    /// is honoured where it is shorter.
    pub deadline_seconds: u64,
    /// Seconds that a call waits for a permit, and for the refusal where the server is
    /// overloaded; half of its own time where that is shorter. 0: it is refused at once.
    pub wait_seconds: u64,
    /// Seconds in which a client sends its first bytes, sends the headers of a request, and
    /// answers a ping.
    pub header_seconds: u64,
    /// Seconds that a client may send nothing of a body that it has begun.
    pub body_seconds: u64,
    /// Bytes a second of a body after that, at least.
    pub body_bytes_per_second: u64,
    /// Seconds that a client may read nothing of an answer.
    pub read_seconds: u64,
    /// Seconds that a client may send no message on a stream of messages.
    pub idle_seconds: u64,
    /// Seconds that a server which a window started stays when nobody is connected.
    pub linger_seconds: u64,
    /// How many calls a caller may make over time.
    pub quotas: QuotasConfig,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Half, so that one caller uses a quiet server well and never takes all of a busy one.
            share_percent: 50,
            calls: 512,
            streams: 1024,
            workers: 256,
            connections: 4096,
            handshakes: 512,
            sessions: 1024,
            session_minutes: 60,
            streams_per_connection: 256,
            request_mib: 256,
            answer_mib: 256,
            deadline_seconds: DEFAULT_DEADLINE.as_secs(),
            wait_seconds: 2,
            header_seconds: 10,
            body_seconds: 10,
            body_bytes_per_second: 1024,
            read_seconds: 60,
            idle_seconds: 300,
            linger_seconds: 60,
            quotas: QuotasConfig::default(),
        }
    }
}

impl Limits {
    pub(super) fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_seconds)
    }

    pub(super) fn header_time(&self) -> Duration {
        Duration::from_secs(self.header_seconds)
    }

    pub(super) fn read_time(&self) -> Duration {
        Duration::from_secs(self.read_seconds)
    }

    pub(super) fn session_time(&self) -> Duration {
        Duration::from_secs(self.session_minutes.saturating_mul(60))
    }

    pub(super) fn times(&self) -> Times {
        Times {
            deadline: self.deadline(),
            idle: Duration::from_secs(self.idle_seconds),
            wait: Duration::from_secs(self.wait_seconds),
        }
    }

    /// Returns the storage limits of namespaces.
    pub(super) fn storage(&self) -> StorageLimits {
        let limit = |skills: Option<NonZeroU32>, mib: Option<NonZeroU32>| StorageLimit {
            skills: skills.map(|skills| skills.get().into()),
            bytes: mib.map(|mib| u64::from(mib.get()) << 20),
        };
        let quotas = &self.quotas;
        let some = quotas.namespaces.iter();
        // Ids compare without case.
        let some = some.map(|(name, of)| (name.to_ascii_lowercase(), limit(of.skills, of.mib)));
        StorageLimits {
            all: limit(quotas.skills_per_namespace, quotas.mib_per_namespace),
            some: some.collect(),
        }
    }

    /// Returns the limits on what callers hold at once.
    pub(super) fn admission(&self) -> Admission {
        let amounts = Amounts {
            connections: self.connections,
            handshakes: self.handshakes,
            calls: self.calls,
            streams: self.streams,
            workers: self.workers,
            sessions: self.sessions,
            request_kib: self.request_mib << 10,
            answer_kib: self.answer_mib << 10,
        };
        let pace = Pace {
            grace: Duration::from_secs(self.body_seconds),
            bytes_per_second: self.body_bytes_per_second,
            wait: self.deadline(),
        };
        Admission::new(amounts, self.share_percent, pace)
    }
}
