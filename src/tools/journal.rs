//! What was called: one record a call, whether it ran or was refused.
//!
//! Records wait in memory for a few milliseconds and are written in order. While
//! more wait than may be lost, no further call is made: a tool that runs without
//! a record is what the list of calls is there to rule out.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::model::{Digest, SkillId, VersionNumber, open_token, seal_token};
use crate::registry;
use crate::store::{Batch, CommitError, Store, StoreError, Table, TableId};

const CALLS: Table<u64, CallRecord> = Table::new(TableId::ToolCalls);
const PAGE: &str = "tool-calls";

/// Records that wait to be written, at most.
const MAX_WAITING: usize = 20_000;
/// Records in one write.
const RECORDS_A_WRITE: usize = 500;
/// Records that one write removes at most: more than it adds.
const FORGOTTEN_A_WRITE: u64 = 1_000;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its place in the list.
    pub number: u64,
    /// The call.
    pub id: String,
    /// When it came.
    pub at: Timestamp,
    /// Who called.
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

/// The list of calls.
#[derive(Debug)]
pub(super) struct Journal {
    store: Store,
    keep: u64,
    waiting: Mutex<Waiting>,
}

impl Journal {
    /// Goes on where the stored list ends.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub(super) fn open(store: Store, keep: u64) -> Result<Self, StoreError> {
        let first = store.scan(&CALLS, b"").next().transpose()?;
        let last = store.before(&CALLS, b"", None, 1)?;
        let next = last.first().map_or(0, |last| last.number + 1);
        Ok(Self {
            store,
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

    /// There is room for the record of a call.
    ///
    /// # Errors
    /// More records wait to be written than may be lost.
    pub(super) fn ready(&self) -> Result<(), Error> {
        if self.with(|waiting| waiting.records.len()) < MAX_WAITING {
            Ok(())
        } else {
            Err(Error::JournalFull)
        }
    }

    /// Adds a record, which gets the next number.
    pub(super) fn add(&self, mut record: CallRecord) {
        self.with(|waiting| {
            record.number = waiting.next;
            waiting.next += 1;
            waiting.records.push_back(record);
        });
    }

    /// Writes what waits. One caller at a time.
    ///
    /// # Errors
    /// The store refuses; what was not written waits for the next time.
    pub(super) async fn write(&self) -> Result<(), CommitError> {
        loop {
            let (taken, forgotten) = self.with(|waiting| {
                let records = waiting.records.iter().take(RECORDS_A_WRITE);
                let taken: Vec<_> = records.cloned().collect();
                let end = taken.last().map_or(0, |record| record.number + 1);
                let first = waiting.first;
                let kept = end.saturating_sub(self.keep);
                let forgotten = first..kept.clamp(first, first + FORGOTTEN_A_WRITE);
                (taken, forgotten)
            });
            if taken.is_empty() {
                return Ok(());
            }
            let mut batch = Batch::new();
            for record in &taken {
                batch.put(&CALLS, &record.number, record);
            }
            for number in forgotten.clone() {
                batch.delete(&CALLS, &number);
            }
            self.store.commit(batch).await?;
            self.with(|waiting| {
                waiting.first = forgotten.end;
                waiting.records.drain(..taken.len());
            });
        }
    }

    /// Calls, newest first; those that wait to be written included.
    ///
    /// # Errors
    /// The token is none of ours, or the store cannot be read.
    pub(super) fn list(&self, limit: usize, token: &str) -> Result<CallPage, Error> {
        let below = if token.is_empty() {
            None
        } else {
            let place = open_token(PAGE, "", token).and_then(|place| place.parse::<u64>().ok());
            Some(place.ok_or(registry::Error::PageToken)?)
        };
        // What waits may be stored already; numbers tell.
        let (mut calls, waits_from) = self.with(|waiting| {
            let newest = waiting.records.iter().rev();
            let calls: Vec<_> = newest
                .filter(|record| below.is_none_or(|below| record.number < below))
                .take(limit + 1)
                .cloned()
                .collect();
            (calls, waiting.records.front().map(|record| record.number))
        });
        if calls.len() <= limit {
            let end = [below, waits_from].into_iter().flatten().min();
            let missing = limit + 1 - calls.len();
            calls.extend(self.store.before(&CALLS, b"", end.as_ref(), missing)?);
        }
        let next = (calls.len() > limit).then(|| {
            calls.truncate(limit);
            let last = calls.last().map_or(0, |record| record.number);
            seal_token(PAGE, "", &last.to_string())
        });
        Ok(CallPage { calls, next })
    }
}
