//! Errors of recommendations, and their failures.

use model::{Code, Failure};

/// A codebase cannot be analyzed, or skills cannot be recommended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory and files at once.
    #[error("`path` and `files` are two codebases; give one")]
    TwoCodebases,
    /// The codebase cannot be read.
    #[error(transparent)]
    Codebase(#[from] codebase::Error),
    /// The index cannot be read.
    #[error(transparent)]
    Search(#[from] search::Error),
    /// The registry cannot be read.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::TwoCodebases => {
                let message = error.to_string();
                Self::new(Code::InvalidParameter, message.clone())
                    .field("files", message)
                    .suggest("Send `files` alone for a codebase on your machine")
            }
            Error::Codebase(error) => error.into(),
            Error::Search(error) => error.into(),
            Error::Registry(error) => error.into(),
            Error::Work(error) => error.into(),
        }
    }
}
