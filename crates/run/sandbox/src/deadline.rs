//! Until when a case may run, and what ended it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::job::Stopped;

/// Processor time that this process has had. Nothing in it can wait, so what takes long
/// takes processor time. Whoever asks gives way first.
pub(crate) fn used() -> Duration {
    give_way();
    // Never negative, so the conversion holds.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Lets whoever waits for the processor have it. A scheduler may let even a process of the
/// lowest priority have its turn of some milliseconds to the end, and nobody is to wait for a
/// solution that long: what takes a good part of one gives way after it.
pub(crate) fn give_way() {
    std::thread::yield_now();
}

/// Ends a case, once: whoever finds a limit first says which.
#[derive(Clone)]
pub(crate) struct Deadline {
    until: Duration,
    stopped: Rc<Cell<Option<Stopped>>>,
}

impl Deadline {
    /// A case that may run until the process has had so much processor time.
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
