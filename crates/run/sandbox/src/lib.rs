//! Runs what strangers wrote: in a child process that computes and can do nothing else.
//!
//! The parent sends a [`Job`] and reads one [`Outcome`] for each of its cases. It says what
//! came out and never whether that is right: what is expected stays with the parent, so
//! nothing inside can read it.
//!
//! The child limits itself before it runs anything ([`confine`]); inside, each case has an
//! engine of its own, with limits of its own. Values are taken apart by the sandbox and not
//! by text that is made inside, so nothing that a stranger changes there changes them.
//! Whatever the child does, the parent ends it when its time is over.
//!
//! Not here: what an outcome should have been (`courses`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod child;
mod confinement;
mod deadline;
mod job;
mod js;
mod parent;
mod sql;

pub use child::child;
pub use confinement::{Confinement, confine};
pub use job::{Cell, Job, Limits, Outcome, Program, SqlCase, Stopped, TestOutcome, Value};
pub use parent::{Sandbox, SandboxError};
