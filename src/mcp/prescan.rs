//! A first look at a message, in one pass and without a tree.
//!
//! Nearly all messages are as they should be. This look knows such a message for
//! certain; of any other it knows nothing, and `strict` looks closely and says
//! what is wrong.

use std::borrow::Cow;
use std::fmt;

use rmcp::model::ProtocolVersion;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Objects and arrays inside one another, and keys of an object: a look at more
/// than that is a close one.
const MAX_DEPTH: usize = 32;
const MAX_KEYS: usize = 32;

/// The method that asks for a stream of what changes.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// Where a request names its protocol.
pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What a message is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glance {
    version: bool,
    /// Whether its method asks for a stream of what changes.
    method: Option<bool>,
    /// It says that it is of the newest protocol.
    pub(super) newest: bool,
}

/// Looks at a request or a notification other than `initialize`. None: it is
/// something else, or something is wrong with it.
pub(super) fn glance(text: &[u8]) -> Option<Glance> {
    let mut glance = Glance::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let look = Look {
        glance: &mut glance,
        place: Place::Message,
        depth: 0,
    };
    let seen = look.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    (seen == Seen::Object && glance.version && glance.method.is_some()).then_some(glance)
}

impl Glance {
    /// It asks for a stream of what changes.
    pub(super) fn listens(self) -> bool {
        self.method == Some(true)
    }

    /// Notes a member; false: it may be wrong.
    fn note(&mut self, place: Place, key: &str, value: &Seen<'_>) -> bool {
        let text = match value {
            Seen::Text(text) => Some(&**text),
            _ => None,
        };
        match (place, key) {
            (Place::Message, "jsonrpc") => {
                self.version = true;
                text == Some("2.0")
            }
            (Place::Message, "id") => text.is_some() || *value == Seen::Whole,
            (Place::Message, "method") => {
                self.method = Some(text == Some(LISTEN));
                text.is_some_and(|method| method != "initialize")
            }
            (Place::Message, "params") => *value == Seen::Object,
            (Place::Message, "result" | "error") => false,
            (Place::Params, "cursor") => text.is_some(),
            (Place::Meta, VERSION) => {
                self.newest = text == Some(ProtocolVersion::V_2026_07_28.as_str());
                true
            }
            _ => true,
        }
    }
}

/// Which object it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Message,
    Params,
    Meta,
    Elsewhere,
}

/// What a value is.
#[derive(Debug, PartialEq, Eq)]
enum Seen<'a> {
    Text(Cow<'a, str>),
    Whole,
    Object,
    Other,
}

struct Look<'g> {
    glance: &'g mut Glance,
    place: Place,
    depth: usize,
}

impl Look<'_> {
    fn inside(&mut self, place: Place) -> Look<'_> {
        Look {
            glance: self.glance,
            place,
            depth: self.depth + 1,
        }
    }
}

fn close<E: serde::de::Error>() -> E {
    E::custom("a close look is needed")
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = Seen<'de>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Seen<'de>, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(close());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = Seen<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Seen<'de>, E> {
        Ok(Seen::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Seen<'de>, E> {
        Ok(Seen::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Seen<'de>, E> {
        Ok(Seen::Whole)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Seen<'de>, E> {
        Ok(Seen::Whole)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Seen<'de>, E> {
        Ok(Seen::Other)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Seen<'de>, E> {
        Ok(Seen::Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Seen<'de>, E> {
        Ok(Seen::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Seen<'de>, A::Error> {
        while items
            .next_element_seed(self.inside(Place::Elsewhere))?
            .is_some()
        {}
        Ok(Seen::Other)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Seen<'de>, A::Error> {
        let mut keys = Vec::with_capacity(8);
        while let Some(key) = entries.next_key_seed(Key)? {
            if keys.len() == MAX_KEYS || keys.contains(&key) {
                return Err(close());
            }
            let place = match (self.place, &*key) {
                (Place::Message, "params") => Place::Params,
                (Place::Params, "_meta") => Place::Meta,
                _ => Place::Elsewhere,
            };
            let value = entries.next_value_seed(self.inside(place))?;
            if !self.glance.note(self.place, &key, &value) {
                return Err(A::Error::custom("it may be wrong"));
            }
            keys.push(key);
        }
        Ok(Seen::Object)
    }
}

/// A key, which mostly is a piece of the text.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(key.into())
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(key.to_owned().into())
    }
}
