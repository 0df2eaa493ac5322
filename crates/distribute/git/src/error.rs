//! Errors of fetching and reading a repository.

use std::time::Duration;

/// A repository cannot be fetched or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The URL, the ref or the folder is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The repository, the ref or the folder is not there, or not for the caller.
    #[error("{0}")]
    Refused(String),
    /// An address that the caller does not permit.
    #[error("`{address}` is {what}, which may not be called")]
    Address {
        /// The host as it was asked for, without a secret: not where its name leads.
        address: String,
        /// What sort of address it is, such as `a private address`.
        what: String,
    },
    /// It exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
    /// The server asks to come back later.
    #[error("the server accepts no more requests for now")]
    RateLimited {
        /// When to come back, from now on.
        after: Duration,
    },
    /// No answer, a broken one, or one that took too long: trying again may help.
    #[error("{0}")]
    Unavailable(String),
    /// The repository on this machine is damaged, or gone. The next
    /// [`super::Repository::update`] clones.
    #[error("the copy of the repository is damaged: {0}")]
    Damaged(String),
    /// The caller stopped it.
    #[error("it was stopped")]
    Stopped,
}

impl From<egress::ResolveError> for Error {
    fn from(error: egress::ResolveError) -> Self {
        match error {
            egress::ResolveError::Refused(egress::Refused { address, what }) => {
                Self::Address { address, what }
            }
            error @ egress::ResolveError::Unknown(_) => Self::Unavailable(error.to_string()),
        }
    }
}
