//! Where skills come from: what every place of skills does, and folders on this machine.
//!
//! A [`Fetch`] is one such place. It is looked at, and lists what it has; what is new there is
//! read, skill by skill.
//!
//! Rules:
//!
//! * A look says what there is *now*, whole: what it does not list is not there. A place that
//!   cannot be read whole is an error, never a shorter list.
//! * Two looks that give an item the same fingerprint stand for the same bytes.
//! * Nothing is written but in the folder that [`Work`] names, and nothing there matters: it
//!   may be deleted at any time.
//! * Every place is hostile: bytes, files, redirects and time have limits, addresses are
//!   checked after names are resolved, and no text of a place becomes a path.
//! * A secret is in no error, no log and no record.
//!
//! Not here: places elsewhere (`remote_sources`), what becomes of what is read (`sync`),
//! schedules, state.

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
