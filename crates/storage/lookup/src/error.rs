//! Errors of lookups, and the failure that a caller gets for each.

use model::{Code, Failure, SkillUriError};

const FORM: &str = "Write the URI as `skill://NAME` or `skill://SOURCE/AUTHOR/NAME/SKILL.md`";

/// A read failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text is not the address of a skill.
    #[error(transparent)]
    Uri(#[from] SkillUriError),
    /// The file is not text.
    #[error("'{path}' of '{id}' is not text")]
    NotText {
        /// The skill.
        id: model::SkillId,
        /// The file.
        path: String,
    },
    /// A write names its skill by something else than its id.
    #[error("'{name}' is not the full id of a skill, which this call needs")]
    FullIdRequired {
        /// The name.
        name: String,
        /// Skills that may be meant.
        ids: Vec<model::SkillId>,
    },
    /// Two ways to name a version at once, or none that can be read.
    #[error("{message}")]
    Parameter {
        /// Field of the request.
        field: &'static str,
        /// The mistake in it.
        message: String,
    },
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Uri(_) => Failure::new(Code::InvalidParameter, message.clone())
                .field("uri", message)
                .suggest(FORM)
                .suggest("Find a skill by what it is to do: the answer has the names"),
            Error::NotText { id, path } => Failure::new(Code::FileNotText, message)
                .detail("skill_id", id)
                .detail("path", path)
                .suggest("Read its bytes, as a file of the skill"),
            Error::FullIdRequired { name, ids } => {
                let failure = Failure::new(Code::FullIdRequired, message.clone())
                    .field("skill_id", message)
                    .detail("name", name);
                let failure = ids.iter().fold(failure, |failure, id| {
                    failure.suggest(format!("Write {id}, if you mean this skill"))
                });
                failure.suggest("Write the id as `source/author/slug`; the list of skills has it")
            }
            Error::Parameter { field, .. } => {
                Failure::new(Code::InvalidParameter, message.clone()).field(field, message)
            }
            Error::Registry(error) => error.into(),
            Error::Work(error) => error.into(),
        }
    }
}
