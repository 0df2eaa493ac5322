//! The envelope of every record.
//!
//! ```text
//! format: u8 | crc32: u32 BE | revision: u64 BE | payload
//! ```
//!
//! Format 1 holds its payload; format 2 says where its chunks are, see `chunks`.
//! The checksum covers the key, the revision, the payload and a format above 1, so a
//! record under another key, or an older copy of a page put back, is found.

use super::{Revision, StoreError, TableId};

/// Format of a record that holds its payload.
const WHOLE_FORMAT: u8 = 1;
/// Format of a record whose payload is in chunks.
const CHUNKED_FORMAT: u8 = 2;
/// The newest format that this version reads.
const NEWEST_FORMAT: u8 = CHUNKED_FORMAT;
/// Bytes before the payload.
const HEADER_BYTES: usize = 1 + 4 + 8;

fn checksum(format: u8, key: &[u8], revision: &[u8], payload: &[u8]) -> [u8; 4] {
    let mut hash = crc32fast::Hasher::new();
    if format > WHOLE_FORMAT {
        hash.update(&[format]);
    }
    // Without the length, a byte could move from the key to the revision under the same sum.
    hash.update(&(key.len() as u64).to_be_bytes());
    hash.update(key);
    hash.update(revision);
    hash.update(payload);
    hash.finalize().to_be_bytes()
}

/// Wraps a payload.
pub(super) fn seal(key: &[u8], revision: Revision, payload: &[u8]) -> Vec<u8> {
    wrap(WHOLE_FORMAT, key, revision, payload)
}

/// Wraps the number of chunks of a payload that is stored in chunks.
pub(super) fn seal_chunked(key: &[u8], revision: Revision, payload: &[u8]) -> Vec<u8> {
    wrap(CHUNKED_FORMAT, key, revision, payload)
}

/// Returns whether the payload of a record is in chunks.
pub(super) fn is_chunked(record: &[u8]) -> bool {
    record.first() == Some(&CHUNKED_FORMAT)
}

fn wrap(format: u8, key: &[u8], revision: Revision, payload: &[u8]) -> Vec<u8> {
    let revision = revision.to_be_bytes();
    let mut record = Vec::with_capacity(HEADER_BYTES + payload.len());
    record.push(format);
    record.extend_from_slice(&checksum(format, key, &revision, payload));
    record.extend_from_slice(&revision);
    record.extend_from_slice(payload);
    record
}

/// Returns the revision in the header of a record, unchecked.
pub(super) fn revision(record: &[u8]) -> Option<Revision> {
    let bytes = record.get(5..HEADER_BYTES)?.try_into().ok()?;
    Some(Revision::from_be_bytes(bytes))
}

/// Unwraps a record, and checks it.
pub(super) fn open<'a>(key: &[u8], record: &'a [u8]) -> Result<(Revision, &'a [u8]), StoreError> {
    let damaged = |reason| StoreError::damaged(key, reason);
    let format = match record.first() {
        None => return Err(damaged("it is empty")),
        Some(&format) if format > NEWEST_FORMAT => {
            return Err(StoreError::NewerFormat {
                key: printable(key),
                found: format,
                known: NEWEST_FORMAT,
            });
        }
        Some(&0) => return Err(damaged("it has no format")),
        Some(&format) => format,
    };
    let sum = record.get(1..).and_then(<[u8]>::split_first_chunk::<4>);
    let revision = sum.and_then(|(sum, rest)| Some((sum, rest.split_first_chunk::<8>()?)));
    let Some((sum, (revision, payload))) = revision else {
        return Err(damaged("it is cut short"));
    };
    if checksum(format, key, revision, payload) != *sum {
        return Err(damaged("its checksum does not fit"));
    }
    Ok((Revision::from_be_bytes(*revision), payload))
}

/// Formats a key for a message: the table and its readable part.
pub(super) fn printable(key: &[u8]) -> String {
    let table = TableId::of(key).map_or("unknown", TableId::name);
    let rest = key.get(1..).unwrap_or_default();
    format!("{table}/{}", rest.escape_ascii())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_reads_back_and_any_changed_byte_is_found(
            key in proptest::collection::vec(any::<u8>(), 1..20),
            payload in proptest::collection::vec(any::<u8>(), 0..60),
            revision: u64,
            at: prop::sample::Index,
            flip in 1_u8..,
            chunked: bool,
        ) {
            let seal = if chunked { seal_chunked } else { seal };
            let record = seal(&key, revision, &payload);
            let opened = open(&key, &record).expect("an intact record");
            prop_assert_eq!(opened, (revision, payload.as_slice()));
            let mut damaged = record.clone();
            damaged[at.index(record.len())] ^= flip;
            prop_assert!(open(&key, &damaged).is_err());
            prop_assert!(open(&key, &record[..at.index(record.len())]).is_err());
            let mut other = key.clone();
            other.push(0);
            prop_assert!(open(&other, &record).is_err());
        }
    }
}
