//! Where skills come from over the network: repositories, indexes and other servers.
//!
//! | module | which places |
//! |---|---|
//! | `git` | Git repositories |
//! | `github` | repositories of GitHub, by its API |
//! | `well_known` | indexes below `/.well-known` of web sites |
//! | `clawhub` | registries that speak `ClawHub`'s protocol |
//! | `repertoire` | other servers of this kind |
//! | `web`, `archive`, `journal`, `place_cache` | what several of them need |
//!
//! Each is a [`Fetch`], and keeps to the rules of `sources`.
//!
//! Not here: folders (`sources`), which source is what (the server), what becomes of what is
//! read (`sync`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod archive;
mod clawhub;
mod git;
mod github;
mod journal;
mod place_cache;
mod repertoire;
#[cfg(test)]
mod tests;
mod web;
mod well_known;

pub use self::git::{Git, GitOptions};
pub use ::git::Credential as GitCredential;
pub use clawhub::ClawHub;
pub use github::{GitHub, GitHubOptions};
pub use repertoire::Repertoire;
pub use well_known::WellKnown;

use sources::{
    Error, Fetch, Files, Item, Limits, Listing, Look, RateLimit, RepositoryFacts, Work,
    run_blocking,
};
