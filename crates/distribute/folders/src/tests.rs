//! Skills in folders are read, mended and scanned as a whole, and nobody else's files are
//! touched.

mod drafts;
mod fixing;
mod scanning;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let place = TempDir::new().expect("a folder");
    for (path, text) in files {
        write(place.path(), path, text);
    }
    place
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

/// A SKILL.md without a fault.
fn skill(name: &str, step: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n\n# {name}\n\n{step}\n")
}

/// The names of what is in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).expect("a folder");
    let all = all.map(|entry| entry.expect("an entry").file_name());
    let mut all: Vec<String> = all
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}
