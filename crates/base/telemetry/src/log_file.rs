//! The log of a server that has no terminal: `DATA/server.log`, of a bounded size.
//!
//! Once it is full it becomes `server.log.1`, in place of the one before, and begins anew. A
//! log that cannot be written is no reason not to serve.
//!
//! Not here: the records and their form (the front page of this crate).

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a log. There are two.
const MAX_BYTES: u64 = 1 << 20;
const NAME: &str = "server.log";

/// The writer of the log. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LogFile(Arc<Mutex<Open>>);

#[derive(Debug)]
struct Open {
    path: PathBuf,
    max: u64,
    /// None: nothing was written yet.
    file: Option<File>,
    bytes: u64,
}

impl LogFile {
    /// The log of a data directory, which need not be there yet.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self::bounded(directory, MAX_BYTES)
    }

    fn bounded(directory: &Path, max: u64) -> Self {
        Self(Arc::new(Mutex::new(Open {
            path: directory.join(NAME),
            max,
            file: None,
            bytes: 0,
        })))
    }
}

impl Open {
    /// The file, rotated unless it takes this many bytes more.
    fn file(&mut self, more: u64) -> io::Result<&mut File> {
        if self.file.is_some() && self.bytes + more > self.max {
            self.file = None;
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        if self.file.is_none() {
            let mut options = File::options();
            let file = options
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&self.path)?;
            self.bytes = file.metadata()?.len();
            self.file = Some(file);
            // Left full by the run before. Not an empty one: a record longer than a file would
            // be moved aside for ever.
            if self.bytes > 0 && self.bytes + more > self.max {
                return self.file(more);
            }
        }
        self.file
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Write for LogFile {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A record is written at once: half of one at the end of a file helps nobody.
        let bytes = record.len() as u64;
        open.file(bytes)?.write_all(record)?;
        open.bytes += bytes;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_log_goes_on_where_it_ended_and_never_grows_beyond_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let write = |log: &mut LogFile, number: u8| {
            let record = format!("record {number}\n");
            log.write_all(record.as_bytes()).expect("written");
        };
        // Two records of nine bytes, and no third.
        let mut log = LogFile::bounded(folder.path(), 20);
        (1..=2).for_each(|number| write(&mut log, number));
        assert_eq!(
            (text(NAME), text("server.log.1")),
            ("record 1\nrecord 2\n".into(), String::new())
        );
        let mut again = LogFile::bounded(folder.path(), 20);
        (3..=5).for_each(|number| write(&mut again, number));
        assert_eq!(
            (text(NAME), text("server.log.1")),
            ("record 5\n".into(), "record 3\nrecord 4\n".into())
        );
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn a_log_is_filled_to_its_last_byte_and_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = LogFile::bounded(folder.path(), 18);
        for _ in 0..2 {
            log.write_all(b"a record\n").expect("written");
        }
        let files = fs::read_dir(folder.path()).expect("a folder").flatten();
        let files: Vec<_> = files
            .map(|file| {
                let about = file.metadata().expect("a file");
                let mode = about.permissions().mode() & 0o777;
                (file.file_name(), about.len(), mode)
            })
            .collect();
        assert_eq!(files, [(NAME.into(), 18, 0o600)]);
    }

    #[test]
    fn a_record_that_is_longer_than_a_log_has_one_for_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let mut log = LogFile::bounded(folder.path(), 5);
        for record in ["record 1\n", "record 2\n"] {
            log.write_all(record.as_bytes()).expect("written");
        }
        assert_eq!(
            (text(NAME), text("server.log.1")),
            ("record 2\n".into(), "record 1\n".into())
        );
    }

    #[test]
    fn a_log_in_a_folder_that_is_gone_fails_and_nothing_else_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = LogFile::of(&folder.path().join("gone"));
        log.write_all(b"record\n").expect_err("there is no folder");
    }
}
