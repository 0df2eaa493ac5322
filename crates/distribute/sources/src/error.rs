//! Errors of looks and reads.

use std::time::Duration;

use super::RateLimit;

/// A place cannot be listed, or one of its skills cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address or the ref of the place is invalid, or what it sent. Trying again changes
    /// nothing.
    #[error("{0}")]
    Invalid(String),
    /// This build leaves out such places, by the feature of this name.
    #[error("this build leaves out the feature `{0}`")]
    NotBuilt(&'static str),
    /// The place is not there, or does not let the caller in. Trying again changes nothing
    /// until somebody does.
    #[error("{0}")]
    Refused(String),
    /// The address is one that the server may not call.
    #[error("`{address}` is {what}, which this server may not call")]
    Address {
        /// Host or address, without a secret.
        address: String,
        /// What sort of address it is, such as `a private address`.
        what: String,
    },
    /// It exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
    /// The place asks callers to come back later.
    #[error("it accepts no more requests for now")]
    RateLimited {
        /// When to come back, from now on.
        after: Duration,
        /// The limit, where the place reports it.
        limit: Option<RateLimit>,
    },
    /// No answer, a broken one, or one that took too long: trying again may help.
    #[error("{0}")]
    Unavailable(String),
    /// The caller stopped it.
    #[error("it was stopped")]
    Stopped,
}

impl Error {
    /// Trying again a little later may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
