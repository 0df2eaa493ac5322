//! Lists and reads the files of a folder.
//!
//! Only regular files are listed, only manifests are opened, and symbolic links
//! are never followed, so nothing outside of the folder is seen and nothing waits
//! for a pipe. Between the listing of a file and its opening somebody who may write to the
//! folder could replace it; the opened file is compared with the listed one.
//!
//! `.gitignore` holds in every folder, whether or not there is a repository; those
//! above the root are not read. Names come in order, so that what a limit cuts off
//! does not depend on the file system.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::error::Error;
use super::inventory::{Inventory, MAX_PATH, TOO_MANY, depth, entered, plain, too_long};
use super::manifest::{self, ManifestFormat};
use super::options::ScanOptions;
use super::text::shown;

/// The most bytes and lines of a `.gitignore`: each line becomes part of an automaton.
const MAX_IGNORE_BYTES: usize = 64 * 1024;
const MAX_IGNORE_LINES: usize = 1_000;
/// Levels that the folders of continuous integration and agents may be deeper than
/// the others: `.github/workflows` is seen at every depth.
const EXTRA_HIDDEN_DEPTH: usize = 2;

/// A folder to enter.
struct Folder {
    /// From the root; empty for the root.
    path: String,
    /// Rules of the folders above, the nearest first.
    rules: Option<Rc<Rules>>,
}

/// The `.gitignore` of a folder, and those above.
struct Rules {
    here: Gitignore,
    above: Option<Rc<Rules>>,
}

/// Makes the [`Inventory`] of a folder. Blocks on the file system.
///
/// `stop` is called before each folder and each manifest, and while names are read;
/// when it returns true, the answer has what was seen until then, with a note.
///
/// The root is taken as it is: callers check it with [`super::below()`].
///
/// # Errors
/// The root does not exist, is no folder or cannot be read.
pub fn walk(
    root: &Path,
    options: &ScanOptions,
    stop: &dyn Fn() -> bool,
) -> Result<Inventory, Error> {
    let path = || shown(&root.to_string_lossy());
    let metadata = fs::metadata(root).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path: path() },
        _ => unreadable(path(), &error),
    })?;
    if !metadata.is_dir() {
        return Err(Error::NotADirectory { path: path() });
    }
    // Only to fail: below the root an unreadable folder is a note, but a root that cannot be read
    // is an error.
    fs::read_dir(root).map_err(|error| unreadable(path(), &error))?;
    let mut walk = FolderWalk {
        root,
        options,
        stop,
        inventory: Inventory::default(),
        unusual_names: 0,
    };
    walk.list();
    walk.read();
    Ok(walk.inventory)
}

fn unreadable(path: String, error: &io::Error) -> Error {
    let reason = error.to_string();
    Error::Unreadable { path, reason }
}

struct FolderWalk<'a> {
    root: &'a Path,
    options: &'a ScanOptions,
    stop: &'a dyn Fn() -> bool,
    inventory: Inventory,
    /// Entries whose names cannot be shown.
    unusual_names: usize,
}

impl FolderWalk<'_> {
    fn cut(&mut self, message: &str) {
        self.inventory.cut = true;
        self.inventory.notes.add("", None, message);
    }

    /// Lists files level by level, so that a limit cuts off the deepest.
    fn list(&mut self) {
        let mut folders = VecDeque::from([Folder {
            path: String::new(),
            rules: None,
        }]);
        // A queue, not a stack: where a limit is reached, the deepest files are missing, which
        // say least of a project.
        while let Some(folder) = folders.pop_front() {
            if (self.stop)() {
                self.cut("stopped: the time for looking at folders is over");
                break;
            }
            if self.inventory.files.len() >= self.options.limits.files {
                self.cut("stopped: there are more files than one analysis reads");
                break;
            }
            self.inventory.directories += 1;
            self.enter(folder, &mut folders);
        }
        if self.unusual_names > 0 {
            let message = format!(
                "{} names that are not UTF-8 or have control characters were left out",
                self.unusual_names
            );
            self.inventory.notes.add("", None, message);
        }
    }

    fn enter(&mut self, folder: Folder, folders: &mut VecDeque<Folder>) {
        let location = self.root.join(&folder.path);
        let names = match self.names(&location) {
            Ok(names) => names,
            Err(error) => {
                let why = format!("this folder cannot be read: {error}");
                self.inventory.notes.add(&folder.path, None, why);
                return;
            }
        };
        // An `Rc` chain: subfolders share the rules above them, however many folders wait in the
        // queue.
        let rules = match self.rules(&folder.path, &location) {
            Some(here) => Some(Rc::new(Rules {
                here,
                above: folder.rules,
            })),
            None => folder.rules,
        };
        for (name, kind) in names {
            let path = if folder.path.is_empty() {
                name.clone()
            } else {
                format!("{}/{name}", folder.path)
            };
            if path.len() > MAX_PATH
                || ignored(rules.as_deref(), &location.join(&name), kind.is_dir())
            {
                continue;
            }
            if kind.is_dir() {
                let deep = depth(&path) + 1;
                let hidden = if path.starts_with('.') {
                    EXTRA_HIDDEN_DEPTH
                } else {
                    0
                };
                if !entered(&name) || deep > self.options.levels().max(hidden) {
                    continue;
                }
                let waiting = self.inventory.directories + folders.len();
                if waiting >= self.options.limits.directories {
                    self.cut("stopped: there are more folders than one analysis enters");
                } else {
                    folders.push_back(Folder {
                        path,
                        rules: rules.clone(),
                    });
                }
            } else if kind.is_file() {
                if self.inventory.files.len() >= self.options.limits.files {
                    self.cut("stopped: there are more files than one analysis reads");
                    return;
                }
                self.inventory.files.insert(path, None);
            } else if manifest::form(&path).is_some() {
                let why = if kind.is_symlink() {
                    "not read: symbolic links are not followed"
                } else {
                    "not read: this is no regular file"
                };
                self.inventory.notes.add(&path, None, why);
            }
        }
    }

    /// Returns the first names of a folder in their order. All are read, but no more
    /// are held than the limits allow.
    fn names(&mut self, location: &Path) -> io::Result<BTreeMap<String, FileType>> {
        let max = self.options.limits.files + self.options.limits.directories;
        let mut names = BTreeMap::new();
        let mut more = false;
        for (count, entry) in fs::read_dir(location)?.enumerate() {
            // One folder may hold millions of names, and the deadline must hold there as well.
            if count % 1024 == 1023 && (self.stop)() {
                self.cut("stopped: the time for looking at folders is over");
                break;
            }
            let entry = entry?;
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                continue;
            };
            match name.into_string() {
                Ok(name) if plain(&name) => {
                    names.insert(name, kind);
                }
                _ => self.unusual_names += 1,
            }
            if names.len() > max {
                // The last by name, so the answer does not depend on the order of the file system.
                names.pop_last();
                more = true;
            }
        }
        if more {
            self.cut("stopped: a folder has more files than one analysis reads");
        }
        Ok(names)
    }

    /// Reads the rules of a folder's own `.gitignore`.
    fn rules(&mut self, path: &str, location: &Path) -> Option<Gitignore> {
        let file = location.join(".gitignore");
        let seen = fs::symlink_metadata(&file).ok().filter(Metadata::is_file)?;
        let path = format!("{path}/.gitignore");
        let path = path.trim_start_matches('/');
        let text = match open(&file, &seen, MAX_IGNORE_BYTES) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(why) => {
                self.inventory.notes.add(path, None, why);
                return None;
            }
        };
        let mut builder = GitignoreBuilder::new(location);
        for (at, line) in text.lines().enumerate() {
            if at >= MAX_IGNORE_LINES {
                let why = format!("only the first {MAX_IGNORE_LINES} lines hold here");
                self.inventory.notes.add(path, Some(at + 1), why);
                break;
            }
            if let Err(error) = builder.add_line(None, line) {
                let why = format!("this line does not hold here: {error}");
                self.inventory.notes.add(path, Some(at + 1), why);
            }
        }
        match builder.build() {
            Ok(rules) => Some(rules),
            Err(error) => {
                let why = format!("does not hold here: {error}");
                self.inventory.notes.add(path, None, why);
                None
            }
        }
    }

    /// Reads manifests, then lockfiles, those next to the root first.
    fn read(&mut self) {
        let mut wanted: Vec<(ManifestFormat, String)> = self
            .inventory
            .files
            .keys()
            .filter_map(|path| Some((manifest::form(path)?, path.clone())))
            .collect();
        // Lockfiles last: they are large, and only add versions to what manifests name.
        wanted.sort_by(|(a_form, a), (b_form, b)| {
            let key = |form: &ManifestFormat, path: &str| {
                (*form == ManifestFormat::Lockfile, depth(path))
            };
            (key(a_form, a), a).cmp(&(key(b_form, b), b))
        });
        let limits = &self.options.limits;
        let mut memory = limits.total_bytes;
        for (count, (form, path)) in wanted.into_iter().enumerate() {
            if count >= limits.manifests {
                self.cut(TOO_MANY);
                break;
            }
            if (self.stop)() {
                self.cut("stopped: the time for reading manifests is over");
                break;
            }
            let location: PathBuf = self.root.join(&path);
            let limit = form.limit(limits).min(memory);
            let read = fs::symlink_metadata(&location)
                .map_err(|error| format!("not read: {error}"))
                .and_then(|seen| open(&location, &seen, limit));
            let text = read.and_then(|bytes| {
                String::from_utf8(bytes).map_err(|_| "not read: this is not UTF-8 text".to_owned())
            });
            match text {
                Ok(text) => {
                    memory = memory.saturating_sub(text.len());
                    self.inventory.files.insert(path, Some(text));
                }
                Err(why) => {
                    // The file that was too long may be the most important one.
                    self.inventory.cut = true;
                    self.inventory.notes.add(&path, None, why);
                }
            }
        }
    }
}

/// Tells whether a path is ignored, by the nearest rule that matches it.
fn ignored(rules: Option<&Rules>, path: &Path, is_directory: bool) -> bool {
    let mut next = rules;
    while let Some(rules) = next {
        let found = rules.here.matched(path, is_directory);
        if !found.is_none() {
            return found.is_ignore();
        }
        next = rules.above.as_deref();
    }
    false
}

/// Reads a regular file, if it is still the one that was listed.
fn open(location: &Path, seen: &Metadata, limit: usize) -> Result<Vec<u8>, String> {
    if !seen.is_file() {
        return Err("not read: this is no regular file".to_owned());
    }
    let length = usize::try_from(seen.len()).unwrap_or(usize::MAX);
    if length > limit {
        return Err(too_long(length, limit));
    }
    let failed = |error: io::Error| format!("not read: {error}");
    let file = File::open(location).map_err(failed)?;
    let opened = file.metadata().map_err(failed)?;
    // Compared by inode, since a path can be replaced between listing and opening: by a link to a
    // file outside, for one.
    if !opened.is_file() || !same(seen, &opened) {
        return Err("not read: it was exchanged in the meantime".to_owned());
    }
    let mut bytes = Vec::with_capacity(length);
    // One more than the limit, so that a file that has grown meanwhile is noticed.
    let max = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(max).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > limit {
        return Err(too_long(bytes.len(), limit));
    }
    Ok(bytes)
}

fn same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}
