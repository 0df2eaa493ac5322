//! Access: actions, the rights of a caller, and the decisions by them.
//!
//! Rules:
//!
//! * An [`Action`] is a verb of the contract. Only the contract says which call needs which;
//!   this crate says which callers have it.
//! * [`Rights`] are actions, and the skills that they may be done to. Actions that are done to
//!   no one skill are bound to none.
//! * A caller that is bound to some skills names the skill of a write by its id: a short name
//!   may lead to another skill between the decision and the write.
//!
//! Not here: sign-in (`tokens`, and the server's local socket), and the calls of these checks
//! (`server`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod action;
mod caller;
mod certificate;
mod decision;
mod rights;
#[cfg(test)]
mod tests;

pub use action::{Action, Role};
pub use caller::{Caller, Scope};
pub use certificate::CertificateNames;
pub use decision::{Access, Authorize, EVERY_SKILL, Limit, Origin};
pub use rights::{Actions, Rights};
