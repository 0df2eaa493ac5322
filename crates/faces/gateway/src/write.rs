//! Messages as the text of JSON, straight from their bytes.
//!
//! Most answers are only passed on, and to unpack one into a message by descriptor, or into
//! a tree of JSON, costs more than its text: each name and each value is an allocation, to
//! be made and given back. Where a tree is needed, the text is parsed.

use std::collections::BTreeMap;
use std::str;

use base64::Engine as _;
use prost::encoding::{self, DecodeContext, WireType};
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{Map, Value as Json};

use super::json::{self, MAX_DEPTH, TOO_DEEP, append, chunk, is_packed, quote, well_known};
use super::shape::{Field, Holds, Shape};
use super::{Contract, Error};

/// A value of a field, as it came.
#[derive(Clone, Copy)]
struct WireField<'a> {
    /// Index of the field.
    index: usize,
    came: WireType,
    value: WireValue<'a>,
}

#[derive(Clone, Copy)]
enum WireValue<'a> {
    Text(&'a str),
    /// A message, bytes, or several values at once, without their length; else
    /// the bytes of a number.
    Bytes(&'a [u8]),
}

impl<'a> WireField<'a> {
    fn bytes(self) -> &'a [u8] {
        match self.value {
            WireValue::Text(text) => text.as_bytes(),
            WireValue::Bytes(bytes) => bytes,
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
        self.write_shape(self.known(message.full_name())?, bytes, text)
    }

    fn write_shape(&self, shape: &Shape, bytes: &[u8], text: &mut String) -> Result<(), Error> {
        // Names and marks are about as long as what packs them.
        text.reserve(bytes.len() + bytes.len() / 4 + 512);
        Writer::new(self, text).message(shape, bytes, MAX_DEPTH)
    }

    /// A message as JSON.
    pub(super) fn write(&self, message: &MessageDescriptor, bytes: &[u8]) -> Result<Json, Error> {
        self.json_of(self.known(message.full_name())?, bytes)
    }

    pub(super) fn json_of(&self, shape: &Shape, bytes: &[u8]) -> Result<Json, Error> {
        let mut text = String::new();
        self.write_shape(shape, bytes, &mut text)?;
        serde_json::from_str(&text).map_err(|_| TOO_DEEP)
    }
}

struct Writer<'a, 'b, 'c> {
    contract: &'a Contract,
    /// Of all messages that are being written, one inside the other.
    parts: Vec<WireField<'b>>,
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
        let Some(special) = shape.special else {
            return self.object(shape, bytes, depth);
        };
        append(&well_known(special, bytes)?, self.text);
        Ok(())
    }

    fn object(&mut self, shape: &Shape, bytes: &'b [u8], depth: usize) -> Result<(), Error> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let begin = self.parts.len();
        self.take(shape, bytes, begin)?;
        // Mostly sorted already: encoders write fields by number, and files declare them so.
        let mine = self.parts.get_mut(begin..).unwrap_or_default();
        if !mine.is_sorted_by_key(|part| part.index) {
            mine.sort_by_key(|part| part.index);
        }
        self.text.push('{');
        let first = self.text.len();
        let mut at = begin;
        for (index, field) in shape.fields.iter().enumerate() {
            let from = at;
            while self.parts.get(at).is_some_and(|part| part.index == index) {
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
            // An encoder may send a zero explicitly, which is empty as well.
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
            let index = shape.index(number);
            let Some((index, field)) = index.and_then(|at| Some((at, shape.fields.get(at)?)))
            else {
                encoding::skip_field(came, number, &mut bytes, DecodeContext::default())?;
                continue;
            };
            let wanted = field.kind.wire_type();
            let value = if is_packed(field, came) {
                WireValue::Bytes(chunk(&mut bytes)?)
            } else if wanted == WireType::LengthDelimited {
                encoding::check_wire_type(wanted, came)?;
                let chunk = chunk(&mut bytes)?;
                if field.kind == Kind::String {
                    WireValue::Text(str::from_utf8(chunk).map_err(|_| json::NOT_UTF8)?)
                } else {
                    WireValue::Bytes(chunk)
                }
            } else {
                encoding::check_wire_type(wanted, came)?;
                let before = bytes;
                encoding::skip_field(came, number, &mut bytes, DecodeContext::default())?;
                let length = before.len() - bytes.len();
                WireValue::Bytes(before.get(..length).unwrap_or_default())
            };
            // Of a oneof the last field wins, as in every decoder of protobuf.
            if !field.rivals.is_empty() {
                let mut at = 0;
                self.parts.retain(|part| {
                    at += 1;
                    at <= begin || !field.rivals.contains(&part.index)
                });
            }
            self.parts.push(WireField { index, came, value });
        }
        Ok(())
    }

    /// The value of a field from its parts, of which there is one at least.
    fn field(&mut self, field: &Field, from: usize, to: usize, depth: usize) -> Result<(), Error> {
        let parts = self.parts.get(from..to).unwrap_or_default();
        let Some(last) = parts.last().copied() else {
            return Ok(());
        };
        match field.holds {
            Holds::Map => self.map(field, from, to, depth),
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
            // Protobuf merges a message that comes in several parts; their bytes joined are that.
            Holds::One | Holds::Maybe if field.message.is_some() && to - from > 1 => {
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

    /// The entries of a map, in the order of their keys.
    fn map(&mut self, field: &Field, from: usize, to: usize, depth: usize) -> Result<(), Error> {
        let Some(shape) = self.contract.inner(field) else {
            return Ok(());
        };
        let mut entries = BTreeMap::new();
        for part in self.parts.get(from..to).unwrap_or_default() {
            let mut text = String::new();
            Writer::new(self.contract, &mut text).object(shape, part.bytes(), depth)?;
            let entry = serde_json::from_str(&text).map_err(|_| TOO_DEEP)?;
            let (key, value) = self.entry(shape, entry, depth)?;
            entries.insert(key, value);
        }
        self.text.push('{');
        let first = self.text.len();
        for (key, value) in &entries {
            self.next(first);
            quote(key, self.text);
            self.text.push(':');
            self.text.push_str(value);
        }
        self.text.push('}');
        Ok(())
    }

    /// Key and value of an entry. A message that is missing is an empty one.
    fn entry(
        &self,
        shape: &Shape,
        mut entry: Map<String, Json>,
        depth: usize,
    ) -> Result<(String, String), Error> {
        let key = match entry.swap_remove("key") {
            Some(Json::String(key)) => key,
            other => other.unwrap_or_default().to_string(),
        };
        let mut text = String::new();
        if let Some(value) = entry.swap_remove("value") {
            append(&value, &mut text);
            return Ok((key, text));
        }
        match shape
            .field("value")
            .and_then(|field| self.contract.inner(field))
        {
            Some(shape) => Writer::new(self.contract, &mut text).message(shape, &[], depth)?,
            None => text.push_str("null"),
        }
        Ok((key, text))
    }

    /// A comma, where it is not the first of a list.
    fn next(&mut self, first: usize) {
        if self.text.len() > first {
            self.text.push(',');
        }
    }

    fn one(&mut self, field: &Field, part: WireField<'b>, depth: usize) -> Result<(), Error> {
        match (self.contract.inner(field), part.value) {
            (Some(shape), _) => self.message(shape, part.bytes(), depth),
            (None, WireValue::Text(text)) => {
                quote(text, self.text);
                Ok(())
            }
            (None, WireValue::Bytes(bytes)) if field.kind == Kind::Bytes => {
                self.text.push('"');
                base64::engine::general_purpose::STANDARD.encode_string(bytes, self.text);
                self.text.push('"');
                Ok(())
            }
            (None, WireValue::Bytes(mut bytes)) => number(field, part.came, &mut bytes, self.text),
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
