//! Reads any text with front matter under the same guard as a `SKILL.md` and without
//! repairs: for files whose authors can fix them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::findings::Findings;
use super::tree::{self, Node, NodeShape};
use super::{fence, repair, text};
use model::Problem;

/// A text with front matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its front matter, in the order of the file.
    pub front_matter: Map<String, Value>,
    /// The text below it, without blank lines around it.
    pub body: String,
    /// Lines from 1 of keys and of elements of lists, by JSON pointer.
    lines: BTreeMap<String, usize>,
}

impl Document {
    /// Returns the line of the key or the element that a JSON pointer names; where it names
    /// nothing, the line of the nearest parent.
    #[must_use]
    pub fn line(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            match (self.lines.get(pointer), pointer.rfind('/')) {
                (Some(line), _) => return *line,
                (None, Some(end)) => pointer = pointer.get(..end).unwrap_or_default(),
                (None, None) => return 1,
            }
        }
    }
}

/// Reads a text with front matter; its problems name `file`.
#[must_use]
pub fn document(content: &[u8], file: &str) -> (Option<Document>, Vec<Problem>) {
    let mut findings = Findings::default();
    findings.turn_to(file);
    let document = read(content, &mut findings);
    (document, findings.into_problems())
}

fn read(content: &[u8], findings: &mut Findings) -> Option<Document> {
    let text = text::decode(content, findings)?;
    let read = fence::split(text).and_then(|fenced| {
        let tree = repair::read_strictly(fenced.front, fenced.first_line)?;
        Ok((fenced, tree))
    });
    let (fenced, tree) = match read {
        Ok(read) => read,
        Err(fault) => {
            findings.fault(fault);
            return None;
        }
    };
    let mut lines = BTreeMap::new();
    for (key, node) in &tree.entries {
        note(&pointer("", &key.text), key.line, node, &mut lines);
    }
    Some(Document {
        front_matter: tree::json(&tree.entries),
        body: fenced.body.trim().to_owned(),
        lines,
    })
}

/// Records lines. The recursion is bounded: the guard lets 32 levels through.
fn note(at: &str, line: usize, node: &Node, lines: &mut BTreeMap<String, usize>) {
    match &node.shape {
        NodeShape::Map(entries) => {
            for (key, node) in entries {
                note(&pointer(at, &key.text), key.line, node, lines);
            }
        }
        NodeShape::List(list) => {
            for (index, node) in list.iter().enumerate() {
                note(&format!("{at}/{index}"), node.line, node, lines);
            }
        }
        NodeShape::Null | NodeShape::Bool(..) | NodeShape::Number(..) | NodeShape::Text(_) => {}
    }
    lines.insert(at.to_owned(), line);
}

fn pointer(at: &str, key: &str) -> String {
    // RFC 6901, 3: first `~`, or the `~` of `~1` would be escaped again.
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_has_its_keys_with_their_lines_and_its_body() {
        let text = "---\na: 1\nb:\n  - x: [1, 2]\n    y/z: t\n\n  - 'q'\n---\n\n# Hello\n\nText\n";
        let (document, problems) = document(text.as_bytes(), "PATH.md");
        let document = document.expect("a document");
        assert_eq!(problems, Vec::new());
        assert_eq!(
            Value::Object(document.front_matter.clone()),
            json!({"a": 1, "b": [{"x": [1, 2], "y/z": "t"}, "q"]})
        );
        assert_eq!(document.body, "# Hello\n\nText");
        for (pointer, line) in [
            ("/a", 2),
            ("/b", 3),
            ("/b/0", 4),
            ("/b/0/x", 4),
            ("/b/0/y~1z", 5),
            ("/b/1", 7),
            ("/b/0/missing", 4),
            ("/missing", 1),
            ("", 1),
        ] {
            assert_eq!(document.line(pointer), line, "{pointer}");
        }
    }

    #[test]
    fn what_is_no_plain_yaml_is_refused_by_rule_file_and_line() {
        for (text, rule, line) in [
            ("no fence", "front-matter-missing", 1),
            ("---\na: 1\n", "front-matter-unclosed", 1),
            ("---\na: 1\na: 2\n---\n", "front-matter-duplicate-key", 3),
            ("---\na: b: c\n---\n", "front-matter-unreadable", 2),
            ("---\na: 1\nb: &x [*x]\n---\n", "front-matter-alias", 3),
            ("---\na: 1\nb: \u{7}\n---\n", "front-matter-unreadable", 3),
        ] {
            let (document, problems) = document(text.as_bytes(), "PATH.md");
            assert_eq!(document, None, "{text}");
            let told: Vec<_> = problems
                .iter()
                .map(|p| (p.rule.as_str(), p.file.as_str(), p.line))
                .collect();
            assert_eq!(told, [(rule, "PATH.md", line)], "{text}");
        }
    }
}
