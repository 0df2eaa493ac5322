//! Files that instructions name and the skill does not have.
//!
//! Two forms are sure enough to be told: links of Markdown, and paths below the folders of
//! the Agent Skills standard where the skill has that folder. Whatever leaves the skill, or
//! has a placeholder in it, is somebody else's.

use std::collections::BTreeSet;

use model::FileEntry;

/// Files of one skill that are told.
const TOLD: usize = 20;
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
    let mut found: Vec<Dead> = Vec::new();
    let mut known = BTreeSet::new();
    let mut open_fence = None;
    for (at, line) in text.lines().enumerate() {
        let fence = fence(line);
        match (open_fence, fence) {
            (None, Some(mark)) => open_fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => open_fence = None,
            _ => {}
        }
        let is_code = open_fence.is_some() || fence.is_some();
        let linked = links(line).filter(|_| !is_code);
        let named = paths(line).filter(|path| has_folder_of(path, files));
        for path in linked.chain(named).filter_map(inside) {
            let is_new = !path.is_empty() && !is_there(&path, files);
            if is_new && found.len() < TOLD && known.insert(path.clone()) {
                found.push(Dead { line: at + 1, path });
            }
        }
    }
    found
}

/// The mark of a line that begins or ends a block of code.
fn fence(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    ["```", "~~~"]
        .into_iter()
        .find(|mark| line.starts_with(mark))
}

/// Targets of the links of a line, without what stands between backticks.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    let inline = prose.flat_map(|text| {
        let targets = text.split("](").skip(1);
        targets.filter_map(|rest| Some(rest.split_once(')')?.0))
    });
    let definition = line.strip_prefix('[').and_then(|rest| {
        let (name, target) = rest.split_once("]: ")?;
        // A footnote is no link.
        (!name.starts_with('^')).then_some(target)
    });
    inline.chain(definition).map(|target| {
        let target = target.trim();
        let in_brackets = target
            .strip_prefix('<')
            .and_then(|rest| rest.split_once('>'));
        in_brackets.map_or(target, |(target, _)| target)
    })
}

/// Paths of a line below the folders of the standard.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let apart = |c: char| c.is_whitespace() || "`'\"()[]<>,;|".contains(c);
    line.split(apart)
        .map(|word| word.strip_prefix("./").unwrap_or(word))
        .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| word.rsplit('/').next().is_some_and(has_ending))
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

/// A target as a path inside of the skill; none: it is no such path.
fn inside(target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default().trim();
    // A title stands behind a blank.
    let target = target.split_whitespace().next().unwrap_or_default();
    let is_elsewhere = target.starts_with(['/', '~', '\\', '@'])
        || target.contains([':', '{', '}', '<', '>', '*', '$', '|', '"', '\''])
        || target.contains("...")
        || target.contains('…');
    if is_elsewhere {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(decoded(&parts.join("/")))
}

/// Blanks are written as `%20` in links.
fn decoded(path: &str) -> String {
    path.replace("%20", " ")
}

/// There is a file of this path, or a folder.
fn is_there(path: &str, files: &[FileEntry]) -> bool {
    let mut paths = files.iter().map(|file| file.path.as_str());
    paths.any(|file| {
        let rest = file.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
