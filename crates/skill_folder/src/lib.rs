//! Folders on disk as bundles: finding skills and reading their files.
//!
//! What is no part of a skill stays on the machine, and is told: secrets and the
//! rubbish of tools by their names, and whatever `.gitignore` and `.skillignore` say.
//! A line such as `!target/` in `.skillignore` brings rubbish back, never a secret.
//!
//! Not here: ids of skills and what becomes of them (`folders`), places with skills
//! (`sources`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod stamp;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ignore::Match;
use ignore::gitignore::Gitignore;
use walkdir::{DirEntry, WalkDir};

use model::{FilePath, FilePathError, MAX_FILES, MAX_SKILL_BYTES, Problem, Severity};
use skill_md::{is_repository, is_rubbish, is_secret_name};
pub use stamp::{Stamp, TooMany, stamp};

/// The nearer to a file, and of one folder the first, decides.
const IGNORE_FILES: [&str; 2] = [".skillignore", ".gitignore"];
/// Deeper folders are not looked into.
const MAX_DEPTH: usize = 40;

/// Rule of what was left out.
pub const LEFT_OUT: &str = "file-left-out";

/// Files of a folder, and what was odd about them.
#[derive(Debug, Default)]
pub struct SkillFiles {
    /// The files, by path.
    pub files: BTreeMap<FilePath, Bytes>,
    /// What was odd.
    pub problems: Vec<Problem>,
}

impl SkillFiles {
    /// The folder is no skill as it is.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.severity == Severity::Error)
    }
}

/// Folders of skills, and what was not looked into.
#[derive(Debug, Default)]
pub struct SkillFolders {
    /// The folders, the shortest path first.
    pub folders: Vec<PathBuf>,
    /// What was not looked into, each with why.
    pub left_out: Vec<(PathBuf, String)>,
}

/// What stays out of skills below a folder.
struct Ignored {
    /// Patterns of a folder, most important first; none where nothing is said.
    patterns: HashMap<PathBuf, Vec<(&'static str, Gitignore)>>,
    /// The folder whose patterns are the last to be asked: the root of the
    /// repository, else the folder itself.
    top: PathBuf,
}

impl Ignored {
    /// `root` is absolute.
    fn new(root: &Path) -> Self {
        let repository = root.ancestors().find(|folder| folder.join(".git").exists());
        Self {
            patterns: HashMap::new(),
            top: repository.unwrap_or(root).to_owned(),
        }
    }

    /// What only the folder itself says: an agent reads its skills, whether or not the
    /// repository that they are in ignores them.
    fn of_itself(root: &Path) -> Self {
        Self {
            patterns: HashMap::new(),
            top: root.to_owned(),
        }
    }

    /// Why an entry stays out; none: it does not.
    fn why(&mut self, entry: &DirEntry) -> Option<String> {
        if entry.depth() == 0 {
            return None;
        }
        let name = entry.file_name().to_string_lossy();
        let is_folder = entry.file_type().is_dir();
        if is_repository(&name) {
            return Some("it belongs to version control".to_owned());
        }
        if !is_folder && is_secret_name(&name) {
            return Some("programs keep secrets in files of this name".to_owned());
        }
        match self.pattern(entry.path(), is_folder) {
            Some(Match::Ignore(file)) => return Some(format!("`{file}` leaves it out")),
            Some(Match::Whitelist(_)) => return None,
            _ => {}
        }
        is_rubbish(&name, is_folder)
            .then(|| "tools make it; `!NAME` in .skillignore brings it back".to_owned())
    }

    /// What the patterns of the folders above an entry say, the nearest first.
    fn pattern(&mut self, path: &Path, is_folder: bool) -> Option<Match<&'static str>> {
        let top = self.top.clone();
        for folder in path.ancestors().skip(1) {
            for (file, patterns) in self.of(folder) {
                match patterns.matched(path, is_folder) {
                    Match::Ignore(_) => return Some(Match::Ignore(file)),
                    Match::Whitelist(_) => return Some(Match::Whitelist(file)),
                    Match::None => {}
                }
            }
            if folder == top {
                break;
            }
        }
        None
    }

    fn of(&mut self, folder: &Path) -> &[(&'static str, Gitignore)] {
        if !self.patterns.contains_key(folder) {
            let files = IGNORE_FILES.iter().map(|name| (*name, folder.join(name)));
            let files = files.filter(|(_, path)| path.is_file());
            // A line that is no pattern says nothing; the others do.
            let patterns = files.map(|(name, path)| (name, Gitignore::new(path).0));
            self.patterns.insert(folder.to_owned(), patterns.collect());
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
    let whole = absolute(root);
    let mut ignored = Ignored::new(&whole);
    let mut found = SkillFolders::default();
    let mut walk = WalkDir::new(&whole).max_depth(MAX_DEPTH).into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| error.to_string())?;
        // As the caller named it.
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
        if entry.file_type().is_file()
            && is_skill_md(entry.file_name())
            && let Some(folder) = entry.path().parent()
        {
            found.folders.push(named(folder));
        }
    }
    let folders = &mut found.folders;
    folders.sort_by(|a, b| (a.components().count(), a).cmp(&(b.components().count(), b)));
    folders.dedup();
    found.left_out.sort();
    Ok(found)
}

/// Reads all files of a skill's folder, up to the limits of a skill. Every path that
/// no skill can have is reported.
#[must_use]
pub fn read(folder: &Path) -> SkillFiles {
    let whole = absolute(folder);
    let ignored = Ignored::new(&whole);
    read_all(&whole, ignored)
}

/// The same of a folder of an agent's: what lies above it says nothing of its files.
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
        let name = shown
            .display()
            .to_string()
            .replace(std::path::MAIN_SEPARATOR, "/");
        let mut report = |problem| read.problems.push(problem);
        if let Some(why) = ignored.why(&entry) {
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
            report(Problem::info(
                LEFT_OUT,
                &name,
                0,
                format!("left out: {why}"),
            ));
            continue;
        }
        if entry.file_type().is_dir() {
            continue;
        }
        if !entry.file_type().is_file() {
            let message = "it is a link or a special file, and was left out";
            report(Problem::warning("file-not-regular", &name, 0, message));
            continue;
        }
        let path = match shown.to_str().map(|_| name.parse::<FilePath>()) {
            Some(Ok(path)) => path,
            Some(Err(error)) => {
                let error: FilePathError = error;
                report(Problem::error("path-invalid", &name, 0, error.to_string()));
                continue;
            }
            None => {
                let message = "its name is not UTF-8";
                report(Problem::error("path-invalid", &name, 0, message));
                continue;
            }
        };
        let content = entry
            .metadata()
            .map_err(std::io::Error::from)
            .map(|metadata| total += metadata.len());
        if total > MAX_SKILL_BYTES {
            let mib = MAX_SKILL_BYTES >> 20;
            let message = format!("with this file the skill has more than {mib} MiB");
            report(Problem::error("skill-too-large", &name, 0, message));
            break;
        }
        if read.files.len() == MAX_FILES {
            let message = format!("with this file the skill has more than {MAX_FILES} files");
            report(Problem::error("too-many-files", &name, 0, message));
            break;
        }
        match content.and_then(|()| fs::read(entry.path())) {
            Ok(content) => _ = read.files.insert(path, content.into()),
            Err(error) => report(Problem::error(
                "file-unreadable",
                &name,
                0,
                error.to_string(),
            )),
        }
    }
    read
}

/// Name of a folder, also of `.`.
#[must_use]
pub fn name(folder: &Path) -> String {
    absolute(folder)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const SKILL: &str = "---\nname: x\ndescription: For a test.\n---\nDo it.\n";

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        folder
    }

    fn taken(read: &SkillFiles) -> Vec<&str> {
        read.files.keys().map(FilePath::as_str).collect()
    }

    fn reported<'a>(read: &'a SkillFiles, rule: &str) -> Vec<&'a str> {
        let problems = read.problems.iter().filter(|problem| problem.rule == rule);
        problems.map(|problem| problem.file.as_str()).collect()
    }

    #[test]
    fn secrets_rubbish_and_what_ignore_files_name_are_left_out_and_told() {
        let folder = folder(&[
            ("SKILL.md", SKILL),
            (".env", "A=1"),
            (".env.example", "A="),
            ("keys/server.pem", "x"),
            ("keys/id_rsa", "x"),
            (".venv/bin/python", "x"),
            ("node_modules/x/index.js", "x"),
            ("target/debug/x", "x"),
            ("scripts/__pycache__/a.pyc", "x"),
            ("scripts/a.py", "x"),
            (".DS_Store", "x"),
            (".git/config", "x"),
            (".gitignore", "*.log\n/build\n!keep.log\n"),
            ("a.log", "x"),
            ("keep.log", "x"),
            ("build/x", "x"),
            ("docs/build/x", "x"),
            ("docs/.gitignore", "draft.md\n"),
            ("docs/draft.md", "x"),
            ("docs/final.md", "x"),
        ]);
        let read = read(folder.path());
        assert_eq!(
            taken(&read),
            [
                ".env.example",
                ".gitignore",
                "SKILL.md",
                "docs/.gitignore",
                "docs/build/x",
                "docs/final.md",
                "keep.log",
                "scripts/a.py",
            ]
        );
        let mut left_out = reported(&read, LEFT_OUT);
        left_out.sort_unstable();
        assert_eq!(
            left_out,
            [
                ".DS_Store",
                ".env",
                ".git",
                ".venv",
                "a.log",
                "build",
                "docs/draft.md",
                "keys/id_rsa",
                "keys/server.pem",
                "node_modules",
                "scripts/__pycache__",
                "target",
            ]
        );
        assert!(!read.is_refused());
    }

    #[test]
    fn a_skillignore_comes_first_and_brings_rubbish_back_but_no_secret() {
        let folder = folder(&[
            ("SKILL.md", SKILL),
            (".gitignore", "data.csv\n"),
            (".skillignore", "!target/\n!data.csv\n!.env\nnotes/\n"),
            ("data.csv", "x"),
            ("target/goals.md", "x"),
            ("notes/mine.md", "x"),
            (".env", "A=1"),
        ]);
        let read = read(folder.path());
        assert_eq!(
            taken(&read),
            [
                ".gitignore",
                ".skillignore",
                "SKILL.md",
                "data.csv",
                "target/goals.md"
            ]
        );
        assert_eq!(reported(&read, LEFT_OUT), [".env", "notes"]);
    }

    #[test]
    fn the_patterns_of_a_repository_hold_in_the_skills_below_it() {
        let folder = folder(&[
            (".git/config", "x"),
            (".gitignore", "*.tmp\nold/\n"),
            ("skills/one/SKILL.md", SKILL),
            ("skills/one/a.tmp", "x"),
            ("old/two/SKILL.md", SKILL),
        ]);
        let found = find(folder.path()).expect("folders");
        assert_eq!(found.folders, [folder.path().join("skills/one")]);
        let left_out: Vec<_> = found
            .left_out
            .iter()
            .map(|(path, _)| path.clone())
            .collect();
        assert_eq!(
            left_out,
            [folder.path().join(".git"), folder.path().join("old")]
        );
        let read = read(&folder.path().join("skills/one"));
        assert_eq!(
            (taken(&read), reported(&read, LEFT_OUT)),
            (vec!["SKILL.md"], vec!["a.tmp"])
        );
        // Whoever names a folder wants it.
        let named = find(&folder.path().join("old")).expect("folders");
        assert_eq!(named.folders, [folder.path().join("old/two")]);
    }

    #[cfg(unix)]
    #[test]
    fn every_path_that_no_skill_can_have_is_reported() {
        let folder = folder(&[
            ("SKILL.md", SKILL),
            ("aux.txt", "x"),
            ("a\u{200b}.md", "x"),
            ("b:c", "x"),
            ("d.md", "x"),
        ]);
        let read = read(folder.path());
        assert_eq!(
            reported(&read, "path-invalid"),
            ["aux.txt", "a\u{200b}.md", "b:c"]
        );
        assert_eq!(taken(&read), ["SKILL.md", "d.md"]);
        assert!(read.is_refused());
    }
}
