//! What tests of several crates share. Nothing else uses it.
//!
//! A feature adds what needs more than the standard library, so that a crate at the
//! bottom is tested without the crates above it:
//! * always: [`fuzz`](fn@fuzz), [`skip`](fn@skip), [`at_night`], what may be tried on a database
//!   ([`attempts`]), and solutions of exercises ([`known_solutions`]);
//! * `registry`: a clock that a test moves, a registry in a folder, skills in it;
//! * `port`: a port that is held for a program;
//! * `databases`: `PostgreSQL` and `MariaDB` from the packages of the system.
//!
//! The crates `model`, `store` and `registry` cannot use `registry` in tests of their
//! own: to them it is made of other types of the same names.

#![expect(
    clippy::missing_panics_doc,
    reason = "what goes wrong in a test is a panic"
)]

pub mod attempts;
#[cfg(feature = "databases")]
pub mod databases;
mod fuzz;
mod night;
#[cfg(feature = "port")]
mod port;
#[cfg(feature = "registry")]
mod registry;
mod skip;
mod solutions;

pub use fuzz::fuzz;
pub use night::at_night;
#[cfg(feature = "port")]
pub use port::Port;
#[cfg(feature = "registry")]
pub use registry::{Hands, caller, options, publish, registry, skill_md};
pub use skip::skip;
pub use solutions::{KnownSolution, exercises_with_solutions, known_solutions};
