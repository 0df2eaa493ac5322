//! Readers of untrusted texts: JSON, TOML, XML, lines.
//!
//! Every reader is bounded by the size of the text, which is bounded by
//! [`super::Limits`]. The JSON reader stops at 128 levels and the TOML reader at 80
//! of their own accord; the XML reader keeps no stack, and without a document type
//! there are no entities.

use std::iter::Peekable;
use std::str::Chars;

use roxmltree::{Document, ParsingOptions};
use serde_json::Value;

/// The most characters of a name or a version in the answer.
const MAX_NAME: usize = 200;
/// The most characters of a description or a message.
const MAX_SENTENCE: usize = 500;
/// The most nodes of an XML file.
const MAX_NODES: u32 = 200_000;
/// The most attributes of an XML element.
const MAX_ATTRIBUTES: usize = 1_000;

/// Why a text is not in the format that its name promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// The line to blame, counted from 1.
    pub(super) line: Option<usize>,
    /// The message.
    pub(super) reason: String,
}

impl Broken {
    /// A text that is wrong as a whole.
    pub(super) fn whole(reason: &str) -> Self {
        Self {
            line: None,
            reason: reason.to_owned(),
        }
    }
}

/// Cuts a value for the answer: one line, no control characters, not too long;
/// none where nothing is left.
pub(super) fn name(text: &str) -> Option<String> {
    cut(text, MAX_NAME)
}

/// The same for a sentence.
pub(super) fn sentence(text: &str) -> Option<String> {
    cut(text, MAX_SENTENCE)
}

fn cut(text: &str, length: usize) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    // As many words as characters are enough, however long the text is.
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(length).collect();
    let line: String = words.join(" ").chars().take(length).collect();
    (!line.is_empty()).then_some(line)
}

/// Cuts a path for the answer: on one line and without credentials.
pub(super) fn shown(path: &str) -> String {
    model::shown(path, MAX_SENTENCE)
}

/// Reads JSON. A byte order mark is dropped, and comments and commas at the end of
/// a list are ignored where the text is no strict JSON.
pub(super) fn json(text: &str) -> Result<Value, Broken> {
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str(text)
        // The strict reader first: nearly all files pass it, and need no second pass.
        .or_else(|_| serde_json::from_str(&plain_json(text)))
        .map_err(|error| {
            let text = error.to_string();
            let reason = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(reason, _)| reason);
            Broken {
                line: Some(error.line()).filter(|line| *line > 0),
                reason: format!("not JSON: {reason}"),
            }
        })
}

/// The members of an object in an object; none where there is none.
pub(super) fn members<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let object = value.get(key).and_then(Value::as_object);
    object.into_iter().flatten()
}

/// Splits a package of npm from its requirement: `@scope/name@^1`.
pub(super) fn package_and_range(text: &str) -> Option<(&str, &str)> {
    // The first `@` may belong to the name.
    let (at, _) = text.char_indices().skip(1).find(|(_, c)| *c == '@')?;
    let (name, range) = text.split_at_checked(at)?;
    Some((name, range.trim_start_matches('@')))
}

/// Removes comments, and replaces commas that close a list by spaces, so that
/// errors keep their lines.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // The position in `plain` of the last comma, if only white space followed it.
    let mut comma = None;
    while let Some(letter) = rest.next() {
        match (letter, rest.peek().copied()) {
            ('"', _) => {
                comma = None;
                plain.push('"');
                while let Some(inner) = rest.next() {
                    plain.push(inner);
                    match inner {
                        '"' => break,
                        '\\' => plain.extend(rest.next()),
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while rest.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                rest.next();
                skip_block_comment(&mut rest, &mut plain);
            }
            (']' | '}', _) => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(letter);
            }
            _ => {
                if letter == ',' {
                    comma = Some(plain.len());
                } else if !letter.is_whitespace() {
                    comma = None;
                }
                plain.push(letter);
            }
        }
    }
    plain
}

/// Skips what follows a `/*`, up to its end. Line breaks stay, so that lines keep their numbers.
pub(super) fn skip_block_comment(rest: &mut Peekable<Chars<'_>>, plain: &mut String) {
    let mut before = ' ';
    for letter in rest {
        if letter == '\n' {
            plain.push('\n');
        }
        if (before, letter) == ('*', '/') {
            return;
        }
        before = letter;
    }
}

/// Reads TOML.
pub(super) fn toml(text: &str) -> Result<toml::Table, Broken> {
    text.trim_start_matches('\u{feff}')
        .parse::<toml::Table>()
        .map_err(|error| Broken {
            line: error.span().map(|span| line_at(text, span.start)),
            reason: format!("not TOML: {}", error.message()),
        })
}

/// The entries of a table in a table; none where there is none.
pub(super) fn entries<'a>(
    table: &'a toml::Table,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a toml::Value)> {
    let table = table.get(key).and_then(toml::Value::as_table);
    table.into_iter().flatten()
}

/// A version in TOML: alone, or in a table with other settings of the dependency.
pub(super) fn toml_version(value: &toml::Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("version")?.as_str())
}

/// Reads XML without a document type.
///
/// The reader compares each attribute with all before it, so an element may have
/// only a limited number.
pub(super) fn xml(text: &str) -> Result<Document<'_>, Broken> {
    let text = text.trim_start_matches('\u{feff}');
    let mut line = 1;
    // An estimate from above: each attribute has a `=`, and text may have more of them.
    for element in text.split('<') {
        if element.bytes().filter(|byte| *byte == b'=').count() > MAX_ATTRIBUTES {
            return Err(Broken {
                line: Some(line),
                reason: format!("an element of more than {MAX_ATTRIBUTES} attributes"),
            });
        }
        line += element.matches('\n').count();
    }
    let options = ParsingOptions {
        // Without a document type there are no entities to expand ("billion laughs") or to fetch.
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| Broken {
        line: usize::try_from(error.pos().row).ok(),
        reason: format!("not XML: {error}"),
    })
}

/// The line of an offset in a text, counted from 1.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    before.split(|byte| *byte == b'\n').count()
}

/// Returns the texts in quotes of a line of code, single or double.
pub(super) fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once(['"', '\'']) {
        let open = rest.as_bytes().get(rest.len() - after.len() - 1);
        let quote = open.map_or('"', |byte| char::from(*byte));
        let Some((inner, behind)) = after.split_once(quote) else {
            break;
        };
        found.push(inner);
        rest = behind;
    }
    found
}

/// A line of block YAML: its indentation, its key, and its value.
///
/// Manifests in YAML are read by lines: nothing is expanded, so anchors and aliases
/// cost nothing, and files that a YAML reader refuses still give their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct YamlLine<'a> {
    pub(super) indent: usize,
    /// It begins with `- `.
    pub(super) item: bool,
    /// The key; empty where there is none.
    pub(super) key: &'a str,
    /// The scalar without quotes and comment.
    pub(super) value: &'a str,
}

/// The lines of a YAML file that hold something.
pub(super) fn yaml_lines(text: &str) -> impl Iterator<Item = YamlLine<'_>> {
    text.lines().filter_map(|line| {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        if body.is_empty() || body.starts_with(['#', '%']) || body.starts_with("---") {
            return None;
        }
        let (item, body) = match body.strip_prefix('-') {
            Some(rest) if rest.is_empty() || rest.starts_with(' ') => (true, rest.trim_start()),
            _ => (false, body),
        };
        let (key, value) = match (quoted_start(body), body.split_once(':')) {
            (Some((inner, rest)), _) => match rest.trim_start().strip_prefix(':') {
                Some(value) => (inner, value),
                None => ("", body),
            },
            (None, Some((key, value))) if value.is_empty() || value.starts_with(' ') => {
                (key.trim(), value)
            }
            _ => ("", body),
        };
        Some(YamlLine {
            indent,
            item,
            key,
            value: scalar(value),
        })
    })
}

fn quoted_start(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text.get(1..)?.split_once(quote)
}

fn scalar(text: &str) -> &str {
    let text = text.trim();
    if let Some((inner, _)) = quoted_start(text) {
        return inner;
    }
    let end = text.find(" #").unwrap_or(text.len());
    let text = text.get(..end).unwrap_or_default().trim();
    if text.starts_with('#') { "" } else { text }
}
