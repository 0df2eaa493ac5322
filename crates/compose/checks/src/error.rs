//! What can go wrong with checks, and what each means to a caller.

use model::{Code, Failure, SkillId};

/// A check failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A skill has no version that is asked for.
    #[error("'{id}' has no version {wish}")]
    NoVersion {
        /// The skill.
        id: SkillId,
        /// What was asked for.
        wish: String,
    },
    /// A skill could not be found.
    #[error(transparent)]
    Lookup(#[from] lookup::Error),
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// The skills could not be composed.
    #[error(transparent)]
    Composition(#[from] composition::Error),
    /// The list of what is installed cannot be read.
    #[error(transparent)]
    Installed(Failure),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NoVersion { id, wish } => Failure::new(Code::VersionNotFound, message)
                .detail("skill_id", id)
                .detail("version", wish)
                .suggest("List the versions of the skill"),
            Error::Lookup(error) => error.into(),
            Error::Registry(error) => error.into(),
            Error::Composition(error) => error.into(),
            Error::Installed(failure) => failure,
            Error::Work(error) => error.into(),
        }
    }
}
