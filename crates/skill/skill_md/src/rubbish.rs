//! Recognizes files and folders that are no part of a skill, by their names.

/// Folders that tools make.
const FOLDERS: [&str; 13] = [
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    "target",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".idea",
    "__MACOSX",
];
/// Files that systems and editors make.
const FILES: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];
/// Folders of version control; `.git` may be a file that points to one.
const REPOSITORIES: [&str; 3] = [".git", ".hg", ".svn"];

/// Tells whether tools, systems or editors make files or folders of such a name.
#[must_use]
pub fn is_rubbish(name: &str, is_folder: bool) -> bool {
    if is_folder {
        return FOLDERS.contains(&name);
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    FILES.contains(&name)
        || name.starts_with("._")
        || name.ends_with('~')
        || matches!(ending, "pyc" | "pyo" | "swp")
}

/// Tells whether a file or folder of such a name belongs to version control.
#[must_use]
pub fn is_repository(name: &str) -> bool {
    REPOSITORIES.contains(&name)
}
