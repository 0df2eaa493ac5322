//! Mends the SKILL.md of a folder, where there is one way to do it.

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

/// Mends the SKILL.md of a folder and says what was mended. What is no regular file, or no
/// text, is left alone. The file is replaced as a whole.
///
/// # Errors
/// A file cannot be read or replaced; what it was is still there.
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
    let mut mended = Vec::new();
    if let Some(fixed) = skill_md::fix(&text, &options) {
        replace(&path, &fixed.text).map_err(|error| failed(&path, error))?;
        mended = fixed.problems;
    }
    if path != standard {
        fs::rename(&path, &standard).map_err(|error| failed(&path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("`{name}` is spelled `SKILL.md` in the standard");
        mended.push(Problem::warning("skill-md-case", &name, 0, message));
    }
    Ok(mended)
}

/// The file that holds the instructions: `SKILL.md`, else what is spelled nearly so.
fn entry(folder: &Path) -> Result<Option<PathBuf>, FixError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let entry = entry.map_err(|error| failed(folder, error))?;
        let name = entry.file_name();
        let kind = entry.file_type().map_err(|error| failed(folder, error))?;
        if !kind.is_file() && name == FilePath::SKILL_MD {
            // Another file would take its place.
            return Ok(None);
        }
        if kind.is_file() && name.eq_ignore_ascii_case(FilePath::SKILL_MD) {
            found.push(entry.path());
        }
    }
    found.sort();
    let exact = found
        .iter()
        .position(|path| path.ends_with(FilePath::SKILL_MD));
    Ok(match exact {
        Some(at) => found.into_iter().nth(at),
        None => found.into_iter().next(),
    })
}

/// Writes a file beside another one, and puts it into its place.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_file_name(format!(".SKILL.md.{}", std::process::id()));
    let written = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().inspect_err(|_| {
        // What is left is beside the skill, and no part of it.
        let _gone = fs::remove_file(&new);
    })
}
