//! Answers of tools, as text that is passed on unparsed.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::Refusal;
use super::json::{append, quote};
use super::shape::{BlockKind, Shape};

/// The answer of a tool.
#[derive(Debug, Clone)]
pub struct ToolAnswer {
    /// The content for a model. Empty: the text of the structured answer.
    pub blocks: Vec<Block>,
    /// The content for a program. None: there are only blocks.
    pub structured: Option<JsonText>,
    /// The session of skills that it names: a connection remembers it.
    pub session: Option<String>,
    /// The reason for a refusal.
    pub refusal: Option<Refusal>,
}

/// A part of the content for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A text.
    Text(String),
    /// An image.
    Image {
        /// Its bytes in base64.
        base64: String,
        /// Its media type.
        mime_type: String,
    },
    /// Bytes that are read from elsewhere.
    Link {
        /// Their address.
        uri: String,
        /// Their media type.
        mime_type: String,
    },
}

/// The field with the media type of what a block shows or links to.
const MIME_TYPE: &str = "mime_type";

/// Returns the blocks of an answer, made of the fields that the contract marks. None: it marks
/// none.
pub(super) fn blocks(shape: &Shape, answer: &JsonText) -> Option<Vec<Block>> {
    let of_blocks = || {
        let fields = shape.fields.iter();
        fields.filter_map(|field| Some((field, field.block?)))
    };
    of_blocks().next()?;
    // Only these members are parsed: an answer may have much more than what is shown of it.
    let is_shown = |name: &str| {
        let field = shape.field(name);
        name == MIME_TYPE || field.is_some_and(|field| field.block.is_some())
    };
    let answer = answer.members(is_shown);
    let text = |name: &str| answer.get(name).and_then(Json::as_str).unwrap_or_default();
    let mime_type = || text(MIME_TYPE).to_owned();
    let mut blocks: Vec<_> = of_blocks()
        .filter(|(field, _)| !text(&field.json).is_empty())
        .map(|(field, kind)| {
            let text = text(&field.json).to_owned();
            match kind {
                BlockKind::Text => Block::Text(text),
                BlockKind::Image => Block::Image {
                    base64: text,
                    mime_type: mime_type(),
                },
                BlockKind::Link => Block::Link {
                    uri: text,
                    mime_type: mime_type(),
                },
            }
        })
        .collect();
    // Without a block a face would show the whole structured answer: an empty file is an
    // empty text.
    if blocks.is_empty() {
        blocks.push(Block::Text(String::new()));
    }
    Some(blocks)
}

/// The text of a JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(pub(super) String);

impl JsonText {
    /// The text of this one.
    #[must_use]
    pub fn of(json: &Json) -> Self {
        let mut text = String::new();
        append(json, &mut text);
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text.
    #[must_use]
    pub fn json(&self) -> Json {
        // Never fails: we wrote the text.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Parses the members of the object that are wanted, and skips the others.
    pub(super) fn members(&self, is_wanted: impl Fn(&str) -> bool) -> Map<String, Json> {
        let mut text = serde_json::Deserializer::from_str(&self.0);
        // Never fails: we wrote the text.
        text.deserialize_map(Members(is_wanted)).unwrap_or_default()
    }
}

/// Takes the members of an object whose names are wanted.
struct Members<F>(F);

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Members<F> {
    type Value = Map<String, Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut taken = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if (self.0)(&name) {
                taken.insert(name, members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(taken)
    }
}

/// Facts about the call itself, for an envelope.
pub(super) struct Metadata<'a> {
    pub(super) took: Duration,
    /// The state of the index that the answer was found in, where it was.
    pub(super) index_version: Option<&'a str>,
    pub(super) request_id: &'a str,
}

/// Wraps an answer in an envelope.
pub(super) fn envelope(
    data: Option<&JsonText>,
    error: Option<&Json>,
    metadata: &Metadata<'_>,
) -> JsonText {
    // Written as text: `data` is JSON already and may be long.
    let mut text = String::with_capacity(data.map_or(0, |data| data.0.len()) + 256);
    text.push_str("{\"success\":");
    text.push_str(if error.is_none() { "true" } else { "false" });
    let mut member = |name: &str, write: &dyn Fn(&mut String)| {
        text.push(',');
        quote(name, &mut text);
        text.push(':');
        write(&mut text);
    };
    if let Some(data) = data {
        member("data", &|text| text.push_str(&data.0));
    }
    if let Some(error) = error {
        member("error", &|text| append(error, text));
    }
    let millis = (metadata.took.as_secs_f64() * 1e6).round() / 1e3;
    // Answers are computed at each call, and never taken from a cache.
    let mut members = Map::new();
    members.insert("execution_time_ms".to_owned(), millis.into());
    members.insert("cached".to_owned(), false.into());
    if let Some(version) = metadata.index_version {
        members.insert("index_version".to_owned(), version.into());
    }
    members.insert("request_id".to_owned(), metadata.request_id.into());
    let members = Json::Object(members);
    member("metadata", &|text| append(&members, text));
    text.push('}');
    JsonText(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_are_not_wanted_are_passed_over_with_all_that_is_in_them() {
        let text = r#"{"in":{"text":1},"text":"shown","list":[{"text":2},null],"\u0062":true}"#;
        let answer = JsonText(text.to_owned());
        let taken = answer.members(|name| name == "text" || name == "b");
        assert_eq!(Json::Object(taken), json!({"text": "shown", "b": true}));
    }
}
