//! The clock, which callers pass in.

use jiff::Timestamp;

/// The source of the time.
///
/// Implementations may go backwards, as clocks of machines do; nothing in the
/// domain orders by time.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
