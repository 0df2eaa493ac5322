//! Records by what they say.

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::{Audit, Entry, Error, Event, EventKind};
use access::Action;
use model::{open_token, seal_token};

/// Records that one page looks at, so that a filter that finds nothing ends.
const MAX_LOOKED_AT: usize = 4_000;
const PAGE: &str = "audit";
/// How much later than one before it a record may have happened.
const OUT_OF_ORDER: SignedDuration = SignedDuration::from_hours(1);

/// Which records. What is left out holds for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// From then on.
    pub since: Option<Timestamp>,
    /// Before then.
    pub until: Option<Timestamp>,
    /// Of this kind.
    pub kind: Option<EventKind>,
    /// Of this caller.
    pub principal: Option<String>,
    /// Of this rpc: `Registry.PublishSkill`, or `PublishSkill`.
    pub rpc: Option<String>,
    /// Of rpcs that need this action.
    pub action: Option<Action>,
    /// Done to this; with `*` at the end: to what begins so.
    pub name: Option<String>,
    /// Which ended so.
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
    /// Records, newest first. A page may have fewer than asked for, or none, before the last.
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
        for (looked_at, link) in self.0.store.links_back(0, below).enumerate() {
            if entries.len() >= limit || looked_at >= MAX_LOOKED_AT {
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

    /// Records after a number, oldest first, and the number to go on after.
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

    /// Records after a number as they come.
    #[must_use]
    pub fn follow(&self, filter: Filter, after: u64) -> Follow {
        Follow {
            grows: self.0.appended.subscribe(),
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

/// Records as they come.
#[derive(Debug)]
pub struct Follow {
    audit: Audit,
    filter: Filter,
    after: u64,
    grows: watch::Receiver<u64>,
}

impl Follow {
    /// The next ones, as soon as there are some. None: none come any more.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, Error> {
        loop {
            // Before the look: what is appended meanwhile is looked for again.
            self.grows.borrow_and_update();
            let (found, last) = self.audit.after(&self.filter, self.after)?;
            let is_more = last > self.after;
            self.after = last;
            if !found.is_empty() {
                return Ok(Some(found));
            }
            if is_more {
                // Others have their turn while a filter passes over many.
                tokio::task::yield_now().await;
            } else if self.grows.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}
