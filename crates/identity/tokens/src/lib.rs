//! The tokens of a server: made, recognized, listed, revoked; whom certificates of clients sign
//! in; and who a request is of.
//!
//! Rules:
//!
//! * Of a token's text the store has a digest. 256 random bits need no slow hash: nobody
//!   guesses them, and a look-up by digest takes as long for a near miss as for a far one.
//! * A token that is revoked ends what was begun with it
//!   ([`Caller::ended`](access::Caller::ended)).
//! * A certificate belongs to a connection, a token to a request: where both are shown, the
//!   token says who calls.
//! * Randomness is handed in, and so is the time.
//!
//! Not here: tokens of other issuers (`oidc`), what the actions of a token are (`access`),
//! whether a certificate is genuine (`tls`), where a request comes in (`server`).

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
#[cfg(test)]
mod tests;
mod tokens;

pub use certificates::{CertificateName, CertificateRule};
pub use error::{Error, Unrecognized};
pub use secret::{PREFIX, Secret};
pub use sign_in::{Mode, PresentedCredential, SignIn, SignInConfig, TokenExpiry};
pub use tokens::{NewToken, Token, Tokens};
