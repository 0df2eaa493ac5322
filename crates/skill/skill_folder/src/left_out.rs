//! Files that are no part of a skill: one rule for folders on disk, Git, GitHub and archives.
//!
//! Secrets and the rubbish of tools are recognized by their names; `.skillignore` names more, and
//! brings rubbish back with a line such as `!target/`, never a secret. `.gitignore` counts on
//! disk alone: a file in a commit was added on purpose.

use std::collections::HashMap;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use model::{FilePath, FilePathError, Problem};
use skill_md::{is_repository, is_rubbish, is_secret_name};

/// The rule of files that were left out.
pub const LEFT_OUT: &str = "file-left-out";
/// The file of patterns.
pub const SKILLIGNORE: &str = ".skillignore";
/// The most bytes of that file. A skill with a larger one is refused: what has to stay out of it is
/// not known.
pub const MAX_PATTERNS: u64 = 64 << 10;
/// Deeper folders are not entered.
pub const MAX_DEPTH: usize = 40;
/// The reason that they are not.
pub const TOO_DEEP: &str = "it is nested too deeply";
/// How a pointer to a file in Large File Storage begins.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

const REPOSITORY: &str = "it belongs to version control";
const SECRET: &str = "programs keep secrets in files of this name";
const RUBBISH: &str = "tools make it; `!NAME` in .skillignore brings it back";

/// Why a file or folder stays out by its name, whatever patterns say.
pub(super) fn always(name: &str, is_folder: bool) -> Option<&'static str> {
    if is_repository(name) {
        return Some(REPOSITORY);
    }
    // A folder named `.env` or `id_rsa` holds other files, which are checked by their own names.
    (!is_folder && is_secret_name(name)).then_some(SECRET)
}

/// Why a file or folder stays out by its name, unless patterns bring it back.
pub(super) fn mostly(name: &str, is_folder: bool) -> Option<&'static str> {
    is_rubbish(name, is_folder).then_some(RUBBISH)
}

/// Why no skills are searched below a folder, by its name.
#[must_use]
pub fn is_no_place_of_skills(name: &str) -> Option<&'static str> {
    (is_repository(name) || is_rubbish(name, true)).then_some("tools make it")
}

/// Reads the patterns of a folder. A line that is no pattern is ignored.
pub(super) fn patterns(folder: &std::path::Path, text: &[u8]) -> Option<Gitignore> {
    let mut patterns = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(text).lines() {
        patterns.add_line(None, line).ok();
    }
    patterns.build().ok()
}

/// Reports a file that was left out, for information.
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

/// Refuses a skill with folders that are not entered.
#[must_use]
pub fn too_deep(path: &str) -> Problem {
    Problem::error("path-invalid", path, 0, TOO_DEEP)
}

/// Leaves out a pointer to another file; none: it is no pointer.
#[must_use]
pub fn pointer(path: &str, content: &[u8]) -> Option<Problem> {
    let message =
        "it is a pointer to a file in Large File Storage, which is not fetched, and was left out";
    content
        .starts_with(POINTER)
        .then(|| Problem::warning("file-lfs-pointer", path, 0, message))
}

/// The patterns of a skill that is not on a disk. Its paths are those inside the skill.
#[derive(Debug, Default)]
pub struct Patterns(HashMap<String, Gitignore>);

impl Patterns {
    /// Adds the `.skillignore` of a folder; the skill's own folder is the empty path.
    pub fn add(&mut self, folder: &str, text: &[u8]) {
        if let Some(patterns) = patterns("".as_ref(), text) {
            self.0.insert(folder.to_owned(), patterns);
        }
    }

    /// Why a path stays out, if none of its folders does; none: it stays in. The nearest
    /// patterns decide.
    #[must_use]
    pub fn why(&self, path: &str, is_folder: bool) -> Option<&'static str> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some(why) = always(name, is_folder) {
            return Some(why);
        }
        // From the nearest folder up, as Git has it: a pattern further down overrides those above.
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

    /// Decides on a file by its whole path. Of a folder that stays out nothing more
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

/// The decision on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inclusion<'path> {
    /// It is a file of the skill.
    In(FilePath),
    /// This, the file or a folder that it is in, stays out, and why.
    Out(&'path str, &'static str),
    /// No skill can have such a path.
    Invalid(FilePathError),
}
