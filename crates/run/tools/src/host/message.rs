//! Messages between workers and the host.

use std::time::Duration;

use crate::{Invocation, Output, Progress, ToolError};
use model::SkillId;

/// A worker's name, and the skills that it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The worker's own name, for logs.
    pub name: String,
    /// Skills it serves.
    pub skills: Vec<Served>,
    /// Calls it takes at once; 0: one.
    pub concurrency: u32,
}

/// A skill that a worker serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The skill.
    pub skill: SkillId,
    /// Its methods.
    pub methods: Vec<String>,
}

/// From a worker.
#[derive(Debug, Clone, PartialEq)]
pub enum FromWorker {
    /// Its first message.
    Hello(Hello),
    /// The outcome of a call.
    Outcome {
        /// The call.
        id: String,
        /// Its result.
        result: Result<Output, ToolError>,
    },
    /// An outcome that breaks the rules of the contract.
    Malformed {
        /// The call.
        id: String,
        /// Which rules.
        why: String,
    },
    /// How far a call is.
    Progress {
        /// The call.
        id: String,
        /// How far.
        progress: Progress,
    },
    /// It lives.
    Heartbeat,
    /// It takes no more calls.
    Drain,
    /// A message without content, or with one that a later contract knows.
    Unknown,
}

/// To a worker.
#[derive(Debug)]
pub enum ToWorker {
    /// It is let in.
    Welcome(Welcome),
    /// A call to make; its timeout is what is left of it.
    Invocation {
        /// The call.
        invocation: Box<Invocation>,
        /// Signed token of the caller; none: callers need not sign in.
        caller_token: Option<String>,
    },
    /// Nobody waits for a call any more.
    Cancel {
        /// The call.
        id: String,
        /// Why.
        reason: &'static str,
    },
    /// A message of the worker was dropped.
    Notice {
        /// The call that it names; empty: none.
        id: String,
        /// Description of the mistake.
        message: String,
    },
    /// The server lives.
    Heartbeat,
    /// The server is about to stop.
    Drain,
}

/// A worker is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The worker, as the log names it.
    pub worker: String,
    /// How often to give a sign of life.
    pub heartbeat: Duration,
    /// Calls it is given at once, at most.
    pub concurrency: u32,
    /// Bytes that a result may have.
    pub max_result_bytes: usize,
    /// Audience of the callers' tokens.
    pub audience: String,
}
