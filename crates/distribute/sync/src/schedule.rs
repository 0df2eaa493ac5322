//! The schedule: syncs that nobody asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::engine::locked;
use super::record::State;
use super::watch::Watches;
use super::{Engine, Error, Kind, Request, Source};
use store::TableId;

/// Seconds until a source that failed is tried again; each further failure doubles them, up to
/// the interval of the source.
const RETRY_SECONDS: u32 = 30;
/// The share of an interval by which it is spread, to both sides.
const JITTER_RATIO: f64 = 0.1;
/// The longest sleep. Times are of the wall clock and sleeps are not: after a clock was set, the
/// schedule is right again within a minute.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// The shortest sleep, so that a source that is due and cannot be started is no busy loop.
const MIN_SLEEP: Duration = Duration::from_millis(200);

/// When a source is due; none: only when somebody asks. `jitter` is from 0 to 1.
fn due(source: &Source, state: &State, jitter: f64) -> Option<Timestamp> {
    let interval = source.interval()?;
    let Some(last) = state.last_check else {
        return Some(Timestamp::UNIX_EPOCH);
    };
    // 2^16 times 30 s are three weeks, beyond what any interval should be.
    let doubled = 2_u32.saturating_pow(state.failed_in_row.saturating_sub(1).min(16));
    let seconds = match state.failed_in_row {
        0 => interval,
        _ => interval.min(RETRY_SECONDS.saturating_mul(doubled)),
    };
    let spread = f64::from(seconds) * (1.0 + JITTER_RATIO * (2.0 * jitter - 1.0));
    let wait = SignedDuration::try_from_secs_f64(spread).unwrap_or(SignedDuration::ZERO);
    let next = last.checked_add(wait).unwrap_or(Timestamp::MAX);
    Some(state.not_before.map_or(next, |time| next.max(time)))
}

impl Engine {
    /// Has a source synced soon, whatever its interval: something happened there.
    ///
    /// # Errors
    /// There is no such source.
    pub fn nudge(&self, id: &str) -> Result<(), Error> {
        let source = self.source(id)?;
        locked(&self.0.nudges).insert(source.id);
        self.0.nudged.notify_one();
        Ok(())
    }

    /// Syncs sources when they are due, until it is stopped.
    pub async fn keep(&self) {
        // One roll of the dice for each look: rolled anew at every wake-up, a source would be due
        // as soon as one roll is small.
        let mut spread: BTreeMap<String, (Option<Timestamp>, f64)> = BTreeMap::new();
        let mut watches = Watches::default();
        let mut added = self.0.store.watch_table(TableId::Sources);
        while !self.0.stop.is_cancelled() {
            watches = follow(watches, self.sources()).await;
            let (happened, next) = watches.due(Instant::now());
            for source in happened {
                // It fails for a source that was removed meanwhile.
                let _known = self.nudge(&source).is_ok();
            }
            let sleep = self.begin_due(&mut spread).clamp(MIN_SLEEP, MAX_SLEEP);
            let until = Instant::now() + sleep;
            let until = next.map_or(until, |next| next.min(until));
            tokio::select! {
                () = self.0.stop.cancelled() => break,
                () = self.0.nudged.notified() => {}
                // By whichever writer. The store has the sender, and this has the store.
                _ = added.changed() => {}
                () = watches.happened() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Starts what is due. Returns how long nothing else is.
    fn begin_due(&self, spread: &mut BTreeMap<String, (Option<Timestamp>, f64)>) -> Duration {
        let now = self.0.registry.now();
        let mut sleep = MAX_SLEEP;
        // The end of a sync wakes the schedule (`Reserved`), so these need no timer.
        let busy: BTreeSet<String> = self.running().sources.keys().cloned().collect();
        let sources = self.sources().into_iter();
        for source in sources.filter(|source| !busy.contains(&source.id)) {
            let state = match self.state(&source.id) {
                Ok(state) => state,
                Err(error) => {
                    tracing::warn!(%error, source = source.id, "the state of a source cannot be read");
                    continue;
                }
            };
            let (of, jitter) = spread.entry(source.id.clone()).or_insert((None, 0.5));
            if *of != state.last_check {
                (*of, *jitter) = (state.last_check, (self.0.options.jitter)());
            }
            let limited = state.not_before.is_some_and(|time| now < time);
            // A nudge does not pass a rate limit: each push to a repository would else be another
            // request that the place refuses.
            let is_nudged = !limited && locked(&self.0.nudges).contains(&source.id);
            let due = due(&source, &state, *jitter);
            if !is_nudged && due.is_none_or(|due| now < due) {
                if let Some(due) = due {
                    let wait = due.duration_since(now);
                    sleep = sleep.min(Duration::try_from(wait).unwrap_or_default());
                }
                continue;
            }
            let request = Request {
                sources: vec![source.id.clone()],
                kind: Kind::Incremental,
                force_check: false,
            };
            // Before it starts: what happens from here on may be missed by this one, and is for
            // the next.
            locked(&self.0.nudges).remove(&source.id);
            match self.begin(&request) {
                // A call was quicker, and may have looked before the nudge.
                Err(Error::InProgress { .. }) if is_nudged => {
                    locked(&self.0.nudges).insert(source.id);
                }
                Ok(_) | Err(Error::InProgress { .. }) => {}
                Err(error) => tracing::warn!(%error, source = source.id, "a source was not synced"),
            }
        }
        sleep
    }
}

/// Watches the folders of sources. Off the async threads: inotify needs a call for each folder
/// below a source.
async fn follow(mut watches: Watches, sources: Vec<Source>) -> Watches {
    let followed = tokio::task::spawn_blocking(move || {
        watches.follow(&sources);
        watches
    });
    // A panic lost the watches: the next round makes them anew.
    followed.await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceKind;

    fn source(interval: Option<u32>) -> Source {
        Source {
            id: "a".to_owned(),
            name: String::new(),
            kind: SourceKind::Git,
            location: String::new(),
            reference: String::new(),
            path: String::new(),
            select: Vec::new(),
            namespace: None,
            interval_seconds: interval,
            credential: None,
            webhook_secret: None,
            named_by: secret::NamedBy::Operator,
        }
    }

    #[test]
    fn a_source_is_due_after_its_interval_and_sooner_where_it_failed() {
        let last = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(10);
        let state = |failed_in_row, limited: Option<i64>| State {
            last_check: Some(last),
            failed_in_row,
            not_before: limited.map(|seconds| last + SignedDuration::from_secs(seconds)),
            ..State::default()
        };
        let after = |interval, state: &State, jitter| {
            let due = due(&source(interval), state, jitter)?;
            Some(due.duration_since(last).as_secs())
        };
        assert_eq!(after(None, &State::default(), 0.5), Some(-36_000));
        assert_eq!(after(Some(0), &state(0, None), 0.5), None);
        let found = [
            after(None, &state(0, None), 0.5),
            after(Some(1_000), &state(0, None), 0.0),
            after(Some(1_000), &state(0, None), 1.0),
            after(Some(1_000), &state(1, None), 0.5),
            after(Some(1_000), &state(3, None), 0.5),
            after(Some(1_000), &state(60, None), 0.5),
            after(Some(10), &state(1, None), 0.5),
            after(Some(10), &state(0, Some(500)), 0.5),
        ];
        let expected = [3_600, 900, 1_100, 30, 120, 1_000, 10, 500];
        assert_eq!(found, expected.map(Some));
    }
}
