//! The failures that callers get for errors of the store.

use model::{Code, Failure};

use super::{CommitError, StoreError};

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let new = |code| Self::new(code, message);
        match error {
        StoreError::Damaged { .. } | StoreError::NewerFormat { .. } => {
            let mut failure = Failure::new(Code::DataDamaged, "A stored record is damaged")
                .suggest("Ask the operator to run `repertoire verify` and to restore a backup");
            failure.cause = Some(error.into());
            failure
        }
        StoreError::Engine(_) | StoreError::Reopening => {
            let mut failure =
                Failure::new(Code::StoreUnavailable, "The server cannot read its disk");
            failure = match error {
                StoreError::Reopening => failure.suggest("Try again in a moment"),
                _ => failure.suggest("Ask the operator to check the server's log and its disk"),
            };
            failure.cause = Some(error.into());
            failure
        }
        StoreError::Busy | StoreError::Outrun { .. } => {
            new(Code::Overloaded).suggest("Try again when there are fewer writes")
        }
        StoreError::Compacting => new(Code::Overloaded).suggest("Try again when it is done"),
        // Of a file that the operator asked for: a backup, or a store written anew.
        StoreError::Io { .. } => {
            new(Code::StoreUnavailable).suggest("Check the disk: nothing was changed")
        }
        StoreError::NotDurable { .. } => new(Code::StoreUnavailable).suggest(
            "Check the disk: the new store is in use, and writes wait until the disk confirms it",
        ),
        error => Failure::fault(error),
    }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        let next = match error {
            CommitError::Store(error) => return error.into(),
            CommitError::Conflict { .. } => {
                return Failure::new(
                    Code::WriteContention,
                    "other writes to the same records kept interfering",
                )
                .suggest("Try again");
            }
            CommitError::TooLarge { .. } | CommitError::KeyTooLong { .. } => {
                return Failure::new(Code::InvalidParameter, error.to_string());
            }
            CommitError::Closed => {
                return Failure::new(Code::ShuttingDown, "The server is about to stop")
                    .suggest("Try again in a moment");
            }
            CommitError::Unfollowed(_) => return Failure::fault(error),
            CommitError::DiskFull { .. } => {
                "Nothing was written, and reads go on. Ask the operator to make room on the server's disk"
            }
            CommitError::ReadOnly(_) => {
                "Nothing was written, and reads still work. Try again in a minute: the server retries its disk on its own, and logs the cause"
            }
            CommitError::Failed(_) => {
                "The server takes back what it wrote of it. Read before you repeat it, or repeat it under the same idempotency key"
            }
        };
        let mut failure = Failure::new(
            Code::StoreUnavailable,
            "The server cannot write to its disk",
        );
        failure = failure.suggest(next);
        failure.cause = Some(error.into());
        failure
    }
}
