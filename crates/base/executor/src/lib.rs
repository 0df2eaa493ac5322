//! Runs work that takes long or blocks: searches, diffs, reading and packing
//! files, exports, solving, reading codebases.
//!
//! Rules:
//!
//! * Each [`Kind`] of work has permits and a queue with a limit, so that one kind
//!   cannot hold up another ([bulkheads]). A full queue refuses at once.
//! * A permit lives until the work itself ends, not until its caller leaves.
//! * No work begins that nobody waits for. A caller that gives up leaves the queue at once;
//!   one that waited for half of its time is refused, since work that begins late ends too
//!   late.
//! * Work gets a [`Stop`] and checks it at bounded intervals: it is set when the
//!   caller leaves, when the caller's deadline passes, and when the server stops.
//! * The runtime has a thread for every permit ([`threads`]), so the queue of its
//!   blocking threads stays empty, and this is the only place where work waits: that queue
//!   has no limit and knows no deadline. Threads are made when they are needed, 22 at most
//!   on two processors.
//!
//! Not here: the work itself; admission of calls and their deadlines (`server::calls`);
//! threads of databases (`sql`), of the committer (`store`) and of start-up.
//!
//! [bulkheads]: https://learn.microsoft.com/azure/architecture/patterns/bulkhead

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod deadline;
mod error;
mod kind;
mod pool;
mod stop;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub use deadline::with_deadline;
pub use error::Error;
pub use kind::Kind;
pub use pool::Stats;
pub use stop::Stop;

use pool::Pool;

/// The deadline of a call where neither its caller nor the operator sets one.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// Threads besides those for permits: start and stop, the search index's follower, the
/// committer's join, files and terminals of commands, names that are resolved; and tasks
/// that wait for a database that is opened again (`store::view`).
const OTHER_THREAD_COUNT: usize = 8 + 64;

/// Threads that the runtime needs for work that blocks: one for each permit, and some
/// for what runs outside of the executor. They are made when they are needed.
#[must_use]
pub fn threads(processors: usize) -> usize {
    let permits = Kind::ALL.iter().map(|kind| kind.permits(processors));
    permits.sum::<usize>() + OTHER_THREAD_COUNT
}

/// Runs work off the async threads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// One for each kind, in their order.
    pools: Vec<Pool>,
    stopping: Arc<AtomicBool>,
    running: TaskTracker,
}

impl Default for Executor {
    /// For the fewest processors.
    fn default() -> Self {
        Self::new(1)
    }
}

impl Executor {
    /// An executor with permits for this many processors.
    #[must_use]
    pub fn new(processors: usize) -> Self {
        Self::with_pools(|kind| Pool::new(kind.permits(processors), kind.queue()))
    }

    fn with_pools(pool: impl Fn(Kind) -> Pool) -> Self {
        let running = TaskTracker::new();
        // It only counts: it is waited for once, at the end.
        running.close();
        Self {
            inner: Arc::new(Inner {
                pools: Kind::ALL.iter().map(|kind| pool(*kind)).collect(),
                stopping: Arc::default(),
                running,
            }),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a pool for every kind")]
    fn pool(&self, kind: Kind) -> &Pool {
        &self.inner.pools[kind as usize]
    }

    /// Runs work of a kind once there is a permit for it. Dropping the future gives up:
    /// work in the queue does not begin, and running work is asked to stop.
    ///
    /// The caller's deadline is that of [`with_deadline`], else [`DEFAULT_DEADLINE`].
    ///
    /// # Errors
    /// The queue is full, half of the caller's time passed in it, the server stops, or
    /// the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        kind: Kind,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let pool = self.pool(kind);
        let deadline = deadline::current();
        let permit = pool.acquire(kind, deadline).await?;
        // Work without a queue waits as long as its stream does, so its time begins here.
        let deadline = match kind.queue() {
            Some(_) => deadline,
            None => deadline.max(Instant::now() + DEFAULT_DEADLINE),
        };
        let stop = Stop::new(&self.inner.stopping, deadline);
        let waiting = pool.wait(&stop);
        let (running, begun) = (self.inner.running.token(), pool.begun());
        let span = tracing::Span::current();
        let task = tokio::task::spawn_blocking(move || {
            // Both go when the work has ended, even if its caller left long before.
            let _held = (permit, running);
            // The caller may have left, or its time passed, between the permit and the thread.
            stop.check()?;
            begun.inc();
            Ok(span.in_scope(|| work(&stop)))
        });
        let done = task.await;
        waiting.over();
        // Else it was not begun.
        if !matches!(done, Ok(Err(_))) {
            pool.finish();
        }
        done.map_err(|error| Error::Failed(error.to_string()))?
    }

    /// Does the same for work that may fail.
    ///
    /// # Errors
    /// As [`Executor::run`], and the errors of the work.
    pub async fn run_fallible<T, E>(
        &self,
        kind: Kind,
        work: impl FnOnce(&Stop) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.run(kind, work).await?
    }

    /// Takes on no more work, and asks running work to stop. Returns when all of it has
    /// ended, or after `timeout`, with the number of tasks that still run then.
    pub async fn stop(&self, timeout: Duration) -> usize {
        self.inner.stopping.store(true, Ordering::Relaxed);
        self.inner.pools.iter().for_each(Pool::close);
        let ended = self.inner.running.wait();
        let _still_running = tokio::time::timeout(timeout, ended).await;
        self.inner.running.len()
    }

    /// The figures of each kind of work.
    pub fn stats(&self) -> impl Iterator<Item = (Kind, Stats)> + '_ {
        let pools = Kind::ALL.iter().copied().zip(&self.inner.pools);
        pools.map(|(kind, pool)| (kind, pool.stats()))
    }
}
