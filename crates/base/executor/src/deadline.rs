//! The caller's deadline, where the work is begun.
//!
//! It belongs to the task like its span does: handed down by hand it would be an
//! argument of nearly every method between the call layer and the executor.

use std::future::Future;

use tokio::time::Instant;

use super::DEFAULT_DEADLINE;

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Gives all work that a future asks for this deadline.
pub fn with_deadline<F: Future>(
    deadline: Instant,
    work: F,
) -> impl Future<Output = F::Output> + use<F> {
    DEADLINE.scope(deadline, work)
}

/// The deadline of whoever runs now.
pub(super) fn current() -> Instant {
    let known = DEADLINE.try_with(|deadline| *deadline);
    known.unwrap_or_else(|_| Instant::now() + DEFAULT_DEADLINE)
}
