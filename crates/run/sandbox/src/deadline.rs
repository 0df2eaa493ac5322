//! The deadline of a case, and the limit that ended it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::job::Stopped;

/// Processor time that this process has had. Nothing in it can wait, so whatever takes
/// long takes processor time. Yields the processor first.
pub(crate) fn used() -> Duration {
    yield_processor();
    // Never negative, so the conversion holds.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Yields the processor to others. A scheduler may let even a process of the lowest priority
/// finish its turn of some milliseconds, and no call should wait for a solution that long: so
/// each step that takes a good part of a turn yields after it.
pub(crate) fn yield_processor() {
    std::thread::yield_now();
}

/// Ends a case, once: the first limit that is found is the one that is reported.
#[derive(Clone)]
pub(crate) struct Deadline {
    until: Duration,
    stopped: Rc<Cell<Option<Stopped>>>,
}

impl Deadline {
    /// A case that may run until the process has used this much processor time.
    pub(crate) fn new(until: Duration) -> Self {
        Self {
            until,
            stopped: Rc::default(),
        }
    }

    /// Stops the case, unless it was stopped before.
    pub(crate) fn stop(&self, why: Stopped) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(why));
        }
    }

    /// Why the case must end, if it must.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        if self.stopped.get().is_none() && used() >= self.until {
            self.stop(Stopped::Time);
        }
        self.stopped.get()
    }
}
