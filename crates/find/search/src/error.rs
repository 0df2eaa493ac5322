//! Errors of the index. Hardly any reaches a caller: the index is made anew, and a search
//! sees the last state.

use embed::EmbedError;
use model::{Code, Failure};

/// The time after which an index that is made anew can be searched again, or reports progress.
const REBUILDING: std::time::Duration = std::time::Duration::from_secs(1);

/// The index cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The words.
    #[error("the index of words: {0}")]
    Words(#[from] tantivy::TantivyError),
    /// A file of the index.
    #[error("a file of the index: {0}")]
    Io(#[from] std::io::Error),
    /// The stored facts of a skill.
    #[error("the stored facts of a skill: {0}")]
    Facts(#[from] serde_json::Error),
    /// A document without its stored facts.
    #[error("a document of segment {segment} does not name its skill")]
    Damaged {
        /// The segment.
        segment: usize,
    },
    /// A file is not what was written.
    #[error("the file `{}` of the index of words is damaged", file.display())]
    Checksum {
        /// The file.
        file: std::path::PathBuf,
    },
    /// A search met damage.
    #[error("the search index is damaged, and is rebuilt")]
    Rebuilding,
    /// A filter has a word that no category or technology has.
    #[error("'{word}' is not a known {what}")]
    UnknownFacet {
        /// The field of the request.
        field: &'static str,
        /// The kind of word that it should be.
        what: &'static str,
        /// The word.
        word: String,
        /// The ids nearest to it.
        nearest: Vec<&'static str>,
    },
    /// Four thousand million skills.
    #[error("there are more skills than the index can number")]
    Full,
    /// Vectors cannot be made.
    #[error("the embedder: {0}")]
    Embed(#[from] EmbedError),
    /// The registry cannot be read.
    #[error(transparent)]
    Registry(#[from] registry::Error),
    /// Work was refused, or stopped.
    #[error(transparent)]
    Work(#[from] executor::Error),
    /// The work ended before it was done.
    #[error("the work on the index ended early: {0}")]
    Panicked(String),
}

impl Error {
    /// The store is opened again after a failed write: nothing is wrong with the index.
    pub(super) fn passes(&self) -> bool {
        matches!(self, Self::Registry(error) if error.passes())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Registry(error) => error.into(),
            Error::Work(error) => error.into(),
            Error::Rebuilding => {
                let mut failure = Self::new(Code::IndexUnavailable, error.to_string());
                failure.retry_after = Some(REBUILDING);
                failure.suggest("Try again in a moment")
            }
            Error::UnknownFacet {
                field,
                what,
                ref nearest,
                ..
            } => {
                let message = error.to_string();
                let failure = Self::new(Code::InvalidParameter, &message).field(field, &message);
                if nearest.is_empty() {
                    failure.suggest(format!(
                        "Leave out `{field}`, and name the {what} in the query"
                    ))
                } else {
                    failure.suggest(format!("Did you mean `{}`?", nearest.join("`, `")))
                }
            }
            // The index is made anew by itself.
            error => Self::fault(error),
        }
    }
}
