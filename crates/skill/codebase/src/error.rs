//! Errors that refuse an analysis as a whole. A problem with one file is a note in
//! the answer instead.

use model::{Code, Failure};

/// Why there is no analysis.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator allowed no folder to be analyzed.
    #[error("no folder may be analysed here: the operator has allowed none")]
    NoRoots,
    /// Nothing is at the path.
    #[error("path '{path}' does not exist")]
    NotFound {
        /// The path of the request.
        path: String,
    },
    /// Something is there, but no folder.
    #[error("path '{path}' is not a directory")]
    NotADirectory {
        /// The path of the request.
        path: String,
    },
    /// The path, its symbolic links followed, is outside of every allowed root.
    #[error("path '{path}' is not below a folder that may be analysed")]
    NotBelowRoot {
        /// The path of the request.
        path: String,
    },
    /// The folder is there, but cannot be read.
    #[error("path '{path}' cannot be read: {reason}")]
    Unreadable {
        /// The path of the request.
        path: String,
        /// The message of the system.
        reason: String,
    },
    /// More files, or more bytes, than one request may bring.
    #[error("{what} of the inline files is {found}; at most {limit} are read in one request")]
    InlineTooLarge {
        /// The exceeded quantity: `number` or `size in bytes`.
        what: &'static str,
        /// The quantity that was sent.
        found: usize,
        /// The limit.
        limit: usize,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let field = match error {
            Error::InlineTooLarge { .. } => "files",
            _ => "path",
        };
        let failure = Failure::new(Code::InvalidParameter, message.clone()).field(field, message);
        match error {
            Error::NoRoots | Error::NotBelowRoot { .. } => failure
                .suggest("Send the manifests of the codebase in `files`; `repertoire analyze` does that for a folder of yours")
                .suggest("Ask the operator to name a root in `analysis.roots`"),
            Error::InlineTooLarge { .. } => {
                failure.suggest("Send manifests and lockfiles with their text, other files by name alone")
            }
            Error::NotFound { .. }
            | Error::NotADirectory { .. }
            | Error::Unreadable { .. } => {
                failure.suggest("Name the folder of the codebase, as the server sees it")
            }
        }
    }
}
