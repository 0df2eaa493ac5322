//! The input of an analysis: paths, and the contents of those files that can be
//! read as manifests.
//!
//! It comes from a folder ([`super::walk()`]) or from a caller who sends paths and
//! contents ([`Inventory::inline`]). Paths are relative to the root, with `/`.

use std::collections::{BTreeMap, BTreeSet};

use super::error::Error;
use super::manifest::{self, ManifestFormat};
use super::options::ScanOptions;
use super::report::Note;
use super::text::shown;
use model::listed;

/// The most notes in one answer; the rest is counted.
const MAX_NOTES: usize = 100;
/// The most bytes of a path.
pub(super) const MAX_PATH: usize = 4096;
/// Folders of dependencies and of build output. They are not entered, not
/// even where no `.gitignore` names them.
const FOREIGN: &str = include_str!("foreign_folders.txt");
/// Hidden folders that describe a project. No others are entered.
const HIDDEN: &str = include_str!("hidden_folders.txt");

/// A file that a caller sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineFile {
    /// Its path from the root of the codebase, with `/`.
    pub path: String,
    /// Its contents; none where the caller only reports that it exists.
    pub content: Option<String>,
}

/// The input of an analysis.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// Files, with their contents where these were read.
    pub(super) files: BTreeMap<String, Option<String>>,
    /// Folders that were entered.
    pub(super) directories: usize,
    /// Notes about what was left out.
    pub(super) notes: Notes,
    /// A limit was reached, so some files were not seen.
    pub(super) cut: bool,
}

/// Folders in which agents look for the skills of a project.
const SKILLS: &[&str] = &[
    ".claude/skills/",
    ".cursor/skills/",
    ".github/skills/",
    ".agents/skills/",
    "skills/",
];

impl Inventory {
    /// The files, by path, with the contents of those that were read.
    pub fn files(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let files = self.files.iter();
        files.map(|(path, content)| (path.as_str(), content.as_deref()))
    }

    /// Names of the skills in the codebase's own skill folders, in their order.
    #[must_use]
    pub fn skills(&self) -> Vec<String> {
        let of_folder = |path: &str| {
            let inside = SKILLS.iter().find_map(|folder| path.strip_prefix(folder))?;
            let (name, file) = inside.split_once('/')?;
            file.eq_ignore_ascii_case("skill.md")
                .then(|| name.to_owned())
        };
        // A set: each file of a skill has the folder in its path.
        let names: BTreeSet<String> = self
            .files
            .keys()
            .filter_map(|path| of_folder(path))
            .collect();
        names.into_iter().collect()
    }

    /// Takes what a caller sends. All of its files are read, however deep they are;
    /// folders of others' code (`node_modules`) are not.
    ///
    /// A path that is not a relative one, names that cannot be shown, and contents
    /// that are too large for one manifest are left out with a note; so is the
    /// second of two files with one path.
    ///
    /// # Errors
    /// There are more files, or more bytes, than [`super::Limits`] allow.
    pub fn inline(files: Vec<InlineFile>, options: &ScanOptions) -> Result<Self, Error> {
        let limits = &options.limits;
        let too_large = |what, found, limit| Error::InlineTooLarge { what, found, limit };
        if files.len() > limits.files {
            return Err(too_large("number", files.len(), limits.files));
        }
        let size =
            |file: &InlineFile| file.path.len() + file.content.as_ref().map_or(0, String::len);
        let bytes: usize = files.iter().map(size).sum();
        // Counts all that was sent, also files that are no manifests: they are in memory already,
        // and the request is refused as a whole.
        if bytes > limits.total_bytes {
            return Err(too_large("size in bytes", bytes, limits.total_bytes));
        }
        let mut inventory = Self::default();
        let mut folders = BTreeSet::from([String::new()]);
        let mut read = 0;
        for InlineFile { path, content } in files {
            let path = match relative(&path) {
                Ok(Some(path)) => path,
                Ok(None) => continue,
                Err(reason) => {
                    inventory
                        .notes
                        .add("", None, format!("'{}': {reason}", shown(&path)));
                    continue;
                }
            };
            if inventory.files.contains_key(&path) {
                inventory
                    .notes
                    .add(&path, None, "sent twice: the first is read");
                continue;
            }
            // Folders are counted as the walk of a disk would count them.
            for (at, _) in path.match_indices('/') {
                folders.insert(path.get(..at).unwrap_or_default().to_owned());
            }
            let form = manifest::form(&path);
            let content = content.filter(|_| form.is_some()).filter(|content| {
                let limit = form.map_or(0, |form| form.limit(limits));
                let fits = content.len() <= limit && read < limits.manifests;
                if !fits {
                    inventory.cut = true;
                    let why = if content.len() > limit {
                        too_long(content.len(), limit)
                    } else {
                        TOO_MANY.to_owned()
                    };
                    inventory.notes.add(&path, None, why);
                }
                read += usize::from(fits);
                fits
            });
            inventory.files.insert(path, content);
        }
        inventory.directories = folders.len();
        Ok(inventory)
    }

    /// Returns the contents that were read, the nearest to the root first.
    pub(super) fn contents(&self) -> Vec<(&str, ManifestFormat, &str)> {
        let mut found: Vec<_> = self
            .files
            .iter()
            .filter_map(|(path, content)| {
                Some((path.as_str(), manifest::form(path)?, content.as_deref()?))
            })
            .collect();
        // Limits then cut off the deepest manifests, which say least of the project.
        found.sort_by_key(|(path, ..)| (depth(path), *path));
        found
    }

    /// Returns the paths, the nearest to the root first.
    pub(super) fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.files.keys().map(String::as_str).collect();
        paths.sort_by_key(|path| (depth(path), *path));
        paths
    }
}

/// The note on a manifest beyond the limit.
pub(super) const TOO_MANY: &str = "not read: there are more manifests than one analysis reads";

/// The note on a file that is too long.
pub(super) fn too_long(found: usize, limit: usize) -> String {
    format!("not read: {found} bytes, of which {limit} are the most")
}

/// Notes, up to a number.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    list: BTreeSet<Note>,
    more: usize,
}

impl Notes {
    /// Adds a note about a file, or about the whole where there is no file.
    pub(super) fn add(&mut self, file: &str, line: Option<usize>, message: impl AsRef<str>) {
        let note = Note {
            file: shown(file),
            line,
            message: super::text::sentence(message.as_ref()).unwrap_or_default(),
        };
        if self.list.len() < MAX_NOTES || self.list.contains(&note) {
            self.list.insert(note);
        } else {
            self.more += 1;
        }
    }

    /// All of them.
    pub(super) fn finish(self) -> Vec<Note> {
        let more = (self.more > 0).then(|| Note {
            file: String::new(),
            line: None,
            message: format!("{} more notes are left out", self.more),
        });
        more.into_iter().chain(self.list).collect()
    }
}

/// Levels of folders above a file.
pub(super) fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// The folder of a file; empty for the root.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Tells whether a folder of this name is entered.
pub(super) fn entered(name: &str) -> bool {
    let is_in = |list| listed(list).any(|known| known == name);
    (!name.starts_with('.') || is_in(HIDDEN)) && !is_in(FOREIGN)
}

/// Tells whether a name can be shown and matched as it is.
pub(super) fn plain(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// Normalizes a path that a caller sends; none where it is in a folder that is
/// not entered.
fn relative(path: &str) -> Result<Option<String>, &'static str> {
    if path.len() > MAX_PATH {
        return Err("the path is too long");
    }
    if !plain(path) {
        return Err("the path has control characters");
    }
    // Clients on Windows send their own separator.
    let path = path.replace('\\', "/");
    // `C:/work/x` as well, which is absolute on Windows alone.
    if path.starts_with('/')
        || path
            .split('/')
            .next()
            .is_some_and(|first| first.ends_with(':'))
    {
        return Err("the path is not relative to the root of the codebase");
    }
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") {
        return Err("the path leads out of the codebase");
    }
    let Some((_, folders)) = names.split_last() else {
        return Err("the path names no file");
    };
    let is_entered = folders.iter().all(|folder| entered(folder));
    Ok(is_entered.then(|| names.join("/")))
}
