//! The files of a skill, read from its tree.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use gix::ObjectId;
use gix::objs::tree::EntryKind;

use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem};
use skill_folder::{
    MAX_PATTERNS, Patterns, SKILLIGNORE, SkillFiles, left_out, pointer, too_many_patterns,
};

use super::Error;
use super::tree::{Entry, check, damaged, entries, is_file, joined, segment, special};

/// Entries that the folders of one skill may have, of all kinds: those that are left out cost time
/// too.
const MAX_ENTRIES: usize = 8 * MAX_FILES;

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
        patterns: Patterns::default(),
    };
    reading.folder("", tree, stop)?;
    Ok(reading.read)
}

struct Reading<'a> {
    repository: &'a gix::Repository,
    read: SkillFiles,
    bytes: u64,
    entries: usize,
    /// A limit was reached; what follows is not read.
    is_full: bool,
    patterns: Patterns,
}

impl Reading<'_> {
    fn report(&mut self, problem: Problem) {
        self.read.problems.push(problem);
    }

    /// Reports a limit that was reached.
    fn full(&mut self, rule: &str, path: &str, message: String) {
        self.report(Problem::error(rule, path, 0, message));
        self.is_full = true;
    }

    /// Reads a folder. The recursion is bounded: a path with more than 32 segments is no path of a
    /// skill.
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
        // Before the entries, since the file of patterns may leave out any of them.
        if let Some(text) = self.patterns_in(folder, &entries)? {
            self.patterns.add(folder, &text);
        }
        self.entries(folder, &entries, stop)
    }

    /// The file of patterns of a folder; none: it has none, or one that is too large.
    fn patterns_in(&mut self, folder: &str, entries: &[Entry]) -> Result<Option<Vec<u8>>, Error> {
        let mut files = entries.iter();
        let is_one = |entry: &&Entry| entry.name == SKILLIGNORE.as_bytes() && is_file(entry.kind);
        let Some(file) = files.find(is_one) else {
            return Ok(None);
        };
        let header = self.repository.find_header(file.id).map_err(damaged)?;
        if header.size() > MAX_PATTERNS {
            self.report(too_many_patterns(&joined(folder, SKILLIGNORE)));
            return Ok(None);
        }
        let mut object = self.repository.find_object(file.id).map_err(damaged)?;
        Ok(Some(std::mem::take(&mut object.data)))
    }

    fn entries(&mut self, folder: &str, entries: &[Entry], stop: &AtomicBool) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for entry in entries {
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
            // Git makes no such tree, but somebody else may: readers would differ in which one
            // they take.
            if !seen.insert(&entry.name) {
                let message = "the tree has the name twice";
                self.report(Problem::error("path-invalid", &shown, 0, message));
                continue;
            }
            let is_folder = entry.kind == EntryKind::Tree;
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
            if let Some(why) = self.patterns.why(path.as_str(), is_folder) {
                self.report(left_out(&shown, why));
            } else if let Some(what) = special(entry.kind) {
                let message = format!("it is {what}, and was left out");
                self.report(Problem::warning("file-not-regular", &shown, 0, message));
            } else if is_folder {
                self.folder(path.as_str(), entry.id, stop)?;
            } else {
                self.file(path, entry.id)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: FilePath, id: ObjectId) -> Result<(), Error> {
        // The size comes first: an object of 4 GiB is refused before it is inflated.
        let header = self.repository.find_header(id).map_err(damaged)?;
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
        let mut blob = self.repository.find_object(id).map_err(damaged)?;
        let content = Bytes::from(std::mem::take(&mut blob.data));
        if let Some(problem) = pointer(path.as_str(), &content) {
            // Not a file of the skill after all.
            self.bytes = self.bytes.saturating_sub(header.size());
            self.report(problem);
            return Ok(());
        }
        self.read.files.insert(path, content);
        Ok(())
    }
}
