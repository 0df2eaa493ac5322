//! Waiting, when there are more calls than the server takes on.
//!
//! * A call for which there is no permit waits for one, first come, first served. It waits
//!   for `limits.wait_seconds`, or for half of the time that it has where that is shorter:
//!   so a burst is answered, and nothing is begun that would be late.
//! * A call that is refused because there is too much to do, whatever it was that was full,
//!   is answered after `limits.wait_seconds` too, or shortly before the end of its time.
//!   Callers that call again as soon as they are refused would keep the processors busy
//!   with refusals, and calls in work would wait behind them.
//! * A call that waits is booked as a request that arrives, with its message and at least a
//!   KiB. So the number of waiting calls has a limit, of which an address has a share; beyond
//!   it a call is refused at once.
//!
//! The server refused at once before. Callers that called again at once had one processor
//! write 100,000 refusals a second and do a twentieth of its searches. A refusal costs about
//! as much as a small call, so the only way to have few of them is to let them wait; and a
//! caller that waits anyway may as well get the next permit.

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Full, Peer, Permit, Resource};

/// How long a call waits for a permit, and for a refusal.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    for_permit: Duration,
    /// The time from which on the caller may be refused.
    refusal: Instant,
}

impl Patience {
    /// The patience of a call that begins now and has this much time; none: all that it needs.
    #[must_use]
    pub fn new(max: Duration, time: Option<Duration>) -> Self {
        let shorter = |time: Option<Duration>| time.map_or(max, |time| max.min(time));
        Self {
            for_permit: shorter(time.map(|time| time / 2)),
            // It learns the reason before its time has passed.
            refusal: Instant::now() + shorter(time.map(|time| time / 10 * 9)),
        }
    }

    /// Acquires the permit of a call whose message is there; `bytes` of it are not booked.
    ///
    /// # Errors
    /// None was free in time.
    pub async fn permit(
        &self,
        peer: &Peer,
        resource: Resource,
        bytes: u64,
    ) -> Result<Permit, Full> {
        let at_once = peer.try_take(resource, 1);
        if at_once.is_ok() {
            return at_once;
        }
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let _waiting = peer.try_take(Resource::Requests, kib.max(1))?;
        let until = Instant::now() + self.for_permit;
        peer.take_until(resource, 1, until).await
    }

    /// Waits until a call may be refused for overload, or the server stops.
    pub async fn before_refusal(&self, peer: &Peer, stop: &CancellationToken) {
        let Ok(_waiting) = peer.try_take(Resource::Requests, 1) else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep_until(self.refusal) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// The answer is a refusal for overload.
#[must_use]
pub fn is_refusal(headers: &HeaderMap) -> bool {
    // RESOURCE_EXHAUSTED: every failure of the kind `Exhausted` has it.
    let exhausted = http::HeaderValue::from_static("8");
    headers.get("grpc-status") == Some(&exhausted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    use crate::{Admission, Amounts, Pace};

    const SECOND: Duration = Duration::from_secs(1);

    /// One call at once, and so many KiB of requests.
    fn admission(request_kib: usize) -> Admission {
        let amounts = Amounts {
            calls: 1,
            request_kib,
            ..Amounts::UNLIMITED
        };
        Admission::new(amounts, 100, Pace::default())
    }

    /// How a call without a permit ends, and after how long.
    async fn refusal(peer: &Peer, max: Duration, time: Option<Duration>) -> (Full, Duration) {
        let begun = Instant::now();
        let patience = Patience::new(max, time);
        let full = patience.permit(peer, Resource::Calls, 1).await;
        let full = full.expect_err("there is no permit");
        (full, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_its_permit_and_is_booked_meanwhile() {
        let admission = admission(8);
        let peer = admission.peer([10, 0, 0, 1].into());
        let taken = peer.try_take(Resource::Calls, 1).expect("a permit");
        let patience = Patience::new(SECOND * 2, None);
        let waiting = tokio::spawn({
            let peer = peer.clone();
            async move { patience.permit(&peer, Resource::Calls, 5 * 1024).await }
        });
        tokio::time::sleep(SECOND).await;
        assert_eq!(admission.taken(Resource::Requests), 5, "its message");
        drop(taken);
        let permit = waiting.await.expect("no panic").expect("a permit");
        assert_eq!(admission.taken(Resource::Calls), 1);
        assert_eq!(admission.taken(Resource::Requests), 0);
        drop(permit);
        assert_eq!(admission.taken(Resource::Calls), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_half_of_its_time_at_most() {
        let admission = admission(8);
        let peer = admission.peer([10, 0, 0, 1].into());
        let _taken = peer.try_take(Resource::Calls, 1).expect("a permit");
        let max = SECOND * 2;
        for (time, expected) in [
            (None, max),
            (Some(SECOND * 30), max),
            (Some(SECOND), SECOND / 2),
        ] {
            let (full, waited) = refusal(&peer, max, time).await;
            assert_eq!(full, Full::Share, "{time:?}");
            let late = waited.saturating_sub(expected);
            assert!(
                waited >= expected && late < SECOND / 10,
                "{time:?} {waited:?}"
            );
        }
        let at_once = refusal(&peer, Duration::ZERO, None).await.1;
        assert!(at_once < SECOND / 10, "{at_once:?}");
        assert_eq!(admission.taken(Resource::Requests), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_be_booked_does_not_wait() {
        let admission = admission(1);
        let peer = admission.peer([10, 0, 0, 1].into());
        let _taken = peer.try_take(Resource::Calls, 1).expect("a permit");
        let _memory = peer.try_take(Resource::Requests, 1).expect("memory");
        let (_, waited) = refusal(&peer, SECOND, None).await;
        assert_eq!(waited, Duration::ZERO);
        let begun = Instant::now();
        let patience = Patience::new(SECOND, None);
        patience
            .before_refusal(&peer, &CancellationToken::new())
            .await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_waits_for_most_of_the_time_of_a_call_and_no_longer_than_the_server() {
        let admission = admission(8);
        let peer = admission.peer([10, 0, 0, 1].into());
        let stop = CancellationToken::new();
        let (begun, patience) = (Instant::now(), Patience::new(SECOND * 2, None));
        // What the call did before it was refused counts.
        tokio::time::sleep(SECOND).await;
        patience.before_refusal(&peer, &stop).await;
        let waited = begun.elapsed();
        assert!(waited >= SECOND * 2 && waited < SECOND * 3, "{waited:?}");
        let (begun, patience) = (Instant::now(), Patience::new(SECOND * 2, Some(SECOND)));
        patience.before_refusal(&peer, &stop).await;
        let waited = begun.elapsed();
        assert!(waited >= SECOND / 2 && waited < SECOND, "{waited:?}");
        stop.cancel();
        let (begun, patience) = (Instant::now(), Patience::new(SECOND * 2, None));
        patience.before_refusal(&peer, &stop).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(admission.taken(Resource::Requests), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_a_message_is_booked_too_while_it_waits() {
        let admission = admission(1);
        let peer = admission.peer([10, 0, 0, 1].into());
        let _taken = peer.try_take(Resource::Calls, 1).expect("a permit");
        let patience = Patience::new(SECOND, None);
        let wait = || Box::pin(patience.permit(&peer, Resource::Calls, 0));
        let mut first = wait();
        assert!((&mut first).now_or_never().is_none());
        let second = wait().now_or_never().expect("no wait");
        assert_eq!(second.map(drop), Err(Full::Share));
        assert_eq!(first.await.map(drop), Err(Full::Share));
        assert_eq!(admission.taken(Resource::Requests), 0);
    }

    #[test]
    fn an_answer_that_says_that_something_was_exhausted_is_a_refusal() {
        let says = |status: Option<&'static str>| {
            let status = status.map(|status| ("grpc-status", status));
            let headers = status.into_iter().map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, http::HeaderValue::from_static(value))
            });
            is_refusal(&headers.collect())
        };
        let answers = [Some("8"), Some("0"), Some("14"), Some("80"), None];
        assert_eq!(answers.map(says), [true, false, false, false, false]);
    }
}
