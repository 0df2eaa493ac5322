//! TLS of the server: certificates from files, their renewal, handshakes, and the certificates
//! that clients show.
//!
//! Rules:
//!
//! * TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1 by ALPN, the cryptography of `ring`.
//! * Files are polled for their contents: a link that replaces
//!   another one, as Kubernetes does it, is a change like any other. A change has to be the
//!   same in two polls, so that a half-written file is never loaded.
//! * With any of the files the whole configuration is replaced, and with it the sessions that
//!   a client may resume: nobody resumes one whose certificate was verified by an authority
//!   that is trusted no more.
//! * Files that cannot be used change nothing: the loaded ones stay, and the log says why.
//! * A client's certificate is verified again when the authorities change, and has an end: a
//!   connection does not outlive what it signed in with ([`ClientCertificate::lapsed`]).
//! * A handshake has a time limit, from the first byte to the last. How many there may be at
//!   once is up to the caller (`admission`).
//!
//! Not here: which port, who may have how many connections (`server`), what a certificate
//! allows (`tokens`), revocation lists.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod cleartext;
mod client;
mod config;
mod files;
mod handshake;
mod loaded;
mod report;
mod server;
#[cfg(test)]
mod tests;

pub use client::ClientCertificate;
pub use config::{ClientCertificates, Mistake, TlsConfig};
pub use handshake::{HandshakeError, Secured};
pub use report::Report;
pub use server::{ReloadOutcome, Tls};
