//! Places with skills on the network: repositories, indexes and other servers.
//!
//! | module | places |
//! |---|---|
//! | `git` | Git repositories |
//! | `github` | repositories of GitHub, by its API |
//! | `well_known` | indexes below `/.well-known` of web sites |
//! | `clawhub` | registries that speak `ClawHub`'s protocol |
//! | `repertoire` | other servers of this kind |
//! | `web`, `archive`, `journal`, `place_cache` | shared by several of them |
//!
//! Each is a [`Fetch`], and keeps the rules of `sources`.
//!
//! Not here: folders (`sources`), settings (the server), publishing (`sync`).

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

pub use self::git::Git;
pub use ::git::{Credential as GitCredential, RemoteOptions as GitOptions};
pub use clawhub::ClawHub;
pub use github::{GitHub, GitHubOptions};
pub use repertoire::Repertoire;
pub use well_known::WellKnown;

use sources::{
    Error, Fetch, Files, Item, Limits, Listing, Look, RateLimit, RepositoryFacts, Work,
    run_blocking,
};
