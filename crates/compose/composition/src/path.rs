//! Patterns of paths, in which `**` is any number of folders and `*` does not
//! cross a slash.
//!
//! A path that hosts read in different ways is not compared at all.

use unicode_normalization::UnicodeNormalization as _;

use super::glob;
use super::pattern::Answer;
use super::uncertainty::{Uncertainty, shown};
use model::is_ignorable;

/// Where a path begins: what begins elsewhere cannot be compared.
fn anchor(path: &str) -> Option<char> {
    path.chars()
        .next()
        .filter(|first| matches!(first, '/' | '~'))
}

/// A path without a leading `./`, if every host reads it the same way.
pub(super) fn plain(path: &str) -> Result<&str, Uncertainty> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let below = path.strip_prefix('/').unwrap_or(path);
    let begins_unusual = if path.starts_with(['$', '%']) {
        Some("a variable")
    } else if path.starts_with('~') && !path.starts_with("~/") {
        Some("a `~` that is not one's own")
    } else {
        None
    };
    let is_escape = |(at, _): (usize, &str)| {
        let digits = path.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let unusual = begins_unusual
        .or_else(|| path.chars().find_map(invalid_letter))
        .or_else(|| below.split('/').find_map(invalid_part))
        .or_else(|| {
            path.match_indices('%')
                .any(is_escape)
                .then_some("a `%` escape")
        });
    match unusual {
        Some(unusual) => Err(Uncertainty::Path(unusual)),
        None => Ok(path),
    }
}

fn invalid_letter(letter: char) -> Option<&'static str> {
    match letter {
        '\\' => Some("a backslash"),
        ':' => Some("a colon"),
        letter if letter.is_control() || is_ignorable(letter) => Some("an invisible character"),
        _ => None,
    }
}

fn invalid_part(part: &str) -> Option<&'static str> {
    match part {
        "" => Some("an empty part"),
        "." | ".." => Some("a part `.` or `..`"),
        part if part.ends_with(['.', ' ']) => Some("a part that ends with a dot or a space"),
        part if part.starts_with(' ') => Some("a part that begins with a space"),
        _ => None,
    }
}

/// The pattern of a path as it is compared; none where it cannot be read.
pub(super) fn pattern(written: &str) -> Option<Box<str>> {
    let path = written.strip_prefix("./").unwrap_or(written);
    // Two slashes are how some hosts write an absolute path.
    let path = path
        .strip_prefix('/')
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(path);
    // A folder means all that is in it.
    let below = if path.ends_with('/') { "**" } else { "" };
    let path = [path, below].concat();
    // Some hosts take these for wildcards, and some for letters. A pattern that means less than
    // it seems to would forbid too little.
    let is_readable = !path.contains(['?', '[', ']', '{', '}']) && !path.starts_with('!');
    (is_readable && plain(&path).is_ok()).then(|| path.into())
}

/// The least text pattern, in which `*` crosses slashes, that takes all of it.
fn widened(path: &str) -> String {
    // `a/**/b` covers `a/b`, too: the slash goes with the folders that are not there.
    stars_joined(&path.replace("**/", "**"))
}

fn stars_joined(path: &str) -> String {
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
        && glob::covers(&stars_joined(wide), &widened(narrow))
}

pub(super) fn overlap(a: &str, b: &str) -> Answer {
    if a == b || covers(a, b) || covers(b, a) {
        Answer::Yes
    } else if anchor(a) != anchor(b) {
        Answer::Undecided
    } else if !glob::overlaps(&widened(a), &widened(b)) {
        Answer::No
    } else if [a, b]
        .iter()
        .any(|path| is_narrow(path) || path.contains("**/"))
    {
        Answer::Undecided
    } else {
        Answer::Yes
    }
}

/// The path matches the pattern.
pub(super) fn matches(pattern: &str, path: &str) -> Result<bool, Uncertainty> {
    let path = plain(path)?;
    if compared(pattern, path)? {
        return Ok(true);
    }
    // Some file systems fold case, and all of them compose letters differently.
    let folds = |text: &str| !text.is_ascii() || text.bytes().any(|b| b.is_ascii_uppercase());
    if (folds(pattern) || folds(path)) && compared(&folded(pattern), &folded(path))? {
        return Err(Uncertainty::PathCase(shown(path)));
    }
    Ok(false)
}

fn folded(text: &str) -> String {
    let folded: String = text.nfkd().flat_map(char::to_lowercase).collect();
    // Lower case letters may come apart once more.
    folded.nfkd().filter(|c| !is_ignorable(*c)).collect()
}

fn compared(pattern: &str, path: &str) -> Result<bool, Uncertainty> {
    // Hosts do not agree on `a**`: for some it crosses slashes, for some it is `a*`. So it is
    // only decided where even the wider reading does not match.
    let is_mixed = |part: &str| part.contains("**") && part != "**";
    if pattern.split('/').any(is_mixed) {
        return if anchor(pattern) == anchor(path) && !glob::matches(&widened(pattern), path) {
            Ok(false)
        } else {
            Err(Uncertainty::PathStars(shown(pattern)))
        };
    }
    let (parts, path_parts): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').collect(), path.split('/').collect());
    match (anchor(pattern), anchor(path)) {
        (mine, theirs) if mine == theirs => Ok(fits(&parts, &path_parts)),
        // Nobody knows where a relative pattern begins. But where it fits no end of the path, it
        // fits from no folder.
        (mine, Some('/')) => {
            let mut end = vec!["**"];
            end.extend(parts.iter().skip(usize::from(mine == Some('~'))));
            if fits(&end, &path_parts) {
                Err(Uncertainty::RelativePath(shown(pattern)))
            } else {
                Ok(false)
            }
        }
        _ => Err(Uncertainty::RelativePath(shown(path))),
    }
}

/// Compares part by part, and goes back to the last `**` as `glob` does to the last `*`.
fn fits<'a>(mut pattern: &'a [&'a str], mut path: &'a [&'a str]) -> bool {
    let mut retry: Option<(&[&str], &[&str])> = None;
    loop {
        match (pattern, path) {
            ([], []) => return true,
            // At the end it means something in the folder, not the folder itself.
            (["**"], rest) => return !rest.is_empty(),
            (["**", rest @ ..], _) => {
                pattern = rest;
                retry = Some((rest, path));
                continue;
            }
            ([glob, rest @ ..], [part, after @ ..]) if glob::matches(glob, part) => {
                (pattern, path) = (rest, after);
                continue;
            }
            _ => {}
        }
        let Some((begin, [_, skipped @ ..])) = retry else {
            return false;
        };
        (pattern, path) = (begin, skipped);
        retry = Some((begin, skipped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_parts_and_two_are_any_number_of_them() {
        for (pattern, path, found) in [
            ("/tmp/**", "/tmp/a", true),
            ("/tmp/**", "/tmp/a/b", true),
            ("/tmp/**", "/tmp", false),
            ("/tmp/*", "/tmp/a", true),
            ("/tmp/*", "/tmp/a/b", false),
            ("/a/**/b", "/a/b", true),
            ("/a/**/b", "/a/x/y/b", true),
            ("/a/**/b/*.c", "/a/b/x/b/y.c", true),
            ("/a/**/b", "/a/bb", false),
            ("**/.env", ".env", true),
            ("**/.env", "a/b/.env", true),
            ("**/.env", "a/x.env", false),
            ("src/a", "./src/a", true),
            ("~/.ssh/**", "~/.ssh/id", true),
            ("~/.ssh/**", "/tmp/x", false),
            ("secrets/**", "/home/me/other", false),
        ] {
            assert_eq!(matches(pattern, path), Ok(found), "{pattern} {path}");
        }
    }

    #[test]
    fn a_path_that_hosts_read_differently_is_a_doubt() {
        for path in [
            "//etc/passwd",
            "/./etc/passwd",
            "/etc/./passwd",
            "/etc//passwd",
            "/etc/",
            "/tmp/../etc/passwd",
            "..",
            "/tmp/..\\..\\etc",
            "C:/etc/passwd",
            "C:\\etc",
            "/etc/passwd::$DATA",
            "file:///etc/passwd",
            "/etc/passwd.",
            "/etc /passwd",
            "/etc/passwd ",
            " /etc/passwd",
            "/etc/pass\u{0}wd",
            "/etc/pass\u{200d}wd",
            "/etc/pass\nwd",
            "/%65tc/passwd",
            "%USERPROFILE%/x",
            "$HOME/x",
            "~root/x",
            "",
        ] {
            assert!(matches("/etc/**", path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn case_and_composed_letters_are_a_doubt_and_no_way_out() {
        for (pattern, path) in [
            ("/etc/**", "/ETC/passwd"),
            ("/Users/me/**", "/users/me/x"),
            ("/caf\u{e9}/*", "/cafe\u{301}/x"),
            ("/K/*", "/\u{212a}/x"),
        ] {
            let doubt = matches(pattern, path);
            assert!(
                matches!(doubt, Err(Uncertainty::PathCase(_))),
                "{doubt:?} {path}"
            );
        }
        assert_eq!(matches("/etc/**", "/Users/x"), Ok(false));
    }

    #[test]
    fn what_begins_elsewhere_is_a_doubt_unless_the_end_does_not_fit() {
        for (pattern, path) in [
            ("/etc/**", "passwd"),
            ("~/.ssh/**", "/home/me/.ssh/id"),
            ("**/.env", "/.env"),
            ("secrets/**", "/secrets/x"),
            ("/home/**", "~/x"),
        ] {
            let doubt = matches(pattern, path);
            assert!(
                matches!(doubt, Err(Uncertainty::RelativePath(_))),
                "{doubt:?} {path}"
            );
        }
    }

    #[test]
    fn patterns_that_hosts_read_differently_are_no_patterns() {
        for (written, read) in [
            ("./src/", Some("src/**")),
            ("//tmp/**", Some("/tmp/**")),
            ("/etc/passw?", None),
            ("/etc/[p]asswd", None),
            ("/{etc,var}/**", None),
            ("!/etc/**", None),
            ("C:\\secrets\\**", None),
            ("../x/**", None),
        ] {
            assert_eq!(pattern(written).as_deref(), read, "{written}");
        }
    }

    #[test]
    fn an_escape_is_a_doubt_wherever_it_stands() {
        for path in ["a%41", "abcd%41/x", "x/%2e%2e/y"] {
            assert_eq!(
                plain(path),
                Err(Uncertainty::Path("a `%` escape")),
                "{path}"
            );
        }
        for path in ["100%", "a%4", "a%zz", "50%/of"] {
            assert_eq!(plain(path), Ok(path));
        }
    }

    #[test]
    fn patterns_with_other_anchors_may_overlap_and_with_the_same_do_or_do_not() {
        for (a, b, answer) in [
            ("src/a/**", "src/b/**", Answer::No),
            ("src/**", "src/b/**", Answer::Yes),
            ("src/a*", "src/*b", Answer::Undecided),
            ("/etc/**", "src/**", Answer::Undecided),
            ("~/x/**", "/home/**", Answer::Undecided),
        ] {
            assert_eq!(overlap(a, b), answer, "{a} {b}");
        }
    }
}
