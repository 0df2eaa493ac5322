//! The journal: a record of each call, whether it ran or was refused.
//!
//! Records wait in memory for a few milliseconds and are written in order. While
//! more wait than may be lost, no further call is made: no tool may run without a
//! record.
//!
//! A call that names no session there is can only be refused, and anybody can make as
//! many of them as they like. Such stray calls have a short list of their own, so that
//! they push out no record of a call that could run.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::Error;
use model::{Digest, SkillId, VersionNumber, open_token, seal_token};
use store::{Batch, CommitError, Expect, Store, StoreError, Table, TableId};

const CALLS: Table<u64, CallRecord> = Table::new(TableId::ToolCalls);
// Anybody can make as many calls without a session as they like, and a list of calls has an
// end: theirs would push out the others.
const STRAY: Table<u64, CallRecord> = Table::new(TableId::StrayCalls);
const PAGE: &str = "tool-calls";

/// Records that wait to be written, at most.
const MAX_WAITING: usize = 20_000;
/// Records in one write.
const RECORDS_PER_WRITE: usize = 500;
/// Stray calls over which their list reaches back.
const MAX_STRAY_CALLS: u64 = 1_000;
/// Records that one write removes at most: more than it adds.
const REMOVALS_PER_WRITE: u64 = 1_000;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its number in the list.
    pub number: u64,
    /// The call.
    pub id: String,
    /// When it came.
    pub at: Timestamp,
    /// The caller.
    pub caller: String,
    /// The session, as far as it may be shown.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// Skill that declares it, where it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillId>,
    /// The version, where it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionNumber>,
    /// Digest of the arguments.
    pub arguments: Digest,
    /// Code of the refusal or failure; empty: it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Microseconds that it took.
    pub micros: u64,
}

/// A page of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPage {
    /// The calls, newest first.
    pub calls: Vec<CallRecord>,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// In their order; those that are being written stay until they are.
    records: VecDeque<CallRecord>,
    next: u64,
    /// The lowest number that may be stored.
    first: u64,
}

/// The latest records of a table.
#[derive(Debug)]
struct Ring {
    table: Table<u64, CallRecord>,
    keep: u64,
    waiting: Mutex<Waiting>,
}

impl Ring {
    /// Goes on where the stored list ends.
    fn open(store: &Store, table: Table<u64, CallRecord>, keep: u64) -> Result<Self, StoreError> {
        let first = store.scan(&table, b"").next().transpose()?;
        let next = end(store, &table)?;
        Ok(Self {
            table,
            keep,
            waiting: Mutex::new(Waiting {
                records: VecDeque::new(),
                next,
                first: first.map_or(next, |(_, first)| first.value.number),
            }),
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a record, which gets the next number.
    fn add(&self, mut record: CallRecord) {
        self.with(|waiting| {
            record.number = waiting.next;
            waiting.next += 1;
            waiting.records.push_back(record);
        });
    }

    async fn write(&self, store: &Store) -> Result<(), CommitError> {
        loop {
            let (taken, forgotten) = self.with(|waiting| {
                let records = waiting.records.iter().take(RECORDS_PER_WRITE);
                let taken: Vec<_> = records.cloned().collect();
                let end = taken.last().map_or(0, |record| record.number + 1);
                let first = waiting.first;
                // If `keep_calls` was made smaller, there are many to remove: each write removes
                // some.
                let start = end.saturating_sub(self.keep);
                let forgotten = first..start.clamp(first, first + REMOVALS_PER_WRITE);
                (taken, forgotten)
            });
            if taken.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::new();
            for record in &taken {
                // A second writer may have taken the number, and its record must survive.
                batch.expect(&self.table, &record.number, Expect::Absent);
                batch.put(&self.table, &record.number, record);
            }
            for number in forgotten.clone() {
                batch.delete(&self.table, &number);
            }
            match store.commit(batch).await {
                Ok(_) => self.with(|waiting| {
                    waiting.first = forgotten.end;
                    waiting.records.drain(..taken.len());
                }),
                Err(CommitError::Conflict { .. }) => self.renumber(store)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Another writer has taken the numbers: what waits goes on after the end of its list.
    fn renumber(&self, store: &Store) -> Result<(), StoreError> {
        let end = end(store, &self.table)?;
        self.with(|waiting| {
            waiting.next = end + waiting.records.len() as u64;
            for (record, number) in waiting.records.iter_mut().zip(end..) {
                record.number = number;
            }
        });
        Ok(())
    }

    /// The newest records below a number, those that wait to be written included.
    fn newest(
        &self,
        store: &Store,
        below: Option<u64>,
        max: usize,
    ) -> Result<Vec<CallRecord>, StoreError> {
        // A waiting record may be stored already; its number shows that.
        let (mut records, waits_from) = self.with(|waiting| {
            let newest = waiting.records.iter().rev();
            let records: Vec<_> = newest
                .filter(|record| below.is_none_or(|below| record.number < below))
                .take(max)
                .cloned()
                .collect();
            (records, waiting.records.front().map(|record| record.number))
        });
        if records.len() < max {
            let end = [below, waits_from].into_iter().flatten().min();
            let missing = max - records.len();
            records.extend(store.before(&self.table, b"", end.as_ref(), missing)?);
        }
        Ok(records)
    }
}

/// The number after the last one that is stored.
fn end(store: &Store, table: &Table<u64, CallRecord>) -> Result<u64, StoreError> {
    let last = store.before(table, b"", None, 1)?;
    Ok(last.first().map_or(0, |last| last.number + 1))
}

/// The list of calls.
#[derive(Debug)]
pub(super) struct Journal {
    store: Store,
    calls: Ring,
    stray: Ring,
    /// Notified of each record that waits to be written.
    pub(super) pending: Notify,
}

/// Where a page of both lists ends: the lowest numbers that were given.
type PageStart = (Option<u64>, Option<u64>);

fn page_start(text: &str) -> Option<PageStart> {
    let number = |text: &str| match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    let (calls, stray) = text.split_once('/')?;
    Some((number(calls)?, number(stray)?))
}

impl Journal {
    /// Goes on where the stored lists end.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub(super) fn open(store: Store, keep: u64) -> Result<Self, StoreError> {
        Ok(Self {
            calls: Ring::open(&store, CALLS, keep)?,
            stray: Ring::open(&store, STRAY, keep.min(MAX_STRAY_CALLS))?,
            store,
            pending: Notify::new(),
        })
    }

    /// Fails while too many records wait for one more call.
    ///
    /// # Errors
    /// More records wait to be written than may be lost.
    pub(super) fn ready(&self) -> Result<(), Error> {
        if self.calls.with(|waiting| waiting.records.len()) < MAX_WAITING {
            Ok(())
        } else {
            Err(Error::JournalFull)
        }
    }

    /// Adds the record of a call in a session.
    pub(super) fn add(&self, record: CallRecord) {
        self.calls.add(record);
        self.pending.notify_one();
    }

    /// Adds the record of a call without a session, unless a full list of them waits: then
    /// only the log has it.
    pub(super) fn add_stray(&self, record: CallRecord) {
        let waiting = self.stray.with(|waiting| waiting.records.len() as u64);
        if waiting < self.stray.keep {
            self.stray.add(record);
            self.pending.notify_one();
        }
    }

    /// Writes what waits. One caller at a time.
    ///
    /// # Errors
    /// The store refuses; what was not written waits for the next time.
    pub(super) async fn write(&self) -> Result<(), CommitError> {
        self.calls.write(&self.store).await?;
        self.stray.write(&self.store).await
    }

    /// Calls of both lists, newest first; those that wait to be written included.
    ///
    /// # Errors
    /// The token is none of ours, or the store cannot be read.
    pub(super) fn list(&self, limit: usize, token: &str) -> Result<CallPage, Error> {
        let mut below: PageStart = match token {
            "" => (None, None),
            token => open_token(PAGE, "", token)
                .and_then(|text| page_start(&text))
                .ok_or(registry::Error::PageToken)?,
        };
        // One more than fits on the page shows whether there is another page.
        let mut calls = self.calls.newest(&self.store, below.0, limit + 1)?;
        let mut stray = self.stray.newest(&self.store, below.1, limit + 1)?;
        let mut page = Vec::with_capacity(limit.min(calls.len() + stray.len()));
        // Each is newest first, so the next of both is at its front.
        calls.reverse();
        stray.reverse();
        while page.len() < limit {
            // For an empty list the time is `None`, which is less than any other, so it never
            // wins.
            let is_stray = match (calls.last(), stray.last()) {
                (None, None) => break,
                (call, stray) => call.map(|call| call.at) < stray.map(|stray| stray.at),
            };
            let (from, end) = if is_stray {
                (&mut stray, &mut below.1)
            } else {
                (&mut calls, &mut below.0)
            };
            let next = from.pop();
            *end = next.as_ref().map(|record| record.number);
            page.extend(next);
        }
        let is_more = !calls.is_empty() || !stray.is_empty();
        let next = is_more.then(|| {
            let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
            let page_start = format!("{}/{}", number(below.0), number(below.1));
            seal_token(PAGE, "", &page_start)
        });
        Ok(CallPage { calls: page, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Options;

    fn record(tool: String) -> CallRecord {
        CallRecord {
            number: 0,
            id: String::new(),
            at: Timestamp::UNIX_EPOCH,
            caller: String::new(),
            session: String::new(),
            tool,
            skill: None,
            version: None,
            arguments: Digest::of(b""),
            error: String::new(),
            micros: 0,
        }
    }

    #[tokio::test]
    async fn what_another_writer_stored_is_not_written_over() {
        let store = Store::in_memory(&Options::default());
        let open = || Journal::open(store.clone(), 100).expect("a journal");
        let (one, other) = (open(), open());
        let mut expected = Vec::new();
        for (at, journal) in [&one, &other, &other, &one].into_iter().enumerate() {
            for call in 0..3 {
                let tool = format!("tool-{at}-{call}");
                journal.add(record(tool.clone()));
                expected.insert(0, tool);
            }
            journal.write().await.expect("written");
        }
        let page = open().list(100, "").expect("a page");
        let tools: Vec<_> = page.calls.into_iter().map(|call| call.tool).collect();
        assert_eq!(tools, expected);
    }
}
