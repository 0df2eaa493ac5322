//! What is no part of a skill, as for folders on disk: secrets and the rubbish of tools by
//! their names, and what `.skillignore` says. A line such as `!target/` there brings rubbish
//! back, never a secret. `.gitignore` says nothing here: whatever is in a tree was added.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use skill_md::{is_repository, is_rubbish, is_secret_name};

/// The file of patterns.
pub(super) const SKILLIGNORE: &str = ".skillignore";
/// Bytes that it may have; a larger one says nothing.
pub(super) const MAX_PATTERNS: u64 = 64 << 10;
/// The patterns of a folder and those above it.
#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<Option<(String, Gitignore)>>);

impl Patterns {
    /// What is asked next is in this folder. A line that is no pattern says nothing.
    pub(super) fn enter(&mut self, folder: &str, text: Option<&[u8]>) {
        let patterns = text.and_then(|text| {
            let mut patterns = GitignoreBuilder::new("");
            for line in String::from_utf8_lossy(text).lines() {
                patterns.add_line(None, line).ok();
            }
            patterns.build().ok()
        });
        self.0
            .push(patterns.map(|patterns| (folder.to_owned(), patterns)));
    }

    /// The folder is over.
    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Why a path stays out; none: it does not. The nearest patterns decide.
    pub(super) fn why_left_out(&self, path: &str, is_folder: bool) -> Option<&'static str> {
        if !is_folder && is_secret_name(path) {
            return Some("programs keep secrets in files of this name");
        }
        for (folder, patterns) in self.0.iter().rev().flatten() {
            let inside = path.strip_prefix(folder.as_str()).unwrap_or(path);
            match patterns.matched(inside.trim_start_matches('/'), is_folder) {
                Match::Ignore(_) => return Some("`.skillignore` leaves it out"),
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        (is_rubbish(name, is_folder) || (is_folder && is_repository(name)))
            .then_some("tools make it; `!NAME` in .skillignore brings it back")
    }
}
