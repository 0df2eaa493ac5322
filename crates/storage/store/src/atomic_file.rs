//! A file that is written under a temporary name next to its own: its name never leads to half
//! of it, and nothing is left of one that was given up.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::private;

/// A file on its way. Dropped before it has its name, it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    part: PathBuf,
    to: PathBuf,
    placed: bool,
}

impl AtomicFile {
    /// Begins a file of ours, which its owner alone reads. It removes what a kill left of an
    /// earlier one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn private(to: &Path) -> io::Result<Self> {
        match fs::remove_file(part(to)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Self::begin(to, private::writable().truncate(false))
    }

    /// Begins a file for others, of which no other file is touched.
    ///
    /// # Errors
    /// The file cannot be made, or there is one of that name.
    pub fn new(to: &Path) -> io::Result<Self> {
        Self::begin(to, File::options().write(true))
    }

    fn begin(to: &Path, options: &mut fs::OpenOptions) -> io::Result<Self> {
        let part = part(to);
        // `create_new` never follows a link: somebody else could have planted one under this
        // predictable name.
        let file = options.create_new(true).open(&part).map_err(|error| {
            io::Error::new(error.kind(), format!("`{}`: {error}", part.display()))
        })?;
        Ok(Self {
            file,
            part,
            to: to.to_owned(),
            placed: false,
        })
    }

    /// Returns the file to be written.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether the temporary name still leads to the file that was begun.
    fn is_ours(&self) -> bool {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        let there = fs::symlink_metadata(&self.part).map(id);
        matches!((self.file.metadata().map(id), there), (Ok(ours), Ok(there)) if ours == there)
    }

    /// Makes the file durable and gives it its name. A file of that name is replaced only if
    /// `replace` is set.
    ///
    /// # Errors
    /// There is a file of that name, or the disk refuses.
    pub fn persist(mut self, replace: bool) -> io::Result<()> {
        self.file.sync_all()?;
        if !self.is_ours() {
            return Err(io::Error::other(
                "another process has begun the same file; one at a time",
            ));
        }
        // Unlike a rename, a link never replaces a file; but not every file system has links.
        let linked = !replace
            && match fs::hard_link(&self.part, &self.to) {
                Ok(()) => true,
                Err(_) if fs::symlink_metadata(&self.to).is_err() => false,
                Err(error) => return Err(error),
            };
        if linked {
            fs::remove_file(&self.part)?;
        } else {
            fs::rename(&self.part, &self.to)?;
        }
        self.placed = true;
        let parent = self
            .to
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        private::sync_dir(parent.unwrap_or(Path::new(".")))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.placed && self.is_ours() {
            // Half a file is of no use, and takes what a full disk has left.
            let _gone = fs::remove_file(&self.part);
        }
    }
}

fn part(to: &Path) -> PathBuf {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn names(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole_and_takes_that_of_no_other() {
        let folder = TempDir::new().expect("a folder");
        let to = folder.path().join("a.tar.gz");
        let begin = |bytes: &str| {
            let atomic_file = AtomicFile::private(&to).expect("a file");
            atomic_file
                .file()
                .write_all(bytes.as_bytes())
                .expect("written");
            atomic_file
        };
        let half = begin("ha");
        assert_eq!(names(&folder), ["a.tar.gz.part"]);
        drop(half);
        assert_eq!(names(&folder), [""; 0]);
        begin("one").persist(false).expect("a name");
        let mode = fs::metadata(&to).expect("a file").permissions().mode();
        assert_eq!((text(&to).as_str(), mode & 0o777), ("one", 0o600));
        let error = begin("two").persist(false).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            (names(&folder), text(&to)),
            (vec!["a.tar.gz".to_owned()], "one".to_owned())
        );
        begin("two").persist(true).expect("a name");
        assert_eq!(
            (names(&folder), text(&to)),
            (vec!["a.tar.gz".to_owned()], "two".to_owned())
        );
    }

    #[test]
    fn half_of_another_one_does_not_get_the_name() {
        let folder = TempDir::new().expect("a folder");
        let to = folder.path().join("a");
        let first = AtomicFile::private(&to).expect("a file");
        let second = AtomicFile::private(&to).expect("a file");
        second.file().write_all(b"ha").expect("written");
        first.persist(true).expect_err("it is not there any more");
        assert_eq!(names(&folder), ["a.part"]);
        second.file().write_all(b"lf").expect("written");
        second.persist(true).expect("a name");
        assert_eq!(
            (names(&folder), text(&to)),
            (vec!["a".to_owned()], "half".to_owned())
        );
    }

    #[test]
    fn what_lies_beside_is_not_written_to() {
        let folder = TempDir::new().expect("a folder");
        let (to, foreign) = (folder.path().join("a"), folder.path().join("foreign"));
        fs::write(&foreign, "foreign").expect("a file");
        symlink(&foreign, folder.path().join("a.part")).expect("a link");
        let error = AtomicFile::new(&to).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("a.part"), "{error}");
        assert_eq!(names(&folder), ["a.part", "foreign"]);
        // What a kill left of a file of ours goes, and what it led to stays.
        let atomic_file = AtomicFile::private(&to).expect("a file");
        atomic_file.file().write_all(b"new").expect("written");
        atomic_file.persist(false).expect("a name");
        assert_eq!(
            (text(&foreign), text(&to)),
            ("foreign".to_owned(), "new".to_owned())
        );
    }
}
