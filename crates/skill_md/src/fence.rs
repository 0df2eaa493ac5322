//! Finds the front matter between its two fences.
//!
//! A fence is a line of its own, `---`. The text is split on lines and never on
//! substrings, since `---` occurs inside values too.

use super::findings::{Fault, shown};

/// Bytes of front matter that are read. The largest seen in 37,000 skills has
/// 9 KB.
pub(super) const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;

/// A text whose front matter was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fenced<'a> {
    /// What is between the fences; its first line is line 2 of the file.
    pub(super) front: &'a str,
    /// Line of the closing fence.
    pub(super) close_line: usize,
    /// What comes after the closing fence's line.
    pub(super) body: &'a str,
}

/// Line of the file on which front matter begins.
pub(super) const FRONT_LINE: usize = 2;

/// Splits a text that begins with front matter. A byte order mark is skipped.
pub(super) fn split(text: &str) -> Result<Fenced<'_>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let opening = lines.next().unwrap_or_default();
    if !is_fence(opening) {
        return Err(missing(text));
    }
    let start = opening.len();
    let mut end = start;
    for (index, line) in lines.enumerate() {
        if is_fence(line) {
            let fenced = Fenced {
                front: text.get(start..end).unwrap_or_default(),
                close_line: index + FRONT_LINE,
                body: text.get(end + line.len()..).unwrap_or_default(),
            };
            return within_limit(fenced);
        }
        end += line.len();
    }
    Err(Fault::new(
        "front-matter-unclosed",
        1,
        "The front matter that begins on line 1 is never closed; end it with a line `---`",
    ))
}

fn within_limit(fenced: Fenced<'_>) -> Result<Fenced<'_>, Fault> {
    let bytes = fenced.front.len();
    if bytes > MAX_FRONT_MATTER_BYTES {
        return Err(Fault::new(
            "front-matter-too-large",
            1,
            format!(
                "The front matter has {bytes} bytes; at most {MAX_FRONT_MATTER_BYTES} are read"
            ),
        ));
    }
    Ok(fenced)
}

fn is_fence(line: &str) -> bool {
    line.trim_end_matches([' ', '\t', '\r', '\n']) == "---"
}

/// Why there is no front matter, as exactly as can be told.
fn missing(text: &str) -> Fault {
    const RULE: &str = "front-matter-missing";
    let mut before = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is_fence(line.trim_start_matches([' ', '\t'])) {
            let line_number = index + 1;
            return match obstacle(text.get(..before).unwrap_or_default()) {
                Some(_) if index == 0 => Fault::new(
                    RULE,
                    1,
                    "Line 1 has spaces before `---`; a fence begins at the edge",
                ),
                Some(what) => Fault::new(
                    RULE,
                    line_number,
                    format!(
                        "The front matter begins on line {line_number}, after {what}; it must \
                         begin on line 1"
                    ),
                ),
                None => not_begun(text),
            };
        }
        before += line.len();
    }
    not_begun(text)
}

fn not_begun(text: &str) -> Fault {
    let first = text.lines().next().unwrap_or_default();
    let message = if text.trim().is_empty() {
        "The file is empty; it must begin with front matter between two lines `---`".to_owned()
    } else {
        format!(
            "There is no front matter: line 1 is `{}`, not `---`",
            shown(first.trim_end())
        )
    };
    Fault::new("front-matter-missing", 1, message)
}

/// What stands before a fence, where that is something people put there by
/// mistake. A `---` below a heading or prose is a rule, not a fence.
fn obstacle(before: &str) -> Option<&'static str> {
    let before = before.trim();
    if before.is_empty() {
        Some("blank lines")
    } else if before.starts_with("<!--") && before.ends_with("-->") {
        Some("an HTML comment")
    } else if (before.starts_with("```") || before.starts_with("~~~")) && !before.contains('\n') {
        Some("a code fence")
    } else {
        None
    }
}
