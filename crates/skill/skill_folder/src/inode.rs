//! Which folder is at a path: one that was made anew is another one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

/// Device and number, and when it was made, since a number that is free is used again at once.
pub type Inode = (u64, u64, Option<SystemTime>);

/// The folder at a path, links followed; none: there is none.
#[must_use]
pub fn inode(folder: &Path) -> Option<Inode> {
    let meta = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino(), meta.created().ok()))
}
