//! Finds the front matter between its two fences.
//!
//! A fence is a line of its own, `---`. The text is split on lines and never on
//! substrings, since `---` occurs inside values too.
//!
//! Many skills have their first fence below a comment, or lack the second one. What is
//! meant is clear, so it is read there, and reported.

use super::findings::{Fault, shown};
use super::layout::{self, Fence};
use super::outline::Unread;
use super::walk;

/// The most bytes of front matter. The largest seen in 37,000 skills has
/// 9 KB.
pub(super) const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;
/// The most bytes and lines above the front matter. Below more of them a person who
/// opens the file would not see it.
const MAX_ABOVE_BYTES: usize = 4 * 1024;
const MAX_ABOVE_LINES: usize = 64;

/// A text whose front matter was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fenced<'a> {
    /// The text between the fences.
    pub(super) front: &'a str,
    /// Its first line in the file.
    pub(super) first_line: usize,
    /// The line before the body: that of the closing fence.
    pub(super) close_line: usize,
    /// The text after the line of the closing fence.
    pub(super) body: &'a str,
    /// Deviations from the standard that were tolerated.
    pub(super) oddities: Vec<Fault>,
}

/// Splits a text whose front matter begins on line 1 and is closed. A byte order mark is
/// skipped.
pub(super) fn split(text: &str) -> Result<Fenced<'_>, Fault> {
    let fenced = find(text)?;
    match fenced.oddities.into_iter().next() {
        Some(oddity) => Err(oddity),
        None => Ok(Fenced {
            oddities: Vec::new(),
            ..fenced
        }),
    }
}

/// Finds front matter also below blank lines, HTML comments and the fence of a code block,
/// and where it is not closed.
pub(super) fn find(text: &str) -> Result<Fenced<'_>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let above = above(text)?;
    let mut oddities = Vec::new();
    let opening_line = above.lines + 1;
    if let Some(what) = above.what {
        oddities.push(Fault::new(
            "front-matter-not-first",
            opening_line,
            format!(
                "The front matter begins on line {opening_line}, after {what}; other readers \
                 take it on line 1 only"
            ),
        ));
    }
    let below = text.get(above.bytes..).unwrap_or_default();
    let opening = below.split_inclusive('\n').next().unwrap_or_default();
    let rest = below.get(opening.len()..).unwrap_or_default();
    let lines: Vec<&str> = rest.split_inclusive('\n').collect();
    let closing = lines.iter().position(|line| is_fence(line));
    let inside = lines.get(..closing.unwrap_or(lines.len()));
    let inside = inside.unwrap_or_default();
    let (length, is_closed) = match closing {
        Some(_) => match prose_in(inside) {
            Some(at) => (at, false),
            None => (inside.len(), true),
        },
        None => (unclosed(inside, opening_line)?, false),
    };
    if !is_closed {
        let last = opening_line + length;
        oddities.push(Fault::new(
            "front-matter-unclosed",
            opening_line,
            format!(
                "The front matter that begins on line {opening_line} is never closed; it was read \
                 up to line {last}. End it with a line `---`"
            ),
        ));
    }
    let of = |lines: Option<&[&str]>| {
        lines
            .unwrap_or_default()
            .iter()
            .map(|line| line.len())
            .sum()
    };
    let bytes: usize = of(inside.get(..length));
    let mut close = length;
    let fence = if closing.is_some() {
        Fence::Closed
    } else {
        Fence::Never
    };
    let is_end = |line: &&str| is_fence(line) || layout::is_nearly_fence(line, fence);
    if lines.get(close).is_some_and(is_end) {
        close += 1;
    }
    // The end of a code block around the front matter.
    if above.in_code && lines.get(close).is_some_and(|line| is_code_fence(line)) {
        close += 1;
    }
    let skipped: usize = of(lines.get(..close));
    within_limit(Fenced {
        front: rest.get(..bytes).unwrap_or_default(),
        first_line: opening_line + 1,
        close_line: opening_line + close,
        body: rest.get(skipped..).unwrap_or_default(),
        oddities,
    })
}

/// Finds where prose begins in front matter with a closing fence: that fence is a rule of the
/// text then.
fn prose_in(lines: &[&str]) -> Option<usize> {
    let at = layout::prose(lines, Fence::Closed)?;
    has_description(lines.get(..at)?).then_some(())?;
    // A text that is YAML as a whole has no prose in it.
    let whole = lines.concat();
    // Not parsed at this size, which nothing has limited yet.
    if whole.len() > MAX_FRONT_MATTER_BYTES {
        return Some(at);
    }
    matches!(walk::read(&whole, 1), Err(Unread::Unreadable { .. })).then_some(at)
}

/// Counts the lines of front matter that is never closed.
fn unclosed(lines: &[&str], opening_line: usize) -> Result<usize, Fault> {
    let length = layout::prose(lines, Fence::Never).unwrap_or(lines.len());
    // Without a description it may be any text below a rule, and would be read as keys.
    if lines.get(..length).is_some_and(has_description) {
        return Ok(length);
    }
    Err(Fault::new(
        "front-matter-unclosed",
        opening_line,
        format!(
            "The front matter that begins on line {opening_line} is never closed; end it with a \
             line `---`"
        ),
    ))
}

fn has_description(lines: &[&str]) -> bool {
    let mut keys = lines.iter().filter_map(|line| layout::key_of(line));
    keys.any(|(key, _)| layout::is_description(key))
}

fn within_limit(fenced: Fenced<'_>) -> Result<Fenced<'_>, Fault> {
    let bytes = fenced.front.len();
    if bytes > MAX_FRONT_MATTER_BYTES {
        return Err(Fault::new(
            "front-matter-too-large",
            fenced.first_line - 1,
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

fn is_code_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

/// The text above the first fence.
struct Above {
    bytes: usize,
    lines: usize,
    what: Option<&'static str>,
    in_code: bool,
}

/// Finds the first fence: on line 1, or below what people put there by mistake. A `---`
/// below a heading or prose is a rule, not a fence.
fn above(text: &str) -> Result<Above, Fault> {
    let mut found = Above {
        bytes: 0,
        lines: 0,
        what: None,
        in_code: false,
    };
    let mut in_comment = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let what = if in_comment || trimmed.starts_with("<!--") {
            in_comment = !trimmed.contains("-->");
            if !in_comment && !trimmed.ends_with("-->") {
                break; // Text follows it.
            }
            "an HTML comment"
        } else if is_fence(line) {
            return if found.bytes > MAX_ABOVE_BYTES || found.lines > MAX_ABOVE_LINES {
                Err(far_below(found.lines + 1))
            } else {
                Ok(found)
            };
        } else if trimmed.is_empty() {
            "blank lines"
        } else if is_code_fence(line) && !found.in_code {
            found.in_code = true;
            "a code fence"
        } else {
            break;
        };
        found.bytes += line.len();
        found.lines += 1;
        // Of several reasons a comment or a code fence is the one to name.
        if what != "blank lines" || found.what.is_none() {
            found.what = Some(what);
        }
    }
    Err(missing(text))
}

fn far_below(line: usize) -> Fault {
    Fault::new(
        "front-matter-missing",
        line,
        format!("The front matter begins on line {line}; it must begin on line 1"),
    )
}

/// Reports that there is no front matter, as precisely as possible.
fn missing(text: &str) -> Fault {
    let first = text.lines().next().unwrap_or_default();
    let message = if text.trim().is_empty() {
        "The file is empty; it must begin with front matter between two lines `---`".to_owned()
    } else if first.trim() == "---" {
        "Line 1 has spaces before `---`; a fence begins at the edge".to_owned()
    } else {
        format!(
            "There is no front matter: line 1 is `{}`, not `---`",
            shown(first.trim_end())
        )
    };
    Fault::new("front-matter-missing", 1, message)
}
