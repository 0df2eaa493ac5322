//! Blocking work of a look.

use super::Error;

/// Runs blocking work on a thread that may block.
///
/// # Errors
/// The work failed, or panicked; the runtime ends.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // A stranger's archive or tree broke a reader. It costs that skill, not the whole sync.
        Err(error) if error.is_panic() => {
            let message = "what it sent could not be dealt with: that is a fault of this server";
            Err(Error::Invalid(message.to_owned()))
        }
        // The runtime ends.
        Err(_) => Err(Error::Stopped),
    }
}
