//! The data directory: its files, its format, and its lock.
//!
//! ```text
//! DATA/FORMAT            {"product":"repertoire","format":2}
//! DATA/lock              held by whoever has it open, see `lock`
//! DATA/store/            sled's files
//! DATA/last              the last acknowledged write, see `high_water_mark`
//! DATA/socket            of the server that has it open, see `server::local`
//! DATA/server.log        of a server that a window started, and server.log.1 before it
//! DATA/store.new/        compaction at work, or what a kill left of it
//! DATA/store.restoring/  a restore or a salvage at work, or what a kill left of it
//! DATA/backup.new        a backup that a server was about to take; it has no name for long
//! DATA/aside/            damaged files that are not needed, see `leftovers`
//! ```
//!
//! `store` is whole at every moment: a folder is filled and synced under another name, then
//! moved into place in one step. So any other folder there was left by a kill.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::{Cause, attempt};
use super::inspect::{self, LogState};
use super::lock::{self, Lock};
use super::{
    OpenError, Options, Revision, StoreError, free_bytes, guarded, high_water_mark, leftovers,
    private,
};

/// Format of the directories that this version writes.
///
/// 2: withdrawals have records of their own, which format 1 kept in the heads of skills.
const FORMAT: u32 = 2;
const PRODUCT: &str = "repertoire";
/// Name of the file that says that a directory is one of ours.
pub(super) const MARKER: &str = "FORMAT";
/// Its name while the directory is made.
pub(super) const UNFINISHED: &str = "FORMAT.new";
/// Folder that compaction fills.
pub(super) const COMPACTING: &str = "store.new";
/// Folder that a restore fills: with a store, or a salvage with a data directory.
pub(super) const RESTORING: &str = "store.restoring";
/// File of a backup that is handed out.
pub(super) const BACKING_UP: &str = "backup.new";
/// Logs of a server that has no terminal, which may be there before anything else is.
const LOGS: [&str; 2] = ["server.log", "server.log.1"];
/// Folder that a file system keeps at its root.
const OF_THE_FILE_SYSTEM: &str = "lost+found";

/// Segments large enough that a full leaf of chunks (17 × 32 KiB) stays below a
/// quarter of one; see `blob`.
pub(super) const SEGMENT_BYTES: usize = 4 * 1024 * 1024;

/// sled's own threads may hold its lock a little longer than its last handle.
const SLED_LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const SLED_LOCK_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Serialize, Deserialize)]
struct Marker {
    product: String,
    format: u32,
}

/// sled over a directory of ours.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) db: sled::Db,
    pub(super) tree: sled::Tree,
    pub(super) lock: Lock,
}

pub(super) fn store_path(directory: &Path) -> PathBuf {
    directory.join("store")
}

fn unfinished_path(directory: &Path) -> PathBuf {
    directory.join(UNFINISHED)
}

fn marker_path(directory: &Path) -> PathBuf {
    directory.join(MARKER)
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> OpenError + use<> {
    let path = path.to_owned();
    move |cause| OpenError::Io {
        path: path.clone(),
        cause,
    }
}

/// Opens sled in a directory of ours; makes one where there is nothing.
pub(super) fn open(directory: &Path, options: &Options) -> Result<Opened, OpenError> {
    // Twice: nothing may be made in a foreign folder, and the answer may have changed by the
    // time the lock is ours.
    is_ours(directory)?;
    let lock = Lock::take(directory, options.lock_timeout)?;
    let ours = is_ours(directory)?;
    let store = store_path(directory);
    if directory.join(RESTORING).exists() && !(ours && store.exists()) {
        return Err(OpenError::CutShort {
            path: directory.to_owned(),
            what: "a restore or salvage into it was cut short".to_owned(),
            next: "run it again, or remove the directory".to_owned(),
        });
    }
    if ours {
        if !store.join("db").is_file() {
            return Err(OpenError::damaged(
                directory,
                "the file `store/db` is missing",
            ));
        }
    } else {
        begin(directory)?;
    }
    for leftover in [COMPACTING, RESTORING].map(|name| directory.join(name)) {
        if leftover.exists() {
            tracing::info!(folder = %leftover.display(), "removing leftovers of a killed process");
            // It may be the old store of an exchange that is not durable yet: a power cut that
            // undoes the exchange must find it whole.
            private::sync_dir(directory).map_err(at(directory))?;
            fs::remove_dir_all(&leftover).map_err(at(&leftover))?;
        }
    }
    // It has this name for a moment only, until it has none: a kill came between.
    let backup = directory.join(BACKING_UP);
    match fs::remove_file(&backup) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&backup)(error)),
        _ => {}
    }
    let (db, tree) = reopen(directory, options)?;
    if !ours {
        sync(&store).map_err(at(&store))?;
    }
    if !ours || is_older(directory) {
        // Before anything is written that an older version would misread.
        finish(directory).map_err(at(&marker_path(directory)))?;
    }
    private::tighten(directory);
    Ok(Opened { db, tree, lock })
}

/// Opens sled in a locked directory. Where acknowledged writes cannot be reached, nothing is
/// changed: sled would overwrite what comes after the damage.
pub(super) fn reopen(
    directory: &Path,
    options: &Options,
) -> Result<(sled::Db, sled::Tree), OpenError> {
    let store = store_path(directory);
    let acknowledged = high_water_mark::acknowledged(directory)?;
    if store.join("db").exists() {
        match inspect::inspect(&store, acknowledged).map_err(at(&store))? {
            LogState::Whole => {}
            LogState::Cut(found) => {
                return Err(high_water_mark::lacks(directory, acknowledged, found));
            }
        }
    }
    engine_of(&store, options, acknowledged).map_err(|cause| match cause {
        // An earlier version of this program, which does not name its process.
        Cause::Locked => OpenError::InUse {
            path: directory.to_owned(),
            process: None,
        },
        Cause::System(reason) => at(&store)(io::Error::other(reason)),
        Cause::Damaged(reason) => OpenError::damaged(directory, reason),
    })
}

/// Opens sled in a store folder of which nothing was acknowledged yet; makes one where
/// there is none.
pub(super) fn engine(store: &Path, options: &Options) -> Result<(sled::Db, sled::Tree), Cause> {
    engine_of(store, options, None)
}

fn engine_of(
    store: &Path,
    options: &Options,
    acknowledged: Option<Revision>,
) -> Result<(sled::Db, sled::Tree), Cause> {
    let system = |error: io::Error| Cause::System(error.to_string());
    let config = sled::Config::new()
        .path(store)
        .cache_capacity(options.cache_bytes)
        .segment_size(SEGMENT_BYTES)
        // Every commit is flushed by the committer; a second flusher would
        // deadlock with it.
        .flush_every_ms(None);
    let mut waited = Duration::ZERO;
    loop {
        leftovers::prepare(store).map_err(system)?;
        let opened = attempt(|| {
            let db = config.open()?;
            let tree = db.open_tree(b"records")?;
            // A tree that cannot be walked shows here.
            let (_first, _last) = (tree.first()?, tree.last()?);
            Ok((db, tree))
        });
        match opened {
            Err(Cause::Locked) if waited < SLED_LOCK_TIMEOUT => {
                std::thread::sleep(SLED_LOCK_INTERVAL);
                waited += SLED_LOCK_INTERVAL;
            }
            // A snapshot may have a right checksum and belong to another log. Without snapshots
            // sled skips what is damaged in the whole log: so only where that is whole.
            Err(Cause::Damaged(_))
                if inspect::inspect_all(store, acknowledged).map_err(system)?
                    == LogState::Whole
                    && leftovers::set_snapshots_aside(store).map_err(system)? => {}
            opened => return opened,
        }
    }
}

/// Fills a store folder that is not in use yet, and makes it durable. Where that fails, nothing
/// is left of it.
pub(super) fn build<T>(
    store: &Path,
    options: &Options,
    fill: impl FnOnce(&sled::Tree) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    clear(store).map_err(StoreError::io(store))?;
    let built = engine(store, options)
        .map_err(StoreError::from)
        .and_then(|(db, tree)| {
            let filled = fill(&tree)?;
            guarded(|| db.flush())?;
            drop((db, tree));
            end(store, options)?;
            Ok(filled)
        });
    if built.is_err() {
        // A leftover is removed by the next start.
        let _gone = remove(store);
    }
    built
}

/// Makes a store durable that was filled, and closed.
pub(super) fn end(store: &Path, options: &Options) -> Result<(), StoreError> {
    // The last write is not at the end of what was filled in, so it does not mark the end of the
    // log: a snapshot does, which sled writes when it is opened.
    drop(engine(store, options)?);
    sync(store).map_err(StoreError::io(store))
}

/// Refuses to take the last of the disk, which writes need.
pub(super) fn check_reserve(directory: &Path, reserve: u64) -> io::Result<()> {
    match free_bytes(directory).filter(|free| *free < reserve) {
        None => Ok(()),
        Some(free) => Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("the disk has {free} bytes free, fewer than the reserve of {reserve}"),
        )),
    }
}

/// Removes a folder with all that is in it, where there is one.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes all that is in a folder, where there is one. The folder stays: its name says what was
/// begun.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes sled's files durable, and their names.
pub(super) fn sync(store: &Path) -> io::Result<()> {
    File::open(store.join("db"))?.sync_all()?;
    private::sync_dir(&store.join("blobs"))?;
    private::sync_dir(store)
}

/// The directory has a FORMAT file that this version reads. If not, it may become one
/// of ours: it is missing, or nothing is in it but what we began.
fn is_ours(directory: &Path) -> Result<bool, OpenError> {
    match fs::read(marker_path(directory)) {
        Ok(bytes) => check(directory, &bytes).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            foreign(directory)?.map_or(Ok(false), |name| {
                let has = |name: &str| directory.join(name).is_file();
                Err(if has("store/db") && has("last") {
                    OpenError::damaged(directory, "its FORMAT file is missing")
                } else {
                    OpenError::NotOurs {
                        path: directory.to_owned(),
                        reason: format!("it has no FORMAT file, but `{name}`"),
                    }
                })
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(OpenError::NotOurs {
            path: directory.to_owned(),
            reason: "it is no folder".to_owned(),
        }),
        Err(error) => Err(at(&marker_path(directory))(error)),
    }
}

/// Finds something in a directory without a FORMAT file that neither a start, nor a restore, nor
/// a file system leaves there.
pub(super) fn foreign(directory: &Path) -> Result<Option<String>, OpenError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(at(directory))?,
    };
    let begun = unfinished_path(directory).is_file();
    for entry in entries {
        let name = entry.map_err(at(directory))?.file_name();
        let known = [lock::NAME, UNFINISHED, RESTORING, OF_THE_FILE_SYSTEM];
        // The FORMAT file may have come meanwhile.
        let known = known.iter().chain(&LOGS).any(|known| name == *known);
        if known || name == MARKER || (begun && name == "store") {
            continue;
        }
        return Ok(Some(name.display().to_string()));
    }
    Ok(None)
}

/// A directory that can be opened has an older format than this version writes.
fn is_older(directory: &Path) -> bool {
    let marker = fs::read(marker_path(directory));
    let marker = marker.map(|bytes| serde_json::from_slice::<Marker>(&bytes));
    matches!(marker, Ok(Ok(marker)) if marker.format < FORMAT)
}

fn check(directory: &Path, bytes: &[u8]) -> Result<(), OpenError> {
    let marker: Marker = serde_json::from_slice(bytes)
        .map_err(|_| OpenError::damaged(directory, "its FORMAT file cannot be read"))?;
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
    Ok(())
}

/// Begins a new directory in an empty one, or in one that another process was
/// killed over before it was done.
///
/// FORMAT comes last, so a directory that has it is whole. Until then it is
/// FORMAT.new.
fn begin(directory: &Path) -> Result<(), OpenError> {
    // Earlier versions compacted next to the directory, and were not whole between two renames:
    // what is missing here is there.
    for ending in [".old", ".new"] {
        let sibling = sibling(directory, ending).filter(|path| marker_path(path).exists());
        if let Some(sibling) = sibling {
            return Err(OpenError::CutShort {
                path: directory.to_owned(),
                what: format!(
                    "it is empty, and `{}` next to it holds what an earlier version compacted when it was interrupted",
                    sibling.display()
                ),
                next: format!(
                    "give that one the name `{}`, or name another directory with --data",
                    directory.display()
                ),
            });
        }
    }
    let unfinished = unfinished_path(directory);
    private::writable()
        .open(&unfinished)
        .map_err(at(&unfinished))?;
    let store = store_path(directory);
    remove(&store).map_err(at(&store))
}

fn sibling(directory: &Path, ending: &str) -> Option<PathBuf> {
    let directory = fs::canonicalize(directory).ok()?;
    let mut name = directory.file_name()?.to_owned();
    name.push(ending);
    Some(directory.with_file_name(name))
}

/// Writes the marker, whole or not at all, when all else is durable.
pub(super) fn finish(directory: &Path) -> io::Result<()> {
    let unfinished = unfinished_path(directory);
    let marker = Marker {
        product: PRODUCT.to_owned(),
        format: FORMAT,
    };
    private::sync_dir(directory)?;
    let mut file = private::writable().truncate(true).open(&unfinished)?;
    serde_json::to_writer(&mut file, &marker)?;
    file.sync_all()?;
    fs::rename(&unfinished, marker_path(directory))?;
    private::sync_dir(directory)?;
    // A parent that cannot be read cannot be synced; its entry is durable soon.
    let parent = fs::canonicalize(directory)?;
    let _synced = parent.parent().map(private::sync_dir);
    Ok(())
}

/// The database file, for syncing. All that is in it is durable.
pub(super) fn database_file(directory: &Path) -> Result<File, OpenError> {
    let path = store_path(directory).join("db");
    File::open(&path)
        .and_then(|file| file.sync_all().map(|()| file))
        .map_err(at(&path))
}

#[cfg(test)]
mod tests;
