//! Backups: one file that any later version reads.
//!
//! ```text
//! "REPERTOIRE BACKUP 1\n", then zstd of:
//!   record: 1u8 | key length: u32 BE | value length: u32 BE | key | value
//!   end:    0u8 | records: u64 BE | SHA-256 of all bytes before this field
//! ```
//!
//! Keys and values are those of the store, envelopes included, in the order of
//! the keys.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{OpenError, Options, StoreError, TableId, blob, directory, guarded, record};
use crate::model::Digest;

const MAGIC: &[u8] = b"REPERTOIRE BACKUP 1\n";
const FAMILY: &[u8] = b"REPERTOIRE BACKUP ";
const MAX_KEY: u32 = 4096;
const MAX_VALUE: u32 = 64 * 1024 * 1024;

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// Records written or read.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// What checking a directory found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Records read.
    pub records: u64,
    /// Contents read and compared with their digests.
    pub contents: u64,
    /// What is damaged, as sentences.
    pub damage: Vec<String>,
}

/// Reads every record and every content.
pub(super) fn verify(tree: &sled::Tree, mut progress: impl FnMut(u64)) -> Verified {
    let mut found = Verified::default();
    let mut records = tree.iter();
    loop {
        let next = match guarded(|| records.next().transpose()) {
            Ok(next) => next,
            Err(error) => {
                // Behind an unreadable page there is no way to go on.
                found.damage.push(error.to_string());
                break;
            }
        };
        let Some((key, value)) = next else { break };
        found.records += 1;
        progress(found.records);
        if TableId::of(&key).is_none() {
            found.damage.push(format!(
                "the record `{}` belongs to no table",
                record::printable(&key)
            ));
            continue;
        }
        if let Err(error) = record::open(&key, &value) {
            found.damage.push(error.to_string());
            continue;
        }
        if let Some((digest, 0)) = content_key(&key) {
            found.contents += 1;
            if let Err(error) = blob::read(tree, &digest) {
                found.damage.push(error.to_string());
            }
        }
    }
    found
}

fn content_key(key: &[u8]) -> Option<(Digest, u16)> {
    if TableId::of(key) != Some(TableId::Contents) {
        return None;
    }
    let (bytes, chunk) = blob::parse_key(key)?;
    Some((Digest::from(bytes), chunk))
}

fn at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |cause| StoreError::Io {
        path: path.clone(),
        cause,
    }
}

/// Hashes what passes through.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.hash.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Writes a backup beside its final name, then renames it: there is never half
/// a backup under that name.
pub(super) fn write(
    tree: &sled::Tree,
    keep: impl Fn(&Digest) -> bool,
    to: &Path,
    mut progress: impl FnMut(u64),
) -> Result<Backup, StoreError> {
    let temporary = PathBuf::from(format!("{}.part", to.display()));
    let error = at(&temporary);
    let mut file = File::create(&temporary).map_err(&error)?;
    file.write_all(MAGIC).map_err(&error)?;
    let packer = zstd::Encoder::new(BufWriter::new(file), 3).map_err(&error)?;
    let mut out = Hashing {
        inner: packer,
        hash: Sha256::new(),
    };
    let mut count = 0_u64;
    let mut records = tree.iter();
    while let Some((key, value)) = guarded(|| records.next().transpose())? {
        record::open(&key, &value)?;
        if content_key(&key).is_some_and(|(digest, _)| !keep(&digest)) {
            continue;
        }
        let (Ok(key_length), Ok(value_length)) =
            (u32::try_from(key.len()), u32::try_from(value.len()))
        else {
            return Err(StoreError::Damaged {
                key: record::printable(&key),
                reason: "it is larger than any record".to_owned(),
            });
        };
        let header = [
            &[1][..],
            &key_length.to_be_bytes(),
            &value_length.to_be_bytes(),
        ]
        .concat();
        out.write_all(&header).map_err(&error)?;
        out.write_all(&key).map_err(&error)?;
        out.write_all(&value).map_err(&error)?;
        count += 1;
        progress(count);
    }
    out.write_all(&[0]).map_err(&error)?;
    out.write_all(&count.to_be_bytes()).map_err(&error)?;
    let Hashing { mut inner, hash } = out;
    inner.write_all(&hash.finalize()).map_err(&error)?;
    let file = inner
        .finish()
        .map_err(&error)?
        .into_inner()
        .map_err(|e| error(e.into_error()))?;
    file.sync_all().map_err(&error)?;
    let bytes = file.metadata().map_err(&error)?.len();
    fs::rename(&temporary, to).map_err(at(to))?;
    Ok(Backup {
        records: count,
        bytes,
    })
}

/// Fills a new data directory from a backup.
///
/// The directory appears only when the whole backup was read and checked.
///
/// # Errors
/// The file is not a whole backup, is of a newer format, or the directory exists.
pub fn restore(
    from: &Path,
    to: &Path,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Backup, StoreError> {
    let unusable = |reason: String| StoreError::NotABackup {
        path: from.to_owned(),
        reason,
    };
    let taken = fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some());
    if taken {
        return Err(StoreError::Io {
            path: to.to_owned(),
            cause: io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the directory is not empty; name a new one",
            ),
        });
    }
    let file = File::open(from).map_err(at(from))?;
    let bytes = file.metadata().map_err(at(from))?.len();
    let mut reader = BufReader::new(file);
    let mut magic = vec![0; MAGIC.len()];
    reader
        .read_exact(&mut magic)
        .map_err(|_| unusable("it is too short".to_owned()))?;
    if magic != MAGIC {
        let reason = if magic.starts_with(FAMILY) {
            "it was written by a later version"
        } else {
            "it does not begin as a backup does"
        };
        return Err(unusable(reason.to_owned()));
    }
    let temporary = PathBuf::from(format!("{}.restoring", to.display()));
    if temporary.exists() {
        fs::remove_dir_all(&temporary).map_err(at(&temporary))?;
    }
    let opened = directory::open(&temporary, options);
    let (db, tree) = opened.map_err(|error: OpenError| unusable(error.to_string()))?;
    let filled = fill(reader, &tree, &unusable, &mut progress);
    let records = match filled {
        Ok(records) => records,
        Err(error) => {
            drop((tree, db));
            fs::remove_dir_all(&temporary).map_err(at(&temporary))?;
            return Err(error);
        }
    };
    guarded(|| db.flush())?;
    directory::database_file(&temporary)
        .map_err(|error| unusable(error.to_string()))?
        .sync_all()
        .map_err(at(&temporary))?;
    drop((tree, db));
    if to.exists() {
        fs::remove_dir(to).map_err(at(to))?;
    }
    fs::rename(&temporary, to).map_err(at(to))?;
    Ok(Backup { records, bytes })
}

fn fill(
    reader: BufReader<File>,
    tree: &sled::Tree,
    unusable: &impl Fn(String) -> StoreError,
    progress: &mut impl FnMut(u64),
) -> Result<u64, StoreError> {
    let broken = |error: io::Error| unusable(format!("it is cut short or damaged ({error})"));
    let unpacker = zstd::Decoder::with_buffer(reader).map_err(broken)?;
    let mut input = Hashing {
        inner: unpacker,
        hash: Sha256::new(),
    };
    let mut count = 0_u64;
    let mut batch = sled::Batch::default();
    let mut pending = 0_usize;
    loop {
        let mut tag = [0; 1];
        input.read_exact(&mut tag).map_err(broken)?;
        match tag {
            [0] => break,
            [1] => {}
            _ => return Err(unusable("it has a record of an unknown sort".to_owned())),
        }
        let (mut key_length, mut value_length) = ([0; 4], [0; 4]);
        input.read_exact(&mut key_length).map_err(broken)?;
        input.read_exact(&mut value_length).map_err(broken)?;
        let (key_length, value_length) = (
            u32::from_be_bytes(key_length),
            u32::from_be_bytes(value_length),
        );
        if key_length > MAX_KEY || value_length > MAX_VALUE {
            return Err(unusable("it has a record larger than any".to_owned()));
        }
        let mut key = vec![0; key_length as usize];
        let mut value = vec![0; value_length as usize];
        input.read_exact(&mut key).map_err(broken)?;
        input.read_exact(&mut value).map_err(broken)?;
        record::open(&key, &value)?;
        pending += key.len() + value.len();
        batch.insert(key, value);
        count += 1;
        progress(count);
        if pending > 4 * 1024 * 1024 {
            let full = std::mem::take(&mut batch);
            guarded(|| tree.apply_batch(full))?;
            guarded(|| tree.flush())?;
            pending = 0;
        }
    }
    guarded(|| tree.apply_batch(batch))?;
    let mut stated = [0; 8];
    input.read_exact(&mut stated).map_err(broken)?;
    let Hashing { mut inner, hash } = input;
    let mut sum = [0; 32];
    inner.read_exact(&mut sum).map_err(broken)?;
    if u64::from_be_bytes(stated) != count || sum != <[u8; 32]>::from(hash.finalize()) {
        return Err(unusable("its checksum does not fit".to_owned()));
    }
    Ok(count)
}
