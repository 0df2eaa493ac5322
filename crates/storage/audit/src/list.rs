//! Records by what they say.

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::{Audit, Entry, Error, Event, EventKind};
use access::Action;
use model::{open_token, seal_token};
use store::Revision;

/// Maximum number of records that one page reads, so that a filter without a match ends.
const MAX_SCANNED: usize = 4_000;
const PAGE: &str = "audit";
/// Maximum by which a record may be older than the one before it: records wait in a queue, so
/// the order of the chain is not quite that of their times.
const OUT_OF_ORDER: SignedDuration = SignedDuration::from_hours(1);

/// A filter for records. A field that is left out matches all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Of this kind.
    pub kind: Option<EventKind>,
    /// Of this caller.
    pub principal: Option<String>,
    /// Of this rpc: `Registry.PublishSkill`, or `PublishSkill`.
    pub rpc: Option<String>,
    /// Of rpcs that need this action.
    pub action: Option<Action>,
    /// With this among their names; with `*` at the end: with a name that begins with it.
    pub name: Option<String>,
    /// With this outcome.
    pub outcome: Option<String>,
}

/// Records, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The records.
    pub entries: Vec<Entry>,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
}

impl Filter {
    fn finds(&self, event: &Event) -> bool {
        let Self {
            since,
            until,
            kind,
            principal,
            rpc,
            action,
            name,
            outcome,
        } = self;
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        let is_rpc = |wanted: &str| {
            let method = event.rpc.split_once('.').map(|(_, method)| method);
            wanted == event.rpc || method == Some(wanted)
        };
        let is_named = |wanted: &str| {
            event
                .names
                .iter()
                .any(|name| match wanted.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == wanted,
                })
        };
        since.is_none_or(|since| event.at >= since)
            && until.is_none_or(|until| event.at < until)
            && kind.is_none_or(|kind| event.kind == kind)
            && is(principal, &event.principal)
            && is(outcome, &event.outcome)
            && action.is_none_or(|action| event.action == Some(action))
            && rpc.as_deref().is_none_or(is_rpc)
            && name.as_deref().is_none_or(is_named)
    }
}

impl Audit {
    /// Returns records, newest first. A page before the last may have fewer than asked for, or
    /// none.
    ///
    /// # Errors
    /// The token is none of this list, or the store cannot be read.
    pub fn list(&self, filter: &Filter, limit: usize, token: &str) -> Result<Page, Error> {
        let binding = format!("{filter:?}");
        let below = match token {
            "" => u64::MAX,
            token => open_token(PAGE, &binding, token)
                .and_then(|number| number.parse().ok())
                .ok_or(Error::PageToken)?,
        };
        let mut entries = Vec::new();
        let mut last = None;
        for (scanned, link) in self.0.store.links_back(0, below).enumerate() {
            if entries.len() >= limit || scanned >= MAX_SCANNED {
                let next = last.map(|number: u64| seal_token(PAGE, &binding, &number.to_string()));
                return Ok(Page { entries, next });
            }
            let entry = Self::read(&link?)?;
            let earliest = filter.since.map(|since| since - OUT_OF_ORDER);
            if earliest.is_some_and(|earliest| entry.event.at < earliest) {
                break;
            }
            last = Some(entry.number);
            if filter.finds(&entry.event) {
                entries.push(entry);
            }
        }
        Ok(Page {
            entries,
            next: None,
        })
    }

    /// Returns records after a number, oldest first, and the number after which to go on.
    ///
    /// # Errors
    /// The store cannot be read.
    fn after(&self, filter: &Filter, number: u64) -> Result<(Vec<Entry>, u64), Error> {
        let mut found = Vec::new();
        let mut last = number;
        let links = self.0.store.links(number.saturating_add(1), u64::MAX);
        for link in links.take(crate::RECORDS_PER_WRITE) {
            let entry = Self::read(&link?)?;
            last = entry.number;
            if filter.finds(&entry.event) {
                found.push(entry);
            }
        }
        Ok((found, last))
    }

    /// Follows the records after a number as they are written.
    #[must_use]
    pub fn follow(&self, filter: Filter, after: u64) -> Follow {
        Follow {
            grows: self.0.appended.clone(),
            audit: self.clone(),
            filter,
            after,
        }
    }

    /// The number of the last record.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn last(&self) -> Result<u64, Error> {
        Ok(self.0.store.chain_end()?.unwrap_or_default().number)
    }
}

/// Records as they are written.
#[derive(Debug)]
pub struct Follow {
    audit: Audit,
    filter: Filter,
    after: u64,
    grows: watch::Receiver<Revision>,
}

impl Follow {
    /// Returns the next records, as soon as there are some. None: there will be no more.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, Error> {
        loop {
            // Marked as seen before the read: what is appended during the read wakes the wait
            // below at once.
            self.grows.borrow_and_update();
            let (found, last) = self.audit.after(&self.filter, self.after)?;
            let is_more = last > self.after;
            self.after = last;
            if !found.is_empty() {
                return Ok(Some(found));
            }
            if is_more {
                // The records were local and at hand, so this task has not yielded yet: a filter
                // that passes over many must not keep a thread of the runtime.
                tokio::task::yield_now().await;
            } else if self.grows.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}
