//! Records whose payload is too large for one: in chunks, in a table of their own.
//!
//! sled keeps some 16 records in a leaf, and some 20 while leaves are merged. It writes
//! a leaf that grows beyond a quarter of a segment to a file of its own, which it
//! neither syncs nor frees. With segments of 4 MiB (see `directory`) and records of
//! [`MAX_PAYLOAD`] bytes no leaf comes near that, whatever a table holds.
//!
//! ```text
//! the record: chunks: u16 BE
//! a chunk:    table | key of the record | number: u16 BE   of the same revision
//! ```

use super::backend::Records;
use super::{Revision, StoreError, TableId, record};

/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: usize = 32 * 1024;
/// Bytes of a payload that one record holds at most: a chunk, and what contents put
/// before their first.
const MAX_PAYLOAD: usize = CHUNK_BYTES + 64;
/// Bytes of a key at most: an index node of sled holds some 260 of them.
pub(super) const MAX_KEY: usize = 2 * 1024;
/// Maximum number of reads of a record that is overwritten meanwhile.
// A record and its chunks are read one by one, and a write may come between: then they are of
// two revisions.
const ATTEMPTS: usize = 16;

fn key_of(key: &[u8], number: u16) -> Vec<u8> {
    [&[TableId::Chunks.byte()], key, &number.to_be_bytes()].concat()
}

/// The records that hold a payload: the record itself, and its chunks.
#[expect(
    clippy::expect_used,
    reason = "a batch has less than 2 GiB: a u16 counts their chunks"
)]
pub(super) fn records(key: &[u8], revision: Revision, payload: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    if payload.len() <= MAX_PAYLOAD {
        return vec![(key.to_vec(), record::seal(key, revision, payload))];
    }
    let count = u16::try_from(payload.len().div_ceil(CHUNK_BYTES)).expect("so few chunks");
    let head = record::seal_chunked(key, revision, &count.to_be_bytes());
    let chunks = (0..count)
        .zip(payload.chunks(CHUNK_BYTES))
        .map(|(number, chunk)| {
            let key = key_of(key, number);
            let value = record::seal(&key, revision, chunk);
            (key, value)
        });
    std::iter::once((key.to_vec(), head))
        .chain(chunks)
        .collect()
}

/// The keys of the chunks of a record. None where it is whole or damaged.
pub(super) fn keys(key: &[u8], value: &[u8]) -> Vec<Vec<u8>> {
    let count = count(key, value).ok().flatten().unwrap_or(0);
    (0..count).map(|number| key_of(key, number)).collect()
}

fn count(key: &[u8], value: &[u8]) -> Result<Option<u16>, StoreError> {
    if !record::is_chunked(value) {
        return Ok(None);
    }
    let (_, payload) = record::open(key, value)?;
    let count = payload.try_into().map(u16::from_be_bytes);
    count
        .map(Some)
        .map_err(|_| StoreError::damaged(key, "it does not say how many chunks it has"))
}

/// The revision and the payload of a record that was read. None: another write came between
/// the record and its chunks.
fn assemble(
    records: &dyn Records,
    key: &[u8],
    value: &[u8],
) -> Result<Option<(Revision, Vec<u8>)>, StoreError> {
    let (revision, payload) = record::open(key, value)?;
    let Some(count) = count(key, value)? else {
        return Ok(Some((revision, payload.to_vec())));
    };
    let mut whole = Vec::with_capacity(usize::from(count) * CHUNK_BYTES);
    for number in 0..count {
        let key = key_of(key, number);
        let Some(value) = records.get(&key)? else {
            return Ok(None);
        };
        let (of, chunk) = record::open(&key, &value)?;
        if of != revision {
            return Ok(None);
        }
        whole.extend_from_slice(chunk);
    }
    Ok(Some((revision, whole)))
}

/// The revision and the payload of a record, of which `value` was read.
pub(super) fn open(
    records: &dyn Records,
    key: &[u8],
    value: sled::IVec,
) -> Result<Option<(Revision, Vec<u8>)>, StoreError> {
    let mut value = Some(value);
    for _ in 0..ATTEMPTS {
        let Some(read) = value else { return Ok(None) };
        let assembled = assemble(records, key, &read)?;
        if assembled.is_some() {
            return Ok(assembled);
        }
        value = records.get(key)?;
    }
    Err(StoreError::damaged(key, "a chunk is missing"))
}
