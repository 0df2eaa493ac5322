//! Patterns of paths, in which `**` crosses slashes and `*` does not.

use super::glob;
use super::pattern::Answer;

/// Where a path begins: what begins elsewhere cannot be compared.
fn anchor(path: &str) -> Option<char> {
    path.chars()
        .next()
        .filter(|first| matches!(first, '/' | '~'))
}

/// `**` crosses slashes, `*` does not; here both become a `*` that does.
fn widened(path: &str) -> String {
    let mut wide = path.to_owned();
    while wide.contains("**") {
        wide = wide.replace("**", "*");
    }
    wide
}

/// A `*` that stops at slashes.
fn is_narrow(path: &str) -> bool {
    path.replace("**", "").contains('*')
}

pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    anchor(wide) == anchor(narrow)
        && !is_narrow(wide)
        && glob::covers(&widened(wide), &widened(narrow))
}

pub(super) fn overlap(a: &str, b: &str) -> Answer {
    if a == b || covers(a, b) || covers(b, a) {
        Answer::Yes
    } else if anchor(a) != anchor(b) {
        Answer::Undecided
    } else if !glob::overlaps(&widened(a), &widened(b)) {
        Answer::No
    } else if is_narrow(a) || is_narrow(b) {
        Answer::Undecided
    } else {
        Answer::Yes
    }
}

/// The path matches the pattern. Where one is absolute and the other is not, it
/// still does not where even the end of the path does not fit.
pub(super) fn matches(pattern: &str, path: &str) -> Answer {
    let wide = widened(pattern);
    if anchor(pattern) == anchor(path) {
        let (outer, narrow) = (glob::matches(&wide, path), is_narrow(pattern));
        return match (outer, narrow) {
            (false, _) => Answer::No,
            (true, false) => Answer::Yes,
            // Slashes decide; segment by segment is as far as `**` allows.
            (true, true) => segments(pattern, path),
        };
    }
    let end = wide.strip_prefix("~/").unwrap_or(&wide);
    if anchor(path) == Some('/') && anchor(pattern) != Some('/') {
        if glob::matches(&format!("*/{end}"), path) {
            return Answer::Undecided;
        }
        return Answer::No;
    }
    Answer::Undecided
}

fn segments(pattern: &str, path: &str) -> Answer {
    if pattern.contains("**") {
        return Answer::Undecided;
    }
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let fits = pattern.len() == path.len()
        && pattern
            .iter()
            .zip(&path)
            .all(|(glob, part)| glob::matches(glob, part));
    fits.into()
}
