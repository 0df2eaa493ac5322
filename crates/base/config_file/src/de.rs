//! The tree as serde reads it. A mistake gets its key and its line on the way out.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Expected, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::{Error, words};
use super::tree::{Node, Value};
use super::{Bounds, SECRET, inside};

/// The state that all values of one reading share.
pub(super) struct Context<'a> {
    bounds: Bounds,
    /// Keys that are skipped.
    removed: &'a BTreeSet<String>,
    secrets: RefCell<BTreeSet<String>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(bounds: Bounds, removed: &'a BTreeSet<String>) -> Self {
        Self {
            bounds,
            removed,
            secrets: RefCell::default(),
        }
    }

    pub(super) fn secrets(&self) -> BTreeSet<String> {
        self.secrets.borrow().clone()
    }
}

/// A value at its key.
pub(super) struct De<'a> {
    node: &'a Node,
    key: String,
    context: &'a Context<'a>,
}

/// The meaning of a scalar that is written without quotes.
enum Plain {
    Nothing,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text,
}

fn plain(text: &str) -> Plain {
    let digits = |prefix| text.strip_prefix(prefix);
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Nothing,
        // YAML 1.2: `yes`, `no`, `on` and `off` are texts.
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        _ => {}
    }
    let based = digits("0x").map(|hex| u64::from_str_radix(hex, 16));
    let based = based.or_else(|| digits("0o").map(|octal| u64::from_str_radix(octal, 8)));
    if let Some(Ok(number)) = based {
        return Plain::Unsigned(number);
    }
    // `infinity` and its like are words here.
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return Plain::Text;
    }
    let unsigned = text.parse::<u64>().map(Plain::Unsigned);
    let whole = unsigned.or_else(|_| text.parse::<i64>().map(Plain::Signed));
    let number = whole.or_else(|_| text.parse::<f64>().map(Plain::Float));
    number.unwrap_or(Plain::Text)
}

impl<'a> De<'a> {
    pub(super) fn new(node: &'a Node, key: String, context: &'a Context<'a>) -> Self {
        Self { node, key, context }
    }

    fn plain(&self) -> Option<Plain> {
        match &self.node.value {
            Value::Scalar { text, plain: true } => Some(plain(text)),
            _ => None,
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self.plain(), Some(Plain::Nothing))
    }

    fn found(&self) -> Unexpected<'static> {
        match (&self.node.value, self.plain()) {
            (Value::List(_), _) => Unexpected::Seq,
            (Value::Map(_), _) => Unexpected::Map,
            (_, Some(Plain::Nothing)) => Unexpected::Unit,
            (_, Some(Plain::Bool(yes))) => Unexpected::Bool(yes),
            (_, Some(Plain::Unsigned(number))) => Unexpected::Unsigned(number),
            (_, Some(Plain::Signed(number))) => Unexpected::Signed(number),
            (_, Some(Plain::Float(number))) => Unexpected::Float(number),
            _ => Unexpected::Str(""),
        }
    }

    fn wrong(&self, needed: &dyn Expected) -> Error {
        if self.key.is_empty() {
            let needed = &"keys with values, such as `listen: 127.0.0.1:50051`";
            return <Error as de::Error>::invalid_type(self.found(), needed).at("", self.node.line);
        }
        <Error as de::Error>::invalid_type(self.found(), needed).at(&self.key, self.node.line)
    }

    /// A whole number within the bounds of its key and of its type.
    fn whole(&self, max: u64) -> Result<u64, Error> {
        let bounds = (self.context.bounds)(&self.key);
        let (min, max) = (*bounds.start(), max.min(*bounds.end()));
        match self.plain() {
            Some(Plain::Unsigned(number)) if (min..=max).contains(&number) => Ok(number),
            found => {
                let found = match found {
                    Some(Plain::Unsigned(_) | Plain::Signed(_) | Plain::Float(_)) => "",
                    Some(Plain::Nothing) => "nothing",
                    _ => match self.node.value {
                        Value::Scalar { .. } => "a text",
                        Value::List(_) => "a list",
                        Value::Map(_) => "keys with values",
                    },
                };
                let needed = format!("a whole number from {min} to {max}");
                Err(Error::needs(&needed, found).at(&self.key, self.node.line))
            }
        }
    }
}

macro_rules! whole {
    ($($method:ident $visit:ident $number:ty),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = self.whole(u64::from(<$number>::MAX))?;
            // Within the bounds that were asked for.
            visitor.$visit(<$number>::try_from(number).unwrap_or(<$number>::MAX))
        })*
    };
}

impl<'de, 'a: 'de> de::Deserializer<'de> for De<'a> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (key, line) = (self.key.clone(), self.node.line);
        let read = match (&self.node.value, self.plain()) {
            (Value::List(_), _) => return self.deserialize_seq(visitor),
            (Value::Map(_), _) => return self.deserialize_map(visitor),
            (_, Some(Plain::Nothing)) => visitor.visit_unit(),
            (_, Some(Plain::Bool(yes))) => visitor.visit_bool(yes),
            (_, Some(Plain::Unsigned(number))) => visitor.visit_u64(number),
            (_, Some(Plain::Signed(number))) => visitor.visit_i64(number),
            (_, Some(Plain::Float(number))) => visitor.visit_f64(number),
            (Value::Scalar { text, .. }, _) => visitor.visit_str(text),
        };
        read.map_err(|error: Error| error.at(&key, line))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.plain() {
            Some(Plain::Bool(yes)) => visitor.visit_bool(yes),
            _ => Err(self.wrong(&visitor)),
        }
    }

    whole!(
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64
    );

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            // Also without quotes: `name: 8080` is a text where one is wanted.
            Value::Scalar { text, .. } if !self.is_nothing() => visitor
                .visit_str(text)
                .map_err(|error: Error| error.at(&self.key, self.node.line)),
            _ => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_nothing() {
            // A key without a value is as if it were left out.
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == SECRET {
            let mut secrets = self.context.secrets.borrow_mut();
            secrets.insert(self.key.clone());
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let items: &[Node] = match &self.node.value {
            Value::List(items) => items,
            _ if self.is_nothing() => &[],
            _ => return Err(self.wrong(&visitor)),
        };
        let (key, line) = (self.key.clone(), self.node.line);
        let items = items.iter().enumerate();
        let read = visitor.visit_seq(Items { of: self, items });
        read.map_err(|error: Error| error.at(&key, line))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let entries: &[(String, Node)] = match &self.node.value {
            Value::Map(entries) => entries,
            _ if self.is_nothing() => &[],
            _ => return Err(self.wrong(&visitor)),
        };
        let (key, line) = (self.key.clone(), self.node.line);
        let entries = Entries {
            of: self,
            next: entries.iter(),
            value: None,
        };
        let read = visitor.visit_map(entries);
        read.map_err(|error: Error| error.at(&key, line))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let read = match &self.node.value {
            Value::Scalar { text, .. } if !self.is_nothing() => {
                let name: StrDeserializer<'_, Error> = text.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            _ => {
                let needed = format!("one of {}", names.join(", "));
                Err(Error::needs(&needed, ""))
            }
        };
        read.map_err(|error: Error| error.at(&self.key, self.node.line))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct ignored_any
    }
}

struct Items<'a> {
    of: De<'a>,
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de, 'a: 'de> SeqAccess<'de> for Items<'a> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        for (at, item) in self.items.by_ref() {
            let key = format!("{}[{at}]", self.of.key);
            if !self.of.context.removed.contains(&key) {
                let line = item.line;
                let item = seed.deserialize(De::new(item, key.clone(), self.of.context));
                return item.map(Some).map_err(|error| error.at(&key, line));
            }
        }
        Ok(None)
    }
}

struct Entries<'a> {
    of: De<'a>,
    next: std::slice::Iter<'a, (String, Node)>,
    value: Option<(String, &'a Node)>,
}

impl<'de, 'a: 'de> MapAccess<'de> for Entries<'a> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        for (name, node) in self.next.by_ref() {
            let key = inside(&self.of.key, name);
            if self.of.context.removed.contains(&key) {
                continue;
            }
            let word: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
            let word = seed.deserialize(word);
            let word = word.map_err(|error| error.at(&key, node.line))?;
            self.value = Some((key, node));
            return Ok(Some(word));
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some((key, node)) = self.value.take() else {
            return Err(Error::new(words(&"a value after a key")));
        };
        let line = node.line;
        let value = seed.deserialize(De::new(node, key.clone(), self.of.context));
        // A conversion reports its mistake after the value was read.
        value.map_err(|error| error.at(&key, line))
    }
}
