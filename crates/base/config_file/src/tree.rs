//! YAML as a tree with lines: scalars, lists and mappings.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};

use super::{Mistake, inside};

/// Levels of nesting, and values in all: no settings need as many.
const MAX_DEPTH: usize = 32;
const MAX_NODES: usize = 100_000;

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// In a mapping that of its key.
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Scalar {
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn nothing(line: usize) -> Self {
        let text = String::new();
        let value = Value::Scalar { text, plain: true };
        Self { line, value }
    }

    /// Nodes in it, itself included.
    fn count(&self) -> usize {
        match &self.value {
            Value::Scalar { .. } => 1,
            Value::List(items) => 1 + items.iter().map(Self::count).sum::<usize>(),
            Value::Map(all) => 1 + all.iter().map(|(_, node)| node.count()).sum::<usize>(),
        }
    }
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    repeated: Vec<Mistake>,
}

fn wrong(line: usize, key: &str, message: impl Into<String>) -> Mistake {
    Mistake {
        line,
        key: key.to_owned(),
        message: message.into(),
    }
}

/// Reads a text, with the keys that are there twice.
pub(super) fn parse(text: &str) -> Result<(Node, Vec<Mistake>), Mistake> {
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
        repeated: Vec::new(),
    };
    let mut root = None;
    while let Some((event, line)) = builder.next()? {
        match event {
            Event::DocumentStart(_) if root.is_some() => {
                let message = "a second document begins here; settings are one";
                return Err(wrong(line, "", message));
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
            event => root = Some(builder.node(event, line, "", 0)?),
        }
    }
    Ok((root.unwrap_or_else(|| Node::nothing(1)), builder.repeated))
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, usize)>, Mistake> {
        let line = |span: &Span| span.start.line();
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, line(&span)))),
            Some(Err(error)) => {
                let info = match error.info() {
                    info if info.contains("<document start>") => {
                        "settings are lines such as `listen: 127.0.0.1:50051`".to_owned()
                    }
                    info => info.replace("did not find expected", "there is no"),
                };
                let message = format!("this is not YAML: {info}");
                Err(wrong(error.marker().line(), "", message))
            }
        }
    }

    /// The next event inside of a list or a mapping.
    fn within(&mut self, line: usize, key: &str) -> Result<(Event<'a>, usize), Mistake> {
        let next = self.next()?;
        next.ok_or_else(|| wrong(line, key, "this is not YAML: it ends too early"))
    }

    fn node(
        &mut self,
        event: Event<'a>,
        line: usize,
        key: &str,
        depth: usize,
    ) -> Result<Node, Mistake> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err(wrong(line, key, "there is more here than settings need"));
        }
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.unwrap_or_else(|| Node::nothing(line));
                // An alias is a copy. Uncounted, a few lines of aliases of aliases would fill the
                // memory (the "billion laughs").
                self.nodes += node.count();
                return Ok(Node { line, ..node });
            }
            Event::Scalar(text, style, anchor, tag) => {
                no_tag(tag.as_deref(), line, key)?;
                let plain = style == ScalarStyle::Plain;
                let text = text.into_owned();
                (Value::Scalar { text, plain }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                no_tag(tag.as_deref(), line, key)?;
                let mut items = Vec::new();
                loop {
                    let (event, line) = self.within(line, key)?;
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    let key = format!("{key}[{}]", items.len());
                    items.push(self.node(event, line, &key, depth + 1)?);
                }
                (Value::List(items), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                no_tag(tag.as_deref(), line, key)?;
                (Value::Map(self.entries(line, key, depth)?), anchor)
            }
            _ => return Ok(Node::nothing(line)),
        };
        let node = Node { line, value };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn entries(
        &mut self,
        begun: usize,
        key: &str,
        depth: usize,
    ) -> Result<Vec<(String, Node)>, Mistake> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        loop {
            let (event, line) = self.within(begun, key)?;
            let name = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(name, ..) => name.into_owned(),
                _ => return Err(wrong(line, key, "a key here is no word")),
            };
            let key = inside(key, &name);
            let (event, _) = self.within(line, &key)?;
            let node = self.node(event, line, &key, depth + 1)?;
            // The line of the key, also where the value begins below.
            let node = Node { line, ..node };
            match entries.iter().find(|(other, _)| *other == name) {
                None => entries.push((name, node)),
                Some((_, first)) => {
                    let message = format!("line {} has this key already", first.line);
                    self.repeated.push(wrong(line, &key, message));
                }
            }
        }
    }
}

/// Refuses a tag: it would be ignored, and its author meant something by it.
fn no_tag(tag: Option<&Tag>, line: usize, key: &str) -> Result<(), Mistake> {
    match tag {
        None => Ok(()),
        Some(tag) => {
            let message = format!("`!{}` means nothing here; leave it out", tag.suffix);
            Err(wrong(line, key, message))
        }
    }
}
