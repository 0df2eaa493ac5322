//! Whether a folder may be looked at: it has to lie below one of the roots that
//! the operator named.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::text::shown;

/// The folder at a path, without symbolic links, if it is one of the roots or
/// below one.
///
/// Links are followed first and the result is compared, so neither `..` nor a
/// link leads out. A path that is not absolute is taken from the first root. A
/// root that does not exist allows nothing.
///
/// Whether something exists is only said below a root: outside of all of them
/// the answer is the same for what is there and what is not.
///
/// # Errors
/// There are no roots; the path does not exist, is no folder, or is outside.
pub fn below(roots: &[PathBuf], path: &Path) -> Result<PathBuf, Error> {
    let asked = || shown(&path.to_string_lossy());
    let first = roots.first().ok_or(Error::NoRoots)?;
    let full = first.join(path);
    let real_roots: Vec<PathBuf> = roots
        .iter()
        .filter_map(|root| root.canonicalize().ok())
        .collect();
    let inside = |path: &Path| real_roots.iter().any(|root| path.starts_with(root));
    let real = full.canonicalize().map_err(|error| {
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

/// The nearest parent that is there, without symbolic links.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .skip(1)
        .find_map(|parent| parent.canonicalize().ok())
}
