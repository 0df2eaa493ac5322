//! Reads front matter that is no YAML as its author meant it.
//!
//! Most broken front matter in the wild is prose without quotes, as in
//! `description: Use when: …` or `description: **bold**`. No value is put in
//! quotes that can be read as it is, what is refused stays refused, and each repair is
//! reported. No line is added or taken away, so lines stay those of the file. Where
//! nothing else helps, each key is read alone ([`super::salvage`]).

use super::findings::{Fault, Findings};
use super::layout::{OpenValues, key_of};
use super::outline::Unread;
use super::quote::{escape, quote};
use super::salvage;
use super::text::line_of;
use super::tree::Tree;
use super::walk;

/// Reports a line that was repaired.
pub(super) fn repaired(line: usize, message: impl Into<String>) -> Fault {
    Fault::new("front-matter-repaired", line, message)
}

/// Reads front matter, repaired where it cannot be read as it is. Reports the
/// repairs, or why it is not read.
pub(super) fn read(front: &str, first_line: usize, findings: &mut Findings) -> Option<Tree> {
    Some(read_repaired(front, first_line, findings)?.0)
}

/// The same, with the text that was read: the front matter as its author should write it.
pub(super) fn read_repaired(
    front: &str,
    first_line: usize,
    findings: &mut Findings,
) -> Option<(Tree, String)> {
    // YAML refuses control characters. Quoting a value would let them through.
    if let Some(fault) = control_character(front, first_line) {
        findings.fault(fault);
        return None;
    }
    let mut repairs = Vec::new();
    let mut text = front.to_owned();
    // The first reason is about the author's text, later ones are about ours.
    let mut refusal = None;
    // From the step that changes least to the one that leaves out most. Each works on what the one
    // before it wrote, and the first that can be read is taken.
    let steps = [
        join_lines,
        indent_values,
        decode_surrogates,
        quote_values,
        salvage::read_alone,
    ];
    for step in steps {
        text = step(&text, first_line, &mut repairs);
        match walk::read(&text, first_line) {
            // Only prose: `read_alone` left nothing.
            Ok(tree) if tree.entries.is_empty() && refusal.is_some() => break,
            Ok(tree) => {
                for Fault {
                    rule,
                    line,
                    message,
                } in repairs
                {
                    findings.warning(rule, line, message);
                }
                return Some((tree, text));
            }
            // Repairs are for mistakes. What the guard refuses could cost more than its size, and
            // no repair may bring it back.
            Err(Unread::Refused(fault)) => {
                refusal = Some(fault);
                break;
            }
            Err(Unread::Unreadable { line, reason }) => {
                refusal.get_or_insert_with(|| not_yaml(front, first_line, line, &reason));
            }
        }
    }
    if let Some(fault) = refusal {
        findings.fault(fault);
    }
    None
}

/// Reads front matter as it is, or says why not.
pub(super) fn read_strictly(front: &str, first_line: usize) -> Result<Tree, Fault> {
    if let Some(fault) = control_character(front, first_line) {
        return Err(fault);
    }
    walk::read(front, first_line).map_err(|unread| match unread {
        Unread::Refused(fault) => fault,
        Unread::Unreadable { line, reason } => not_yaml(front, first_line, line, &reason),
    })
}

fn not_yaml(front: &str, first_line: usize, line: usize, reason: &str) -> Fault {
    let text = front
        .lines()
        .nth(line.saturating_sub(first_line))
        .unwrap_or_default();
    let indent = text.len() - text.trim_start().len();
    let message = if text.get(..indent).unwrap_or_default().contains('\t') {
        format!("Line {line} is indented with a tab; YAML takes spaces only")
    } else {
        format!(
            "The front matter is not YAML: {}",
            model::shown(reason, 200)
        )
    };
    Fault::new("front-matter-unreadable", line, message)
}

fn control_character(front: &str, first_line: usize) -> Option<Fault> {
    let is_bad = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n');
    let at = front.find(is_bad)?;
    let line = first_line + line_of(front.as_bytes(), at) - 1;
    let character = front.get(at..)?.chars().next()?;
    Some(Fault::new(
        "front-matter-unreadable",
        line,
        format!(
            "Line {line} has the control character {}, which YAML does not take",
            character.escape_unicode()
        ),
    ))
}

const LINE_SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

/// Replaces U+2028 and U+2029, which word processors leave in a text, by a space.
fn join_lines(front: &str, first_line: usize, repairs: &mut Vec<Fault>) -> String {
    for (index, line) in front.split_inclusive('\n').enumerate() {
        if line.contains(LINE_SEPARATORS) {
            let message = "A line or paragraph separator (U+2028, U+2029) was read as a space; \
                           YAML readers do not agree on what it is";
            repairs.push(repaired(first_line + index, message));
        }
    }
    front.replace(LINE_SEPARATORS, " ")
}

/// Indents the lines of values in quotes or brackets that go on at the edge, where YAML
/// 1.2 takes no part of a value, and many readers do.
fn indent_values(front: &str, first_line: usize, repairs: &mut Vec<Fault>) -> String {
    let lines: Vec<&str> = front.split_inclusive('\n').collect();
    let mut open = OpenValues::new();
    let mut out = String::with_capacity(front.len());
    let mut at = 0;
    while let Some((line, below)) = lines.get(at..).and_then(<[&str]>::split_first) {
        out.push_str(line);
        let end = open.end(lines.get(at..).unwrap_or_default()).unwrap_or(0);
        let mut is_moved = false;
        for line in below.iter().take(end) {
            if !line.trim().is_empty() && !line.starts_with([' ', '\t']) {
                is_moved = true;
                out.push_str("  ");
            }
            out.push_str(line);
        }
        if is_moved && let Some((key, _)) = key_of(line) {
            let message = format!(
                "The value of `{key}` goes on at the edge of the next line; it was read as if \
                 that were indented. Indent it"
            );
            repairs.push(repaired(first_line + at, message));
        }
        at += end + 1;
    }
    out
}

/// Turns JSON's `\ud83e\udde0` inside double quotes into the one character that
/// it stands for; YAML has no surrogates.
fn decode_surrogates(front: &str, first_line: usize, repairs: &mut Vec<Fault>) -> String {
    let mut out = String::with_capacity(front.len());
    for (index, line) in front.split_inclusive('\n').enumerate() {
        let decoded = decode_line(line);
        if decoded != line {
            let message = "A character written as a pair of `\\u` surrogates, as JSON does, was \
                           decoded; write the character itself";
            repairs.push(repaired(first_line + index, message));
        }
        out.push_str(&decoded);
    }
    out
}

fn decode_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        let mut step = c.len_utf8();
        if quoted && c == '\\' {
            if let Some(code) = surrogate_pair(rest) {
                out.push_str(&escape(code));
                rest = rest.get(12..).unwrap_or_default();
                continue;
            }
            // An escaped quote does not end the text.
            step += rest.chars().nth(1).map_or(0, char::len_utf8);
        } else if c == '"' {
            quoted = !quoted;
        }
        out.push_str(rest.get(..step).unwrap_or_default());
        rest = rest.get(step..).unwrap_or_default();
    }
    out
}

/// The character of `\uD800\uDC00` at the beginning of a text.
fn surrogate_pair(text: &str) -> Option<u32> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let all_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        all_hex
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let (high, low) = (unit(0)?, unit(6)?);
    let is_pair = (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(&low);
    is_pair.then(|| 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

/// Puts one-line values of the top level in quotes, where the line cannot be
/// read alone.
fn quote_values(front: &str, first_line: usize, repairs: &mut Vec<Fault>) -> String {
    let lines: Vec<&str> = front.split_inclusive('\n').collect();
    let mut out = String::with_capacity(front.len());
    for (index, line) in lines.iter().enumerate() {
        let content = line.trim_end_matches(['\r', '\n']);
        let entry =
            entry(content).filter(|_| is_one_line(lines.get(index + 1..).unwrap_or_default()));
        let unreadable = entry.filter(|_| {
            matches!(
                walk::read(content, first_line + index),
                Err(Unread::Unreadable { .. })
            )
        });
        let Some((key, value)) = unreadable else {
            out.push_str(line);
            continue;
        };
        out.push_str(key);
        out.push_str(": ");
        out.push_str(&quote(meant(value)));
        out.push_str(line.get(content.len()..).unwrap_or_default());
        let message = format!(
            "The value of `{key}` {}; it was read as if it were in quotes. Put it in quotes",
            cause(value)
        );
        repairs.push(repaired(first_line + index, message));
    }
    out
}

/// `key: value` at the edge of a line.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let value = value.strip_prefix([' ', '\t'])?.trim();
    (is_key && !value.is_empty()).then_some((key, value))
}

/// Tells whether the lines after an entry do not continue it.
fn is_one_line(following: &[&str]) -> bool {
    following
        .iter()
        .find(|line| !line.trim().is_empty())
        .is_none_or(|line| {
            line.starts_with('#')
                || entry(line.trim_end()).is_some()
                || is_bare_key(line.trim_end())
        })
}

fn is_bare_key(line: &str) -> bool {
    line.strip_suffix(':')
        .is_some_and(|key| !key.is_empty() && !key.starts_with([' ', '\t', '-']))
}

/// Returns the text that an author meant: without the quotes around it where those pair with
/// each other, as in `'it's'`.
pub(super) fn meant(value: &str) -> &str {
    for mark in ['"', '\''] {
        let inner = value
            .strip_prefix(mark)
            .and_then(|rest| rest.strip_suffix(mark));
        if let Some(inner) = inner {
            let parts: Vec<&str> = inner.split(mark).collect();
            let only_inside_words =
                parts
                    .iter()
                    .zip(parts.iter().skip(1))
                    .all(|(before, after)| {
                        before.ends_with(char::is_alphanumeric)
                            && after.starts_with(char::is_alphanumeric)
                    });
            if only_inside_words {
                return inner;
            }
        }
    }
    value
}

fn cause(value: &str) -> String {
    match value.chars().next() {
        Some(c @ ('"' | '\'')) => format!("has a quote `{c}` that YAML cannot pair"),
        Some(c) if "*&!|>%@`[]{}-?,#:".contains(c) => {
            format!("begins with `{c}`, which means something else in YAML")
        }
        _ if value.contains(": ") || value.ends_with(':') => {
            "has a colon that YAML takes for the end of a key".to_owned()
        }
        _ => "cannot be read as YAML".to_owned(),
    }
}
