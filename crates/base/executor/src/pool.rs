//! The permits of one kind of work, and the queue before them.
//!
//! First come, first served, and nobody waits for more than half of its time. The last first
//! would serve as many, and let the unlucky wait in vain; estimates of how long work takes
//! are wrong just when it matters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::{Error, Kind, Stop};

/// The figures of a kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Permits that there are.
    pub permits: usize,
    /// Permits that are held.
    pub in_use: usize,
    /// Callers that wait for one.
    pub waiting: usize,
    /// Work that was begun.
    pub begun: u64,
    /// Work that ended while its caller still waited for it.
    pub finished: u64,
    /// Callers that were refused: the queue was full, or too slow for them.
    pub refused: u64,
    /// Callers that left while they waited or while their work ran.
    pub abandoned: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Count(Arc<AtomicU64>);

impl Count {
    pub(super) fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The permits of a kind, and the queue before them.
#[derive(Debug)]
pub(super) struct Pool {
    size: usize,
    permits: Arc<Semaphore>,
    /// Callers that may wait at once; none: any number.
    queue: Option<usize>,
    waiting: AtomicUsize,
    begun: Count,
    finished: Count,
    refused: Count,
    abandoned: Count,
}

/// A caller that waits for its turn.
struct Turn<'a>(&'a Pool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A caller that waits, in the queue or for its work. Dropped before it is over, it has
/// left.
pub(super) struct Waiting<'a> {
    abandoned: &'a Count,
    stop: Option<Stop>,
    is_over: bool,
}

impl Waiting<'_> {
    pub(super) fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.abandoned.inc();
        if let Some(stop) = &self.stop {
            stop.leave();
        }
    }
}

impl Pool {
    pub(super) fn new(size: usize, queue: Option<usize>) -> Self {
        Self {
            size,
            permits: Arc::new(Semaphore::new(size)),
            queue,
            waiting: AtomicUsize::new(0),
            begun: Count::default(),
            finished: Count::default(),
            refused: Count::default(),
            abandoned: Count::default(),
        }
    }

    /// Acquires a permit, at once or after a wait. First come, first served: a caller that can
    /// no longer be served in time has left the queue by then.
    pub(super) async fn acquire(
        &self,
        kind: Kind,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Error> {
        let now = Instant::now();
        if deadline <= now {
            return Err(Error::Deadline);
        }
        // Nobody is overtaken: tokio hands a permit that comes back to the first in the queue.
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        if self.permits.is_closed() {
            return Err(Error::Stopping);
        }
        let ahead = self.waiting.fetch_add(1, Ordering::Relaxed);
        // From here on its drop counts the caller out, also one that leaves.
        let turn = Turn(self);
        if self.queue.is_some_and(|queue| ahead >= queue) {
            self.refused.inc();
            return Err(Error::Full(kind));
        }
        let waiting = Waiting {
            abandoned: &self.abandoned,
            stop: None,
            is_over: false,
        };
        let acquired = Arc::clone(&self.permits).acquire_owned();
        let permit = if self.queue.is_some() {
            // Begun later the work would end too late, and under load nothing but such work
            // would be done.
            timeout_at(now + (deadline - now) / 2, acquired).await
        } else {
            Ok(acquired.await)
        };
        waiting.over();
        drop(turn);
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_closed)) => Err(Error::Stopping),
            Err(_passed) => {
                self.refused.inc();
                Err(Error::Late(kind))
            }
        }
    }

    /// The caller of work that has a permit.
    pub(super) fn wait(&self, stop: &Stop) -> Waiting<'_> {
        Waiting {
            abandoned: &self.abandoned,
            stop: Some(stop.clone()),
            is_over: false,
        }
    }

    /// The counter of work that is begun.
    pub(super) fn begun(&self) -> Count {
        self.begun.clone()
    }

    /// Counts work that ended while its caller still waited.
    pub(super) fn finish(&self) {
        self.finished.inc();
    }

    /// Closes the pool: it gives out no more permits.
    pub(super) fn close(&self) {
        self.permits.close();
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            permits: self.size,
            in_use: self.size.saturating_sub(self.permits.available_permits()),
            waiting: self.waiting.load(Ordering::Relaxed),
            begun: self.begun.get(),
            finished: self.finished.get(),
            refused: self.refused.get(),
            abandoned: self.abandoned.get(),
        }
    }
}
