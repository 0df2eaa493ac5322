//! Prepares sled's files before sled opens them.
//!
//! * `snap.N.generating`: sled writes it at each start after an unclean end, and
//!   takes one that a kill left behind for the newest snapshot. It is removed.
//! * `snap.N`: a shortcut to the state of the log. The directory opens whole without one, so a
//!   damaged one is moved to `aside`.
//! * `conf`: three constants, which sled never syncs. It is written, and synced, before
//!   sled looks for it, also where it is damaged.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::SEGMENT_BYTES;
use super::private;

/// Folder in the data directory for files that were damaged and are not needed.
const ASIDE: &str = "aside";

/// Prepares a store folder; makes it where there is none.
pub(super) fn prepare(store: &Path) -> io::Result<()> {
    private::create_dir(store)?;
    private::create_dir(&store.join("blobs"))?;
    write_conf(store)?;
    for snapshot in snapshots(store)? {
        let unfinished = snapshot
            .extension()
            .is_some_and(|ending| ending == "generating");
        if unfinished && fs::remove_file(&snapshot).is_ok() {
            tracing::debug!(file = %snapshot.display(), "removed a snapshot that a kill left unfinished");
        } else if !is_whole(&snapshot) {
            set_aside(store, &snapshot)?;
        }
    }
    Ok(())
}

/// Moves all snapshots to `aside`, where there are any: sled reads the whole log then.
pub(super) fn set_snapshots_aside(store: &Path) -> io::Result<bool> {
    let snapshots = snapshots(store)?;
    for snapshot in &snapshots {
        set_aside(store, snapshot)?;
    }
    Ok(!snapshots.is_empty())
}

/// Returns the position in the log of the newest whole snapshot; 0 where there is none.
pub(super) fn newest_snapshot(store: &Path) -> io::Result<u64> {
    let whole = snapshots(store)?.into_iter().filter(|path| is_whole(path));
    let place = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        u64::from_str_radix(name.strip_prefix("snap.")?, 16).ok()
    };
    Ok(whole.filter_map(place).max().unwrap_or(0))
}

fn snapshots(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("snap.") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// A snapshot ends with its length (8 bytes) and the checksum of what comes before
/// both (4 bytes).
fn is_whole(snapshot: &Path) -> bool {
    fs::read(snapshot).is_ok_and(|bytes| {
        bytes
            .split_last_chunk::<12>()
            .is_some_and(|(state, [.., a, b, c, d])| {
                !state.is_empty() && crc32fast::hash(state) == u32::from_le_bytes([*a, *b, *c, *d])
            })
    })
}

fn set_aside(store: &Path, file: &Path) -> io::Result<()> {
    let aside = store.with_file_name(ASIDE);
    private::create_dir(&aside)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    let mut target = aside.join(&name);
    while target.exists() {
        name.push(OsString::from("+"));
        target = aside.join(&name);
    }
    tracing::warn!(
        file = %file.display(), to = %target.display(),
        "a snapshot of the log is damaged; it is set aside, and the log is read instead"
    );
    fs::rename(file, target)?;
    private::sync_dir(store)
}

/// Returns the bytes that sled writes to `conf`.
fn conf() -> Vec<u8> {
    let text = format!("segment_size: {SEGMENT_BYTES}\nuse_compression: false\nversion: 0.34\n");
    let mut bytes = text.into_bytes();
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

fn write_conf(store: &Path) -> io::Result<()> {
    let (path, unfinished) = (store.join("conf"), store.join("conf.new"));
    let conf = conf();
    match fs::read(&path) {
        Ok(bytes) if bytes == conf => return Ok(()),
        Ok(_) => tracing::warn!(file = %path.display(), "it was damaged, and is rewritten"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = private::writable().truncate(true).open(&unfinished)?;
    io::Write::write_all(&mut file, &conf)?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    private::sync_dir(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_that_sled_writes_itself() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let store = folder.path().join("store");
        let config = sled::Config::new()
            .path(&store)
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(None);
        drop(config.open().expect("a store"));
        assert_eq!(fs::read(store.join("conf")).expect("a file"), conf());
    }
}
