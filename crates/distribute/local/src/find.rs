//! Which folders of a root hold a skill.
//!
//! A skill is a folder with a SKILL.md, beside others or in a folder that groups some. What is
//! inside a skill is part of it. A root may hold links to folders, which is how installers put
//! one skill before several agents; they are followed there, and nowhere below.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use folders::{Inode, inode};

/// Folders that group skills may hold folders that group some, so deep.
const MAX_DEPTH: usize = 3;

/// What was found below a root.
#[derive(Debug, Default)]
pub(super) struct FoundFolders {
    /// Folders that hold a SKILL.md, in the order of their names.
    pub(super) skills: Vec<PathBuf>,
    /// Folders that were looked into, skills aside.
    pub(super) folders: Vec<PathBuf>,
    /// Folders that cannot be looked into, and why: skills in them are seen by nobody.
    pub(super) unreadable: Vec<(PathBuf, String)>,
    /// There was more than is looked at.
    pub(super) is_cut: bool,
    /// Files and folders that were looked at, each as often as it was.
    pub(super) visited: usize,
}

impl FoundFolders {
    /// A folder cannot be looked into. One that is not there has nothing in it.
    fn fault(&mut self, folder: &Path, error: &io::Error) {
        let is_gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        if !is_gone.contains(&error.kind()) {
            self.unreadable.push((folder.to_owned(), error.to_string()));
        }
    }
}

/// Looks for skills below a root, in `max` folders and files at most, passing over folders
/// that were `seen`.
pub(super) fn find(root: &Path, max: usize, seen: &mut BTreeSet<Inode>) -> FoundFolders {
    let mut found = FoundFolders::default();
    below(root, 0, max, seen, &mut found);
    found
}

/// Goes through a folder once, whatever it turns out to be: a skill, or one that groups some.
fn below(
    folder: &Path,
    depth: usize,
    max: usize,
    seen: &mut BTreeSet<Inode>,
    found: &mut FoundFolders,
) {
    if let Err(error) = fs::metadata(folder) {
        found.fault(folder, &error);
    }
    if inode(folder).is_none_or(|inode| !seen.insert(inode)) {
        return;
    }
    // A root is no skill itself. Nearly always it is this spelling, and nothing is gone through.
    if depth > 0 && folder.join("SKILL.md").is_file() {
        found.skills.push(folder.to_owned());
        return;
    }
    let is_place = depth < MAX_DEPTH;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_place => {
            found.fault(folder, &error);
            found.folders.push(folder.to_owned());
            return;
        }
        Err(_) => return,
    };
    let mut folders = Vec::new();
    let mut is_skill = false;
    for entry in entries.map_while(Result::ok) {
        // Only what is there and not visited makes it more than is looked at.
        if found.visited == max {
            found.is_cut = true;
            break;
        }
        found.visited += 1;
        let name = entry.file_name();
        is_skill |= depth > 0 && name.eq_ignore_ascii_case("SKILL.md") && entry.path().is_file();
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => depth == 0 && entry.path().is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if is_folder && !is_hidden && name != "node_modules" {
            folders.push(entry.path());
        }
    }
    if is_skill {
        found.skills.push(folder.to_owned());
        return;
    }
    if !is_place {
        return;
    }
    found.folders.push(folder.to_owned());
    // Of a folder that was not gone through to its end nobody knows which these are.
    if found.is_cut {
        return;
    }
    folders.sort();
    for folder in folders {
        below(&folder, depth + 1, max, seen, found);
        if found.is_cut {
            return;
        }
    }
}
