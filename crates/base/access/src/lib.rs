//! Who may do what: actions, the rights of a caller, and what is decided by them.
//!
//! Rules:
//!
//! * An [`Action`] is a verb of the contract. Which call needs which stands in the contract
//!   alone; here is who has it.
//! * [`Rights`] are actions, and the skills that they may be done to. Actions that are done to
//!   no one skill are bound to none.
//! * Whoever is bound to some skills names the skill of a write by its id: what a short name
//!   leads to may change between the decision and the write.
//!
//! Not here: how a caller says who it is (`tokens`, and the server's local socket), and where
//! it is asked (`server`).

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
pub use decision::{Access, Authorize, Origin};
pub use rights::{Actions, Rights};
