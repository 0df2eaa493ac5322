//! Contents of files: once per digest, compressed, in chunks.
//!
//! Chunks are as large as records may be, see `chunks`.
//!
//! ```text
//! key:     table | digest: 32 bytes | chunk: u16 BE
//! chunk 0: encoding: u8 (0 raw, 1 zstd) | chunks: u16 BE | size: u64 BE | bytes
//! chunk n: bytes
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use bytes::Bytes;

use super::backend::Records;
use super::chunks::CHUNK_BYTES;
use super::{StoreError, TableId, record};
use model::{Digest, MAX_SKILL_BYTES};

const HEADER_BYTES: usize = 1 + 2 + 8;
const RAW_FORMAT: u8 = 0;
const ZSTD_FORMAT: u8 = 1;
/// Fast, and half of what text needs (see `make bench`).
const COMPRESSION_LEVEL: i32 = 3;

/// A content that is ready to be stored.
#[derive(Debug, Clone)]
pub struct Content {
    digest: Digest,
    size: u64,
    encoding: u8,
    packed: Bytes,
}

impl Content {
    /// Packs a content. Takes some 10 ms for 1 MiB: call it where blocking is
    /// allowed.
    #[must_use]
    pub fn pack(digest: Digest, bytes: &Bytes) -> Self {
        let packed = zstd::bulk::compress(bytes, COMPRESSION_LEVEL)
            .ok()
            .filter(|packed| packed.len() < bytes.len());
        let (encoding, packed) = packed.map_or((RAW_FORMAT, bytes.clone()), |packed| {
            (ZSTD_FORMAT, packed.into())
        });
        Self {
            digest,
            size: bytes.len() as u64,
            encoding,
            packed,
        }
    }
}

fn key(digest: &Digest, chunk: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(35);
    key.push(TableId::Contents.byte());
    key.extend_from_slice(digest.as_bytes());
    key.extend_from_slice(&chunk.to_be_bytes());
    key
}

/// The keys of the records of a content.
pub(super) fn keys(digest: &Digest) -> Range<Vec<u8>> {
    // One byte longer than the highest key, as the range excludes its end.
    key(digest, 0)..[&*key(digest, u16::MAX), &[0]].concat()
}

/// The digest and the chunk of a key; none where it is of another table.
pub(super) fn parse_key(key: &[u8]) -> Option<(Digest, u16)> {
    let (table, rest) = key.split_first()?;
    let (digest, rest) = rest.split_first_chunk::<32>()?;
    let chunk = rest.first_chunk()?;
    (*table == TableId::Contents.byte())
        .then_some((Digest::from(*digest), u16::from_be_bytes(*chunk)))
}

/// The records of a content.
#[expect(clippy::expect_used, reason = "16 MiB in chunks of 32 KiB are 512")]
pub(super) fn records(content: &Content) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pieces: Vec<&[u8]> = if content.packed.is_empty() {
        vec![&[]]
    } else {
        content.packed.chunks(CHUNK_BYTES).collect()
    };
    let count = u16::try_from(pieces.len()).expect("so few chunks");
    (0..count)
        .zip(pieces)
        .map(|(at, piece)| {
            let mut payload = Vec::with_capacity(piece.len() + HEADER_BYTES);
            if at == 0 {
                payload.push(content.encoding);
                payload.extend_from_slice(&count.to_be_bytes());
                payload.extend_from_slice(&content.size.to_be_bytes());
            }
            payload.extend_from_slice(piece);
            (key(&content.digest, at), payload)
        })
        .collect()
}

pub(super) fn exists(records: &dyn Records, digest: &Digest) -> Result<bool, StoreError> {
    Ok(records.get(&key(digest, 0))?.is_some())
}

pub(super) fn read(records: &dyn Records, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
    read_by(|key| records.get(key), digest)
}

/// The same, through another way to get a record.
pub(super) fn read_by(
    get: impl Fn(&[u8]) -> Result<Option<sled::IVec>, StoreError>,
    digest: &Digest,
) -> Result<Option<Bytes>, StoreError> {
    let first = key(digest, 0);
    let Some(value) = get(&first)? else {
        return Ok(None);
    };
    let (_, payload) = record::open(&first, &value)?;
    let damaged = |reason: &str| StoreError::damaged(&first, reason);
    let header: [u8; HEADER_BYTES] = payload
        .get(..HEADER_BYTES)
        .and_then(|header| header.try_into().ok())
        .ok_or_else(|| damaged("its header is cut short"))?;
    let [encoding, c0, c1, size @ ..] = header;
    let (count, size) = (u16::from_be_bytes([c0, c1]), u64::from_be_bytes(size));
    // Before the size is believed: the decompressor allocates as much.
    if size > MAX_SKILL_BYTES {
        return Err(damaged("it is larger than any content"));
    }
    let mut packed = Cow::Borrowed(payload.get(HEADER_BYTES..).unwrap_or_default());
    for chunk in 1..count {
        let key = key(digest, chunk);
        let value = get(&key)?.ok_or_else(|| damaged("a chunk is missing"))?;
        packed
            .to_mut()
            .extend_from_slice(record::open(&key, &value)?.1);
    }
    let content = match encoding {
        RAW_FORMAT => packed.into_owned(),
        ZSTD_FORMAT => {
            let size = usize::try_from(size).map_err(|_| damaged("it is too large"))?;
            unpack(&packed, size).map_err(|error| damaged(&error.to_string()))?
        }
        _ => return Err(damaged("its encoding is not known")),
    };
    if content.len() as u64 != size || Digest::of(&content) != *digest {
        return Err(damaged("its bytes do not fit its digest"));
    }
    Ok(Some(content.into()))
}

/// Unpacks a content of `size` bytes at most. Each thread reuses its decompressor: to make one
/// takes as long as to unpack most contents.
fn unpack(packed: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
    thread_local! {
        static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
            const { RefCell::new(None) };
    }
    UNPACKER.with_borrow_mut(|kept| {
        let unpacker = match kept {
            Some(unpacker) => unpacker,
            None => kept.insert(zstd::bulk::Decompressor::new()?),
        };
        unpacker.decompress(packed, size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gets_smaller_is_packed_and_what_does_not_is_kept() {
        let pack = |bytes: &Bytes| Content::pack(Digest::of(bytes), bytes);
        let text = Bytes::from("A skill says what to do. ".repeat(400));
        let packed = pack(&text);
        assert_eq!(
            (packed.encoding, packed.size),
            (ZSTD_FORMAT, text.len() as u64)
        );
        assert!(packed.packed.len() < text.len() / 10);
        let unpacked = unpack(&packed.packed, text.len()).expect("a text");
        assert_eq!(unpacked, text);
        let noise = (0..200_u32).map(|n| Digest::of(&n.to_be_bytes()));
        let noise: Vec<u8> = noise.flat_map(|digest| *digest.as_bytes()).collect();
        let kept = pack(&noise.clone().into());
        assert_eq!(
            (kept.encoding, kept.packed),
            (RAW_FORMAT, Bytes::from(noise))
        );
    }
}
