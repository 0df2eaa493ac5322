//! The least rate at which a peer sends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How fast a peer has to send a request, and how long a request waits for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long a peer may send nothing, or stay behind the rate.
    pub grace: Duration,
    /// Bytes a second after that.
    pub bytes_per_second: u64,
    /// How long a request or an answer waits for memory before it is refused.
    pub wait: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(10),
            bytes_per_second: 1024,
            wait: Duration::from_secs(30),
        }
    }
}

/// When a peer is too slow: `grace` from now, unless bytes arrive. Each of them buys
/// the time that the rate gives it, never more than `grace`: so nobody saves up for a
/// long silence.
#[derive(Debug)]
pub(super) struct Clock {
    pace: Pace,
    late: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    pub(super) fn start(pace: Pace) -> Self {
        Self {
            pace,
            late: Instant::now() + pace.grace,
            sleep: None,
        }
    }

    /// The peer has sent bytes.
    pub(super) fn arrived(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let micros = bytes.saturating_mul(1_000_000) / self.pace.bytes_per_second.max(1);
        let earned = self.late.checked_add(Duration::from_micros(micros));
        let max = Instant::now() + self.pace.grace;
        self.late = earned.map_or(max, |earned| earned.min(max));
    }

    /// Starts anew after a time in which the peer could not send.
    pub(super) fn restart(&mut self) {
        self.late = Instant::now() + self.pace.grace;
    }

    /// Ready when the peer is too slow.
    pub(super) fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let late = self.late;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(late)));
        // The timer is moved only when it fires: bytes come often, silence seldom.
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= late {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(late);
        }
        Poll::Pending
    }
}
