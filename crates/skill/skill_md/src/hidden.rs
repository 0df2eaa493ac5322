//! Reports invisible characters in front matter and in files.
//!
//! Front matter is in every list that a model reads, so what can only be meant
//! to deceive refuses the skill. Instructions and files are read on request,
//! and examples of attacks are a fair subject: there it is a warning.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::fence::Fenced;
use super::findings::{Findings, shown};
use super::text::line_of;
use super::tree::{Key, Node, NodeShape};
use model::{FilePath, Invisible, Problem, invisible};

/// Reports them in every key and value, however deep. The name has a rule of its
/// own.
pub(super) fn check_fields(entries: &[(Key, Node)], findings: &mut Findings) {
    for (key, node) in entries {
        if key.text.to_lowercase() == "name" {
            continue;
        }
        check_entry("", key, node, findings);
    }
}

fn check_entry(position: &str, key: &Key, node: &Node, findings: &mut Findings) {
    let position = format!("{position}{}", shown(&key.text));
    check_text(&position, &key.text, key.line, findings);
    check_node(&position, node, findings);
}

fn check_node(position: &str, node: &Node, findings: &mut Findings) {
    match &node.shape {
        NodeShape::Text(text) => check_text(position, text, node.line, findings),
        NodeShape::List(list) => {
            for (at, node) in list.iter().enumerate() {
                check_node(&format!("{position}[{at}]"), node, findings);
            }
        }
        NodeShape::Map(entries) => {
            for (key, node) in entries {
                check_entry(&format!("{position}."), key, node, findings);
            }
        }
        NodeShape::Null | NodeShape::Bool(..) | NodeShape::Number(..) => {}
    }
}

fn check_text(position: &str, text: &str, line: usize, findings: &mut Findings) {
    // The worst of them: one is enough for an author to check the text.
    let worst = invisible(text).min_by_key(|(_, _, kind)| *kind);
    let Some((_, c, kind)) = worst else { return };
    let message = format!("`{position}` has {}: {}", kind.what(), c.escape_unicode());
    if kind.is_hostile() {
        findings.error("hidden-character", line, message);
    } else {
        findings.warning("zero-width-character", line, message);
    }
}

/// Reports them in the instructions.
pub(super) fn check_body(fenced: &Fenced<'_>, findings: &mut Findings) {
    for (line, message, is_hostile) in in_lines(fenced.body) {
        let rule = rule(is_hostile);
        findings.warning(rule, fenced.close_line + line, message);
    }
}

/// Reports them in the other files that are text.
pub(super) fn check_files(
    files: &BTreeMap<FilePath, Bytes>,
    entry: &FilePath,
    findings: &mut Findings,
) {
    for (path, content) in files.iter().filter(|(path, _)| *path != entry) {
        let Some(text) = text(content) else { continue };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, message, is_hostile) in in_lines(text) {
            // Zero-width characters in data do nothing.
            if is_hostile {
                let problem = Problem::warning(rule(is_hostile), path.as_str(), line, message);
                findings.push(problem);
            }
        }
    }
}

fn rule(is_hostile: bool) -> &'static str {
    if is_hostile {
        "hidden-character-in-text"
    } else {
        "zero-width-character-in-text"
    }
}

/// Returns a file as text; none where it is no text.
pub(super) fn text(content: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(content).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Returns the first of each kind, with its line and how many there are.
fn in_lines(text: &str) -> Vec<(usize, String, bool)> {
    let mut kinds: BTreeMap<Invisible, (usize, char, usize)> = BTreeMap::new();
    for (at, c, kind) in invisible(text) {
        kinds.entry(kind).or_insert((at, c, 0)).2 += 1;
    }
    let described = |(kind, (at, c, count)): (Invisible, (usize, char, usize))| {
        let line = line_of(text.as_bytes(), at);
        let more = match count {
            1 => String::new(),
            count => format!(", and {} more below", count - 1),
        };
        let message = format!("There is {}: {}{more}", kind.what(), c.escape_unicode());
        (line, message, kind.is_hostile())
    };
    kinds.into_iter().map(described).collect()
}
