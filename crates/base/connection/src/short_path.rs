//! A path to a folder that is short enough for a socket in it.
//!
//! The address of a socket has about a hundred bytes, and a data directory may lie anywhere.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

/// Bytes that the path of a folder may have: every Unix takes 104 as a socket's
/// (`sockaddr_un`), with the socket's own name.
const MAX_PATH_BYTES: usize = 88;

/// A directory, and a path to it that is short enough for a socket below it.
#[derive(Debug)]
pub struct ShortPath {
    /// The short path.
    pub path: PathBuf,
    // The path may lead through it.
    _directory: Option<File>,
    link: Option<PathBuf>,
}

impl ShortPath {
    /// A short path to a directory, for as long as this is there.
    ///
    /// # Errors
    /// The directory cannot be opened, or no link made.
    pub fn new(directory: &Path) -> io::Result<Self> {
        if directory.as_os_str().len() <= MAX_PATH_BYTES {
            return Ok(Self {
                path: directory.to_owned(),
                _directory: None,
                link: None,
            });
        }
        let open = File::open(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        if !path.exists() {
            return Self::by_link(directory, &std::env::temp_dir());
        }
        Ok(Self {
            path,
            _directory: Some(open),
            link: None,
        })
    }

    /// Where the system has no names for open directories: a link for a moment, in a folder
    /// that lets nobody else in.
    fn by_link(directory: &Path, below: &Path) -> io::Result<Self> {
        let folder = below.join(uuid::Uuid::new_v4().simple().to_string());
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join("d");
        // Made before the link is, so that the folder is removed again where the link fails.
        let short = Self {
            path: path.clone(),
            _directory: None,
            link: Some(folder),
        };
        symlink(std::path::absolute(directory)?, path)?;
        Ok(short)
    }
}

impl Drop for ShortPath {
    fn drop(&mut self) {
        if let Some(folder) = &self.link {
            let _gone = fs::remove_file(folder.join("d"));
            let _gone = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tokio::net::{UnixListener, UnixStream};

    use super::*;

    /// 104 bytes of an address, less a separator, 14 bytes of a name and the end.
    const MAX: usize = 88;

    #[tokio::test]
    async fn a_directory_may_have_a_path_longer_than_a_socket_may() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("d".repeat(200));
        fs::create_dir(&deep).expect("a folder");
        let bound = {
            let short = ShortPath::new(&deep).expect("a path");
            UnixListener::bind(short.path.join("socket")).expect("a socket")
        };
        let below = folder.path();
        for short in [ShortPath::new(&deep), ShortPath::by_link(&deep, below)] {
            let short = short.expect("a path");
            let socket = short.path.join("socket");
            assert!(socket.as_os_str().len() < 100);
            let (connected, accepted) = tokio::join!(UnixStream::connect(socket), bound.accept());
            assert!(connected.is_ok() && accepted.is_ok());
        }
        let left: Vec<_> = fs::read_dir(below).expect("a folder").collect();
        assert_eq!(left.len(), 1, "no link stays: {left:?}");
    }

    #[tokio::test]
    async fn a_path_that_leaves_room_for_the_name_of_a_socket_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        // The folder itself and a separator are part of the path.
        let rest = MAX - 1 - folder.path().as_os_str().len();
        for (bytes, is_kept) in [(MAX, true), (MAX + 1, false)] {
            let directory = folder.path().join("d".repeat(rest + bytes - MAX));
            assert_eq!(directory.as_os_str().len(), bytes);
            fs::create_dir(&directory).expect("a folder");
            let short = ShortPath::new(&directory).expect("a path");
            assert_eq!(short.path == directory, is_kept, "{:?}", short.path);
            assert!(short.path.as_os_str().len() <= MAX, "{:?}", short.path);
            UnixListener::bind(short.path.join("s".repeat(14))).expect("a socket");
        }
    }

    #[test]
    fn the_folder_of_a_link_lets_nobody_else_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let short = ShortPath::by_link(folder.path(), folder.path()).expect("a path");
        let holds = short.path.parent().expect("a folder");
        let mode = fs::metadata(holds).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
