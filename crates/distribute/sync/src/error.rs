//! Errors of sources and syncs, and how a caller sees each.

use super::SourceResult;
use model::{Code, Failure};
use store::{CommitError, StoreError};

/// A call on sources or syncs failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the request is wrong.
    #[error("{message}")]
    Parameter {
        /// Its field.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// This build leaves out such places.
    #[error("This build leaves out the feature `{feature}`")]
    NotBuilt {
        /// The name of the feature.
        feature: &'static str,
    },
    /// There is no such source.
    #[error("There is no source '{id}'")]
    SourceNotFound {
        /// The id, as the caller gave it.
        id: String,
        /// Some of those that exist.
        known: Vec<String>,
    },
    /// The id is in use.
    #[error("There is a source '{id}' already")]
    SourceExists {
        /// Its id.
        id: String,
    },
    /// The source is in the config file.
    #[error("The source '{id}' is in the server's config file")]
    Configured {
        /// Its id.
        id: String,
    },
    /// The limit of sources is reached.
    #[error("There are {max} sources, the maximum")]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// There is no source at all.
    #[error("No source is set up")]
    NoSources,
    /// The source is being synced.
    #[error("'{sync}' is syncing '{source_id}'")]
    InProgress {
        /// The sync.
        sync: String,
        /// The source.
        source_id: String,
    },
    /// Every source of a sync failed.
    #[error("{}", failures(sources))]
    AllFailed {
        /// The sync.
        sync: String,
        /// Its results.
        sources: Vec<SourceResult>,
    },
    /// There is no such sync, or its record was removed.
    #[error("There is no sync '{id}'; the last {max} are remembered")]
    SyncNotFound {
        /// The id, as the caller gave it.
        id: String,
        /// How many records are kept.
        max: u64,
    },
    /// The server is about to stop.
    #[error("The server is about to stop")]
    Stopping,
    /// The server cannot do it now.
    #[error("{message}")]
    Here {
        /// What failed.
        message: String,
    },
    /// The registry refused.
    #[error(transparent)]
    Registry(#[from] registry::Error),
}

/// Sources that a message names.
const MAX_NAMED: usize = 5;

/// What failed, source by source.
fn failures(sources: &[SourceResult]) -> String {
    let named = sources.iter().take(MAX_NAMED);
    let named: Vec<String> = named
        .map(|result| {
            let error = result.error.as_deref().unwrap_or_default();
            format!("'{}' could not be synced: {error}", result.source)
        })
        .collect();
    match sources.len().saturating_sub(MAX_NAMED) {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Registry(error.into())
    }
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        Self::Registry(error.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Parameter { field, message } => {
                Failure::new(Code::InvalidParameter, format!("{field}: {message}"))
                    .field(field, message)
            }
            Error::NotBuilt { feature } => Failure::not_built(feature),
            Error::SourceNotFound { known, .. } => {
                let failure = Failure::new(Code::SourceNotFound, message);
                if known.is_empty() {
                    failure.suggest("Add one with `repertoire source add`, or in the config file")
                } else {
                    failure.suggest(format!("There is: {}", known.join(", ")))
                }
            }
            Error::SourceExists { id } => Failure::new(Code::SourceExists, message)
                .suggest(format!("Choose another id, or remove `{id}` first")),
            Error::Configured { .. } => Failure::new(Code::SourceExists, message)
                .suggest("Change it there, and restart the server"),
            Error::TooMany { .. } => Failure::new(Code::InvalidParameter, message)
                .suggest("Remove one, or have one source select more"),
            Error::NoSources => Failure::new(Code::SourceNotFound, message)
                .suggest("Add one with `repertoire source add`, or in the config file"),
            Error::InProgress { sync, .. } => Failure::new(Code::SyncInProgress, message)
                .suggest(format!("Follow it: get_sync_status with sync_id `{sync}`")),
            Error::AllFailed { sync, .. } => Failure::new(Code::SyncFailed, message)
                .suggest(format!("See get_sync_status with sync_id `{sync}`"))
                .suggest("get_source_health has the health of each source in the last 24 hours"),
            Error::SyncNotFound { .. } => Failure::new(Code::SyncNotFound, message)
                .suggest("Omit `sync_id`, and ask for the history"),
            Error::Here { .. } => Failure::new(Code::StoreUnavailable, message),
            Error::Stopping => Failure::new(Code::ShuttingDown, message),
            Error::Registry(error) => error.into(),
        }
    }
}
