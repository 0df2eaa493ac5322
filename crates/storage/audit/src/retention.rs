//! Pruning what is too old.
//!
//! A clock that is wrong, of a machine without a battery or a restored one, removes no record. What
//! is too old is judged by the time of the last record before this start, and the time that has
//! passed since. Records of a start with a wrong clock may be among those, so of what is too old,
//! only a share goes each day.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::{Audit, Event, EventKind};
use store::{Batch, ChainMark, CommitError, StoreError};

/// Records that one write removes at most.
pub(crate) const MAX_PRUNED: u64 = 1_000;
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Of all records, the part that goes by age in a day.
const DAILY_SHARE: u64 = 20;

/// The time by the trail itself.
#[derive(Debug)]
struct TrailClock {
    /// The time of the last record before this start.
    last: Timestamp,
    since: Instant,
    /// Records that went by age since.
    pruned: u64,
    has_warned: bool,
}

impl TrailClock {
    fn elapsed(&self) -> SignedDuration {
        SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX)
    }

    /// Returns how many of `old` records may go now. A trail that is kept for a few days loses more
    /// than a share each day.
    fn bounded(&mut self, old: u64, count: u64, keep_days: u64) -> u64 {
        let for_days = count.saturating_mul(2) / keep_days.max(1);
        let a_day = (count / DAILY_SHARE).max(for_days).max(1);
        let days = u64::try_from(self.elapsed().as_hours() / 24).unwrap_or_default() + 1;
        let left = a_day.saturating_mul(days).saturating_sub(self.pruned);
        let old = old.min(left);
        self.pruned += old;
        old
    }
}

/// When to check again.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    /// For records that are too old.
    next: Option<Timestamp>,
    /// The last write at which there were not too many records.
    seen: Option<u64>,
    /// None: there was no record before this start, so there is none to lose.
    trail_clock: Option<TrailClock>,
}

impl Retention {
    /// Notes the time of the last record before this start.
    pub(crate) fn begin(&mut self, last: Option<Timestamp>) {
        self.trail_clock = last.map(|last| TrailClock {
            last,
            since: Instant::now(),
            pruned: 0,
            has_warned: false,
        });
    }

    /// Returns the time by which records are too old.
    fn now(&self, clock: Timestamp) -> Timestamp {
        let by_trail = self.trail_clock.as_ref();
        let by_trail = by_trail.and_then(|it| it.last.checked_add(it.elapsed()).ok());
        by_trail.map_or(clock, |by_trail| clock.min(by_trail))
    }
}

impl Audit {
    /// Removes the oldest records, where there are too many or they are too old.
    pub(crate) async fn prune(&self, retention: &mut Retention) -> Result<(), CommitError> {
        let (store, config) = (&self.0.store, self.0.config);
        let appended = *self.0.appended.borrow();
        let now = self.0.clock.now();
        let is_due = retention.next.is_none_or(|next| next <= now);
        // A server calls this many times a second, mostly without a new record.
        if retention.seen == Some(appended) && !is_due {
            return Ok(());
        }
        let start = store.chain_start()?;
        let end = store.chain_end()?.unwrap_or_default();
        let count = end.number.saturating_sub(start.number);
        let through = if count > config.max_records {
            // A tenth at once: one at a time, each pruning would append a record for the one
            // that it removes.
            let share = (config.max_records / 10).clamp(1, MAX_PRUNED);
            // One more for the record of the pruning itself.
            Some((count - config.max_records + 1).max(share).min(MAX_PRUNED))
        } else if is_due {
            // Set before the read, which may fail: a damaged record must not cause a scan at
            // every call.
            retention.next = Some(now + HOUR);
            let old = self.count_expired(start, retention.now(now))?;
            self.warn_of_clock(retention, (start, old), now)?;
            let old = match &mut retention.trail_clock {
                Some(clock) => clock.bounded(old, count, config.keep_days),
                None => old,
            };
            if old >= MAX_PRUNED {
                // There may be more, so the next call checks again.
                retention.next = None;
            }
            (old > 0).then_some(old)
        } else {
            None
        };
        let Some(through) = through.map(|count| start.number + count) else {
            retention.seen = Some(appended);
            return Ok(());
        };
        // The last record stays: the next one is chained to it.
        let last = store.links_back(0, through.min(end.number.saturating_sub(1)) + 1);
        // Where a whole range was lost, no record is below the limit: then the first that there
        // is.
        let first = || store.links(start.number + 1, end.number);
        let Some(last) = last.take(1).chain(first().take(1)).next().transpose()? else {
            return Ok(());
        };
        let through = last.mark;
        let mut event = Event::new(now, EventKind::Pruned);
        event.count = through.number.saturating_sub(start.number);
        event.details = through_details(through);
        let mut batch = Batch::new();
        // In one batch: a chain that starts later always has the record that explains it, or
        // `verify` reports it.
        batch.prune(start.number + 1, through);
        batch.append(event.encode());
        store.commit(batch).await?;
        Ok(())
    }

    /// Warns once where records are too old by the clock alone.
    fn warn_of_clock(
        &self,
        retention: &mut Retention,
        (start, old): (ChainMark, u64),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let trail_now = retention.now(now);
        let ahead = now.duration_since(trail_now);
        let Some(clock) = retention.trail_clock.as_mut() else {
            return Ok(());
        };
        if clock.has_warned || ahead < DAY || self.count_expired(start, now)? <= old {
            return Ok(());
        }
        clock.has_warned = true;
        tracing::warn!(
            days = ahead.as_hours() / 24,
            "the clock is ahead of the audit trail: records that are too old by the clock alone stay"
        );
        Ok(())
    }

    /// Returns how many of the oldest records are past their time.
    fn count_expired(&self, start: ChainMark, now: Timestamp) -> Result<u64, StoreError> {
        let days = i64::try_from(self.0.config.keep_days).unwrap_or(i64::MAX);
        let kept = SignedDuration::from_hours(days.saturating_mul(24));
        let Ok(oldest) = now.checked_sub(kept) else {
            return Ok(0);
        };
        let mut count = 0;
        for link in self.0.store.links(start.number + 1, u64::MAX) {
            let entry = Self::read(&link?)?;
            if entry.event.at >= oldest || count >= MAX_PRUNED {
                break;
            }
            count = entry.number - start.number;
        }
        Ok(count)
    }
}

/// Returns the details that name the record that was pruned last.
pub(crate) fn through_details(through: ChainMark) -> crate::Details {
    [
        ("through".to_owned(), through.number.to_string()),
        ("digest".to_owned(), through.digest.to_string()),
    ]
    .into()
}
