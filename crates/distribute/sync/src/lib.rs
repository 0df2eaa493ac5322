//! Keeps skills in step with their sources.
//!
//! A [`Source`] is a place with skills, as the operator names it: a folder, a repository, an
//! index, another server. A sync looks at some sources and publishes their skills to the
//! registry.
//!
//! Rules:
//!
//! * A skill of a source is read, scanned and published as a person's is. One that is refused
//!   is skipped with its reason, and never stops the rest.
//! * A skill belongs to the source that claimed it first. What a person published is never
//!   overwritten, and neither is a skill of another source.
//! * A sync that reads only what changed leaves the same as one that reads everything.
//! * What a source no longer has is withdrawn, not deleted; it is put back when it returns.
//! * What does not follow from what was there, such as a rewritten history or a lower
//!   version, is published and held for review.
//! * A sync may be killed at any point: the mark of a source is written after all else, so
//!   the next sync does the rest.
//! * One sync of a source at a time.
//!
//! Not here: how a place is listed (`sources`), what else is held for review (`registry`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod apply;
mod engine;
mod error;
mod health;
mod items;
mod namespace;
mod plan;
mod progress;
mod publish;
mod record;
mod run;
mod schedule;
mod source;
mod source_sync;
mod status;
#[cfg(test)]
mod tests;
mod watch;
mod webhook;
mod withdraw;

pub use engine::{Engine, Fetchers, Listed, Options, Removed};
pub use error::Error;
pub use health::{Health, HealthStatus, Overall};
pub use progress::{Kind, Phase, Progress};
pub use record::{Skip, SourceResult, SyncOutcome, SyncRecord};
pub use run::{Request, RunningSync};
pub use source::{Namespace, Source, SourceKind, is_web_address};
pub use sources::{GITHUB_API, RepositoryFacts};
pub use status::Status;
pub use webhook::{Refused, Webhook};
