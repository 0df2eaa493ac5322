//! Front matter as a tree: values as YAML types them, texts as written.

use serde_json::{Map, Number, Value};

use super::outline::Scalar;

/// A key with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) line: usize,
    pub(super) text: String,
}

/// A value with the line that it begins on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) shape: NodeShape,
}

/// A value. Scalars carry their text as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeShape {
    Null,
    Bool(bool, String),
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// Front matter that could be read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tree {
    pub(super) entries: Vec<(Key, Node)>,
    /// Numbers that JSON cannot hold; the tree has them as text.
    pub(super) numbers: Vec<Scalar>,
    /// Keys that YAML does not take for text, such as `1` and `true`.
    pub(super) unusual_keys: Vec<Key>,
}

impl Node {
    /// Returns the text of a scalar, as written; none for null, a list or a map.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.shape {
            NodeShape::Bool(_, text) | NodeShape::Number(_, text) | NodeShape::Text(text) => {
                Some(text)
            }
            NodeShape::Null | NodeShape::List(_) | NodeShape::Map(_) => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        self.shape == NodeShape::Null
    }

    /// The kind of value, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self.shape {
            NodeShape::Null => "empty",
            NodeShape::Bool(..) => "true or false",
            NodeShape::Number(..) => "a number",
            NodeShape::Text(_) => "text",
            NodeShape::List(_) => "a list",
            NodeShape::Map(_) => "a map",
        }
    }

    pub(super) fn json(&self) -> Value {
        match &self.shape {
            NodeShape::Null => Value::Null,
            NodeShape::Bool(value, _) => Value::Bool(*value),
            NodeShape::Number(number, _) => Value::Number(number.clone()),
            NodeShape::Text(text) => Value::String(text.clone()),
            NodeShape::List(list) => Value::Array(list.iter().map(Self::json).collect()),
            NodeShape::Map(entries) => Value::Object(json(entries)),
        }
    }
}

/// A map as JSON, in the order of the file.
pub(super) fn json(entries: &[(Key, Node)]) -> Map<String, Value> {
    entries
        .iter()
        .map(|(key, node)| (key.text.clone(), node.json()))
        .collect()
}
