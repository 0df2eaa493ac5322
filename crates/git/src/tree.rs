//! Skills in the tree of a commit: found, and read.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use gix::ObjectId;
use gix::objs::tree::EntryKind;

use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem};
use skill_md::is_secret_name;

use super::Error;
use super::conversation::all_words;

/// Deeper folders are not looked into.
const MAX_DEPTH: usize = 40;
/// Entries that the folders of one skill may have, of all kinds.
const MAX_ENTRIES: usize = 8 * MAX_FILES;
/// How a file begins that stands for one in Large File Storage.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";
/// Folders that tools make.
const RUBBISH: [&str; 7] = [
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".hg",
    ".svn",
];

/// A folder that holds a SKILL.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    /// Its path in the repository, empty for all of it. A stranger's text: never to be opened.
    pub path: String,
    /// The id of its tree, which stands for all that is in it.
    pub tree: String,
}

/// What a commit has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Its skills, the shortest path first.
    pub skills: Vec<FoundSkill>,
    /// What was not looked into, each path with why.
    pub skipped: Vec<(String, String)>,
}

/// Files of a skill, and what was odd about them.
#[derive(Debug, Default)]
pub struct SkillFiles {
    /// The files, by path.
    pub files: BTreeMap<FilePath, Bytes>,
    /// What was left out, and why the rest is no skill.
    pub problems: Vec<Problem>,
}

/// An entry of a tree.
struct Entry {
    name: Vec<u8>,
    kind: EntryKind,
    id: ObjectId,
}

fn damaged(error: &gix::Error) -> Error {
    Error::Damaged(model::shown(&all_words(error).replace('\n', " "), 200))
}

fn check(stop: &AtomicBool) -> Result<(), Error> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    Ok(())
}

/// The entries of a tree; none: its bytes are no tree.
fn entries(repository: &gix::Repository, id: ObjectId) -> Result<Option<Vec<Entry>>, Error> {
    let object = repository
        .find_object(id)
        .map_err(|error| damaged(&error))?;
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

fn is_file(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Blob | EntryKind::BlobExecutable)
}

/// What an entry is that is neither file nor folder.
fn special(kind: EntryKind) -> Option<&'static str> {
    match kind {
        EntryKind::Link => Some("a link"),
        EntryKind::Commit => Some("a submodule"),
        EntryKind::Tree | EntryKind::Blob | EntryKind::BlobExecutable => None,
    }
}

/// A name as a path of its own, or why it is none.
fn segment(name: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8".to_owned())?;
    if text.contains('/') {
        return Err("a name in it has a slash".to_owned());
    }
    text.parse::<FilePath>()
        .map(|_| text)
        .map_err(|error| error.to_string())
}

fn joined(folder: &str, name: &str) -> String {
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

/// Finds folders with a SKILL.md.
pub(super) fn find(
    repository: &gix::Repository,
    root: ObjectId,
    folder: &str,
    (max_entries, max_skills): (usize, usize),
    stop: &AtomicBool,
) -> Result<Found, Error> {
    let folder = folder.trim_matches('/');
    let Some(top) = below(repository, root, folder)? else {
        let folder = model::shown(folder, 200);
        return Err(Error::Refused(format!(
            "the repository has no folder `{folder}`"
        )));
    };
    let mut found = Found::default();
    let mut seen = 0;
    let mut next = vec![(folder.to_owned(), top, 0)];
    while let Some((path, tree, depth)) = next.pop() {
        check(stop)?;
        let Some(entries) = entries(repository, tree)? else {
            found.skipped.push((path, "its tree is broken".to_owned()));
            continue;
        };
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
                Ok(name) if RUBBISH.contains(&name) => skip("tools make it".to_owned()),
                Ok(_) if !folders.insert(&entry.name) => {
                    skip("the tree has the name twice".to_owned());
                }
                Ok(_) if depth == MAX_DEPTH => skip("it is too deep".to_owned()),
                Ok(_) => next.push((at, entry.id, depth + 1)),
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

/// Reads the files of a skill.
pub(super) fn read(
    repository: &gix::Repository,
    tree: ObjectId,
    stop: &AtomicBool,
) -> Result<SkillFiles, Error> {
    let mut reading = Reading {
        repository,
        read: SkillFiles::default(),
        bytes: 0,
        entries: 0,
        is_full: false,
    };
    reading.folder("", tree, stop)?;
    Ok(reading.read)
}

struct Reading<'a> {
    repository: &'a gix::Repository,
    read: SkillFiles,
    bytes: u64,
    entries: usize,
    /// A limit was met; what follows is not read.
    is_full: bool,
}

impl Reading<'_> {
    fn report(&mut self, problem: Problem) {
        self.read.problems.push(problem);
    }

    /// A limit of skills was met.
    fn full(&mut self, rule: &str, path: &str, message: String) {
        self.report(Problem::error(rule, path, 0, message));
        self.is_full = true;
    }

    /// All that is in a folder. A path has at most 32 segments, and so has this calls of
    /// itself.
    fn folder(&mut self, folder: &str, tree: ObjectId, stop: &AtomicBool) -> Result<(), Error> {
        let Some(entries) = entries(self.repository, tree)? else {
            self.report(Problem::error(
                "path-invalid",
                folder,
                0,
                "its tree is broken",
            ));
            return Ok(());
        };
        let mut seen = HashSet::new();
        for entry in &entries {
            check(stop)?;
            if self.is_full {
                break;
            }
            let shown = joined(
                folder,
                &model::shown(&String::from_utf8_lossy(&entry.name), 200),
            );
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let message = format!("the skill has more than {MAX_ENTRIES} files and folders");
                self.full("too-many-files", &shown, message);
                break;
            }
            if !seen.insert(&entry.name) {
                let message = "the tree has the name twice";
                self.report(Problem::error("path-invalid", &shown, 0, message));
                continue;
            }
            let path = segment(&entry.name).and_then(|name| {
                let path = joined(folder, name).parse::<FilePath>();
                path.map_err(|error| error.to_string())
            });
            let path = match path {
                Ok(path) => path,
                Err(why) => {
                    self.report(Problem::error("path-invalid", &shown, 0, why));
                    continue;
                }
            };
            if let Some(what) = special(entry.kind) {
                let message = format!("it is {what}, and was left out");
                self.report(Problem::warning("file-not-regular", &shown, 0, message));
            } else if entry.kind == EntryKind::Tree {
                if RUBBISH.contains(&path.file_name()) {
                    let message = "left out: tools make it";
                    self.report(Problem::info("file-left-out", &shown, 0, message));
                } else {
                    self.folder(path.as_str(), entry.id, stop)?;
                }
            } else {
                self.file(path, entry.id)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: FilePath, id: ObjectId) -> Result<(), Error> {
        if is_secret_name(path.as_str()) {
            let message = "left out: programs keep secrets in files of this name";
            self.report(Problem::info("file-left-out", path.as_str(), 0, message));
            return Ok(());
        }
        let header = self
            .repository
            .find_header(id)
            .map_err(|error| damaged(&error))?;
        if header.kind() != gix::objs::Kind::Blob {
            let message = "the tree takes for a file what is none";
            self.report(Problem::error("path-invalid", path.as_str(), 0, message));
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(header.size());
        if self.bytes > MAX_SKILL_BYTES {
            let mib = MAX_SKILL_BYTES >> 20;
            let message = format!("with this file the skill has more than {mib} MiB");
            self.full("skill-too-large", path.as_str(), message);
            return Ok(());
        }
        if self.read.files.len() == MAX_FILES {
            let message = format!("with this file the skill has more than {MAX_FILES} files");
            self.full("too-many-files", path.as_str(), message);
            return Ok(());
        }
        let mut blob = self
            .repository
            .find_object(id)
            .map_err(|error| damaged(&error))?;
        let content = Bytes::from(std::mem::take(&mut blob.data));
        if content.starts_with(POINTER) {
            self.bytes = self.bytes.saturating_sub(header.size());
            let message = "it stands for a file in Large File Storage, which is not fetched, and was left out";
            self.report(Problem::warning(
                "file-lfs-pointer",
                path.as_str(),
                0,
                message,
            ));
            return Ok(());
        }
        self.read.files.insert(path, content);
        Ok(())
    }
}
