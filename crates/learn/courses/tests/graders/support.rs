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
    /// What it must get.
    pub(crate) verdict: Verdict,
    /// What it is.
    pub(crate) solution: Solution,
}

/// The solutions of an exercise in `tests/learning/solutions`.
pub(crate) fn known(exercise: &Exercise) -> Vec<Known> {
    let known = testing::known_solutions(&exercise.id).into_iter();
    let known = known.map(|mut known| Known {
        name: known.name,
        verdict: serde_json::from_value(known.verdict.into()).expect("a verdict"),
        solution: match known.files.remove("") {
            Some(text) => exercise.one_text(text),
            None => Solution { files: known.files },
        },
    });
    known.collect()
}
