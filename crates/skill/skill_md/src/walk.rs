//! Walks front matter with the YAML reader, behind the guard.
//!
//! Two readers parse the text. [`super::outline`] walks it first and
//! refuses what is dangerous; `serde_yaml` then gives the values. What the one
//! takes for a comment must not be aliases to the other, so:
//!
//! * characters at which only `serde_yaml` ends a line are refused;
//! * `serde_yaml` may return as many nodes and bytes as the guard saw, each
//!   of its scalars uses up one of the outline's, and a text that does not
//!   come out even is refused.

use std::fmt;
use std::slice::Iter;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::findings::Fault;
use super::outline::{self, Outline, Root, Scalar, Unread};
use super::text::line_of;
use super::tree::{Key, Node, NodeShape, Tree};

/// Reads front matter whose first line is `first_line` of its file.
pub(super) fn read(text: &str, first_line: usize) -> Result<Tree, Unread> {
    if let Some(at) = text.find(FOREIGN_LINE_ENDS) {
        return Err(Unread::Unreadable {
            line: first_line + line_of(text.as_bytes(), at) - 1,
            reason: "a character ends the line here to some readers and not to others".to_owned(),
        });
    }
    follow(text, first_line, outline::scan(text, first_line)?)
}

/// Ends of lines in YAML 1.1, which `serde_yaml` reads, and not in 1.2.
const FOREIGN_LINE_ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

fn follow(text: &str, first_line: usize, outline: Outline) -> Result<Tree, Unread> {
    let Outline {
        root,
        scalars,
        nodes,
    } = outline;
    let is_blank = |s: &Scalar| s.plain && matches!(s.text.as_str(), "" | "~" | "null");
    if root == Root::Nothing || (root == Root::Scalar && scalars.iter().all(is_blank)) {
        return Ok(Tree::default());
    }
    let mut walk = YamlWalk {
        scalars: scalars.iter(),
        nodes,
        // Only the escapes `\L` and `\P` make a text longer than its source.
        bytes: text.len() * 2,
        line: first_line,
        numbers: Vec::new(),
        unusual_keys: Vec::new(),
    };
    let reader = serde_yaml::Deserializer::from_str(text);
    let node = NodeSeed(&mut walk)
        .deserialize(reader)
        .map_err(|error| unreadable(&error, text, first_line))?;
    // Fewer nodes than the guard saw are as suspect as more: the two have read different texts.
    if walk.nodes > 0 || walk.scalars.len() > 0 {
        return Err(Unread::Unreadable {
            line: walk.next_line(),
            reason: DISAGREE.to_owned(),
        });
    }
    match node.shape {
        NodeShape::Map(entries) => Ok(Tree {
            entries,
            numbers: walk.numbers,
            unusual_keys: walk.unusual_keys,
        }),
        _ => Err(Unread::Refused(Fault::new(
            NOT_A_MAP,
            node.line,
            format!(
                "The front matter is {}; it must be lines of `key: value`",
                node.kind()
            ),
        ))),
    }
}

/// The rule of front matter that is YAML without keys.
pub(super) const NOT_A_MAP: &str = "front-matter-not-a-map";

const DISAGREE: &str = "two YAML readers understand this differently";

fn unreadable(error: &serde_yaml::Error, text: &str, first_line: usize) -> Unread {
    let line = error.location().map_or(1, |position| position.line());
    // The reader's message ends with its own line, which is not the file's.
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    Unread::Unreadable {
        line: (first_line + line.saturating_sub(1)).min(first_line + text.lines().count()),
        reason: reason.to_owned(),
    }
}

struct YamlWalk<'a> {
    /// The scalars that the guard saw and that are still to come.
    scalars: Iter<'a, Scalar>,
    nodes: usize,
    bytes: usize,
    /// The current line.
    line: usize,
    numbers: Vec<Scalar>,
    unusual_keys: Vec<Key>,
}

impl<'a> YamlWalk<'a> {
    /// Counts a node.
    fn node<E: Error>(&mut self) -> Result<(), E> {
        self.nodes = self
            .nodes
            .checked_sub(1)
            .ok_or_else(|| E::custom(DISAGREE))?;
        Ok(())
    }

    /// Counts a scalar.
    fn scalar<E: Error>(&mut self) -> Result<&'a Scalar, E> {
        self.node()?;
        let scalar = self.scalars.next().ok_or_else(|| E::custom(DISAGREE))?;
        self.line = scalar.line;
        Ok(scalar)
    }

    /// The same, with the text that `serde_yaml` reads for it.
    fn text<E: Error>(&mut self, text: &str) -> Result<&'a Scalar, E> {
        self.bytes = self
            .bytes
            .checked_sub(text.len())
            .ok_or_else(|| E::custom(DISAGREE))?;
        self.scalar()
    }

    /// The line of the next node: a list or a map begins with its first scalar.
    fn next_line(&self) -> usize {
        self.scalars
            .as_slice()
            .first()
            .map_or(self.line, |s| s.line)
    }
}

struct NodeSeed<'w, 'a>(&'w mut YamlWalk<'a>);

impl<'de> DeserializeSeed<'de> for NodeSeed<'_, '_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Node, D::Error> {
        reader.deserialize_any(self)
    }
}

impl NodeSeed<'_, '_> {
    fn scalar<E: Error>(self, shape: impl FnOnce(String) -> NodeShape) -> Result<Node, E> {
        let scalar = self.0.scalar()?;
        Ok(Node {
            line: scalar.line,
            shape: shape(scalar.text.clone()),
        })
    }

    /// A number that JSON would change: kept as the text it was written as.
    fn number_as_text<E: Error>(self) -> Result<Node, E> {
        let scalar = self.0.scalar()?;
        self.0.numbers.push(scalar.clone());
        Ok(Node {
            line: scalar.line,
            shape: NodeShape::Text(scalar.text.clone()),
        })
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        self.scalar(|_| NodeShape::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        self.scalar(|text| NodeShape::Bool(value, text))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        self.scalar(|text| NodeShape::Number(value.into(), text))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        self.scalar(|text| NodeShape::Number(value.into(), text))
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Node, E> {
        self.number_as_text()
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Node, E> {
        self.number_as_text()
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        let is_integer = self.0.scalars.as_slice().first().is_some_and(|scalar| {
            let digits = scalar.text.trim_start_matches(['-', '+']);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        });
        match Number::from_f64(value) {
            Some(number) if !is_integer => self.scalar(|text| NodeShape::Number(number, text)),
            _ => self.number_as_text(),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        let scalar = self.0.text(value)?;
        Ok(Node {
            line: scalar.line,
            shape: NodeShape::Text(value.to_owned()),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.0.node()?;
        let line = self.0.next_line();
        let mut list = Vec::new();
        while let Some(node) = access.next_element_seed(NodeSeed(self.0))? {
            list.push(node);
        }
        Ok(Node {
            line,
            shape: NodeShape::List(list),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.0.node()?;
        let line = self.0.next_line();
        let mut entries = Vec::new();
        while let Some(key) = access.next_key_seed(KeySeed(self.0))? {
            let node = access.next_value_seed(NodeSeed(self.0))?;
            entries.push((key, node));
        }
        Ok(Node {
            line,
            shape: NodeShape::Map(entries),
        })
    }
}

struct KeySeed<'w, 'a>(&'w mut YamlWalk<'a>);

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Key, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
        let scalar = self.0.text(text)?;
        // An empty key is `~` to the one reader and nothing to the other.
        if scalar.text != text && !text.is_empty() {
            return Err(E::custom(DISAGREE));
        }
        let key = Key {
            line: scalar.line,
            text: text.to_owned(),
        };
        if scalar.plain && !is_text(text) {
            self.0.unusual_keys.push(key.clone());
        }
        Ok(key)
    }
}

/// Tells whether YAML takes an unquoted scalar for text.
fn is_text(plain: &str) -> bool {
    // Only these can begin a number, a truth value or null.
    let may_be_other = plain
        .bytes()
        .next()
        .is_none_or(|b| b.is_ascii_digit() || b"+-.~tTfFnN".contains(&b));
    !may_be_other
        || matches!(
            serde_yaml::from_str(plain),
            Ok(serde_yaml::Value::String(_))
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_believed_that_the_guard_did_not_see() {
        let lists = vec!["[]"; 5_000].join(",");
        let aliases = vec!["*x"; 1_000].join(",");
        let long = "x".repeat(30_000);
        for (seen, hidden) in [
            ("a: 1\n", format!("a: &x [{lists}]\nb: [{aliases}]\n")),
            ("a: [1, 2, 3]\n", format!("a: [&x {long}, *x, *x]\n")),
            ("a: 1\n", "a: 1\nb: 2\n".to_owned()),
            ("a: 1\nb: []\n", "a: 1\n".to_owned()),
            ("a: 1\n", "b: 1\n".to_owned()),
        ] {
            let outline = outline::scan(seen, 1).expect("an outline");
            let read = follow(&hidden, 1, outline);
            let is_refused = matches!(&read, Err(Unread::Unreadable { reason, .. }) if reason.contains(DISAGREE));
            assert!(is_refused, "{seen:?} {hidden:.40}");
        }
    }
}
