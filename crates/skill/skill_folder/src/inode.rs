//! The identity of a folder: one that was deleted and made again is another one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

/// Device, number and creation time: file systems reuse a free number at once.
pub type Inode = (u64, u64, Option<SystemTime>);

/// Returns the identity of the folder at a path, links followed; none: there is no folder.
#[must_use]
pub fn inode(folder: &Path) -> Option<Inode> {
    let meta = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino(), meta.created().ok()))
}
