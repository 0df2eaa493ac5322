//! What can go wrong with finding, and what each means to a caller.

use super::{analysis, index};
use crate::model::{Code, Failure, SkillUriError};
use crate::registry;

/// After this, an index that is made anew can be searched again, or says how far it is.
const REBUILDING: std::time::Duration = std::time::Duration::from_secs(1);

const FORM: &str = "Write the URI as `skill://NAME` or `skill://SOURCE/AUTHOR/NAME/SKILL.md`";

/// A read failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No skill of this short name.
    #[error("Skill '{name}' not found in index")]
    NameNotFound {
        /// What the caller asked for.
        name: String,
    },
    /// A text is not the address of a skill.
    #[error(transparent)]
    Uri(#[from] SkillUriError),
    /// The file is not text.
    #[error("'{path}' of '{id}' is not text")]
    NotText {
        /// The skill.
        id: crate::model::SkillId,
        /// The file.
        path: String,
    },
    /// Two ways to name a version at once, or none that can be read.
    #[error("{message}")]
    Parameter {
        /// Field of the request.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] crate::executor::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NameNotFound { name } => {
                registry::Error::SkillNotFound { reference: name }.into()
            }
            Error::Uri(_) => Failure::new(Code::InvalidParameter, message.clone())
                .field("uri", message)
                .suggest(FORM)
                .suggest("List the skills to see which there are"),
            Error::NotText { id, path } => Failure::new(Code::FileNotText, message)
                .detail("skill_id", id)
                .detail("path", path)
                .suggest("Read its bytes, as a file of the skill"),
            Error::Parameter { field, .. } => {
                Failure::new(Code::InvalidParameter, message.clone()).field(field, message)
            }
            Error::Registry(error) => error.into(),
            Error::Work(error) => error.into(),
        }
    }
}

impl From<analysis::Error> for Failure {
    fn from(error: analysis::Error) -> Self {
        let message = error.to_string();
        let field = match error {
            analysis::Error::InlineTooLarge { .. } => "files",
            _ => "path",
        };
        let failure = Failure::new(Code::InvalidParameter, message.clone()).field(field, message);
        match error {
            analysis::Error::NoRoots | analysis::Error::NotBelowRoot { .. } => failure
                .suggest("Send the manifests of the codebase in `files`; `repertoire analyze` does that for a folder of yours")
                .suggest("Ask the operator to name a root in `analysis.roots`"),
            analysis::Error::InlineTooLarge { .. } => {
                failure.suggest("Send manifests and lockfiles with their text, other files by name alone")
            }
            analysis::Error::NotFound { .. }
            | analysis::Error::NotADirectory { .. }
            | analysis::Error::Unreadable { .. } => {
                failure.suggest("Name the folder of the codebase, as the server sees it")
            }
        }
    }
}

impl From<index::Error> for Failure {
    fn from(error: index::Error) -> Self {
        match error {
            index::Error::Registry(error) => error.into(),
            index::Error::Work(error) => error.into(),
            index::Error::Rebuilding => {
                let mut failure = Self::new(Code::IndexUnavailable, error.to_string());
                failure.retry_after = Some(REBUILDING);
                failure.suggest("Try again in a moment")
            }
            // The index is made anew by itself.
            error => Self::fault(error),
        }
    }
}
