//! The guard before YAML is read: walks the events of the text and refuses what
//! could cost more than its size, or mean more than it shows.
//!
//! Anchors are refused with or without an alias: 13 KB of them became 519 MiB
//! in memory. So are foreign tags, deep nesting, and two keys of one name. What
//! is left is a plain tree, of which this also notes each scalar's line and its
//! text as written, since a YAML reader turns `version: 1.10` into 1.1.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::findings::{Fault, shown};

/// The most levels of nesting. The deepest seen in the wild is 7.
pub(super) const MAX_DEPTH: usize = 32;
/// The most values and keys.
pub(super) const MAX_NODES: usize = 10_000;

/// The scanner's own limit on `[` and `{`; it looks ahead to the end of a flow
/// before it reports its beginning, so it meets deep ones first.
const SCANNER_TOO_DEEP: &str = "recursion limit exceeded";

/// Why front matter is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread {
    /// It may be YAML, and is refused. No repair is tried.
    Refused(Fault),
    /// It is no YAML. A repair may help.
    Unreadable {
        /// Line of the file.
        line: usize,
        /// The message of the YAML reader.
        reason: String,
    },
}

/// A key or a value that is neither a list nor a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scalar {
    /// Line of the file.
    pub(super) line: usize,
    /// As written, without quotes.
    pub(super) text: String,
    /// Written without quotes.
    pub(super) plain: bool,
}

/// The shape of the text as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Nothing,
    Scalar,
    List,
    Map,
}

/// The scalars of a text that passed, keys included, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) root: Root,
    pub(super) scalars: Vec<Scalar>,
    /// Scalars, lists and maps.
    pub(super) nodes: usize,
}

struct Level {
    /// Keys seen and their lines; none in a list.
    keys: Option<HashMap<String, usize>>,
    /// The next node is a key.
    at_key: bool,
}

struct Guard {
    outline: Outline,
    levels: Vec<Level>,
    documents: usize,
}

/// Walks a text whose first line is `first_line` of its file.
pub(super) fn scan(text: &str, first_line: usize) -> Result<Outline, Unread> {
    let mut guard = Guard {
        outline: Outline {
            root: Root::Nothing,
            scalars: Vec::new(),
            nodes: 0,
        },
        levels: Vec::new(),
        documents: 0,
    };
    let newlines = newlines_before(text);
    let position = |line: usize| {
        let at = line.saturating_sub(1).min(newlines.len() - 1);
        first_line + newlines.get(at).copied().unwrap_or_default()
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => guard.step(event, position(span.start.line()))?,
            Err(error) if error.info().contains(SCANNER_TOO_DEEP) => {
                return Err(too_deep(position(error.marker().line())));
            }
            Err(error) => {
                return Err(Unread::Unreadable {
                    line: position(error.marker().line()),
                    reason: error.info().to_owned(),
                });
            }
        }
    }
    Ok(guard.outline)
}

/// Returns the line feeds before each line of the parser, which ends a line at a lone `\r` as
/// well; a file is shown with lines that end at a line feed.
fn newlines_before(text: &str) -> Vec<usize> {
    let mut lines = vec![0];
    let mut newlines = 0;
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        newlines += usize::from(byte == b'\n');
        if byte == b'\n' || byte == b'\r' && bytes.peek() != Some(&b'\n') {
            lines.push(newlines);
        }
    }
    lines
}

impl Guard {
    fn step(&mut self, event: Event<'_>, line: usize) -> Result<(), Unread> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(refused(
                        "front-matter-documents",
                        line,
                        "A second YAML document begins here; front matter is one",
                    ));
                }
            }
            // Refused here, where nothing is expanded yet: a YAML reader that finds too much has
            // built it already.
            Event::Alias(_) => return Err(alias(line)),
            Event::Scalar(text, style, anchor, tag) => {
                self.node(line, anchor, tag.as_deref(), Root::Scalar)?;
                self.scalar(&text, style == ScalarStyle::Plain, line)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.node(line, anchor, tag.as_deref(), Root::List)?;
                self.open(None, line)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.node(line, anchor, tag.as_deref(), Root::Map)?;
                self.open(Some(HashMap::new()), line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.levels.pop();
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn node(
        &mut self,
        line: usize,
        anchor: usize,
        tag: Option<&Tag>,
        root: Root,
    ) -> Result<(), Unread> {
        if anchor > 0 {
            return Err(alias(line));
        }
        if let Some(tag) = tag.filter(|tag| !is_core(tag)) {
            return Err(refused(
                "front-matter-tag",
                line,
                format!(
                    "The YAML tag `{}` is not taken; where `!` belongs to the text, put the value \
                     in quotes",
                    shown(&tag.to_string())
                ),
            ));
        }
        self.outline.nodes += 1;
        if self.outline.nodes > MAX_NODES {
            return Err(refused(
                "front-matter-too-many-nodes",
                line,
                format!("The front matter has more than {MAX_NODES} keys and values"),
            ));
        }
        if self.levels.is_empty() {
            self.outline.root = root;
        }
        Ok(())
    }

    fn open(&mut self, keys: Option<HashMap<String, usize>>, line: usize) -> Result<(), Unread> {
        if let Some(level) = self.levels.last_mut() {
            // A key that is a list or a map: JSON has no such keys, and a `{{placeholder}}` reads
            // as one.
            if level.at_key && level.keys.is_some() {
                return Err(Unread::Unreadable {
                    line,
                    reason: "a list or a map is where a key should be".to_owned(),
                });
            }
            level.at_key = true;
        }
        if self.levels.len() >= MAX_DEPTH {
            return Err(too_deep(line));
        }
        self.levels.push(Level { keys, at_key: true });
        Ok(())
    }

    fn scalar(&mut self, text: &str, plain: bool, line: usize) -> Result<(), Unread> {
        if let Some(Level {
            keys: Some(keys),
            at_key,
        }) = self.levels.last_mut()
        {
            // Readers differ in which of two equal keys counts, so one could check the first and
            // act on the second.
            if *at_key && let Some(first) = keys.insert(text.to_owned(), line) {
                return Err(refused(
                    "front-matter-duplicate-key",
                    line,
                    format!(
                        "The key `{}` is here and on line {first}; keep one of them",
                        shown(text)
                    ),
                ));
            }
            *at_key = !*at_key;
        }
        self.outline.scalars.push(Scalar {
            line,
            text: text.to_owned(),
            plain,
        });
        Ok(())
    }
}

fn is_core(tag: &Tag) -> bool {
    tag.handle == "tag:yaml.org,2002:"
        && matches!(
            tag.suffix.as_str(),
            "str" | "int" | "float" | "bool" | "null" | "map" | "seq"
        )
}

fn refused(rule: &'static str, line: usize, message: impl Into<String>) -> Unread {
    Unread::Refused(Fault::new(rule, line, message))
}

fn alias(line: usize) -> Unread {
    refused(
        "front-matter-alias",
        line,
        "YAML anchors (`&name`) and aliases (`*name`) are not taken; write the value out, and put it \
         in quotes where `&` or `*` belongs to the text",
    )
}

fn too_deep(line: usize) -> Unread {
    refused(
        "front-matter-too-deep",
        line,
        format!("Lists and maps are nested more than {MAX_DEPTH} deep"),
    )
}
