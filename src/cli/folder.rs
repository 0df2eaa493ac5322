//! Folders on disk as bundles: finding skills and reading their files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use walkdir::{DirEntry, WalkDir};

use crate::model::{FilePath, MAX_FILES, MAX_SKILL_BYTES, Problem};

/// Folders that never belong to a skill.
const SKIPPED: [&str; 3] = [".git", "node_modules", "__pycache__"];
/// Deeper folders are not looked into.
const MAX_DEPTH: usize = 40;

/// Files of a folder, and what was odd about them.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) files: BTreeMap<FilePath, Bytes>,
    pub(super) problems: Vec<Problem>,
}

fn is_skill_md(name: &std::ffi::OsStr) -> bool {
    name.eq_ignore_ascii_case("skill.md")
}

fn wanted(entry: &DirEntry) -> bool {
    let skipped =
        entry.file_type().is_dir() && SKIPPED.iter().any(|name| entry.file_name() == *name);
    entry.depth() == 0 || !skipped
}

/// Folders below `root` that hold a SKILL.md, the shortest path first. A skill
/// inside a skill is one of its own as well.
///
/// Links are not followed.
pub(super) fn find(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in WalkDir::new(root)
        .max_depth(MAX_DEPTH)
        .into_iter()
        .filter_entry(wanted)
    {
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.file_type().is_file()
            && is_skill_md(entry.file_name())
            && let Some(folder) = entry.path().parent()
        {
            found.push(folder.to_owned());
        }
    }
    found.sort_by(|a, b| (a.components().count(), a).cmp(&(b.components().count(), b)));
    found.dedup();
    Ok(found)
}

/// Reads all files of a skill's folder, up to the limits of a skill.
pub(super) fn read(folder: &Path) -> Result<Read, Problem> {
    let mut read = Read::default();
    let mut total = 0_u64;
    let walk = WalkDir::new(folder)
        .max_depth(MAX_DEPTH)
        .sort_by_file_name();
    for entry in walk.into_iter().filter_entry(wanted) {
        let entry =
            entry.map_err(|error| Problem::error("file-unreadable", "", 0, error.to_string()))?;
        let shown = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let name = shown
            .display()
            .to_string()
            .replace(std::path::MAIN_SEPARATOR, "/");
        if entry.file_type().is_dir() {
            continue;
        }
        if !entry.file_type().is_file() {
            let message = "it is a link or a special file, and was left out";
            read.problems
                .push(Problem::warning("file-not-regular", &name, 0, message));
            continue;
        }
        let path: FilePath = match shown.to_str() {
            None => {
                return Err(Problem::error(
                    "path-invalid",
                    &name,
                    0,
                    "its name is not UTF-8",
                ));
            }
            Some(_) => name.parse().map_err(|error: crate::model::FilePathError| {
                Problem::error("path-invalid", &name, 0, error.to_string())
            })?,
        };
        let unreadable = |error: &dyn std::fmt::Display| {
            Problem::error("file-unreadable", &name, 0, error.to_string())
        };
        let size = entry.metadata().map_err(|error| unreadable(&error))?.len();
        total += size;
        if total > MAX_SKILL_BYTES {
            return Err(Problem::error(
                "skill-too-large",
                &name,
                0,
                format!(
                    "with this file the skill has more than {} MiB",
                    MAX_SKILL_BYTES >> 20
                ),
            ));
        }
        if read.files.len() == MAX_FILES {
            return Err(Problem::error(
                "too-many-files",
                &name,
                0,
                format!("with this file the skill has more than {MAX_FILES} files"),
            ));
        }
        let content = fs::read(entry.path()).map_err(|error| unreadable(&error))?;
        read.files.insert(path, content.into());
    }
    Ok(read)
}

/// Name of a folder, also of `.`.
pub(super) fn name(folder: &Path) -> String {
    let absolute = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    absolute
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
