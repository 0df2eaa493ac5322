//! JSON that means one thing.
//!
//! Most readers keep the last of two equal keys and say nothing; two readers on the
//! way of a request may then disagree on its meaning. Here such text is refused.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::Refusal;
use super::parse::escaped;
use model::{Code, Failure};

/// Objects and arrays inside one another. Messages of the contract need far fewer;
/// the parser below would give up at 128 with a sentence of its own.
const MAX_DEPTH: usize = 100;

/// Reads JSON text, and refuses an object that has a key twice, at any depth.
///
/// # Errors
/// The text is no JSON, goes deeper than 100 levels, or repeats a key.
pub fn strict_json(text: &[u8]) -> Result<Json, Refusal> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = Strict { depth: 0 }.deserialize(&mut reader);
    let read = read.and_then(|json| reader.end().map(|()| json));
    read.map_err(|error| {
        let sentence = error.to_string();
        // Data errors are our own sentences; all others are of the parser.
        let sentence = if error.is_data() {
            sentence
        } else if sentence.starts_with("number out of range") {
            format!("The text is no JSON: {sentence}; send such a number as a string")
        } else {
            format!("The text is no JSON: {error}")
        };
        Failure::new(Code::InvalidParameter, sentence)
            .suggest("Send one JSON value in UTF-8, with each key of an object once")
            .into()
    })
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            let sentence = format!("The JSON goes deeper than {MAX_DEPTH} levels");
            return Err(E::custom(sentence));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        // `into` makes null of NaN and infinity, but the parser has refused these.
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let inside = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let inside = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            // Before the value is read, so that an error names the line of the second key.
            if object.contains_key(&key) {
                let sentence = format!("The key '{}' is there twice", escaped(&key));
                return Err(A::Error::custom(sentence));
            }
            let value = entries.next_value_seed(inside)?;
            object.insert(key, value);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &[u8]) -> String {
        strict_json(text).expect_err("a refusal").message
    }

    #[test]
    fn json_is_read_as_it_stands() {
        let text = r#"{"a":[1,-2,0.5,true,null,"\u00e9"],"b":{"a":18446744073709551615}}"#;
        let read = strict_json(text.as_bytes()).expect("JSON");
        assert_eq!(read.to_string(), text.replace("\\u00e9", "é"));
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_at_any_depth() {
        assert_eq!(
            refused(br#"{"a":1,"b":[{"c":2,"c":3}]}"#),
            "The key 'c' is there twice at line 1 column 22"
        );
        // The same key, spelled another way.
        assert!(refused(br#"{"a":1,"\u0061":2}"#).starts_with("The key 'a' is there twice"));
        strict_json(br#"{"a":{"a":1},"A":1}"#).expect("two keys");
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, index) in [
            (&b"{"[..], "line 1 column 1"),
            (b"", "line 1 column 0"),
            (b"{} {}", "line 1 column 4"),
            (b"{\"a\":NaN}", "line 1 column 6"),
            (b"[1e999]", "line 1 column"),
            (b"\"\xff\"", "line 1 column 2"),
            (b"\"\\ud800\"", "line 1 column"),
            (b"\xef\xbb\xbf{}", "line 1 column 1"),
            (b"{'a':1}", "line 1 column 2"),
        ] {
            let sentence = refused(text);
            assert!(sentence.contains(index), "{sentence}");
            assert!(sentence.starts_with("The text is no JSON: "), "{sentence}");
        }
    }

    #[test]
    fn a_number_that_no_double_holds_is_told_from_what_is_no_json() {
        assert_eq!(
            refused(b"{\"id\": 1e400}"),
            "The text is no JSON: number out of range at line 1 column 12; send such a number as a string"
        );
    }

    #[test]
    fn json_may_go_as_deep_as_the_limit_and_no_deeper() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        strict_json(&nested(MAX_DEPTH)).expect("the limit");
        for depth in [MAX_DEPTH + 1, 10_000, 1_000_000] {
            let sentence = refused(&nested(depth));
            assert!(
                sentence.starts_with("The JSON goes deeper than 100 levels"),
                "{sentence}"
            );
        }
    }
}
