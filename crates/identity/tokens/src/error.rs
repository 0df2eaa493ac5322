//! The errors of tokens.

use jiff::Timestamp;

use model::{Code, Failure};

/// A token cannot be made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the request is wrong.
    #[error("{message}")]
    Parameter {
        /// Its field.
        field: &'static str,
        /// The message.
        message: String,
    },
    /// A token of this name exists.
    #[error("There is a token `{name}` already")]
    Exists {
        /// The name.
        name: String,
    },
    /// A token of this name was revoked.
    #[error("`{name}` was the name of a token that was created on {created_at} and is revoked")]
    Used {
        /// The name.
        name: String,
        /// When that token was created.
        created_at: Timestamp,
    },
    /// No token has this name.
    #[error("There is no token `{name}`")]
    NotFound {
        /// The name.
        name: String,
    },
    /// The limit on tokens is reached.
    #[error("There are {max} tokens, the maximum")]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] store::StoreError),
    /// The store cannot be written.
    #[error(transparent)]
    Write(#[from] store::CommitError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Parameter { field, message } => {
                Self::new(Code::InvalidParameter, &message).field(field, &message)
            }
            Error::Exists { .. } => Self::new(Code::TokenExists, message)
                .suggest("Choose another name; for a new text of that token, rotate it: RotateToken, or `repertoire token rotate NAME`"),
            Error::Used { .. } => Self::new(Code::TokenNameUsed, message)
                .suggest("Choose another name: what belongs to a caller belongs to its name, so a name is given once")
                .suggest("To replace the text of a token and keep its name, rotate it instead of revoking it"),
            Error::NotFound { .. } => Self::new(Code::TokenNotFound, message)
                .suggest("List the tokens with ListTokens, or `repertoire token list`"),
            Error::TooMany { .. } => Self::new(Code::InvalidParameter, message)
                .suggest("Revoke unused tokens: ListTokens has when each was last used"),
            Error::Read(error) => error.into(),
            Error::Write(error) => error.into(),
        }
    }
}

/// Why a presented token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecognized {
    /// This server has no such token: it never existed, or was revoked.
    Unknown,
    /// It has expired.
    Expired(Timestamp),
}
