//! The data directory: its files, its format, and who has it open.
//!
//! ```text
//! DATA/FORMAT      {"product":"repertoire","format":1}
//! DATA/store/      sled's files
//! DATA/last        the last acknowledged write, see `last`
//! DATA/endpoint    address of the server that has it open
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{OpenError, Options, StoreError, guarded};

/// Format of the directories that this version writes.
const FORMAT: u32 = 1;
const PRODUCT: &str = "repertoire";
/// Name of the FORMAT file while the directory is made.
const UNFINISHED: &str = "FORMAT.new";

/// Segments large enough that a full leaf of chunks (17 × 32 KiB) stays below a
/// quarter of one; see `blob`.
const SEGMENT_BYTES: usize = 4 * 1024 * 1024;

/// What the system says where it refuses, as sled hands it on; the files are as
/// they were.
const REFUSALS: [&str; 5] = [
    "Permission denied",
    "No space left",
    "File too large",
    "Read-only file system",
    "Too many open files",
];

/// How long a directory in use is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[derive(Serialize, Deserialize)]
struct Marker {
    product: String,
    format: u32,
}

fn store_path(directory: &Path) -> PathBuf {
    directory.join("store")
}

fn unfinished_path(directory: &Path) -> PathBuf {
    directory.join(UNFINISHED)
}

fn marker_path(directory: &Path) -> PathBuf {
    directory.join("FORMAT")
}

/// Opens sled in a directory of ours; makes one where there is nothing.
pub(super) fn open(
    directory: &Path,
    options: &Options,
) -> Result<(sled::Db, sled::Tree), OpenError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |cause| OpenError::Io { path, cause }
    };
    let mut fresh = None;
    match fs::read(marker_path(directory)) {
        Ok(bytes) => check(directory, &bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => fresh = begin(directory)?,
        Err(error) => return Err(io(&marker_path(directory))(error)),
    }
    let config = sled::Config::new()
        .path(store_path(directory))
        .cache_capacity(options.cache_bytes)
        .segment_size(SEGMENT_BYTES)
        // Every commit is flushed by the committer; a second flusher would
        // deadlock with it.
        .flush_every_ms(None);
    let opened = || {
        guarded(|| {
            let db = config.open()?;
            let tree = db.open_tree(b"records")?;
            Ok((db, tree))
        })
    };
    // sled's own threads may hold the lock a little longer than its last handle.
    let in_use = |error: &StoreError| error.to_string().contains("could not acquire lock");
    let mut result = opened();
    let mut waited = Duration::ZERO;
    while waited < LOCK_PATIENCE && result.as_ref().is_err_and(in_use) {
        std::thread::sleep(LOCK_PAUSE);
        waited += LOCK_PAUSE;
        result = opened();
    }
    let opened = result.map_err(|error| {
        let text = error.to_string();
        if in_use(&error) {
            OpenError::InUse {
                path: directory.to_owned(),
            }
        } else if REFUSALS.iter().any(|refusal| text.contains(refusal)) {
            OpenError::Io {
                path: store_path(directory),
                cause: io::Error::other(text),
            }
        } else {
            OpenError::damaged(directory, text)
        }
    })?;
    if let Some(unfinished) = fresh {
        finish(directory, &unfinished).map_err(io(&marker_path(directory)))?;
    }
    Ok(opened)
}

fn check(directory: &Path, bytes: &[u8]) -> Result<(), OpenError> {
    let marker: Marker = serde_json::from_slice(bytes)
        .map_err(|error| OpenError::damaged(directory, format!("its FORMAT file: {error}")))?;
    if marker.product != PRODUCT {
        return Err(OpenError::NotOurs {
            path: directory.to_owned(),
            reason: format!("its FORMAT file names `{}`", marker.product),
        });
    }
    if marker.format > FORMAT {
        return Err(OpenError::NewerFormat {
            path: directory.to_owned(),
            found: marker.format,
            known: FORMAT,
        });
    }
    if marker.format == 0 {
        return Err(OpenError::damaged(
            directory,
            "its FORMAT file has format 0",
        ));
    }
    if !store_path(directory).join("db").is_file() && store_path(directory).is_dir() {
        return Err(OpenError::damaged(
            directory,
            "the file `store/db` is missing",
        ));
    }
    Ok(())
}

/// Begins a new directory in an empty one, or in one that another process was
/// killed over before it was done. None: another process made it meanwhile.
///
/// FORMAT comes last, so a directory that has it is whole. Until then it is
/// FORMAT.new, locked by who is at it.
fn begin(directory: &Path) -> Result<Option<File>, OpenError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |cause| OpenError::Io { path, cause }
    };
    let unfinished = unfinished_path(directory);
    fs::create_dir_all(directory).map_err(io(directory))?;
    let begun = unfinished.is_file();
    for entry in fs::read_dir(directory).map_err(io(directory))? {
        let name = entry.map_err(io(directory))?.file_name();
        if name != UNFINISHED && name != "FORMAT" && !(begun && name == "store") {
            return Err(OpenError::NotOurs {
                path: directory.to_owned(),
                reason: format!("it has no FORMAT file, but `{}`", name.display()),
            });
        }
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&unfinished);
    let file = file.map_err(io(&unfinished))?;
    let mut waited = Duration::ZERO;
    while let Err(error) =
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
    {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(io(&unfinished)(error.into()));
        }
        if waited >= LOCK_PATIENCE {
            return Err(OpenError::InUse {
                path: directory.to_owned(),
            });
        }
        std::thread::sleep(LOCK_PAUSE);
        waited += LOCK_PAUSE;
    }
    if marker_path(directory).exists() {
        // A file that stays is no more than untidy.
        let _gone = fs::remove_file(&unfinished);
        return Ok(None);
    }
    match fs::remove_dir_all(store_path(directory)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io(&store_path(directory))(error))
        }
        _ => Ok(Some(file)),
    }
}

/// Writes the marker whole or not at all.
fn finish(directory: &Path, file: &File) -> io::Result<()> {
    let marker = Marker {
        product: PRODUCT.to_owned(),
        format: FORMAT,
    };
    file.set_len(0)?;
    serde_json::to_writer(file, &marker)?;
    file.sync_all()?;
    fs::rename(unfinished_path(directory), marker_path(directory))?;
    File::open(directory)?.sync_all()
}

/// The database file, for syncing.
pub(super) fn database_file(directory: &Path) -> Result<File, OpenError> {
    let path = store_path(directory).join("db");
    // The entries of a new directory are durable from here on.
    let synced = File::open(store_path(directory)).and_then(|folder| folder.sync_all());
    synced
        .and_then(|()| File::open(&path))
        .map_err(|cause| OpenError::Io { path, cause })
}

fn endpoint_path(directory: &Path) -> PathBuf {
    directory.join("endpoint")
}

/// Notes the address of the server that has the directory open, so that commands
/// find it.
///
/// # Errors
/// The file cannot be written.
pub fn remember_endpoint(directory: &Path, url: &str) -> Result<(), StoreError> {
    let path = endpoint_path(directory);
    fs::write(&path, url).map_err(|cause| StoreError::Io { path, cause })
}

/// Forgets the address.
pub fn forget_endpoint(directory: &Path) {
    // A file that is not there, or stays, only makes the next command ask in vain.
    let _gone = fs::remove_file(endpoint_path(directory));
}

/// The address of the server that has, or had, the directory open.
#[must_use]
pub fn endpoint(directory: &Path) -> Option<String> {
    fs::read_to_string(endpoint_path(directory))
        .ok()
        .map(|url| url.trim().to_owned())
}
