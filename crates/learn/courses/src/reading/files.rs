//! The files of an exercise.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::{Digest, FilePath, Problem, bundle_digest};

use crate::limits;
use crate::{Solution, grading::Fixtures};

/// Endings that a starter and a solution can have.
pub(super) const ENDINGS: &[&str] = &["js", "sql", "md", "yaml", "json", "txt", "sh", "py"];

/// The files of an exercise by their paths in its folder, and which of them were used.
#[derive(Debug)]
pub(super) struct Files {
    folder: String,
    contents: BTreeMap<FilePath, Bytes>,
    // Marked by every read, so that what nothing reads can be reported: mostly a misspelled name.
    used: RefCell<BTreeSet<FilePath>>,
}

/// A starter or a solution.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// Text by path; of a single one by its name.
    pub(super) files: BTreeMap<String, String>,
    /// It is one file, and this is its ending.
    pub(super) ending: Option<&'static str>,
}

/// The message for a file that is too large.
pub(super) fn too_large(content: &Bytes) -> Option<String> {
    let (bytes, max) = (content.len(), limits::MAX_FILE_BYTES);
    (bytes > max).then(|| format!("The file has {bytes} bytes; at most {max} are taken"))
}

impl Files {
    /// The files below a folder. Sizes and names are checked.
    pub(super) fn of(folder: &str, files: &[(&str, &Bytes)], problems: &mut Vec<Problem>) -> Self {
        let mut checked = BTreeMap::new();
        if files.len() > limits::MAX_FILES {
            let message = format!(
                "The exercise has {} files; at most {} are taken",
                files.len(),
                limits::MAX_FILES
            );
            problems.push(Problem::error(
                "exercise-files-too-many",
                folder,
                0,
                message,
            ));
        }
        for (path, content) in files.iter().take(limits::MAX_FILES) {
            let file = format!("{folder}/{path}");
            if let Some(message) = too_large(content) {
                problems.push(Problem::error("exercise-file-too-large", &file, 0, message));
                continue;
            }
            match path.parse::<FilePath>() {
                Ok(path) => {
                    checked.insert(path, (*content).clone());
                }
                Err(error) => {
                    let message = error.to_string();
                    problems.push(Problem::error("exercise-file-name", &file, 0, message));
                }
            }
        }
        Self {
            folder: folder.to_owned(),
            contents: checked,
            used: RefCell::default(),
        }
    }

    pub(super) fn digest(&self) -> Digest {
        let files = self.contents.iter();
        bundle_digest(files.map(|(path, content)| (path, Digest::of(content))))
    }

    pub(super) fn content(&self, path: &str) -> Option<&Bytes> {
        let (path, content) = self.contents.get_key_value(path)?;
        self.used.borrow_mut().insert(path.clone());
        Some(content)
    }

    /// The text of a file; or the end of a rule's name, and why there is none.
    pub(super) fn text(&self, path: &str) -> Result<String, (&'static str, String)> {
        let missing = || {
            (
                "missing",
                format!("There is no file `{path}` in `{}`", self.folder),
            )
        };
        let content = self.content(path).ok_or_else(missing)?;
        let text = String::from_utf8(content.to_vec());
        let text = text.ok().filter(|text| !text.contains('\0'));
        text.ok_or_else(|| ("invalid", format!("`{path}` is not UTF-8 text")))
    }

    /// Files below a folder, by their paths in it.
    pub(super) fn below(&self, folder: &str) -> BTreeMap<String, Bytes> {
        let folder = folder.trim_end_matches('/');
        let mut used = self.used.borrow_mut();
        let files = self.contents.iter();
        files
            .filter_map(|(path, content)| {
                let inside = path.as_str().strip_prefix(folder)?.strip_prefix('/')?;
                used.insert(path.clone());
                Some((inside.to_owned(), content.clone()))
            })
            .collect()
    }

    /// `starter.js`, or the folder `starter`.
    pub(super) fn given(&self, name: &str) -> Result<Given, (&'static str, String)> {
        let mut found: Vec<Given> = Vec::new();
        for ending in ENDINGS {
            let path = format!("{name}.{ending}");
            if self.contents.contains_key(path.as_str()) {
                found.push(Given {
                    files: BTreeMap::from([(path.clone(), self.text(&path)?)]),
                    ending: Some(ending),
                });
            }
        }
        let below = self.below(name);
        if !below.is_empty() {
            let text = |path: &String| self.text(&format!("{name}/{path}"));
            let files: Result<_, _> = below.keys().map(|p| Ok((p.clone(), text(p)?))).collect();
            found.push(Given {
                files: files?,
                ending: None,
            });
        }
        match (found.pop(), found.is_empty()) {
            (Some(given), true) => Ok(given),
            (Some(_), false) => Err((
                "ambiguous",
                format!("There is more than one `{name}`; one file or one folder is taken"),
            )),
            (None, _) => Err((
                "missing",
                format!(
                    "There is no `{name}`: a file with one of the endings {}, or a folder",
                    ENDINGS.join(", ")
                ),
            )),
        }
    }

    /// Skills in the folders below a folder.
    pub(super) fn fixtures(&self, folder: &str) -> Fixtures {
        let mut fixtures = Fixtures::new();
        for (path, content) in self.below(folder) {
            if let Some((skill, path)) = path.split_once('/')
                && let Ok(path) = path.parse::<FilePath>()
            {
                let files = fixtures.entry(skill.to_owned()).or_default();
                files.insert(path, content);
            }
        }
        fixtures
    }

    /// Files that nothing asked for.
    pub(super) fn unused(&self) -> Vec<Problem> {
        let used = self.used.borrow();
        let unused = self.contents.keys().filter(|path| !used.contains(*path));
        unused
            .map(|path| {
                let file = format!("{}/{path}", self.folder);
                let message = "Nothing uses this file";
                Problem::warning("exercise-file-unused", &file, 0, message)
            })
            .collect()
    }
}

impl Given {
    /// Turns it into a solution; a single text gets this name.
    pub(super) fn solution(self, name: &str) -> Solution {
        let mut files = self.files;
        if self.ending.is_some() {
            let texts = files.into_values();
            files = texts.map(|text| (name.to_owned(), text)).collect();
        }
        Solution { files }
    }
}
