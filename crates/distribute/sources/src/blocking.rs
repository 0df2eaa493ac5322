//! Work of a look that blocks.

use super::Error;

/// Does what blocks on a thread that may. What panics there is broken by what it was given: that
/// is wrong, and nothing else is.
///
/// # Errors
/// What it does failed, or panicked; the runtime ends.
pub async fn run_blocking<T: Send + 'static>(
    does: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(does).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => {
            let message = "what it sent could not be dealt with: that is a fault of this server";
            Err(Error::Invalid(message.to_owned()))
        }
        // The runtime ends.
        Err(_) => Err(Error::Stopped),
    }
}
