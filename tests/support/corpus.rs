//! Folders with skills: the one of this project (`tests/corpus`), and the large one
//! that is not part of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Skills that were written for these tests.
pub fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Some 500 public skills beside the project. Where they are missing, the test that
/// asks is skipped.
pub fn public() -> Option<PathBuf> {
    public_at(Path::new(env!("CARGO_MANIFEST_DIR")))
}

/// The same, by the folder of the project.
pub fn public_at(root: &Path) -> Option<PathBuf> {
    let corpus = root.join("../shared/corpus");
    if corpus.join("EXPECT.tsv").is_file() {
        return Some(corpus);
    }
    testing::skip("there are no public skills at ../shared/corpus");
    None
}

/// Files below a folder that are no links, by path; what an import takes.
pub fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let is_kept = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_str().unwrap_or_default();
        !entry.file_type().is_dir() || !matches!(name, ".git" | "node_modules" | "__pycache__")
    };
    walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_entry(is_kept)
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let inside = entry.path().strip_prefix(folder).expect("below it");
            let inside = inside.to_str().expect("UTF-8").to_owned();
            (inside, entry.into_path())
        })
        .collect()
}

/// Folders with a SKILL.md.
pub fn skill_folders(corpus: &Path) -> Vec<PathBuf> {
    let files = files(corpus).into_values();
    let is_skill = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default();
        name.eq_ignore_ascii_case("SKILL.md")
    };
    let folders = files.filter(is_skill);
    folders
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .collect()
}

/// Rows of a table of ours: columns between tabs, `#` begins a comment.
pub fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(ours().join(name)).expect("a table");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').map(str::to_owned).collect())
        .collect()
}
