//! Paths and solutions on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use repertoire_courses::{Exercise, Solution, Verdict};

/// The files below a folder, by their paths in it.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Bytes> {
    let entries = walkdir::WalkDir::new(folder).into_iter();
    let entries = entries.map(|entry| entry.expect("an entry"));
    entries
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let path = entry.path().strip_prefix(folder).expect("below it");
            let path = path.to_str().expect("UTF-8").replace('\\', "/");
            (path, fs::read(entry.path()).expect("a file").into())
        })
        .collect()
}

/// The folders in a folder, by name.
pub(crate) fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The name of a file or folder.
pub(crate) fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_str().expect("UTF-8").to_owned()
}

/// A solution whose verdict is known.
pub(crate) struct Known {
    /// Its file or folder.
    pub(crate) name: String,
    /// What its name says.
    pub(crate) verdict: Option<Verdict>,
    /// What it is.
    pub(crate) solution: Solution,
}

/// The solutions of an exercise in `tests/learning/solutions`.
pub(crate) fn known(root: &Path, exercise: &Exercise) -> Vec<Known> {
    let folder = root.join(&exercise.id);
    let Ok(entries) = fs::read_dir(&folder) else {
        return Vec::new();
    };
    let mut known: Vec<Known> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = name(&path);
            let word = name.split(['-', '.']).next().unwrap_or_default();
            Known {
                verdict: match word {
                    "right" => Some(Verdict::Pass),
                    "wrong" | "cheat" => Some(Verdict::Fail),
                    "error" => Some(Verdict::Error),
                    "pending" => Some(Verdict::Pending),
                    _ => None,
                },
                solution: solution(&path, exercise),
                name,
            }
        })
        .collect();
    known.sort_by(|a, b| a.name.cmp(&b.name));
    known
}

fn solution(path: &Path, exercise: &Exercise) -> Solution {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    if path.is_dir() {
        let files = files(path);
        let files = files
            .iter()
            .map(|(path, bytes)| (path.clone(), text(bytes)));
        return Solution {
            files: files.collect(),
        };
    }
    let content = fs::read(path).expect("a file");
    exercise.one_text(text(&content.into()))
}
