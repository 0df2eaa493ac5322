//! Writes that a caller names, so that it can repeat them.

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Error, Registry};
use model::{Digest, Principal};
use store::{Batch, Expect, Store, Table, TableId};

/// The time for which an answer is remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);
/// Expired answers that one write removes: more than it adds, so that they never pile up.
const EXPIRIES_PER_WRITE: usize = 4;

// No events: they belong to the server that answered, and would drown the log.
const ANSWERS: Table<Digest, Answer> = Table::new(TableId::Answers);
const TIMES: Table<(u64, Digest), ()> = Table::new(TableId::AnswerTimes);

/// A writer, and the name of its write.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The writer.
    pub principal: Principal,
    /// The write by name; none: every call is a write of its own.
    pub named: Option<NamedWrite>,
    /// Nothing is written: the answer is that of the write.
    pub is_dry_run: bool,
}

/// A write that its caller can repeat.
#[derive(Debug, Clone)]
pub struct NamedWrite {
    /// The name.
    pub key: String,
    /// Digest of the request as it was sent, so that a repeat is recognized wherever its
    /// references lead by then.
    pub request: Digest,
}

impl Caller {
    /// A caller that does not name its writes.
    #[must_use]
    pub fn new(principal: Principal) -> Self {
        Self {
            principal,
            named: None,
            is_dry_run: false,
        }
    }

    /// The same for a write that is not made.
    #[must_use]
    pub fn dry_run(principal: Principal) -> Self {
        Self {
            is_dry_run: true,
            ..Self::new(principal)
        }
    }

    /// The same caller with a write by name; an empty key is no name.
    #[must_use]
    pub fn named(principal: Principal, key: &str, request: impl FnOnce() -> Digest) -> Self {
        let named = (!key.is_empty()).then(|| NamedWrite {
            key: key.to_owned(),
            request: request(),
        });
        Self {
            named,
            ..Self::new(principal)
        }
    }
}

impl Registry {
    /// Returns the answer to an earlier write of this name: for a caller whose reference no
    /// longer leads to a skill.
    ///
    /// # Errors
    /// The name was used for another request.
    pub fn answered<T: DeserializeOwned>(&self, caller: &Caller) -> Result<Option<T>, Error> {
        match Slot::new(caller) {
            Some(slot) => slot.answered(&self.inner.store),
            None => Ok(None),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    request: Digest,
    outcome: serde_json::Value,
    time: Timestamp,
}

/// The slot for the answer to a named write.
pub(super) struct Slot<'a> {
    key: &'a str,
    at: Digest,
    request: Digest,
}

impl<'a> Slot<'a> {
    /// Returns none where the caller gave no name. Keys of different callers are independent.
    pub(super) fn new(caller: &'a Caller) -> Option<Self> {
        let NamedWrite { key, request } = caller.named.as_ref()?;
        Some(Self {
            key,
            at: Digest::of(format!("{}\0{key}", caller.principal).as_bytes()),
            request: *request,
        })
    }

    /// Reads the answer of an earlier write.
    pub(super) fn answered<T: DeserializeOwned>(&self, store: &Store) -> Result<Option<T>, Error> {
        let Some(answer) = store.get(&ANSWERS, &self.at)? else {
            return Ok(None);
        };
        // Compared by the request as it was sent, not by where its references lead now: a repeat
        // gets the answer of the first call, also where a short name leads elsewhere by now.
        if answer.value.request != self.request {
            return Err(Error::KeyReused {
                key: self.key.to_owned(),
            });
        }
        serde_json::from_value(answer.value.outcome)
            .map(Some)
            .map_err(|error| Error::Internal(format!("a remembered answer: {error}")))
    }

    /// Adds the answer to the batch of the write, and removes some that expired.
    pub(super) fn remember<T: Serialize>(
        &self,
        store: &Store,
        batch: &mut Batch,
        outcome: &T,
        now: Timestamp,
    ) -> Result<(), Error> {
        let outcome = serde_json::to_value(outcome)
            .map_err(|error| Error::Internal(format!("an answer: {error}")))?;
        // In the batch of the write itself: there is no moment at which the write is done and
        // its repeat would do it again.
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
        for entry in store.scan(&TIMES, b"").take(EXPIRIES_PER_WRITE) {
            let (key, _) = entry?;
            let (Some(time), Some(digest)) = (key.first_chunk::<8>(), key.last_chunk::<32>())
            else {
                continue;
            };
            let (time, digest) = (u64::from_be_bytes(*time), Digest::from(*digest));
            // In the order of time: all that follow are younger.
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
