//! The health of installed skills: the files on disk, compared with what was installed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use root_folder::{Kind, RootFolder, Unread};
use sha2::{Digest as _, Sha256};

use super::error::named;
use super::{Method, Record};
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
    /// Adds a file that cannot be opened.
    fn add(&mut self, name: String, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.missing.push(name),
            _ => self.unreadable.push(format!("{name} ({error})")),
        }
    }

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

/// The digest of a file, without its bytes in memory; none: it is larger.
fn digest(file: File, max: u64) -> io::Result<Option<Digest>> {
    if file.metadata()?.len() > max {
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

/// Opens the folder with the files of a skill; none: it is not what was installed.
fn folder(directory: &RootFolder, record: &Record) -> io::Result<Option<RootFolder>> {
    let name = Path::new(record.folder());
    match (record.method, directory.kind(name)?) {
        (_, None) => Err(io::ErrorKind::NotFound.into()),
        (Method::Copy, Some(Kind::Folder)) => Ok(Some(directory.folder(name, false)?)),
        (Method::Symlink, Some(Kind::Link)) => {
            let copy = PathBuf::from(directory.link_target(name)?);
            // The name of its target is the digest of the version.
            if copy.file_name() != Some(OsStr::new(&record.digest.hex())) {
                return Ok(None);
            }
            let copy = root_folder::resolved(&directory.path().join(copy))?;
            Ok(Some(RootFolder::open(&copy)?))
        }
        _ => Ok(None),
    }
}

/// Compares the files in a directory with what was installed there.
#[must_use]
pub(crate) fn of(directory: &Path, record: &Record) -> Health {
    let mut health = Health::default();
    let opened = RootFolder::open(directory);
    let folder = match opened.and_then(|directory| folder(&directory, record)) {
        Ok(Some(folder)) => folder,
        Ok(None) => {
            health.changed.push(".".to_owned());
            return health;
        }
        Err(error) => {
            health.add(".".to_owned(), &error);
            return health;
        }
    };
    for file in &record.files {
        let name = file.path.to_string();
        let found = folder.file(Path::new(&name));
        match found.map(|found| digest(found, file.size)) {
            Ok(Ok(Some(digest))) if digest == file.digest => {}
            Ok(Err(error)) | Err(Unread::Failed(error)) => health.add(name, &error),
            Err(Unread::NoFile(error)) if error.kind() == io::ErrorKind::NotFound => {
                health.missing.push(name);
            }
            Ok(Ok(_)) | Err(Unread::NoFile(_) | Unread::TooLarge) => health.changed.push(name),
        }
    }
    health
}
