//! Writes that a caller names, so that it can repeat them.

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Error, Registry};
use model::{Digest, Principal};
use store::{Batch, Expect, Store, Table, TableId};

/// How long an answer is remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);
/// Expired answers that one write clears away: more than it adds.
const EXPIRIES_PER_WRITE: usize = 4;

// No events: they belong to the server that answered, and would drown the log.
const ANSWERS: Table<Digest, Answer> = Table::new(TableId::Answers);
const TIMES: Table<(u64, Digest), ()> = Table::new(TableId::AnswerTimes);

/// Who writes, and the name they give the write.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who writes.
    pub principal: Principal,
    /// The write by name; none: every call is a write of its own.
    pub named: Option<NamedWrite>,
    /// Nothing is written: the answer is what a write would come to.
    pub is_dry_run: bool,
}

/// A write that its caller can repeat.
#[derive(Debug, Clone)]
pub struct NamedWrite {
    /// The name.
    pub key: String,
    /// Digest of the request as it was sent, so that a repeat is known whatever its words
    /// lead to by then.
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
    /// The answer to a write of this name, where it was done before: for a caller whose
    /// words no longer lead to a skill.
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

/// Where the answer to a named write is kept.
pub(super) struct Slot<'a> {
    key: &'a str,
    at: Digest,
    request: Digest,
}

impl<'a> Slot<'a> {
    /// None where the caller gave no name. Keys of one caller say nothing about
    /// those of another.
    pub(super) fn new(caller: &'a Caller) -> Option<Self> {
        let NamedWrite { key, request } = caller.named.as_ref()?;
        Some(Self {
            key,
            at: Digest::of(format!("{}\0{key}", caller.principal).as_bytes()),
            request: *request,
        })
    }

    /// The answer that was given before.
    pub(super) fn answered<T: DeserializeOwned>(&self, store: &Store) -> Result<Option<T>, Error> {
        let Some(answer) = store.get(&ANSWERS, &self.at)? else {
            return Ok(None);
        };
        // Compared by the request as it was sent, not by what its words lead to now: a repeat
        // is answered as the first call was, also where a short name has moved on.
        if answer.value.request != self.request {
            return Err(Error::KeyReused {
                key: self.key.to_owned(),
            });
        }
        serde_json::from_value(answer.value.outcome)
            .map(Some)
            .map_err(|error| Error::Internal(format!("a remembered answer: {error}")))
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
