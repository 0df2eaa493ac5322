//! Errors of the trail.

use model::{Code, Failure};
use store::{CommitError, StoreError};

/// The trail cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A record is damaged, or the store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A page token is not one of this list.
    #[error("the page token is not one of this list with these filters")]
    PageToken,
    /// The server is broken.
    #[error("{0}")]
    Fault(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Commit(error) => error.into(),
            Error::PageToken => Self::new(
                Code::PageTokenInvalid,
                "The page token is not one of this list with these filters",
            )
            .field("page_token", "Not a token of this list")
            .suggest("Repeat the query with the filters that gave the token, or begin with the first page"),
            Error::Fault(cause) => Self::fault(cause),
        }
    }
}

/// A call was carried out, and its record is not durable.
pub(crate) fn unrecorded(error: CommitError) -> Failure {
    let mut failure = Failure::new(
        Code::StoreUnavailable,
        "The call was carried out, and its record in the audit trail could not be written",
    )
    .suggest("Read before you repeat it. Ask the operator to check its disk");
    failure.cause = Some(error.into());
    failure
}
