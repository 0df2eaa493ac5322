//! Scans a folder as an agent finds it: every file, whatever `.gitignore` says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use trust::{Input, Report, Scanner};

/// Bytes that the files of a skill may have. More is an error: a scan of a part would pass what the
/// rest hides.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Files that a skill may have.
const MAX_FILES: usize = 50_000;

fn failed(path: &Path, cause: impl std::fmt::Display) -> String {
    format!("cannot read `{}`: {cause}", path.display())
}

/// The folders that hold a SKILL.md, without those inside of others.
///
/// # Errors
/// A folder cannot be read, or there is none.
pub fn outermost(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> = Vec::new();
    let walk = WalkDir::new(root).sort_by_file_name();
    for entry in walk {
        let entry = entry.map_err(|error| failed(root, error))?;
        let name = entry.file_name().to_string_lossy();
        if !entry.file_type().is_file() || !name.eq_ignore_ascii_case("SKILL.md") {
            continue;
        }
        let folder = entry.path().parent().unwrap_or(root);
        if !found.iter().any(|outer| folder.starts_with(outer)) {
            // The walk may list a folder before the SKILL.md next to it.
            found.retain(|inner| !inner.starts_with(folder));
            found.push(folder.to_owned());
        }
    }
    if found.is_empty() {
        return Err(failed(root, "no SKILL.md is in it or below it"));
    }
    Ok(found)
}

fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let (mut files, mut total) = (BTreeMap::new(), 0);
    for entry in WalkDir::new(folder) {
        let entry = entry.map_err(|error| failed(folder, error))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let size = entry
            .metadata()
            .map_err(|error| failed(entry.path(), error))?;
        total += size.len();
        if total > MAX_BYTES || files.len() == MAX_FILES {
            let message = format!("it has more than {MAX_FILES} files or {MAX_BYTES} bytes");
            return Err(failed(folder, message));
        }
        let content = std::fs::read(entry.path()).map_err(|error| failed(entry.path(), error))?;
        let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        files.insert(path.to_string_lossy().replace('\\', "/"), content);
    }
    Ok(files)
}

/// Scans a folder: every file, also those that would not be published, since an agent has them all.
///
/// # Errors
/// A file cannot be read, or there is more than a scan takes.
pub fn scan(folder: &Path) -> Result<Report, String> {
    Ok(report(folder, &read(folder)?))
}

fn report(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Report {
    let is_entry = |path: &&str| path.eq_ignore_ascii_case("SKILL.md");
    let entry = files.keys().map(String::as_str).find(is_entry);
    let text = entry.and_then(|path| files.get(path));
    // A SKILL.md that cannot be read is scanned as a file like any other.
    let skill = text.and_then(|text| {
        let files = BTreeMap::from([(model::FilePath::skill_md(), text.clone().into())]);
        skill_md::read(&files, &skill_md::ReadOptions::default()).skill
    });
    let name = skill.as_ref().map(|skill| skill.name.clone());
    let name = name.unwrap_or_else(|| super::name(folder));
    let allowed_tools = skill.map(|skill| skill.allowed_tools).unwrap_or_default();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_slice()))
        .collect();
    let known_names: &[&str] = &[];
    Scanner::bundled().scan(&Input {
        files: &files,
        name: &name,
        allowed_tools: &allowed_tools,
        known_names: &known_names,
    })
}
