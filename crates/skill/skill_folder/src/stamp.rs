//! Stamps of skill folders: they tell whether a folder may have changed without
//! reading its files.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use walkdir::WalkDir;

use super::{Ignored, MAX_DEPTH, absolute};

/// The state of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Differs where a file may have changed.
    pub hash: u64,
    /// The time of the last change, by the file system.
    pub newest: SystemTime,
    /// The folder and all below it that belong to the skill.
    pub folders: Vec<PathBuf>,
    /// The number of files and folders that were visited, also of those that are no part of the
    /// skill.
    pub entries: usize,
}

/// Why a folder has no stamp.
#[derive(Debug, thiserror::Error)]
pub enum TooMany {
    /// It holds more than may be visited.
    #[error("it holds more than {0} files and folders")]
    Entries(usize),
    /// It cannot be read, or is gone.
    #[error("it cannot be read: {error}")]
    Unreadable {
        /// Why.
        #[source]
        error: walkdir::Error,
        /// The number of files and folders that were visited until then.
        entries: usize,
    },
}

/// Takes the stamp of a folder with at most `max` files and folders. What is no part of the skill
/// counts as well, since it takes as long; a folder that stays out is not entered.
///
/// # Errors
/// It holds more, or cannot be read.
pub fn stamp(folder: &Path, max: usize) -> Result<Stamp, TooMany> {
    let whole = absolute(folder);
    let mut ignored = Ignored::of_itself(&whole);
    // Unlike `RandomState` it has fixed keys, so stamps of one build can be compared.
    let mut hasher = DefaultHasher::new();
    let mut found = Stamp {
        hash: 0,
        newest: SystemTime::UNIX_EPOCH,
        folders: Vec::new(),
        entries: 0,
    };
    let walk = WalkDir::new(&whole).max_depth(MAX_DEPTH);
    let mut walk = walk.sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let unreadable = |error, entries| TooMany::Unreadable { error, entries };
        let entry = entry.map_err(|error| unreadable(error, found.entries))?;
        if found.entries == max {
            return Err(TooMany::Entries(max));
        }
        found.entries += 1;
        let is_folder = entry.file_type().is_dir();
        if ignored.why(&entry).is_some() {
            if is_folder {
                walk.skip_current_dir();
            }
            continue;
        }
        let meta = entry.metadata();
        let meta = meta.map_err(|error| unreadable(error, found.entries))?;
        // `ctime`, since programs set `mtime` back, as `tar` does when it unpacks.
        let seconds = u64::try_from(meta.ctime()).unwrap_or(0);
        let nanos = u32::try_from(meta.ctime_nsec()).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
        found.newest = found.newest.max(changed);
        let inside = entry.path().strip_prefix(&whole).unwrap_or(entry.path());
        let place = (inside, meta.dev(), meta.ino(), meta.mode());
        place.hash(&mut hasher);
        let content = (meta.ctime(), meta.ctime_nsec(), meta.mtime());
        (content, meta.mtime_nsec(), meta.size()).hash(&mut hasher);
        if is_folder {
            found.folders.push(folder.join(inside));
        }
    }
    found.hash = hasher.finish();
    Ok(found)
}
