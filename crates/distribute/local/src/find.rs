//! Finds the skills of a root.
//!
//! A skill is a folder with a SKILL.md, directly below the root or in a folder that groups some.
//! Folders inside a skill are part of it. A root may hold links to folders, which is how installers
//! give one skill to several agents; they are followed there, and nowhere below.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use folders::{Inode, inode};

/// How deep folders that group skills may be nested.
const MAX_DEPTH: usize = 3;

/// The result for one root.
#[derive(Debug, Default)]
pub(super) struct FoundFolders {
    /// Folders that hold a SKILL.md, in the order of their names.
    pub(super) skills: Vec<PathBuf>,
    /// Folders that were listed, without the skills.
    pub(super) folders: Vec<PathBuf>,
    /// Folders that cannot be listed, and why: skills in them are not seen.
    pub(super) unreadable: Vec<(PathBuf, String)>,
    /// There was more than may be visited.
    pub(super) is_cut: bool,
    /// Visits of files and folders.
    pub(super) visited: usize,
}

impl FoundFolders {
    /// Notes a folder that cannot be listed. One that does not exist is empty.
    fn fault(&mut self, folder: &Path, error: &io::Error) {
        let is_gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        if !is_gone.contains(&error.kind()) {
            self.unreadable.push((folder.to_owned(), error.to_string()));
        }
    }
}

/// Finds skills below a root, with `max` visits at most, without folders that were `seen`.
pub(super) fn find(root: &Path, max: usize, seen: &mut BTreeSet<Inode>) -> FoundFolders {
    let mut found = FoundFolders::default();
    below(root, 0, max, seen, &mut found);
    found
}

/// Lists a folder once, whether it turns out to be a skill or a folder that groups some.
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
    // By inode and not by path: links of several roots may lead to one folder, or to each other.
    if inode(folder).is_none_or(|inode| !seen.insert(inode)) {
        return;
    }
    // A root is no skill itself. Nearly always the name is spelled so, and the folder need not be
    // listed.
    if depth > 0 && folder.join("SKILL.md").is_file() {
        found.skills.push(folder.to_owned());
        return;
    }
    let may_group = depth < MAX_DEPTH;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if may_group => {
            found.fault(folder, &error);
            found.folders.push(folder.to_owned());
            return;
        }
        Err(_) => return,
    };
    let mut folders = Vec::new();
    let mut is_skill = false;
    for entry in entries.map_while(Result::ok) {
        // Here and not after the visit: a budget that is used up exactly cuts nothing off.
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
    if !may_group {
        return;
    }
    found.folders.push(folder.to_owned());
    // The order of `read_dir` is arbitrary: which folders a cut leaves would change by itself.
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
