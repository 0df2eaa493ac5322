//! Decides whether a folder may be analyzed: it has to lie below one of the roots that
//! the operator named.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::text::shown;

/// Resolves the folder at a path, if it is one of the roots or
/// below one.
///
/// Links are followed first and the result is compared, so neither `..` nor a
/// link leads out. A path that is not absolute is taken from the first root. A
/// root that does not exist allows nothing.
///
/// Only below a root does the answer tell whether something exists: outside of all of them
/// it is the same for paths that exist and paths that do not.
///
/// # Errors
/// There are no roots; the path does not exist, is no folder, or is outside.
pub fn below(roots: &[PathBuf], path: &Path) -> Result<PathBuf, Error> {
    let asked = || shown(&path.to_string_lossy());
    let first = roots.first().ok_or(Error::NoRoots)?;
    let full = first.join(path);
    // Roots may be links themselves. Both sides are resolved, or no path would be below such a
    // root.
    let real_roots: Vec<PathBuf> = roots
        .iter()
        .filter_map(|root| root.canonicalize().ok())
        .collect();
    let inside = |path: &Path| real_roots.iter().any(|root| path.starts_with(root));
    let real = full.canonicalize().map_err(|error| {
        // A path that does not exist cannot be resolved. Its nearest parent can, and a link on the
        // way may lead out of the root.
        if !nearest(&full).is_some_and(|parent| inside(&parent)) {
            return Error::NotBelowRoot { path: asked() };
        }
        match error.kind() {
            ErrorKind::NotFound => Error::NotFound { path: asked() },
            ErrorKind::NotADirectory => Error::NotADirectory { path: asked() },
            _ => Error::Unreadable {
                path: asked(),
                reason: error.to_string(),
            },
        }
    })?;
    if !inside(&real) {
        return Err(Error::NotBelowRoot { path: asked() });
    }
    if !real.is_dir() {
        return Err(Error::NotADirectory { path: asked() });
    }
    Ok(real)
}

/// Resolves the nearest parent that exists.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .skip(1)
        .find_map(|parent| parent.canonicalize().ok())
}
