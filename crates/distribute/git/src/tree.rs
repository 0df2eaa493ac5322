//! Finds the skills in the tree of a commit.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use model::FilePath;
use skill_folder::{MAX_DEPTH, TOO_DEEP, is_no_place_of_skills};

use super::Error;
use super::conversation::chain;

/// A folder that holds a SKILL.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    /// Its path in the repository, empty for all of it. A stranger's text: never to be opened.
    pub path: String,
    /// The id of its tree, which is a digest of all that is in it.
    pub tree: String,
}

/// The skills of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitSkills {
    /// Its skills, the shortest path first.
    pub skills: Vec<FoundSkill>,
    /// Paths that were not looked into, each with the reason.
    pub skipped: Vec<(String, String)>,
}

pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) kind: EntryKind,
    pub(super) id: ObjectId,
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn damaged(error: gix::Error) -> Error {
    Error::Damaged(model::shown(&chain(&error).replace('\n', " "), 200))
}

pub(super) fn check(stop: &AtomicBool) -> Result<(), Error> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    Ok(())
}

/// The entries of a tree; none: its bytes are no tree.
pub(super) fn entries(
    repository: &gix::Repository,
    id: ObjectId,
) -> Result<Option<Vec<Entry>>, Error> {
    let object = repository.find_object(id).map_err(damaged)?;
    let Ok(tree) = object.try_into_tree() else {
        return Ok(None);
    };
    let mut entries = Vec::new();
    for entry in tree.iter() {
        let Ok(entry) = entry else {
            return Ok(None);
        };
        entries.push(Entry {
            name: entry.filename().to_vec(),
            kind: entry.mode().kind(),
            id: entry.oid().to_owned(),
        });
    }
    Ok(Some(entries))
}

fn is_skill_md(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"skill.md")
}

pub(super) fn is_file(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Blob | EntryKind::BlobExecutable)
}

/// The kind of an entry that is neither file nor folder.
pub(super) fn special(kind: EntryKind) -> Option<&'static str> {
    match kind {
        EntryKind::Link => Some("a link"),
        EntryKind::Commit => Some("a submodule"),
        EntryKind::Tree | EntryKind::Blob | EntryKind::BlobExecutable => None,
    }
}

/// A name as a segment of a path, or why it cannot be one.
pub(super) fn segment(name: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8".to_owned())?;
    // Such as `../x`: Git refuses it, but the bytes of a tree may have it.
    if text.contains('/') {
        return Err("a name in it has a slash".to_owned());
    }
    text.parse::<FilePath>()
        .map(|_| text)
        .map_err(|error| error.to_string())
}

pub(super) fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// The tree of a folder, by its path; none: there is none.
fn below(
    repository: &gix::Repository,
    root: ObjectId,
    path: &str,
) -> Result<Option<ObjectId>, Error> {
    let mut tree = root;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let found = entries(repository, tree)?.and_then(|entries| {
            let mut entries = entries.into_iter();
            entries.find(|entry| entry.kind == EntryKind::Tree && entry.name == name.as_bytes())
        });
        match found {
            Some(entry) => tree = entry.id,
            None => return Ok(None),
        }
    }
    Ok(Some(tree))
}

pub(super) fn find(
    repository: &gix::Repository,
    root: ObjectId,
    folder: &str,
    (max_entries, max_skills): (usize, usize),
    stop: &AtomicBool,
) -> Result<CommitSkills, Error> {
    let folder = folder.trim_matches('/');
    let Some(top) = below(repository, root, folder)? else {
        let folder = model::shown(folder, 200);
        return Err(Error::Refused(format!(
            "the repository has no folder `{folder}`"
        )));
    };
    let mut found = CommitSkills::default();
    let mut seen = 0;
    // A stack and no recursion: trees of strangers may be deep.
    let mut next = vec![(folder.to_owned(), top, 0)];
    while let Some((path, tree, depth)) = next.pop() {
        check(stop)?;
        let Some(entries) = entries(repository, tree)? else {
            found.skipped.push((path, "its tree is broken".to_owned()));
            continue;
        };
        // Also of trees that are here many times: a few objects can make billions of paths.
        seen += entries.len();
        if seen > max_entries {
            return Err(Error::TooLarge(format!(
                "the repository has more than {max_entries} files and folders, which is the limit"
            )));
        }
        let mut is_skill = false;
        let mut folders = HashSet::new();
        for entry in &entries {
            let name = String::from_utf8_lossy(&entry.name);
            let at = joined(&path, &name);
            let mut skip = |why: String| found.skipped.push((model::shown(&at, 300), why));
            if is_skill_md(&entry.name) {
                match special(entry.kind) {
                    None if is_file(entry.kind) => is_skill = true,
                    None => skip("it is a folder, where a file is wanted".to_owned()),
                    Some(what) => skip(format!("it is {what}, where a file is wanted")),
                }
                continue;
            }
            if entry.kind == EntryKind::Commit {
                skip("it is a submodule, which is not fetched".to_owned());
            }
            if entry.kind != EntryKind::Tree {
                continue;
            }
            match segment(&entry.name) {
                Err(why) => skip(why),
                Ok(name) => {
                    if let Some(why) = is_no_place_of_skills(name) {
                        skip(why.to_owned());
                    } else if !folders.insert(&entry.name) {
                        skip("the tree has the name twice".to_owned());
                    } else if depth == MAX_DEPTH {
                        skip(TOO_DEEP.to_owned());
                    } else {
                        next.push((at, entry.id, depth + 1));
                    }
                }
            }
        }
        if is_skill {
            found.skills.push(FoundSkill {
                path,
                tree: tree.to_string(),
            });
        }
        if found.skills.len() > max_skills {
            return Err(Error::TooLarge(format!(
                "the repository has more than {max_skills} skills, which is the limit"
            )));
        }
    }
    let depth = |path: &str| path.split('/').filter(|name| !name.is_empty()).count();
    found
        .skills
        .sort_by(|a, b| (depth(&a.path), &a.path).cmp(&(depth(&b.path), &b.path)));
    found.skipped.sort();
    Ok(found)
}
