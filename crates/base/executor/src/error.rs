//! Reasons why work was not done, and their failures.

use super::Kind;
use model::{Code, Failure};

/// Work was not done, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The queue of its kind is full.
    #[error("The server has no capacity left to {}", .0.name())]
    Full(Kind),
    /// Half of the caller's time passed before it could be begun.
    #[error("The server has too much to {} to finish within the call's deadline", .0.name())]
    Late(Kind),
    /// The deadline passed.
    #[error("The deadline passed before the work was done")]
    Deadline,
    /// Nobody waits for it any more.
    #[error("The caller left before the work was done")]
    Left,
    /// The server stops.
    #[error("The server is about to stop")]
    Stopping,
    /// It panicked.
    #[error("a task failed: {0}")]
    Failed(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            // RetryInfo is added where the failure is spelled.
            Error::Full(_) | Error::Late(_) => Self::new(Code::Overloaded, message)
                .suggest("Try again after the time that RetryInfo gives, and later each time"),
            Error::Deadline | Error::Left => Self::new(Code::Timeout, message)
                .suggest("Allow more time, or ask for less at once"),
            Error::Stopping => {
                Self::new(Code::ShuttingDown, message).suggest("Connect again and repeat the call")
            }
            Error::Failed(_) => Self::fault(message),
        }
    }
}
