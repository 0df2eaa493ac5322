//! Fixes the SKILL.md of a folder, where there is one way to do it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use model::{FilePath, Problem};
use skill_md::ReadOptions;

/// A file of a folder cannot be read or replaced.
#[derive(Debug, thiserror::Error)]
#[error("cannot fix `{}`: {cause}", path.display())]
pub struct FixError {
    /// The file, or the folder.
    pub path: PathBuf,
    /// Why.
    pub cause: std::io::Error,
}

fn failed(path: &Path, cause: std::io::Error) -> FixError {
    FixError {
        path: path.to_owned(),
        cause,
    }
}

/// Fixes the SKILL.md of a folder and returns what was fixed. A file that is not regular, or no
/// text, is left alone. The file is replaced as a whole.
///
/// # Errors
/// A file cannot be read or replaced; it is as it was.
pub fn fix(folder: &Path) -> Result<Vec<Problem>, FixError> {
    let Some(path) = entry(folder)? else {
        return Ok(Vec::new());
    };
    let standard = path.with_file_name(FilePath::SKILL_MD);
    let bytes = fs::read(&path).map_err(|error| failed(&path, error))?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(Vec::new());
    };
    let name = skill_folder::name(folder);
    let options = ReadOptions {
        folder: Some(&name),
        ..ReadOptions::default()
    };
    let mut fixes = Vec::new();
    if let Some(fixed) = skill_md::fix(&text, &options) {
        replace(&path, &fixed.text).map_err(|error| failed(&path, error))?;
        fixes = fixed.problems;
    }
    if path != standard {
        fs::rename(&path, &standard).map_err(|error| failed(&path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("`{name}` is spelled `SKILL.md` in the standard");
        fixes.push(Problem::warning("skill-md-case", &name, 0, message));
    }
    Ok(fixes)
}

/// The file with the instructions: `SKILL.md`, else one with other letter case.
fn entry(folder: &Path) -> Result<Option<PathBuf>, FixError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let entry = entry.map_err(|error| failed(folder, error))?;
        let name = entry.file_name();
        let kind = entry.file_type().map_err(|error| failed(folder, error))?;
        if !kind.is_file() && name == FilePath::SKILL_MD {
            // Such as a link: the rename in `fix` would replace it by a file.
            return Ok(None);
        }
        if kind.is_file() && name.eq_ignore_ascii_case(FilePath::SKILL_MD) {
            found.push(entry.path());
        }
    }
    // The exact one first; of the others always the same.
    found.sort_by_key(|path| (!path.ends_with(FilePath::SKILL_MD), path.clone()));
    Ok(found.into_iter().next())
}

/// Replaces a file by a new one, which is written next to it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_file_name(format!(".SKILL.md.{}", std::process::id()));
    let written = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
        // Before the text: a private file is at no moment readable by others.
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().inspect_err(|_| {
        // If that fails too, the file that is left is hidden, and no part of the skill.
        let _gone = fs::remove_file(&new);
    })
}
