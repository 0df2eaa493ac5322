//! Files that only their owner reads, whatever the umask.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The permissions of group and others.
const OTHERS_MASK: u32 = 0o077;

/// Makes a folder (0700), and those above it as the umask says.
pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Opens a file to be written, and makes it (0600) where there is none.
pub(super) fn writable() -> OpenOptions {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options
}

/// Makes files that this process creates from now on readable by their owner alone. For servers,
/// which write only their own data.
pub fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(OTHERS_MASK));
}

/// Gives this process a session of its own, without a terminal, so that it survives the end of
/// its parent's session.
///
/// # Errors
/// It leads a group of processes already.
pub fn begin_session() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}

/// Returns whether a pipe that this process writes to still has a reader. True also for a file
/// or a terminal, which have no reader that could leave.
#[must_use]
pub fn has_reader(pipe: impl AsFd) -> bool {
    // No flags: errors and hang-ups are reported without being asked for.
    let mut polled = [PollFd::new(&pipe, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    // A failed poll is no evidence that the reader left.
    poll(&mut polled, Some(&Timespec::default())).is_err()
        || polled.iter().all(|pipe| !pipe.revents().intersects(gone))
}

/// Removes the permissions of group and others in a directory of ours, which earlier versions
/// and copies leave readable.
///
/// A file that belongs to somebody else stays as it is.
pub(super) fn tighten(directory: &Path) {
    let ours = |entry: &walkdir::DirEntry| entry.file_name() != "lost+found";
    let entries = walkdir::WalkDir::new(directory)
        .into_iter()
        .filter_entry(ours)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_dir() || entry.file_type().is_file());
    for entry in entries {
        let mode = entry
            .metadata()
            .map_or(0, |found| found.permissions().mode());
        if mode & OTHERS_MASK == 0 {
            continue;
        }
        let tightened =
            fs::set_permissions(entry.path(), Permissions::from_mode(mode & !OTHERS_MASK));
        // One line of the log for the directory, none for each file.
        if entry.depth() > 0 {
            continue;
        }
        match tightened {
            Ok(()) => tracing::info!(
                data = %directory.display(),
                "the data directory could be read by others; now only its owner can"
            ),
            Err(error) => tracing::warn!(
                data = %directory.display(), %error,
                "the data directory can be read by others"
            ),
        }
    }
}

/// Makes the entries of a folder durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_where_there_is_none_and_not_where_there_is_a_file() {
        let directory = tempfile::TempDir::new().expect("a folder");
        let folder = directory.path().join("above/folder");
        create_dir(&folder).expect("a folder");
        let mode = fs::metadata(&folder)
            .expect("a folder")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        create_dir(&folder).expect("it is there");
        let file = directory.path().join("file");
        fs::write(&file, "theirs").expect("a file");
        let error = create_dir(&file).expect_err("it is a file");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
}
