//! The queue of records, and counts of calls without a record.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use crate::{Event, EventKind};
use model::Principal;

/// Maximum number of records in the queue.
pub(crate) const MAX_WAITING: usize = 5_000;
/// Maximum number of failed calls of one caller in an hour that have records of their own.
pub(crate) const MAX_FAILED: u32 = 1_000;
/// Maximum number of callers, addresses and reasons that are counted separately.
pub(crate) const MAX_COUNTED: usize = 1_024;
/// Maximum number of counts that become a record each; one more record has the sum of the others.
pub(crate) const MAX_SUMMARIES: usize = 16;
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Refusals that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RefusalKey {
    principal: String,
    face: String,
    address: Option<IpAddr>,
    forwarded: Option<IpAddr>,
    outcome: String,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    records: VecDeque<Event>,
    /// Records that did not fit.
    lost: u64,
    counts: HashMap<RefusalKey, u64>,
    /// Refusals beyond what is counted separately.
    others: u64,
    /// The time at which the counts become records; none: there are no counts.
    due: Option<Timestamp>,
    /// The time at which they last did.
    summarized: Option<Timestamp>,
    /// Failed calls that had records, by caller, since then.
    failed: HashMap<String, u32>,
    failed_since: Option<Timestamp>,
}

impl PendingEvents {
    pub(crate) fn push(&mut self, event: Event) {
        if self.records.len() < MAX_WAITING {
            self.records.push_back(event);
        } else {
            self.lost += 1;
        }
    }

    /// Whether the queue should be written now.
    pub(crate) fn are_due(&self) -> bool {
        self.records.len() >= MAX_WAITING / 10
    }

    /// Queues a failed call; counts it where the caller is anonymous or had many.
    pub(crate) fn failed(&mut self, event: Event) {
        if event.principal != Principal::anonymous().as_str() && self.has_own_record(&event) {
            self.push(event);
            return;
        }
        let now = event.at;
        let counted = RefusalKey {
            principal: event.principal,
            face: event.face,
            address: event.address,
            forwarded: event.forwarded,
            outcome: event.outcome,
        };
        if let Some(count) = self.counts.get_mut(&counted) {
            *count += 1;
        } else if self.counts.len() < MAX_COUNTED {
            self.counts.insert(counted, 1);
        } else {
            self.others += 1;
        }
        if self.due.is_none() {
            // A minute after the first one where it was quiet, else an hour after the last
            // summary: so refusals cannot fill the trail.
            let next = self.summarized.map(|last| last + HOUR);
            self.due = Some(next.map_or(now + MINUTE, |next| next.max(now + MINUTE)));
        }
    }

    fn has_own_record(&mut self, event: &Event) -> bool {
        let is_over = |since| event.at.duration_since(since) > HOUR;
        if self.failed_since.is_none_or(is_over) {
            self.failed.clear();
            self.failed_since = Some(event.at);
        }
        let had = self.failed.entry(event.principal.clone()).or_default();
        *had += 1;
        *had <= MAX_FAILED
    }

    /// Makes records of the counts, where they are due.
    pub(crate) fn summarize(&mut self, now: Timestamp, at_once: bool) {
        let Some(due) = self.due else { return };
        if due > now && !at_once {
            return;
        }
        self.due = None;
        self.summarized = Some(now);
        let mut counts: Vec<_> = self.counts.drain().collect();
        counts.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
        // An attacker who varies its address must not get a record for each: the rest becomes
        // one sum.
        let rest = counts.split_off(counts.len().min(MAX_SUMMARIES));
        let others = rest.iter().map(|(_, count)| count).sum::<u64>() + self.others;
        self.others = 0;
        for (counted, count) in counts {
            let mut event = Event::new(now, EventKind::Refusals);
            event.principal = counted.principal;
            event.face = counted.face;
            event.address = counted.address;
            event.forwarded = counted.forwarded;
            event.outcome = counted.outcome;
            event.count = count;
            self.push(event);
        }
        if others > 0 {
            let mut event = Event::new(now, EventKind::Refusals);
            event.count = others;
            self.push(event);
        }
    }

    /// Returns the next records to write, and the number of lost ones.
    pub(crate) fn next(&self, max: usize) -> (impl Iterator<Item = &Event>, u64) {
        (self.records.iter().take(max), self.lost)
    }

    /// Removes records that are durable now.
    pub(crate) fn written(&mut self, records: usize, lost: u64) {
        self.records.drain(..records.min(self.records.len()));
        self.lost -= lost;
    }
}
