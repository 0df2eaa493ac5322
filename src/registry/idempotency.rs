//! Writes that a caller names, so that it can repeat them.

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::model::{Digest, Principal};
use crate::store::{Batch, Expect, Store, Table, TableId};

/// How long an answer is remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);
/// Expired answers that one write clears away: more than it adds.
const CLEARED: usize = 4;

const ANSWERS: Table<Digest, Answer> = Table::new(TableId::Answers);
const TIMES: Table<(u64, Digest), ()> = Table::new(TableId::AnswerTimes);

/// Who writes, and the name they give the write.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who writes.
    pub principal: Principal,
    /// Name of the write; empty: none.
    pub key: String,
}

impl Caller {
    /// A caller that does not name its writes.
    #[must_use]
    pub fn new(principal: Principal) -> Self {
        Self {
            principal,
            key: String::new(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    request: Digest,
    outcome: serde_json::Value,
    time: Timestamp,
}

/// Where the answer to a named write is kept.
pub(super) struct Slot<'a> {
    key: &'a str,
    at: Digest,
    request: Digest,
}

impl<'a> Slot<'a> {
    /// None where the caller gave no name. Keys of one caller say nothing about
    /// those of another.
    pub(super) fn new(caller: &'a Caller, fingerprint: &str) -> Option<Self> {
        (!caller.key.is_empty()).then(|| Self {
            key: &caller.key,
            at: Digest::of(format!("{}\0{}", caller.principal, caller.key).as_bytes()),
            request: Digest::of(fingerprint.as_bytes()),
        })
    }

    /// The answer that was given before.
    pub(super) fn answered<T: DeserializeOwned>(&self, store: &Store) -> Result<Option<T>, Error> {
        let Some(answer) = store.get(&ANSWERS, &self.at)? else {
            return Ok(None);
        };
        if answer.value.request != self.request {
            return Err(Error::KeyReused {
                key: self.key.to_owned(),
            });
        }
        serde_json::from_value(answer.value.outcome)
            .map(Some)
            .map_err(|error| Error::Task(format!("a remembered answer: {error}")))
    }

    /// Adds the answer to the write itself, and clears away some that expired.
    pub(super) fn remember<T: Serialize>(
        &self,
        store: &Store,
        batch: &mut Batch,
        outcome: &T,
        now: Timestamp,
    ) -> Result<(), Error> {
        let outcome = serde_json::to_value(outcome)
            .map_err(|error| Error::Task(format!("an answer: {error}")))?;
        batch.expect(&ANSWERS, &self.at, Expect::Absent);
        batch.put(
            &ANSWERS,
            &self.at,
            &Answer {
                request: self.request,
                outcome,
                time: now,
            },
        );
        batch.put(&TIMES, &(millis(now), self.at), &());
        let limit = millis(now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN));
        for entry in store.scan(&TIMES, b"").take(CLEARED) {
            let (key, _) = entry?;
            let (Some(time), Some(digest)) = (key.first_chunk::<8>(), key.last_chunk::<32>())
            else {
                continue;
            };
            let (time, digest) = (u64::from_be_bytes(*time), Digest::from(*digest));
            if time >= limit {
                break;
            }
            batch.delete(&TIMES, &(time, digest));
            batch.delete(&ANSWERS, &digest);
        }
        Ok(())
    }
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or(0)
}
