//! Which folders of a root hold a skill.
//!
//! A skill is a folder with a SKILL.md, beside others or in a folder that groups some. What is
//! inside a skill is part of it. A root may hold links to folders, which is how installers put
//! one skill before several agents; they are followed there, and nowhere below.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

/// Folders that group skills may hold folders that group some, so deep.
const MAX_DEPTH: usize = 3;

/// Which folder it is: device and number, and when it was made, since a number that is free is
/// used again at once.
pub(super) type Inode = (u64, u64, Option<SystemTime>);

/// What was found below a root.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Folders that hold a SKILL.md, in the order of their names.
    pub(super) skills: Vec<PathBuf>,
    /// Folders that were looked into, skills aside.
    pub(super) folders: Vec<PathBuf>,
    /// Folders that cannot be looked into, and why: skills in them are seen by nobody.
    pub(super) unreadable: Vec<(PathBuf, String)>,
    /// There was more than is looked at.
    pub(super) is_cut: bool,
}

impl Found {
    /// A folder cannot be looked into. One that is not there has nothing in it.
    fn fault(&mut self, folder: &Path, error: &io::Error) {
        let is_gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        if !is_gone.contains(&error.kind()) {
            self.unreadable.push((folder.to_owned(), error.to_string()));
        }
    }
}

/// The folder that is at a path, links followed.
pub(super) fn inode(path: &Path) -> Option<Inode> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino(), meta.created().ok()))
}

/// Looks for skills below a root, in `max` folders and files at most, passing over folders
/// that were `seen`.
pub(super) fn find(root: &Path, max: usize, seen: &mut BTreeSet<Inode>) -> Found {
    let mut found = Found::default();
    let mut left = max;
    below(root, 0, &mut left, seen, &mut found);
    found.is_cut = left == 0;
    found
}

fn below(
    folder: &Path,
    depth: usize,
    left: &mut usize,
    seen: &mut BTreeSet<Inode>,
    found: &mut Found,
) {
    if let Err(error) = fs::metadata(folder) {
        found.fault(folder, &error);
    }
    if inode(folder).is_none_or(|inode| !seen.insert(inode)) {
        return;
    }
    found.folders.push(folder.to_owned());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            found.fault(folder, &error);
            return;
        }
    };
    let mut folders = Vec::new();
    for entry in entries.map_while(Result::ok) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => depth == 0 && entry.path().is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if is_folder && !is_hidden && name != "node_modules" {
            folders.push(entry.path());
        }
    }
    folders.sort();
    for folder in folders {
        if *left == 0 {
            return;
        }
        if is_skill(&folder) {
            if inode(&folder).is_some_and(|inode| seen.insert(inode)) {
                *left -= 1;
                found.skills.push(folder);
            }
        } else if depth + 1 < MAX_DEPTH {
            below(&folder, depth + 1, left, seen, found);
        }
    }
}

fn is_skill(folder: &Path) -> bool {
    // Nearly always; else any spelling of it.
    folder.join("SKILL.md").is_file()
        || fs::read_dir(folder).is_ok_and(|entries| {
            entries.map_while(Result::ok).any(|entry| {
                entry.file_name().eq_ignore_ascii_case("SKILL.md") && entry.path().is_file()
            })
        })
}
