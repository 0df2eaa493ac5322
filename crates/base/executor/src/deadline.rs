//! The caller's deadline, at the point where work begins.
//!
//! It belongs to the task like its span does: passed by hand it would be an argument of
//! nearly every method between the call layer and the executor.

use std::future::Future;

use tokio::time::Instant;

use super::DEFAULT_DEADLINE;

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Sets the deadline of all work that a future asks for.
pub fn with_deadline<F: Future>(
    deadline: Instant,
    work: F,
) -> impl Future<Output = F::Output> + use<F> {
    DEADLINE.scope(deadline, work)
}

/// The deadline of the current task.
pub(super) fn current() -> Instant {
    let known = DEADLINE.try_with(|deadline| *deadline);
    known.unwrap_or_else(|_| Instant::now() + DEFAULT_DEADLINE)
}
