//! Backups: one file that any later version reads.
//!
//! ```text
//! "REPERTOIRE BACKUP 2\n", then zstd of:
//!   record: 1u8 | key length: u32 BE | value length: u32 BE | key | value
//!   end:    0u8 | records: u64 BE | SHA-256 of all bytes before this field
//! ```
//!
//! Keys and values are those of the store, envelopes included, in the order of
//! the keys.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::atomic_file::AtomicFile;
use super::backend::{Order, Records, everything, walk};
use super::view::View;
use super::{Options, StoreError, TableId, blob, claim, directory, guarded, log, private, record};

const MAGIC: &[u8] = b"REPERTOIRE BACKUP 2\n";
/// The magic of older versions: the same format, of a directory of format 1.
const OLDER: &[u8] = b"REPERTOIRE BACKUP 1\n";
const FAMILY: &[u8] = b"REPERTOIRE BACKUP ";
/// Records between two checks of the free disk space.
pub(super) const SPACE_CHECK_INTERVAL: u64 = 256;
// A damaged length must not have as much memory allocated as it states.
const MAX_KEY: u32 = 4096;
const MAX_VALUE: u32 = 64 * 1024 * 1024;

/// The size of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// Records written or read.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The result of checking a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Records read.
    pub records: u64,
    /// Contents read and compared with their digests.
    pub contents: u64,
    /// The damage, as sentences.
    pub damage: Vec<String>,
}

/// Reads every record and every content.
pub(super) fn verify(records: &dyn Records, mut progress: impl FnMut(u64)) -> Verified {
    let mut found = Verified::default();
    for entry in walk(records, everything(), Order::Ascending) {
        let (key, value) = match entry {
            Ok(entry) => entry,
            Err(error) => {
                // A walk cannot go on after an unreadable page.
                found.damage.push(error.to_string());
                break;
            }
        };
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
        if let Some((digest, 0)) = blob::parse_key(&key) {
            found.contents += 1;
            if let Err(error) = blob::read(records, &digest) {
                found.damage.push(error.to_string());
            }
        }
    }
    found
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

/// Writes a backup, which gets its name once it is whole. A file of that name is overwritten
/// only if `replace` is set.
pub(super) fn write(
    view: &View,
    to: &Path,
    replace: bool,
    mut progress: impl FnMut(u64) -> Result<(), StoreError>,
) -> Result<Backup, StoreError> {
    let error = StoreError::io(to);
    // Checked before the work, and again when it gets its name.
    if !replace && to.exists() {
        return Err(error(io::ErrorKind::AlreadyExists.into()));
    }
    let atomic_file = AtomicFile::private(to).map_err(&error)?;
    let backup = write_to(view, atomic_file.file(), &error, &mut progress)?;
    atomic_file.persist(replace).map_err(error)?;
    Ok(backup)
}

/// Writes a backup to a file without a name, which goes when its handle is dropped. `named` is
/// the name that it has for a moment.
pub(super) fn write_unnamed(
    view: &View,
    named: &Path,
    mut progress: impl FnMut(u64) -> Result<(), StoreError>,
) -> Result<(File, Backup), StoreError> {
    let error = StoreError::io(named);
    let file = private::writable().read(true).truncate(true).open(named);
    let mut file = file.map_err(&error)?;
    fs::remove_file(named).map_err(&error)?;
    let backup = write_to(view, &file, &error, &mut progress)?;
    file.rewind().map_err(&error)?;
    Ok((file, backup))
}

fn write_to(
    view: &View,
    mut file: &File,
    error: &impl Fn(io::Error) -> StoreError,
    progress: &mut impl FnMut(u64) -> Result<(), StoreError>,
) -> Result<Backup, StoreError> {
    file.write_all(MAGIC).map_err(error)?;
    let packer = zstd::Encoder::new(BufWriter::new(file), 3).map_err(error)?;
    let mut out = Hashing {
        inner: packer,
        hash: Sha256::new(),
    };
    let mut count = 0_u64;
    view.snapshot().read(view, |(key, value)| {
        let (Ok(key_length), Ok(value_length)) =
            (u32::try_from(key.len()), u32::try_from(value.len()))
        else {
            return Err(StoreError::damaged(&key, "it is larger than any record"));
        };
        let header = [
            &[1][..],
            &key_length.to_be_bytes(),
            &value_length.to_be_bytes(),
        ]
        .concat();
        out.write_all(&header).map_err(error)?;
        out.write_all(&key).map_err(error)?;
        out.write_all(&value).map_err(error)?;
        count += 1;
        progress(count)
    })?;
    out.write_all(&[0]).map_err(error)?;
    out.write_all(&count.to_be_bytes()).map_err(error)?;
    let Hashing { mut inner, hash } = out;
    // At the end, since it is known only there; and so a backup that is cut short has none.
    inner.write_all(&hash.finalize()).map_err(error)?;
    let file = inner
        .finish()
        .map_err(error)?
        .into_inner()
        .map_err(|e| error(e.into_error()))?;
    file.sync_all().map_err(error)?;
    let bytes = file.metadata().map_err(error)?.len();
    Ok(Backup {
        records: count,
        bytes,
    })
}

/// Fills a new data directory from a backup.
///
/// The directory is one that opens only when the whole backup was read and checked.
/// An empty directory will do, such as a new volume. Its log is a new one: what happens to
/// it is not what happened after the backup was taken, so tokens of the old log are
/// refused.
///
/// # Errors
/// The file is not a whole backup, is of a newer format, or the directory is not empty.
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
    let claim = claim::claim(to)?;
    let file = File::open(from).map_err(StoreError::io(from))?;
    let bytes = file.metadata().map_err(StoreError::io(from))?.len();
    let mut reader = BufReader::new(file);
    begin(&mut reader).map_err(unusable)?;
    let store = claim.store();
    let records = directory::build(&store, options, |tree| {
        let records = fill(reader, tree, &unusable, &mut progress)?;
        // What happens from here on is another history: a token of the old log must not lead
        // into it.
        log::renew(tree)?;
        Ok(records)
    })?;
    claim.complete(&store).map_err(StoreError::io(to))?;
    Ok(Backup { records, bytes })
}

/// Reads the magic of a backup.
fn begin(reader: &mut impl Read) -> Result<(), String> {
    let mut magic = vec![0; MAGIC.len()];
    if reader.read_exact(&mut magic).is_err() {
        return Err("it is too short".to_owned());
    }
    if magic == MAGIC || magic == OLDER {
        return Ok(());
    }
    Err(if magic.starts_with(FAMILY) {
        "it was written by a later version"
    } else {
        "it does not begin as a backup does"
    }
    .to_owned())
}

fn fill(
    reader: BufReader<File>,
    tree: &sled::Tree,
    unusable: &impl Fn(String) -> StoreError,
    progress: &mut impl FnMut(u64),
) -> Result<u64, StoreError> {
    let broken = |error: io::Error| unusable(format!("it is cut short or damaged ({error})"));
    let unpacker = zstd::Decoder::with_buffer(reader)
        .map_err(broken)?
        // Else it would go on with whatever frame follows, and the check of the end below find
        // nothing.
        .single_frame();
    let mut input = Hashing {
        inner: unpacker,
        hash: Sha256::new(),
    };
    let mut count = 0_u64;
    let mut filler = Filler::new(tree);
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
        filler.put(&key, &value)?;
        count += 1;
        progress(count);
    }
    filler.finish()?;
    let mut stated = [0; 8];
    input.read_exact(&mut stated).map_err(broken)?;
    let Hashing { mut inner, hash } = input;
    let mut sum = [0; 32];
    inner.read_exact(&mut sum).map_err(broken)?;
    if u64::from_be_bytes(stated) != count || sum != <[u8; 32]>::from(hash.finalize()) {
        return Err(unusable("its checksum does not fit".to_owned()));
    }
    // The frame ends here, and so does the file.
    let more = inner.read(&mut [0; 1]).map_err(broken)?;
    let mut file = inner.finish();
    if more > 0 || file.read(&mut [0; 1]).map_err(broken)? > 0 {
        return Err(unusable("there is more behind its end".to_owned()));
    }
    Ok(count)
}

/// Fills a store that nobody reads yet, some megabytes at a time.
pub(super) struct Filler<'a> {
    tree: &'a sled::Tree,
    batch: sled::Batch,
    pending: usize,
}

impl<'a> Filler<'a> {
    const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;

    pub(super) fn new(tree: &'a sled::Tree) -> Self {
        Self {
            tree,
            batch: sled::Batch::default(),
            pending: 0,
        }
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.pending += key.len() + value.len();
        self.batch.insert(key, value);
        self.make_room()
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.pending += key.len();
        self.batch.remove(key);
        self.make_room()
    }

    fn make_room(&mut self) -> Result<(), StoreError> {
        if self.pending > Self::MAX_PENDING_BYTES {
            self.pending = 0;
            let full = std::mem::take(&mut self.batch);
            guarded(|| self.tree.apply_batch(full))?;
            guarded(|| self.tree.flush())?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), StoreError> {
        guarded(|| self.tree.apply_batch(self.batch))
    }
}
