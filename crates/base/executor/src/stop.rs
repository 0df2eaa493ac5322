//! The signal that asks work to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::Error;

/// Tells work whether to stop, and why. Work checks it at bounded intervals: at every step of
/// some microseconds to milliseconds.
#[derive(Debug, Clone)]
pub struct Stop {
    left: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    pub(super) fn new(stopping: &Arc<AtomicBool>, deadline: Instant) -> Self {
        Self {
            stopping: Arc::clone(stopping),
            ..Self::at(deadline)
        }
    }

    /// A signal that is never set, for work that is bounded otherwise.
    #[must_use]
    pub fn never() -> Self {
        Self {
            left: Arc::default(),
            stopping: Arc::default(),
            deadline: None,
        }
    }

    /// A signal that is set at a time, for work outside of the executor.
    #[must_use]
    pub fn at(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..Self::never()
        }
    }

    /// The deadline of the caller. None: unknown.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The work is to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.check().is_err()
    }

    /// Goes on, unless the work is to stop.
    ///
    /// # Errors
    /// The caller left, its deadline passed, or the server stops.
    pub fn check(&self) -> Result<(), Error> {
        if self.left.load(Ordering::Relaxed) {
            return Err(Error::Left);
        }
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Error::Stopping);
        }
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(Error::Deadline),
            _ => Ok(()),
        }
    }

    /// The caller left.
    pub(super) fn leave(&self) {
        // Relaxed: nothing else is read by it, and work that sees it a step later loses nothing.
        self.left.store(true, Ordering::Relaxed);
    }
}
