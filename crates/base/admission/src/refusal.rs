//! Refusals, as peers get them.

use super::{Full, IntakeError};
use model::{Code, Failure};

impl From<Full> for Failure {
    fn from(full: Full) -> Self {
        let again =
            "Try again after the time that RetryInfo or Retry-After gives, and later each time";
        match full {
            Full::All => Self::new(
                Code::Overloaded,
                "The server is at capacity",
            )
            .suggest(again),
            Full::Share => Self::new(
                Code::Overloaded,
                "This caller is at its share of the server's capacity",
            )
            .suggest(again)
            .suggest("Callers without a token are one caller for each address, and behind a proxy all one: raise limits.share_percent"),
        }
    }
}

impl<E: std::fmt::Display> From<IntakeError<E>> for Failure {
    fn from(error: IntakeError<E>) -> Self {
        let sentence = format!("The body of the request was not taken: {error}");
        match error {
            IntakeError::TooLarge { .. } => {
                Self::new(Code::BodyTooLarge, sentence).suggest("Send less at once")
            }
            IntakeError::Slow { .. } => {
                Self::new(Code::Timeout, sentence).suggest("Send it again over a faster connection")
            }
            IntakeError::Idle { .. } => Self::new(Code::Timeout, sentence)
                .suggest("End a stream that has nothing to send, and open another when it has"),
            IntakeError::Full(full) => full.into(),
            IntakeError::Broken(error) => Self::new(
                Code::InvalidParameter,
                format!("The body cannot be read: {error}"),
            )
            .suggest("Send it completely, with the stated length"),
        }
    }
}
