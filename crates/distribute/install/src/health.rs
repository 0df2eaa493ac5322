//! The health of installed skills: the files on disk, compared with what was installed.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::named;
use super::{Method, Record, disk};
use model::Digest;

/// The status of an installed skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Every file is as it was installed.
    Healthy,
    /// Somebody changed a file.
    Warning,
    /// Files are missing.
    Error,
    /// It cannot be read.
    Unknown,
}

impl Status {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// The health of an installed skill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Its files that are not there.
    pub missing: Vec<String>,
    /// Its files that differ from what was installed; `.` is the folder itself.
    pub changed: Vec<String>,
    /// Its files that cannot be read, each with why.
    pub unreadable: Vec<String>,
}

impl Health {
    /// The status that follows from it.
    #[must_use]
    pub fn status(&self) -> Status {
        if !self.missing.is_empty() {
            Status::Error
        } else if !self.unreadable.is_empty() {
            Status::Unknown
        } else if self.changed.is_empty() {
            Status::Healthy
        } else {
            Status::Warning
        }
    }

    /// Describes what is wrong; none: nothing.
    #[must_use]
    pub fn details(&self) -> Option<String> {
        let parts = [
            ("missing", &self.missing),
            ("cannot be read", &self.unreadable),
            ("changed since it was installed", &self.changed),
        ];
        let parts = parts.into_iter().filter(|(_, paths)| !paths.is_empty());
        let parts: Vec<_> = parts
            .map(|(what, paths)| format!("{what}: {}", named(paths)))
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The digest of a file, without its bytes in memory; none: it is no regular file, or larger.
fn digest(path: &Path, max: u64) -> io::Result<Option<Digest>> {
    // A device or a pipe would be read without end.
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > max {
        return Ok(None);
    }
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
    // One byte more, so that a file that grows meanwhile has another digest.
    let mut file = file.take(max + 1);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    Ok(Some(Digest::from(<[u8; 32]>::from(hash.finalize()))))
}

/// Compares the files in a directory with what was installed there.
#[must_use]
pub(crate) fn of(directory: &Path, record: &Record) -> Health {
    let mut health = Health::default();
    let folder = directory.join(record.folder());
    let Ok(found) = fs::symlink_metadata(&folder) else {
        health.missing.push(".".to_owned());
        return health;
    };
    let is_as_it_was = match record.method {
        Method::Copy => found.is_dir(),
        // The name of its target is the digest of the version.
        Method::Symlink => fs::read_link(&folder).is_ok_and(|to| {
            to.file_name()
                .is_some_and(|name| *name == *record.digest.hex())
        }),
    };
    if !is_as_it_was {
        health.changed.push(".".to_owned());
        return health;
    }
    for file in &record.files {
        let (name, path) = (file.path.to_string(), folder.join(file.path.as_str()));
        let is_link = disk::is_link(&path);
        match digest(&path, file.size) {
            Ok(Some(digest)) if digest == file.digest && !is_link => {}
            Ok(_) => health.changed.push(name),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                health.missing.push(name);
            }
            Err(error) => health.unreadable.push(format!("{name} ({error})")),
        }
    }
    health
}
