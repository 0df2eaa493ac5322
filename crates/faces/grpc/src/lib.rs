//! The gRPC services: a message taken apart, one call into the domain, an answer.
//!
//! Rules:
//!
//! * No logic: the domain decides what a call does, the contract what a message must look
//!   like, which is checked where it is decoded ([`CheckedCodec`](contract::CheckedCodec)).
//! * A handler is a method of what its caller sees ([`View`](contract::handlers::View)), so
//!   none can read what its caller may not.
//! * Every failure becomes a status in one place, [`contract::status()`].
//!
//! Not here: listeners, limits and deadlines (`server`), other faces.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod access;
pub mod admin;
mod audit;
mod blocklist;
mod bulk;
mod checks;
mod codebase;
mod composed;
pub mod composition;
mod convert;
mod enums;
mod export;
mod facets;
mod in_review;
mod installed;
#[cfg(feature = "learning")]
pub mod learning;
pub mod lookup;
mod namespace;
mod publish;
pub mod registry;
mod search;
mod similar;
mod sources;
mod sync;
#[cfg(test)]
mod tests;
pub mod tool_host;
mod tools;
mod trust;
mod usage;
mod viewer;
mod watch;

pub use access::AccessService;
pub use audit::AuditService;
pub use viewer::{CallerPlace, Viewer};

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future;
use futures_util::future::Either;
use tonic::Request;

use ::access::Access;
use ::registry::Caller;
use contract::access_of;
use executor::DEFAULT_DEADLINE;
use model::{Code, Digest, Failure, Principal, Reference, VersionNumber, VersionSelector};

/// Returns the caller of a request and its rights, as the layers of the server established them.
fn access<T>(request: &Request<T>) -> Access {
    access_of(request.extensions())
}

/// Returns the principal that makes a call.
fn principal<T>(request: &Request<T>) -> Principal {
    access(request).caller.principal.clone()
}

/// The time by which work for a caller must end: when it stops waiting, at the latest. The layers
/// of the server put it into each request.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(pub tokio::time::Instant);

/// The folder in which a caller on this machine was started, as it states itself; the local socket
/// of the server puts it into each request. Codebases are read there for the caller, which could
/// read them itself.
#[derive(Debug, Clone)]
pub struct CallerFolder(pub PathBuf);

/// The part of a caller's time that is left for the answer to travel back.
// The handler knows best why it was late, and what the caller can do about it. On a busy
// machine or a slow line 20 ms passed before its answer came.
const DEADLINE_MARGIN: Duration = Duration::from_millis(200);

/// Returns how long work for a caller may take.
fn time_left<T>(request: &Request<T>) -> Duration {
    let Some(Deadline(deadline)) = request.extensions().get() else {
        return DEFAULT_DEADLINE;
    };
    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
    // A tenth at most: the margin must not eat up a short deadline.
    left.saturating_sub(DEADLINE_MARGIN.min(left / 10))
}

/// Returns the caller of a write, with its idempotency key. `method` distinguishes requests that
/// have the same fields.
fn caller<T: prost::Message>(request: &Request<T>, method: &str, key: &str) -> Caller {
    // A closure, since most writes have no key and need no digest.
    Caller::named(principal(request), key, || {
        let request = request.get_ref().encode_to_vec();
        // The digest exposes a key that is used again for another write. No method name holds NUL,
        // so two different pairs never give the same bytes.
        Digest::of(&[method.as_bytes(), b"\0", &request].concat())
    })
}

/// Returns the version that a request asks for: by number, else by semantic version, else
/// the active one.
fn selector(number: u32, semantic: &str) -> Result<VersionSelector, Failure> {
    match (VersionNumber::new(number), semantic) {
        (None, "") => Ok(VersionSelector::Active),
        (Some(number), "") => Ok(VersionSelector::Number(number)),
        (None, semantic) => semantic
            .parse()
            .map(VersionSelector::Semantic)
            .map_err(|_| {
                wrong(
                    "semantic_version",
                    format!("'{semantic}' is not a semantic version, such as 1.2.0"),
                )
            }),
        (Some(_), _) => Err(wrong(
            "semantic_version",
            "a version is named by its number or by its semantic version, not by both",
        )),
    }
}

/// Returns the version that a write names.
fn named(number: u32, semantic: &str) -> Result<VersionSelector, Failure> {
    // A write to "the active version" would hit another one if somebody publishes first.
    match selector(number, semantic)? {
        VersionSelector::Active => {
            let step = "Name a version: by `version_number` or by `semantic_version`";
            Err(missing("version_number").suggest(step))
        }
        version => Ok(version),
    }
}

fn wrong(field: &str, message: impl Display) -> Failure {
    let message = message.to_string();
    Failure::new(Code::InvalidParameter, message.clone()).field(field, message)
}

/// Builds the refusal for a field that only some requests need.
fn missing(field: &str) -> Failure {
    Failure::new(Code::MissingParameter, format!("{field}: Required")).field(field, "Required")
}

/// Returns the skill that a request names, and the version of it.
fn target(
    skill_id: &str,
    number: u32,
    semantic: &str,
) -> Result<(Reference, VersionSelector), Failure> {
    Ok((Reference::parse(skill_id), selector(number, semantic)?))
}

// Defaults of what an answer holds. Those of what a call does belong to the domain
// (`ScanOptions::default()`, `Wish::default()`, `Submission::ACTIVATE`).
/// The beginning of its SKILL.md, with a skill.
const README: bool = true;
/// Reasons, with a recommendation.
const REASONS: bool = true;
/// Skills of a list.
const DEFAULT_SKILLS: usize = 100;
/// Skills of a search.
const DEFAULT_SEARCH_RESULTS: usize = 10;
/// Skills that are similar to one, and how similar they are at least.
const DEFAULT_SIMILAR_SKILLS: usize = 20;
const MIN_SIMILARITY: f64 = 0.7;
/// Names that begin with a text.
const DEFAULT_NAMES: usize = 100;
/// Versions of a list.
const DEFAULT_VERSIONS: usize = 50;
/// Versions that come with a skill.
const DEFAULT_SKILL_VERSIONS: usize = 20;
/// Skills that require the one that is asked for.
const DEFAULT_DEPENDENTS: usize = 100;
/// Namespaces of a page.
const DEFAULT_NAMESPACES: usize = 100;
/// Skills on the blocklist.
const DEFAULT_BLOCKED_SKILLS: usize = 100;
/// Versions that are held, on a page.
const DEFAULT_HELD_VERSIONS: usize = 100;
/// A refresh of the blocklist takes the feed in.
const FEED: bool = true;
/// Whether its files are what was installed, with an installed skill.
const HEALTH: bool = true;
/// A skill that is given a priority keeps it.
const LOCK: bool = true;
/// Records of calls.
const DEFAULT_CALL_RECORDS: usize = 100;

/// A skill is compared with those that are installed.
const AGAINST_INSTALLED: bool = true;
/// The budget includes installed skills.
const WITH_CURRENT: bool = true;
/// Recommendations, with the problems.
const RECOMMENDATIONS: bool = true;

fn page_size(asked: i32, default: usize) -> usize {
    usize::try_from(asked)
        .ok()
        .filter(|size| *size > 0)
        .unwrap_or(default)
}

/// Waits for a number of seconds; 0 waits for ever.
fn waited(seconds: i32) -> impl Future<Output = ()> + Send {
    match seconds.unsigned_abs() {
        0 => Either::Left(future::pending()),
        seconds => Either::Right(tokio::time::sleep(Duration::from_secs(seconds.into()))),
    }
}

fn number(number: Option<VersionNumber>) -> u32 {
    number.map_or(0, VersionNumber::get)
}

/// Returns a text, or none where it is empty: proto3 sends one that was left out as empty.
fn given<T: AsRef<str>>(text: T) -> Option<T> {
    Some(text).filter(|text| !text.as_ref().is_empty())
}
