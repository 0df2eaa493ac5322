//! Files that instructions name and the skill does not have.
//!
//! Two forms are sure enough to be reported: links of Markdown, and paths below the folders
//! of the Agent Skills standard where the skill has that folder. A path that leaves the skill,
//! or has a placeholder in it, is no file of the skill.

use std::collections::BTreeSet;

use model::FileEntry;

/// Files of one skill that are reported.
const MAX_REPORTED_FILES: usize = 20;
/// Folders of the standard.
const FOLDERS: [&str; 3] = ["scripts/", "references/", "assets/"];

/// A file that is named and not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// Line of the instructions, from 1.
    pub line: usize,
    /// The path, inside the skill.
    pub path: String,
}

/// The files that a text names and the skill does not have, each where it is first named;
/// of more than 20 the first.
#[must_use]
pub fn dead(text: &str, files: &[FileEntry]) -> Vec<Dead> {
    let linked = skill_md::links(text).into_iter();
    let linked = linked.map(|link| (link.line, link.path));
    let named = text.lines().enumerate().flat_map(|(at, line)| {
        let named = paths(line).filter(|path| has_folder_of(path, files));
        // Such a path may be the target of a link, where a space is written `%20`.
        named.map(move |path| (at + 1, path.replace("%20", " ")))
    });
    let mut all: Vec<(usize, String)> = linked.chain(named).collect();
    all.sort_by_key(|(line, _)| *line);
    let mut known = BTreeSet::new();
    let dead = all.into_iter().filter_map(|(line, path)| {
        let path = skill_md::inside("", &path)?;
        let is_new = !path.is_empty() && !is_there(&path, files) && known.insert(path.clone());
        is_new.then_some(Dead { line, path })
    });
    dead.take(MAX_REPORTED_FILES).collect()
}

/// Paths of a line below the folders of the standard.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let apart = |c: char| c.is_whitespace() || "`'\"()[]<>,;|".contains(c);
    line.split(apart)
        .map(|word| word.strip_prefix("./").unwrap_or(word))
        .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| word.rsplit('/').next().is_some_and(has_ending))
        // With one of these it is a placeholder, a glob or a variable.
        .filter(|word| !word.contains([':', '{', '}', '*', '$', '…']) && !word.contains("..."))
}

fn has_ending(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    (1..=5).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn has_folder_of(path: &str, files: &[FileEntry]) -> bool {
    let folder = FOLDERS.iter().find(|folder| path.starts_with(*folder));
    let has = |folder: &str| {
        files
            .iter()
            .any(|file| file.path.as_str().starts_with(folder))
    };
    folder.is_some_and(|folder| has(folder))
}

/// There is a file of this path, or a folder.
fn is_there(path: &str, files: &[FileEntry]) -> bool {
    let mut paths = files.iter().map(|file| file.path.as_str());
    paths.any(|file| {
        let rest = file.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
