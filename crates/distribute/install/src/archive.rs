//! The archive of a version, unpacked in memory.

use std::collections::BTreeMap;
use std::io::Read as _;

use bytes::Bytes;

use super::Error;
use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES};

/// Bytes of an archive on top of those of its files: headers and padding.
const ARCHIVE_OVERHEAD_BYTES: u64 = 4 * 1024 * 1024;

/// The files of a `.tar.gz`, by path. It may come from anybody: it may hold files alone, under
/// paths inside of a skill, no more and no larger than a skill may have.
///
/// # Errors
/// It is no such archive.
pub fn unpack(archive: &[u8]) -> Result<Vec<(FilePath, Bytes)>, Error> {
    let wrong = |reason: String| Error::Archive { reason };
    // Bounded after the decompression: 1 MiB of gzip may be 1 GiB of zeros.
    let unpacked =
        flate2::read::GzDecoder::new(archive).take(MAX_SKILL_BYTES + ARCHIVE_OVERHEAD_BYTES);
    let mut archive = tar::Archive::new(unpacked);
    let (mut files, mut total) = (BTreeMap::new(), 0);
    let entries = archive
        .entries()
        .map_err(|error| wrong(error.to_string()))?;
    for entry in entries {
        let entry = entry.map_err(|error| wrong(error.to_string()))?;
        // Refused and not left out: the archive of a version has nothing else.
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(wrong("it holds more than files".to_owned()));
        }
        let path = String::from_utf8(entry.path_bytes().into_owned());
        let path = path.map_err(|_| wrong("the name of a file is no text".to_owned()))?;
        let path: FilePath = path.parse().map_err(|error| wrong(format!("{error}")))?;
        total += entry.size();
        if total > MAX_SKILL_BYTES || files.len() == MAX_FILES {
            let reason = format!("it has more than {MAX_FILES} files or {MAX_SKILL_BYTES} bytes");
            return Err(wrong(reason));
        }
        // `content` grows with what comes: the size in the header is a claim, and no reason to
        // reserve memory.
        let (size, mut content) = (entry.size(), Vec::new());
        let mut limited = entry.take(size);
        let read = limited.read_to_end(&mut content);
        read.map_err(|error| wrong(error.to_string()))?;
        if content.len() as u64 != size {
            return Err(wrong("it ends in the middle of a file".to_owned()));
        }
        if files.contains_key(&path) {
            return Err(wrong(format!("it has two files `{path}`")));
        }
        files.insert(path, Bytes::from(content));
    }
    Ok(files.into_iter().collect())
}
