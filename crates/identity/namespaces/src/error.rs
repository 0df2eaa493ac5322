//! The errors of namespaces.

use model::{Code, Failure, Principal};

/// Why a namespace cannot be changed.
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
    /// Neither an owner nor an administrator asks.
    #[error("{caller} does not own {namespace}, so it may not change its owners or visibility")]
    NotOwner {
        /// The caller.
        caller: Principal,
        /// The namespace.
        namespace: String,
    },
    /// The limit on namespaces with a record is reached.
    #[error("There are {max} namespaces with settings, the maximum")]
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
            Error::NotOwner { namespace, .. } => Self::new(Code::NamespaceNotOwned, message)
                .detail("namespace", &namespace)
                .suggest(format!(
                    "Ask an owner of {namespace}, or the operator"
                )),
            Error::TooMany { .. } => Self::new(Code::InvalidParameter, message)
                .suggest("Set the most common visibility as `namespaces.visibility` in the config file, and only the exceptions by namespace"),
            Error::Read(error) => error.into(),
            Error::Write(error) => error.into(),
        }
    }
}
