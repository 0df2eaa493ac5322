//! The resources that peers can hold, and their amounts.

use tokio::sync::Semaphore;

/// A resource that a peer can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Open connections.
    Connections,
    /// Handshakes of TLS in work.
    Handshakes,
    /// Unary calls in work.
    Calls,
    /// Open streams.
    Streams,
    /// Streams of workers, which have a limit of their own, so that watchers cannot
    /// lock them out. They prove themselves by a token, so one address may have all.
    Workers,
    /// MCP sessions.
    Sessions,
    /// KiB of requests that arrive or are in work.
    Requests,
    /// KiB of answers that wait for their readers.
    Answers,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Connections,
        Self::Handshakes,
        Self::Calls,
        Self::Streams,
        Self::Workers,
        Self::Sessions,
        Self::Requests,
        Self::Answers,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Handshakes => "handshakes",
            Self::Calls => "calls",
            Self::Streams => "streams",
            Self::Workers => "workers",
            Self::Sessions => "sessions",
            Self::Requests => "request_kib",
            Self::Answers => "answer_kib",
        }
    }
}

/// The amount of each resource, for all peers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts {
    /// Connections.
    pub connections: usize,
    /// Handshakes of TLS.
    pub handshakes: usize,
    /// Unary calls.
    pub calls: usize,
    /// Streams.
    pub streams: usize,
    /// Streams of workers.
    pub workers: usize,
    /// MCP sessions.
    pub sessions: usize,
    /// KiB of requests.
    pub request_kib: usize,
    /// KiB of answers.
    pub answer_kib: usize,
}

impl Amounts {
    /// No limits to speak of.
    pub const UNLIMITED: Self = Self {
        connections: Semaphore::MAX_PERMITS,
        handshakes: Semaphore::MAX_PERMITS,
        calls: Semaphore::MAX_PERMITS,
        streams: Semaphore::MAX_PERMITS,
        workers: Semaphore::MAX_PERMITS,
        sessions: Semaphore::MAX_PERMITS,
        request_kib: Semaphore::MAX_PERMITS,
        answer_kib: Semaphore::MAX_PERMITS,
    };

    pub(super) const fn of(&self, resource: Resource) -> usize {
        match resource {
            Resource::Connections => self.connections,
            Resource::Handshakes => self.handshakes,
            Resource::Calls => self.calls,
            Resource::Streams => self.streams,
            Resource::Workers => self.workers,
            Resource::Sessions => self.sessions,
            Resource::Requests => self.request_kib,
            Resource::Answers => self.answer_kib,
        }
    }
}
