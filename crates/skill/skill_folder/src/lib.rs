//! Folders on disk as bundles: finding skills and reading their files.
//!
//! What is no part of a skill stays on the machine, and is reported: secrets and the
//! rubbish of tools by their names, and whatever `.gitignore` and `.skillignore` say.
//! A line such as `!target/` in `.skillignore` brings rubbish back, never a secret.
//!
//! Not here: ids of skills and their import (`folders`), sources of skills
//! (`sources`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod inode;
mod left_out;
mod stamp;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ignore::Match;
use ignore::gitignore::Gitignore;
use walkdir::{DirEntry, WalkDir};

pub use inode::{Inode, inode};
pub use left_out::{
    Inclusion, LEFT_OUT, MAX_DEPTH, MAX_PATTERNS, Patterns, SKILLIGNORE, TOO_DEEP,
    is_no_place_of_skills, left_out, pointer, too_deep, too_many_patterns,
};
use model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem, Severity};
use root_folder::{RootFolder, Unread};
pub use stamp::{Stamp, TooMany, stamp};

/// Files of patterns. The nearest to a file decides, and in one folder the first.
const IGNORE_FILES: [&str; 2] = [SKILLIGNORE, ".gitignore"];

/// Files of a folder, and the problems with them.
#[derive(Debug, Default)]
pub struct SkillFiles {
    /// The files, by path.
    pub files: BTreeMap<FilePath, Bytes>,
    /// The problems.
    pub problems: Vec<Problem>,
}

impl SkillFiles {
    /// Tells whether an error refuses the folder as a skill.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.severity == Severity::Error)
    }
}

/// Folders of skills, and folders that were not searched.
#[derive(Debug, Default)]
pub struct SkillFolders {
    /// The folders, the shortest path first.
    pub folders: Vec<PathBuf>,
    /// Folders that were not searched, each with the reason.
    pub left_out: Vec<(PathBuf, String)>,
}

/// The patterns that hold below a folder.
struct Ignored {
    /// The patterns of a folder, the most important first; empty where there are none.
    patterns: HashMap<PathBuf, Vec<(&'static str, Gitignore)>>,
    /// The last folder whose patterns hold: the root of the
    /// repository, else the folder itself.
    top: PathBuf,
    /// The folder that files are read below; none: it is gone.
    below: Option<RootFolder>,
    /// Its path. Links above it are trusted, and none is followed below it.
    base: PathBuf,
    /// Files of patterns that could not be read, each with the reason.
    unknown: Vec<(PathBuf, Unread)>,
}

impl Ignored {
    /// `root` is absolute.
    fn new(root: &Path) -> Self {
        // Git asks the `.gitignore` of every folder up to the root of the repository. What lies
        // above that is somebody else's.
        let repository = root.ancestors().find(|folder| folder.join(".git").exists());
        let top = repository.unwrap_or(root);
        Self::up_to(top, top)
    }

    /// Takes the patterns of the folder itself alone: an agent reads its skills, whether or not the
    /// repository that they are in ignores them.
    fn of_itself(root: &Path) -> Self {
        Self::up_to(root, root)
    }

    /// Takes the patterns of a skill below `root`, without links on the way to it.
    fn below(root: &Path, skill: &Path) -> Self {
        let repository = skill
            .ancestors()
            .find(|folder| folder.join(".git").exists());
        let top = repository.unwrap_or(skill);
        // Opened at the upper of the two: below it links are not followed, and a repository inside
        // the root must not move that line down.
        Self::up_to(top, if root.starts_with(top) { top } else { root })
    }

    fn up_to(top: &Path, base: &Path) -> Self {
        Self {
            patterns: HashMap::new(),
            top: top.to_owned(),
            below: RootFolder::open(base).ok(),
            base: base.to_owned(),
            unknown: Vec::new(),
        }
    }

    /// Reads a file below the base, up to a number of bytes.
    fn read(&self, path: &Path, max: u64) -> Result<Vec<u8>, Unread> {
        let gone = || Unread::NoFile(std::io::ErrorKind::NotFound.into());
        let inside = path.strip_prefix(&self.base).map_err(|_| gone())?;
        self.below.as_ref().ok_or_else(gone)?.read(inside, max)
    }

    /// Why an entry stays out; none: it does not.
    fn why(&mut self, entry: &DirEntry) -> Option<String> {
        if entry.depth() == 0 {
            return None;
        }
        // Secrets first: no pattern may bring one back.
        let name = entry.file_name().to_string_lossy();
        let is_folder = entry.file_type().is_dir();
        if let Some(why) = left_out::always(&name, is_folder) {
            return Some(why.to_owned());
        }
        match self.pattern(entry.path(), is_folder) {
            Match::Ignore(file) => Some(format!("`{file}` leaves it out")),
            Match::Whitelist(_) => None,
            Match::None => left_out::mostly(&name, is_folder).map(str::to_owned),
        }
    }

    /// Matches the patterns of the folders above an entry, the nearest first.
    fn pattern(&mut self, path: &Path, is_folder: bool) -> Match<&'static str> {
        let top = self.top.clone();
        for folder in path.ancestors().skip(1) {
            for (file, patterns) in self.of(folder) {
                let matched = patterns.matched(path, is_folder);
                if !matched.is_none() {
                    return matched.map(|_| *file);
                }
            }
            if folder == top {
                break;
            }
        }
        Match::None
    }

    fn of(&mut self, folder: &Path) -> &[(&'static str, Gitignore)] {
        if !self.patterns.contains_key(folder) {
            let mut all = Vec::new();
            for name in IGNORE_FILES {
                // Through `self.read`, which follows no link and waits for no pipe: the folder may
                // be a stranger's checkout.
                let path = folder.join(name);
                match self.read(&path, MAX_PATTERNS) {
                    Ok(text) => {
                        let patterns = left_out::patterns(folder, &text);
                        all.extend(patterns.map(|patterns| (name, patterns)));
                    }
                    // Git ignores a `.gitignore` that is a link, too.
                    Err(Unread::NoFile(_)) => {}
                    Err(why) => self.unknown.push((path, why)),
                }
            }
            self.patterns.insert(folder.to_owned(), all);
        }
        self.patterns
            .get(folder)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

fn is_skill_md(name: &std::ffi::OsStr) -> bool {
    name.eq_ignore_ascii_case("skill.md")
}

/// A folder by its whole path.
#[must_use]
pub fn absolute(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Folders below `root` that hold a SKILL.md, the shortest path first. A skill
/// inside a skill is one of its own as well.
///
/// Links are not followed.
///
/// # Errors
/// A folder cannot be read.
pub fn find(root: &Path) -> Result<SkillFolders, String> {
    Ok(find_while(root, &|| true)?.unwrap_or_default())
}

/// The same until `is_wanted` says no; none then.
///
/// # Errors
/// As [`find`].
pub fn find_while(
    root: &Path,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Option<SkillFolders>, String> {
    let whole = absolute(root);
    let mut ignored = Ignored::new(&whole);
    let mut found = SkillFolders::default();
    let mut walk = WalkDir::new(&whole).max_depth(MAX_DEPTH).into_iter();
    while let Some(entry) = walk.next() {
        if !is_wanted() {
            return Ok(None);
        }
        let entry = entry.map_err(|error| error.to_string())?;
        // Callers get paths below the root as they named it, without its links resolved.
        let named = |path: &Path| match path.strip_prefix(&whole) {
            Ok(inside) if inside.as_os_str().is_empty() => root.to_owned(),
            inside => root.join(inside.unwrap_or(path)),
        };
        if let Some(why) = ignored.why(&entry) {
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
                found.left_out.push((named(entry.path()), why));
            }
            continue;
        }
        if entry.file_type().is_dir() && entry.depth() == MAX_DEPTH {
            let path = named(entry.path());
            found.left_out.push((path, TOO_DEEP.to_owned()));
        }
        if entry.file_type().is_file()
            && is_skill_md(entry.file_name())
            && let Some(folder) = entry.path().parent()
        {
            found.folders.push(named(folder));
        }
    }
    let folders = &mut found.folders;
    // The order of a directory is up to the file system. Sorted, the same tree gives the same
    // answer everywhere.
    folders.sort_by(|a, b| (a.components().count(), a).cmp(&(b.components().count(), b)));
    folders.dedup();
    found.left_out.sort();
    Ok(Some(found))
}

/// Reads all files of a skill's folder, up to the limits of a skill. Every path that
/// no skill can have is reported.
#[must_use]
pub fn read(folder: &Path) -> SkillFiles {
    let whole = absolute(folder);
    let ignored = Ignored::new(&whole);
    read_all(&whole, ignored)
}

/// The same for a folder below another one. It stays below, even if a folder on the way becomes a
/// link.
#[must_use]
pub fn read_below(root: &Path, inside: &Path) -> SkillFiles {
    let root = absolute(root);
    let whole = root.join(inside);
    let ignored = Ignored::below(&root, &whole);
    read_all(&whole, ignored)
}

/// The same for an agent's folder: patterns above it do not hold.
#[must_use]
pub fn read_local(folder: &Path) -> SkillFiles {
    let whole = absolute(folder);
    let ignored = Ignored::of_itself(&whole);
    read_all(&whole, ignored)
}

fn read_all(whole: &Path, mut ignored: Ignored) -> SkillFiles {
    let mut read = SkillFiles::default();
    let mut total = 0_u64;
    let mut walk = WalkDir::new(whole)
        .max_depth(MAX_DEPTH)
        // So that a limit always cuts off the same files.
        .sort_by_file_name()
        .into_iter();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let problem = Problem::error("file-unreadable", "", 0, error.to_string());
                read.problems.push(problem);
                continue;
            }
        };
        let shown = entry.path().strip_prefix(whole).unwrap_or(entry.path());
        let name = shown.display().to_string();
        let mut report = |problem| read.problems.push(problem);
        if let Some(why) = ignored.why(&entry) {
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
            report(left_out(&name, &why));
            continue;
        }
        if entry.file_type().is_dir() {
            if entry.depth() == MAX_DEPTH {
                report(too_deep(&name));
            }
            continue;
        }
        if !entry.file_type().is_file() {
            let message = "it is a link or a special file, and was left out";
            report(Problem::warning("file-not-regular", &name, 0, message));
            continue;
        }
        let path = match shown.to_str().map(str::parse::<FilePath>) {
            Some(parsed) => parsed.map_err(|error| error.to_string()),
            None => Err("its name is not UTF-8".to_owned()),
        };
        let path = match path {
            Ok(path) => path,
            Err(message) => {
                report(Problem::error("path-invalid", &name, 0, message));
                continue;
            }
        };
        if read.files.len() == MAX_FILES {
            let message = format!("with this file the skill has more than {MAX_FILES} files");
            report(Problem::error("too-many-files", &name, 0, message));
            break;
        }
        // The limit holds for what is read: a file may grow after its size was asked.
        match ignored.read(entry.path(), MAX_SKILL_BYTES.saturating_sub(total)) {
            Ok(content) => {
                total += content.len() as u64;
                match pointer(&name, &content) {
                    Some(problem) => report(problem),
                    None => _ = read.files.insert(path, content.into()),
                }
            }
            Err(Unread::TooLarge) => {
                let mib = MAX_SKILL_BYTES >> 20;
                let message = format!("with this file the skill has more than {mib} MiB");
                report(Problem::error("skill-too-large", &name, 0, message));
                break;
            }
            Err(Unread::NoFile(error) | Unread::Failed(error)) => {
                let message = error.to_string();
                report(Problem::error("file-unreadable", &name, 0, message));
            }
        }
    }
    // Also those above the skill: without them it may contain files that they keep out.
    for (path, why) in ignored.unknown {
        let name = path.strip_prefix(whole).unwrap_or(&path);
        let name = name.display().to_string();
        read.problems.push(match why {
            Unread::TooLarge => too_many_patterns(&name),
            Unread::NoFile(error) | Unread::Failed(error) => {
                Problem::error("file-unreadable", &name, 0, error.to_string())
            }
        });
    }
    read
}

/// The name of a folder, also of `.`.
#[must_use]
pub fn name(folder: &Path) -> String {
    absolute(folder)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
