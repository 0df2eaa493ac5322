//! Messages as the text of JSON, straight from their bytes.
//!
//! The words are those of `json`, which makes a tree; a test holds both to each
//! other. Most answers are only passed on, and a tree of one costs more than its
//! text: each name and each value is an allocation, to be made and given back.

use std::str;

use base64::Engine as _;
use prost::encoding::{self, DecodeContext, WireType};
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{Map, Value as Json};

use super::json::{self, MAX_DEPTH, TOO_DEEP, append, chunk, is_packed, quote};
use super::shape::{Field, Holds, Shape, Special};
use super::{Contract, Error};

/// A value of a field, as it came.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// Place of the field.
    place: usize,
    came: WireType,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    /// A message, bytes, or several values at once, without their length; else
    /// the bytes of a number.
    Bytes(&'a [u8]),
}

impl<'a> Part<'a> {
    fn bytes(self) -> &'a [u8] {
        match self.value {
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
        }
    }
}

impl Contract {
    /// A message as the text of its JSON, behind what `text` already holds.
    pub(super) fn write_text(
        &self,
        message: &MessageDescriptor,
        bytes: &[u8],
        text: &mut String,
    ) -> Result<(), Error> {
        let shape = self.known(message.full_name())?;
        // Names and marks are about as long as what packs them.
        text.reserve(bytes.len() + bytes.len() / 4 + 512);
        Writer::new(self, text).message(shape, bytes, MAX_DEPTH)
    }
}

struct Writer<'a, 'b, 'c> {
    contract: &'a Contract,
    /// Of all messages that are being written, one inside the other.
    parts: Vec<Part<'b>>,
    text: &'c mut String,
}

impl<'a, 'b, 'c> Writer<'a, 'b, 'c> {
    fn new(contract: &'a Contract, text: &'c mut String) -> Self {
        Self {
            contract,
            parts: Vec::with_capacity(64),
            text,
        }
    }

    fn message(&mut self, shape: &Shape, bytes: &'b [u8], depth: usize) -> Result<(), Error> {
        match shape.special {
            None => self.object(shape, bytes, depth),
            Some(Special::Timestamp | Special::Struct | Special::ListValue | Special::Value) => {
                append(&self.contract.message(shape, bytes, depth)?, self.text);
                Ok(())
            }
        }
    }

    fn object(&mut self, shape: &Shape, bytes: &'b [u8], depth: usize) -> Result<(), Error> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let begin = self.parts.len();
        self.take(shape, bytes, begin)?;
        // Encoders write fields by number, which mostly is the order of the file.
        let mine = self.parts.get_mut(begin..).unwrap_or_default();
        if !mine.is_sorted_by_key(|part| part.place) {
            mine.sort_by_key(|part| part.place);
        }
        self.text.push('{');
        let first = self.text.len();
        let mut at = begin;
        for (place, field) in shape.fields.iter().enumerate() {
            let from = at;
            while self.parts.get(at).is_some_and(|part| part.place == place) {
                at += 1;
            }
            if from == at && (field.holds == Holds::Maybe || field.omit_empty) {
                continue;
            }
            let before = self.text.len();
            if before > first {
                self.text.push(',');
            }
            self.text.push_str(&field.quoted);
            let value = self.text.len();
            if from == at {
                self.text.push_str(&field.zero_text);
                continue;
            }
            self.field(field, from, at, depth)?;
            let empty = field.omit_empty && field.holds != Holds::Maybe;
            if empty && self.text.get(value..) == Some(&*field.zero_text) {
                self.text.truncate(before);
            }
        }
        self.text.push('}');
        self.parts.truncate(begin);
        Ok(())
    }

    /// Takes a message apart.
    fn take(&mut self, shape: &Shape, mut bytes: &'b [u8], begin: usize) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (number, came) = encoding::decode_key(&mut bytes)?;
            let place = shape.place(number);
            let Some((place, field)) = place.and_then(|at| Some((at, shape.fields.get(at)?)))
            else {
                encoding::skip_field(came, number, &mut bytes, DecodeContext::default())?;
                continue;
            };
            let wanted = field.kind.wire_type();
            let value = if is_packed(field, came) {
                Value::Bytes(chunk(&mut bytes)?)
            } else if wanted == WireType::LengthDelimited {
                encoding::check_wire_type(wanted, came)?;
                let chunk = chunk(&mut bytes)?;
                if field.kind == Kind::String {
                    Value::Text(str::from_utf8(chunk).map_err(|_| json::NOT_UTF8)?)
                } else {
                    Value::Bytes(chunk)
                }
            } else {
                encoding::check_wire_type(wanted, came)?;
                let before = bytes;
                encoding::skip_field(came, number, &mut bytes, DecodeContext::default())?;
                let length = before.len() - bytes.len();
                Value::Bytes(before.get(..length).unwrap_or_default())
            };
            if !field.rivals.is_empty() {
                let mut at = 0;
                self.parts.retain(|part| {
                    at += 1;
                    at <= begin || !field.rivals.contains(&part.place)
                });
            }
            self.parts.push(Part { place, came, value });
        }
        Ok(())
    }

    /// The value of a field from its parts, of which there is one at least.
    fn field(&mut self, field: &Field, from: usize, to: usize, depth: usize) -> Result<(), Error> {
        let Some(last) = to
            .checked_sub(1)
            .and_then(|last| self.parts.get(last).copied())
        else {
            return Ok(());
        };
        match field.holds {
            Holds::Map => {
                let mut entries = Map::new();
                for part in self.parts.get(from..to).unwrap_or_default() {
                    let (key, value) = self.contract.entry(field, part.bytes(), depth)?;
                    entries.insert(key, value);
                }
                entries.sort_keys();
                append(&Json::Object(entries), self.text);
                Ok(())
            }
            Holds::List => {
                self.text.push('[');
                let first = self.text.len();
                for at in from..to {
                    let Some(part) = self.parts.get(at).copied() else {
                        break;
                    };
                    if !is_packed(field, part.came) {
                        self.next(first);
                        self.one(field, part, depth)?;
                        continue;
                    }
                    let mut packed = part.bytes();
                    while !packed.is_empty() {
                        self.next(first);
                        number(field, field.kind.wire_type(), &mut packed, self.text)?;
                    }
                }
                self.text.push(']');
                Ok(())
            }
            // One after the other they are what they are together.
            Holds::One | Holds::Maybe if field.message.is_some() && to - from > 1 => {
                let parts = self.parts.get(from..to).unwrap_or_default();
                let parts: Vec<_> = parts.iter().map(|part| part.bytes()).collect();
                let whole = parts.concat();
                let Some(shape) = self.contract.inner(field) else {
                    return Ok(());
                };
                Writer::new(self.contract, self.text).message(shape, &whole, depth)
            }
            Holds::One | Holds::Maybe => self.one(field, last, depth),
        }
    }

    /// A comma, where it is not the first of a list.
    fn next(&mut self, first: usize) {
        if self.text.len() > first {
            self.text.push(',');
        }
    }

    fn one(&mut self, field: &Field, part: Part<'b>, depth: usize) -> Result<(), Error> {
        match (self.contract.inner(field), part.value) {
            (Some(shape), _) => self.message(shape, part.bytes(), depth),
            (None, Value::Text(text)) => {
                quote(text, self.text);
                Ok(())
            }
            (None, Value::Bytes(bytes)) if field.kind == Kind::Bytes => {
                self.text.push('"');
                base64::engine::general_purpose::STANDARD.encode_string(bytes, self.text);
                self.text.push('"');
                Ok(())
            }
            (None, Value::Bytes(mut bytes)) => number(field, part.came, &mut bytes, self.text),
        }
    }
}

/// A value that is neither text nor bytes nor a message.
fn number(
    field: &Field,
    came: WireType,
    bytes: &mut &[u8],
    text: &mut String,
) -> Result<(), Error> {
    append(&json::scalar(field, came, bytes)?, text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use prost::Message as _;
    use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, Value as Any};

    use super::*;

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let high = usize::try_from(self.0 >> 33).expect("31 bits");
            high % bound
        }

        fn text(&mut self) -> String {
            let words = [
                "",
                "a",
                "é\u{2028}😀",
                "\"\\/\u{7f}",
                "\n\r\t\u{8}\u{c}\u{1}\u{1f}",
                "0123456789abcdef",
            ];
            (0..self.below(6))
                .map(|_| words[self.below(words.len())])
                .collect()
        }

        fn whole(&mut self) -> i64 {
            [0, 1, -1, 7, 99, i64::from(i32::MIN), i64::MAX, 1 << 53][self.below(8)]
        }

        fn float(&mut self) -> f64 {
            [0.0, -0.0, 0.5, 3.0, -1e300, 9e15, f64::NAN, f64::INFINITY][self.below(8)]
        }

        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "any number will do"
        )]
        fn one(&mut self, kind: &Kind, depth: usize) -> Any {
            match kind {
                Kind::Bool => Any::Bool(self.below(2) == 1),
                Kind::String => Any::String(self.text()),
                Kind::Bytes => Any::Bytes(self.text().into_bytes().into()),
                Kind::Double => Any::F64(self.float()),
                Kind::Float => Any::F32(self.float() as f32),
                Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Any::I32(self.whole() as i32),
                Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Any::I64(self.whole()),
                Kind::Uint32 | Kind::Fixed32 => Any::U32(self.whole() as u32),
                Kind::Uint64 | Kind::Fixed64 => Any::U64(self.whole() as u64),
                Kind::Enum(_) => Any::EnumNumber((self.whole() % 9) as i32),
                Kind::Message(message) => Any::Message(self.message(message, depth)),
            }
        }

        fn value(&mut self, field: &FieldDescriptor, depth: usize) -> Any {
            let kind = field.kind();
            if let (true, Kind::Message(entry)) = (field.is_map(), &kind) {
                let of = entry.map_entry_value_field().kind();
                let entries = (0..self.below(4)).map(|_| {
                    let key = MapKey::String(self.text());
                    (key, self.one(&of, depth))
                });
                return Any::Map(entries.collect::<HashMap<_, _>>());
            }
            if field.is_list() {
                return Any::List((0..self.below(4)).map(|_| self.one(&kind, depth)).collect());
            }
            self.one(&kind, depth)
        }

        fn message(&mut self, of: &MessageDescriptor, depth: usize) -> DynamicMessage {
            let mut message = DynamicMessage::new(of.clone());
            for field in of.fields() {
                let leaf = !matches!(field.kind(), Kind::Message(_));
                if (leaf || depth > 0) && self.below(3) > 0 {
                    let value = self.value(&field, depth.saturating_sub(1));
                    message.set_field(&field, value);
                }
            }
            message
        }
    }

    /// What both forms make of bytes.
    fn both(contract: &Contract, message: &MessageDescriptor, bytes: &[u8]) -> [Option<String>; 2] {
        let tree = contract.write(message, bytes).ok();
        let mut text = "before".to_owned();
        let written = contract.write_text(message, bytes, &mut text);
        let text = text
            .strip_prefix("before")
            .expect("what was there")
            .to_owned();
        [
            tree.map(|tree| tree.to_string()),
            written.is_ok().then_some(text),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn text_is_what_the_tree_writes(seed in 1_u64..) {
            let contract = Contract::load().expect("the contract");
            let mut random = Random(seed);
            for message in contract.inner.pool.all_messages() {
                if message.is_map_entry() {
                    continue;
                }
                let first = random.message(&message, 4).encode_to_vec();
                let again = random.message(&message, 2).encode_to_vec();
                let [tree, text] = both(&contract, &message, &first);
                prop_assert!(tree.is_some());
                prop_assert_eq!(&tree, &text, "{}", message.full_name());
                // Parts of a message one after the other; bytes that may be none.
                let mut bytes = [first, again].concat();
                let [tree, text] = both(&contract, &message, &bytes);
                prop_assert!(tree.is_some());
                prop_assert_eq!(&tree, &text, "{}", message.full_name());
                if !bytes.is_empty() {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                    let [tree, text] = both(&contract, &message, &bytes);
                    prop_assert_eq!(&tree, &text, "{} {:?}", message.full_name(), bytes);
                }
            }
        }
    }

    #[test]
    fn a_string_is_escaped_as_json_escapes_it_wherever_it_has_to_be() {
        for byte in 0..=0x7f_u8 {
            for before in 0..20 {
                for after in [0, 1, 9] {
                    let special = char::from(byte);
                    let text = format!("{}{special}{}é", "x".repeat(before), "y".repeat(after));
                    let mut quoted = String::new();
                    quote(&text, &mut quoted);
                    assert_eq!(quoted, Json::String(text).to_string());
                }
            }
        }
    }
}
