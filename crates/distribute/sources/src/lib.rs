//! Places with skills: the interface of all kinds, and folders on this machine.
//!
//! A [`Fetch`] is one such place. A look lists its skills; those that are new are read, one by
//! one.
//!
//! Rules:
//!
//! * A look lists all that there is *now*: what it does not list is not there. A place that
//!   cannot be listed in full is an error, never a shorter list.
//! * Two looks that give an item the same fingerprint stand for the same bytes.
//! * Nothing is written but in the folder that [`Work`] names, and nothing there matters: it
//!   may be deleted at any time.
//! * Every place is hostile: bytes, files, redirects and time have limits, addresses are
//!   checked after names are resolved, and no text of a place becomes a path.
//! * A secret is in no error, no log and no record.
//!
//! Not here: places on the network (`remote_sources`), publishing, schedules and state (`sync`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod blocking;
mod directory;
mod error;
mod fetch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use blocking::run_blocking;
pub use directory::Directory;
pub use error::Error;
pub use fetch::{Fetch, Files, Item, Limits, Listing, Look, RateLimit, RepositoryFacts, Work};

/// The address of GitHub's API, where a source names no other.
pub const GITHUB_API: &str = "https://api.github.com";
