//! Pruning what is too old.

use jiff::{SignedDuration, Timestamp};

use crate::{Audit, Event, EventKind};
use store::{Batch, ChainMark, CommitError, StoreError};

/// Records that one write removes at most.
pub(crate) const MAX_PRUNED: u64 = 1_000;
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// When to check again.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    /// For records that are too old.
    next: Option<Timestamp>,
    /// The last write at which there were not too many records.
    seen: Option<u64>,
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
            let old = self.count_expired(start, now)?;
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
