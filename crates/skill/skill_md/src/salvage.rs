//! The last resort to read front matter: each key alone, so that one that is no YAML does
//! not take the others with it.
//!
//! The text is cut where a key begins at the edge. Parts that can be read alone stay as they are;
//! name and description are read as plain text; the rest becomes blank lines,
//! and is reported. So the guard checks the result once more, as a whole.

use std::collections::HashMap;

use super::findings::{Fault, shown};
use super::keys::spelling;
use super::layout::{OpenValues, is_description, key_of};
use super::outline::Unread;
use super::quote::quote;
use super::repair::{meant, repaired};
use super::walk::{self, NOT_A_MAP};

const DROPPED: &str = "front-matter-dropped";
/// Without these a skill would be allowed more than its author wanted, so none of them is
/// left out.
const RESTRICTING: [&str; 4] = [
    "forbidden-tools",
    "compatibility-rules",
    "composability-rules",
    "disable-model-invocation",
];

/// Keeps what can be read alone.
pub(super) fn read_alone(front: &str, first_line: usize, repairs: &mut Vec<Fault>) -> String {
    let lines: Vec<&str> = front.split_inclusive('\n').collect();
    let mut out = String::with_capacity(front.len());
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut at = 0;
    while let Some(rest) = lines.get(at..).filter(|rest| !rest.is_empty()) {
        let length = length_of(rest);
        let part = Part {
            lines: rest.get(..length).unwrap_or(rest),
            line: first_line + at,
        };
        // Prose with colons may repeat a word. Essential keys stay twice, and the guard refuses
        // them.
        let key = rest.first().and_then(|line| key_of(line));
        let key = key.map(|(key, _)| key).filter(|key| !is_essential(key));
        match key.and_then(|key| Some((key, *seen.get(key)?))) {
            Some((key, first)) => {
                part.push_blank(0, &mut out);
                let message = format!(
                    "The key `{}` is here and on line {first}; the second one was left out",
                    shown(key)
                );
                repairs.push(part.dropped(0, message));
            }
            None => part.keep(&mut out, repairs),
        }
        if let Some(key) = key {
            seen.entry(key).or_insert(part.line);
        }
        at += length;
    }
    out
}

/// Tells whether a key is the identity of a skill, or limits it.
fn is_essential(key: &str) -> bool {
    let key = spelling(key);
    is_description(&key) || key == "name" || RESTRICTING.contains(&key.as_str())
}

/// Counts the lines before the next key.
fn length_of(lines: &[&str]) -> usize {
    let end = OpenValues::new().end(lines).unwrap_or(0);
    let below = lines.iter().skip(end + 1);
    end + 1 + below.take_while(|line| key_of(line).is_none()).count()
}

/// A key with its value, and all lines below it; the first part may have no key.
struct Part<'a> {
    lines: &'a [&'a str],
    line: usize,
}

impl Part<'_> {
    fn keep(&self, out: &mut String, repairs: &mut Vec<Fault>) {
        let Err(reason) = self.readable(self.lines.len()) else {
            return self.push(self.lines.len(), out);
        };
        let Some((key, value)) = self.lines.first().and_then(|line| key_of(line)) else {
            return self.drop_after(0, out, repairs);
        };
        if RESTRICTING.contains(&spelling(key).as_str()) {
            return self.push(self.lines.len(), out);
        }
        // The value may be whole, with prose below it at the edge.
        let indented = 1 + self
            .lines
            .iter()
            .skip(1)
            .take_while(|line| !is_at_edge(line))
            .count();
        let is_description = is_description(key);
        let text = is_description.then(|| folded(value, self.lines.get(1..).unwrap_or_default()));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.push_quoted(key, &text, out, repairs);
        } else if indented < self.lines.len() && self.readable(indented).is_ok() {
            self.push(indented, out);
            self.drop_after(indented, out, repairs);
        } else if key.eq_ignore_ascii_case("name") && !value.is_empty() {
            self.push_quoted(key, meant(value), out, repairs);
        } else {
            self.push_blank(0, out);
            let message = format!(
                "`{}` was left out, since it is not YAML: {}",
                shown(key),
                model::shown(&reason, 200)
            );
            repairs.push(self.dropped(0, message));
        }
    }

    /// Checks whether the first of its lines can be read. What the guard refuses counts as readable
    /// here, and is refused with the whole.
    fn readable(&self, count: usize) -> Result<(), String> {
        let text = self.lines.get(..count).unwrap_or_default().concat();
        match walk::read(&text, self.line) {
            Err(Unread::Unreadable { reason, .. }) => Err(reason),
            Err(Unread::Refused(fault)) if fault.rule == NOT_A_MAP => Err(fault.message),
            Ok(_) | Err(Unread::Refused(_)) => Ok(()),
        }
    }

    fn push(&self, count: usize, out: &mut String) {
        out.extend(self.lines.iter().take(count).copied());
    }

    /// A text in quotes on the first line, and blank lines for the others.
    fn push_quoted(&self, key: &str, text: &str, out: &mut String, repairs: &mut Vec<Fault>) {
        out.push_str(key);
        out.push_str(": ");
        out.push_str(&quote(text));
        self.push_blank(0, out);
        let message = format!(
            "The value of `{}` is not YAML; its lines were read as if they were in quotes. Put \
             them in quotes",
            shown(key)
        );
        repairs.push(repaired(self.line, message));
    }

    fn push_blank(&self, from: usize, out: &mut String) {
        for line in self.lines.iter().skip(from) {
            let content = line.trim_end_matches(['\r', '\n']);
            out.push_str(line.get(content.len()..).unwrap_or_default());
        }
    }

    /// Leaves out the lines from one on.
    fn drop_after(&self, from: usize, out: &mut String, repairs: &mut Vec<Fault>) {
        self.push_blank(from, out);
        let first = self
            .lines
            .iter()
            .skip(from)
            .position(|line| !line.trim().is_empty());
        let line = self.line + from + first.unwrap_or(0);
        let text = self.lines.get(from + first.unwrap_or(0));
        let message = format!(
            "`{}` is no line of `key: value`; it was left out with what belongs to it",
            shown(text.map_or("", |line| line.trim_end()))
        );
        repairs.push(self.dropped(line - self.line, message));
    }

    fn dropped(&self, at: usize, message: String) -> Fault {
        Fault::new(DROPPED, self.line + at, message)
    }
}

fn is_at_edge(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with([' ', '\t'])
}

/// Returns a value as the text that its author saw: lines are joined by spaces, paragraphs by a
/// line break; below `|` lines stay lines.
fn folded(value: &str, below: &[&str]) -> String {
    let header = value.strip_prefix(['|', '>']).filter(|rest| {
        rest.len() <= 2 && rest.chars().all(|c| "+-".contains(c) || c.is_ascii_digit())
    });
    let (first, glue) = match header {
        Some(_) if value.starts_with('|') => ("", '\n'),
        Some(_) => ("", ' '),
        None => (value, ' '),
    };
    let mut text = String::from(first);
    let mut is_apart = false;
    for line in below.iter().map(|line| line.trim()) {
        if line.is_empty() {
            is_apart = true;
            continue;
        }
        if !text.is_empty() {
            text.push(if is_apart { '\n' } else { glue });
        }
        is_apart = false;
        text.push_str(line);
    }
    meant(text.trim()).to_owned()
}
