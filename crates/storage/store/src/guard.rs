//! sled panics on damaged files, and describes damage in its own words. Here both become errors
//! of ours; its words go to the log, at debug.

use std::io;

use super::StoreError;
use model::caught;

/// Errors of a system that refuses, in the words that sled's panics pass on; the files are as
/// they were.
const REFUSALS: [&str; 5] = [
    "Permission denied",
    "No space left",
    "File too large",
    "Read-only file system",
    "Too many open files",
];

/// The cause of a failed call into sled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The files are open in another handle, or another process.
    Locked,
    /// The system refused.
    System(String),
    /// The files are not what was written.
    Damaged(String),
}

impl From<Cause> for StoreError {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Locked => Self::Engine("its files are open elsewhere".to_owned()),
            Cause::System(reason) | Cause::Damaged(reason) => Self::Engine(reason),
        }
    }
}

/// Runs a call into sled; its panic becomes an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    attempt(call).map_err(StoreError::from)
}

/// The same, with the kind of failure.
pub(super) fn attempt<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, Cause> {
    match caught(call) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            tracing::debug!(engine = %error, "the engine failed");
            Err(failed(&error))
        }
        Err(words) => {
            tracing::debug!(engine = words, "the engine panicked");
            Err(refusal(&words).map_or_else(
                || Cause::Damaged("its pages do not fit together".to_owned()),
                Cause::System,
            ))
        }
    }
}

fn failed(error: &sled::Error) -> Cause {
    let damaged = |what: &str| Cause::Damaged(what.to_owned());
    match error {
        sled::Error::Io(error) => {
            let words = error.to_string();
            if words.contains("could not acquire lock") {
                return Cause::Locked;
            }
            if let Some(refusal) = refusal(&words) {
                return Cause::System(refusal);
            }
            match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::NotFound, _) => damaged("a file of it is missing"),
                (io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory, _) => {
                    damaged("a file of it is a folder, or a folder a file")
                }
                (_, Some(code)) => Cause::System(io::Error::from_raw_os_error(code).to_string()),
                _ => damaged("a file of it is cut short"),
            }
        }
        sled::Error::Unsupported(_) => damaged("its parameters are those of another version"),
        _ => damaged("its pages cannot be read"),
    }
}

fn refusal(words: &str) -> Option<String> {
    let refusal = REFUSALS.iter().find(|refusal| words.contains(**refusal));
    refusal.map(|refusal| (*refusal).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_told_from_damage() {
        let system = |words: &str| Cause::System(words.to_owned());
        let damaged = |words: &str| Cause::Damaged(words.to_owned());
        let of = |words: &str| failed(&sled::Error::Io(io::Error::other(words)));
        assert_eq!(of("IO: No space left on device"), system("No space left"));
        assert_eq!(of("early end"), damaged("a file of it is cut short"));
        assert_eq!(of("could not acquire lock on a file"), Cause::Locked);
        let panics = |words: &'static str| {
            let ended = attempt::<()>(|| panic!("{words}"));
            ended.expect_err("a panic")
        };
        let refused = panics("called unwrap: Permission denied (13)");
        assert_eq!(refused, system("Permission denied"));
        let broken = panics("assertion failed");
        assert_eq!(broken, damaged("its pages do not fit together"));
    }
}
