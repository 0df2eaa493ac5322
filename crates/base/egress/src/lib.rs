//! Which addresses the server may call, and a client that calls no others.
//!
//! Rules:
//!
//! * Public addresses only, unless the operator permits others by network.
//! * Names are resolved first, and their addresses are checked. The connection is made to an
//!   address that was checked, so a name that changes meanwhile gains nothing.
//! * Every redirect is checked as the first address was. A credential stays with the
//!   origin that it is for, and `https` never becomes `http`.
//! * No proxy of the environment, no cookies, no `Referer`.
//!
//! Not here: the requests, and what their callers do with the answers.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod address;
mod client;
mod resolve;
mod retry;
#[cfg(test)]
mod tests;

pub use address::{Egress, NetworkError, Refused};
pub use client::{Answer, Client, Error, Lookup, System, Timeouts, provide_tls};
pub use resolve::ResolveError;
pub use retry::{MAX_RETRY_DELAY, retry_after, server_time};
