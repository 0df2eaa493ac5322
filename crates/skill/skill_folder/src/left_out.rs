//! What is no part of a skill: one rule for folders on disk, Git, GitHub and archives.
//!
//! Secrets and the rubbish of tools are known by their names; `.skillignore` names more, and
//! brings rubbish back with a line such as `!target/`, never a secret. `.gitignore` counts on
//! disk alone: whatever is in a tree was added.

use std::collections::HashMap;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use model::{FilePath, FilePathError, Problem};
use skill_md::{is_repository, is_rubbish, is_secret_name};

/// Rule of what was left out.
pub const LEFT_OUT: &str = "file-left-out";
/// The file of patterns.
pub const SKILLIGNORE: &str = ".skillignore";
/// Bytes that it may have. A skill with a larger one is refused: what is to stay out of it is not
/// known.
pub const MAX_PATTERNS: u64 = 64 << 10;
/// Deeper folders are not looked into.
pub const MAX_DEPTH: usize = 40;
/// Why they are not.
pub const TOO_DEEP: &str = "it is nested too deeply";
/// How a file begins that stands for one in Large File Storage.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

const REPOSITORY: &str = "it belongs to version control";
const SECRET: &str = "programs keep secrets in files of this name";
const RUBBISH: &str = "tools make it; `!NAME` in .skillignore brings it back";

/// Why something stays out by its name, whatever patterns say.
pub(super) fn always(name: &str, is_folder: bool) -> Option<&'static str> {
    if is_repository(name) {
        return Some(REPOSITORY);
    }
    (!is_folder && is_secret_name(name)).then_some(SECRET)
}

/// Why something stays out by its name, unless patterns bring it back.
pub(super) fn mostly(name: &str, is_folder: bool) -> Option<&'static str> {
    is_rubbish(name, is_folder).then_some(RUBBISH)
}

/// Why a folder has no skills that anybody wants, by its name.
#[must_use]
pub fn is_no_place_of_skills(name: &str) -> Option<&'static str> {
    (is_repository(name) || is_rubbish(name, true)).then_some("tools make it")
}

/// The patterns of a text, as of a folder. A line that is no pattern says nothing; the others do.
pub(super) fn patterns(folder: &std::path::Path, text: &[u8]) -> Option<Gitignore> {
    let mut patterns = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(text).lines() {
        patterns.add_line(None, line).ok();
    }
    patterns.build().ok()
}

/// What was left out, as a problem that is none.
#[must_use]
pub fn left_out(path: &str, why: &str) -> Problem {
    Problem::info(LEFT_OUT, path, 0, format!("left out: {why}"))
}

/// Refuses a skill whose patterns are too many.
#[must_use]
pub fn too_many_patterns(path: &str) -> Problem {
    let kib = MAX_PATTERNS >> 10;
    let message = format!("it has more than {kib} KiB, so what is to stay out is not known");
    Problem::error("patterns-too-large", path, 0, message)
}

/// Refuses a skill with folders that are not looked into.
#[must_use]
pub fn too_deep(path: &str) -> Problem {
    Problem::error("path-invalid", path, 0, TOO_DEEP)
}

/// Leaves out a file that only stands for another one; none: it does not.
#[must_use]
pub fn pointer(path: &str, content: &[u8]) -> Option<Problem> {
    let message =
        "it is a pointer to a file in Large File Storage, which is not fetched, and was left out";
    content
        .starts_with(POINTER)
        .then(|| Problem::warning("file-lfs-pointer", path, 0, message))
}

/// What stays out of a skill that is on no disk. Its paths are those inside of the skill.
#[derive(Debug, Default)]
pub struct Patterns(HashMap<String, Gitignore>);

impl Patterns {
    /// Adds what the `.skillignore` of a folder says; the skill's own folder is empty.
    pub fn add(&mut self, folder: &str, text: &[u8]) {
        if let Some(patterns) = patterns("".as_ref(), text) {
            self.0.insert(folder.to_owned(), patterns);
        }
    }

    /// Why a path stays out, where none of its folders does; none: it does not. The nearest
    /// patterns decide.
    #[must_use]
    pub fn why(&self, path: &str, is_folder: bool) -> Option<&'static str> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some(why) = always(name, is_folder) {
            return Some(why);
        }
        let mut folder = path;
        while !folder.is_empty() {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            let Some(patterns) = self.0.get(folder) else {
                continue;
            };
            let inside = path.strip_prefix(folder).unwrap_or(path);
            match patterns.matched(inside.trim_start_matches('/'), is_folder) {
                Match::Ignore(_) => return Some("`.skillignore` leaves it out"),
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        mostly(name, is_folder)
    }

    /// What becomes of a file by its whole path. Of what stays out with its folder nothing more
    /// is asked; a name that no path has refuses the skill, even where patterns leave it out.
    #[must_use]
    pub fn take<'path>(&self, path: &'path str) -> Inclusion<'path> {
        let folders = path.match_indices('/');
        for folder in folders.filter_map(|(at, _)| path.get(..at)) {
            if let Err(error) = folder.parse::<FilePath>() {
                return Inclusion::Invalid(error);
            }
            if let Some(why) = self.why(folder, true) {
                return Inclusion::Out(folder, why);
            }
        }
        match (path.parse(), self.why(path, false)) {
            (Err(error), _) => Inclusion::Invalid(error),
            (Ok(_), Some(why)) => Inclusion::Out(path, why),
            (Ok(path), None) => Inclusion::In(path),
        }
    }
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inclusion<'path> {
    /// It is a file of the skill.
    In(FilePath),
    /// This, the file or a folder that it is in, stays out, and why.
    Out(&'path str, &'static str),
    /// No skill can have such a path.
    Invalid(FilePathError),
}
