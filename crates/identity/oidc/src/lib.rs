//! Sign-in by the JWTs of OpenID Connect issuers, and the metadata by which MCP clients
//! get one.
//!
//! Rules:
//!
//! * Signatures are asymmetric. A key takes the algorithms of its own family and no others, so
//!   that no public key is ever a secret of HMAC. `crit`, a type that is no access or ID token,
//!   and a token that is bound to a key of its holder (`cnf`) are refused.
//! * `iss`, `aud` and `exp` have to be there and right; `nbf` and `iat` where they are there.
//!   Clocks may differ by a minute. Time is handed in.
//! * Before the signature is right, a refusal says nothing that the token does not say itself.
//! * Keys are fetched in the background, one fetch of an issuer at a time, within limits on
//!   time and size, at addresses that `egress` permits, without following redirects. A call
//!   waits for them only where its token names a key that is not known, and not for long. Keys
//!   of an issuer that does not answer stay usable for a day.
//! * A verified token is cached by its SHA-256, until it expires or the keys of its
//!   issuer change. Its streams end when its key is withdrawn, or the settings of its
//!   issuer change.
//! * Rules are tried in order, and the first that matches decides what the caller may do. Scopes
//!   of a token take from that, and never add.
//!
//! Without the feature `issuers` there are no issuers, and settings that name one are refused.
//!
//! Not here: tokens of this server (`tokens`), how requests are received and what they need
//! (`server`), cryptography (`ring`), and the form of JWTs (`jsonwebtoken`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(feature = "issuers")]
mod claims;
mod config;
#[cfg(feature = "issuers")]
mod crypto;
#[cfg(feature = "issuers")]
mod fetch;
#[cfg(feature = "issuers")]
mod issuer;
#[cfg(feature = "issuers")]
mod issuers;
#[cfg(not(feature = "issuers"))]
#[path = "without.rs"]
mod issuers;
#[cfg(feature = "issuers")]
mod keys;
mod refused;
mod resource;
mod step_up;
#[cfg(test)]
mod tests;
#[cfg(feature = "issuers")]
mod verify;

pub use config::{ConfigError, IssuerConfig, PublicUrl, ScopeUse, check};
pub use issuers::{Issuers, Jwt, Waiting};
pub use refused::Refused;
pub use resource::{HEADER, ProtectedResource};
pub use step_up::StepUp;
