//! The tokens of a server: created, recognized, listed, rotated, revoked; the callers that client
//! certificates sign in; and the caller of a request.
//!
//! Rules:
//!
//! * The store holds a digest of a token's text. 256 random bits need no slow hash: nobody
//!   guesses them, and a look-up by digest takes as long for a near miss as for a far one.
//! * The name of a token is the identity of its caller: rotating a token keeps it, and the name of
//!   a revoked one is never given again.
//! * Rotating or revoking a token ends the streams and sessions that were begun with it
//!   ([`Caller::ended`](access::Caller::ended)).
//! * A certificate belongs to a connection, a token to a request: where both are presented, the
//!   token says who calls.
//! * Randomness is handed in, and so is the time.
//!
//! Not here: tokens of other issuers (`oidc`), what the actions of a token are (`access`),
//! whether a certificate is genuine (`tls`), how requests are received (`server`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod certificates;
mod error;
mod secret;
mod sign_in;
mod sign_in_config;
#[cfg(test)]
mod tests;
mod tokens;

pub use certificates::{CertificateName, CertificateRule};
pub use error::{Error, Unrecognized};
pub use secret::{PREFIX, Secret};
pub use sign_in::{PresentedCredential, SignIn, TokenExpiry};
pub use sign_in_config::{Loopback, Mode, SignInConfig};
pub use tokens::{NewToken, Token, Tokens};
