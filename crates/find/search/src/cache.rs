//! The file of vectors that were made.
//!
//! A vector belongs to a text and an embedder. Both are named by digests, so a vector
//! is found again after a restart, a rebuild, or when another skill has the same text.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;

use rustc_hash::FxHashMap;

use embed::Embedder;
use model::Digest;

const MAGIC: &[u8; 8] = b"REPVEC1\n";
const HEADER_BYTES: usize = 8 + 32 + 4;
const DIGEST_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;

/// Rows that were made, in a file: digest of the text, row, check sum. The file is
/// append-only; half a row that a kill left is cut off when it is opened.
#[derive(Debug)]
pub(super) struct Cache {
    file: File,
    dimensions: usize,
    rows: FxHashMap<Digest, Box<[i8]>>,
}

impl Cache {
    /// Opens the file; one that cannot be read is begun anew. Blocks.
    #[expect(
        clippy::expect_used,
        reason = "a vector has far less than 4 GiB of dimensions"
    )]
    pub(super) fn open(path: &Path, embedder: &dyn Embedder) -> std::io::Result<Self> {
        let dimensions = embedder.dimensions();
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(embedder.digest().as_bytes());
        let stated = u32::try_from(dimensions).expect("so few dimensions");
        header.extend_from_slice(&stated.to_le_bytes());
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut rows = FxHashMap::default();
        let mut good = 0;
        let mut reader = BufReader::new(&file);
        let mut found = [0; HEADER_BYTES];
        if reader.read_exact(&mut found).is_ok() && found[..] == header[..] {
            good = HEADER_BYTES as u64;
            let mut record = vec![0; DIGEST_BYTES + dimensions + CHECKSUM_BYTES];
            while reader.read_exact(&mut record).is_ok() {
                let (content, check) = record.split_at(DIGEST_BYTES + dimensions);
                // A kill may leave half a row at the end. Behind a bad row it is unknown where the
                // next one begins, so the rest goes as well.
                if crc32fast::hash(content).to_le_bytes() != check {
                    break;
                }
                let (digest, row) = content.split_at(DIGEST_BYTES);
                if let Some(digest) = digest.first_chunk::<DIGEST_BYTES>() {
                    let row = row.iter().map(|byte| byte.cast_signed()).collect();
                    rows.insert(Digest::from(*digest), row);
                }
                good += record.len() as u64;
            }
        }
        drop(reader);
        if good == 0 {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&header)?;
        } else {
            // The next row is appended: behind half of one it could not be found again.
            file.set_len(good)?;
            file.seek(std::io::SeekFrom::End(0))?;
        }
        Ok(Self {
            file,
            dimensions,
            rows,
        })
    }

    /// No row is in memory.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of a text.
    pub(super) fn get(&self, text: &Digest) -> Option<&[i8]> {
        self.rows.get(text).map(AsRef::as_ref)
    }

    /// Appends rows.
    #[expect(
        clippy::indexing_slicing,
        reason = "it was as long before the row was added"
    )]
    pub(super) fn put(&mut self, rows: &[(Digest, Vec<i8>)]) -> std::io::Result<()> {
        let mut bytes =
            Vec::with_capacity(rows.len() * (DIGEST_BYTES + self.dimensions + CHECKSUM_BYTES));
        for (digest, row) in rows {
            let begin = bytes.len();
            bytes.extend_from_slice(digest.as_bytes());
            bytes.extend(row.iter().map(|value| value.cast_unsigned()));
            let check = crc32fast::hash(&bytes[begin..]);
            bytes.extend_from_slice(&check.to_le_bytes());
        }
        // Not synced: a vector that a power cut takes is made again. Nor in memory, since the
        // index has the row by now.
        self.file.write_all(&bytes)
    }

    /// Drops the rows from memory; they are still in the file.
    pub(super) fn forget(&mut self) {
        self.rows = FxHashMap::default();
    }
}
