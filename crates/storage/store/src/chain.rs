//! A chain of records: each has a digest over the one before it and over itself, so that one
//! that was changed, removed or moved is detected.
//!
//! ```text
//! key:    table | number: u64 BE, from 1
//! value:  SHA-256(digest before | number: u64 BE | body) | body
//! start:  under number 0: number and digest of the last record that was pruned
//! end:    under the highest number: number and digest of the last record
//! ```
//!
//! A record gets its number and its digest where its group is written, so batches that wait
//! together append in one order. It is durable with its batch, or absent with it. With an old
//! digest of the end anybody can check whether the chain still contains it; an attacker with
//! write access to the files can write another chain, but none that contains that digest.
//!
//! Not here: the bodies of the records (`audit`).

use super::backend::{Order, Records, walk};
use super::{Batch, Key as _, StoreError, TableId, record};
use model::Digest;

/// A position in a chain: a record's number and its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainMark {
    /// Its number; 0: before the first.
    pub number: u64,
    /// Its digest.
    pub digest: Digest,
}

impl Default for ChainMark {
    fn default() -> Self {
        Self {
            number: 0,
            digest: Digest::from([0; 32]),
        }
    }
}

/// A record of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its position.
    pub mark: ChainMark,
    /// Its body.
    pub body: Vec<u8>,
}

const MIN_NUMBER: u64 = 0;
const MAX_NUMBER: u64 = u64::MAX;

impl ChainMark {
    /// Returns the mark of a record that is appended after this one.
    #[must_use]
    pub fn next(&self, body: &[u8]) -> Self {
        let number = self.number.saturating_add(1);
        let before = self.digest.as_bytes();
        let bytes = [&before[..], &number.to_be_bytes(), body].concat();
        Self {
            number,
            digest: Digest::of(&bytes),
        }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        [&self.number.to_be_bytes()[..], self.digest.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, digest) = bytes.split_at_checked(8)?;
        Some(Self {
            number: u64::from_be_bytes(number.try_into().ok()?),
            digest: Digest::from(<[u8; 32]>::try_from(digest).ok()?),
        })
    }

    /// The payload of its record.
    pub(super) fn payload(self, body: &[u8]) -> Vec<u8> {
        [self.digest.as_bytes(), body].concat()
    }
}

pub(super) fn key(number: u64) -> Vec<u8> {
    let mut key = vec![TableId::Audit.byte()];
    number.write(&mut key);
    key
}

/// The keys of all records.
pub(super) fn link_keys() -> std::ops::Range<Vec<u8>> {
    key(MIN_NUMBER + 1)..key(MAX_NUMBER)
}

pub(super) fn end_key() -> Vec<u8> {
    key(MAX_NUMBER)
}

/// Reads the mark in the record of the start or the end.
pub(super) fn mark(key: &[u8], value: &[u8]) -> Result<ChainMark, StoreError> {
    let (_, payload) = record::open(key, value)?;
    ChainMark::from_bytes(payload)
        .ok_or_else(|| StoreError::damaged(key, "it is no place in a chain"))
}

fn link(key: &[u8], value: &[u8]) -> Result<Link, StoreError> {
    let damaged = |reason| StoreError::damaged(key, reason);
    let number = key.get(1..).and_then(|number| number.try_into().ok());
    let number = number.ok_or_else(|| damaged("its key is cut short"))?;
    let (_, payload) = record::open(key, value)?;
    let parts = payload.split_first_chunk::<32>();
    let (digest, body) = parts.ok_or_else(|| damaged("it has no digest"))?;
    Ok(Link {
        mark: ChainMark {
            number: u64::from_be_bytes(number),
            digest: Digest::from(*digest),
        },
        body: body.to_vec(),
    })
}

/// Reads the mark of a record.
pub(super) fn link_mark(key: &[u8], value: &[u8]) -> Result<ChainMark, StoreError> {
    Ok(link(key, value)?.mark)
}

/// The records with numbers in `from..below`.
pub(super) fn links(
    records: &dyn Records,
    from: u64,
    below: u64,
    order: Order,
) -> impl Iterator<Item = Result<Link, StoreError>> + '_ {
    let range = key(from.max(MIN_NUMBER + 1))..key(below);
    walk(records, range, order).map(|entry| {
        let (key, value) = entry?;
        link(&key, &value)
    })
}

fn stored(records: &dyn Records, number: u64) -> Result<Option<ChainMark>, StoreError> {
    let key = key(number);
    let value = records.get(&key)?;
    value.map(|value| mark(&key, &value)).transpose()
}

/// Reads the mark before the oldest record.
pub(super) fn start(records: &dyn Records) -> Result<ChainMark, StoreError> {
    Ok(stored(records, MIN_NUMBER)?.unwrap_or_default())
}

/// Reads the stored end.
pub(super) fn stored_end(records: &dyn Records) -> Result<Option<ChainMark>, StoreError> {
    stored(records, MAX_NUMBER)
}

/// Finds the last record, where no end is stored.
pub(super) fn last(records: &dyn Records) -> Result<ChainMark, StoreError> {
    match links(records, MIN_NUMBER, MAX_NUMBER, Order::Descending).next() {
        Some(last) => Ok(last?.mark),
        None => start(records),
    }
}

impl Batch {
    /// Appends a record to the chain: it gets its number where the batch is written.
    pub fn append(&mut self, body: Vec<u8>) {
        // 256: its key and digest, and the record of the end that goes with it, about.
        self.bytes += body.len() + 256;
        self.bodies.push(body);
    }

    /// Removes the records of the chain from `from` up to a mark, which becomes the start of the
    /// rest.
    pub fn prune(&mut self, from: u64, through: ChainMark) {
        for number in from.max(MIN_NUMBER + 1)..=through.number {
            self.write(key(number), None);
        }
        self.write(key(MIN_NUMBER), Some(through.to_bytes()));
    }

    /// Forgets where the chain ended: it goes on after the last record that there is, also
    /// with what this batch appends.
    pub fn forget_end(&mut self) {
        self.write(key(MAX_NUMBER), None);
        self.forgets_end = true;
    }
}
