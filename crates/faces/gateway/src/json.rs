//! What messages and their JSON share: whether bytes are a message, single values, and
//! strings.
//!
//! Where bytes may come to be written later, they are checked when they come.

use prost::Message as _;
use prost::encoding::{self, DecodeContext, WireType};
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::Value as Json;

use super::shape::{Field, Holds, Shape, Special};
use super::values::{from_list, from_struct, from_value, number};
use super::{Contract, Error};

/// Messages inside messages.
pub(super) const MAX_DEPTH: usize = 100;
pub(super) const TOO_DEEP: Error = Error::Malformed("is too deep");
pub(super) const NOT_UTF8: Error = Error::Malformed("has text that is not UTF-8");

impl Contract {
    /// Checks that bytes are such a message, so that writing them cannot fail.
    pub(super) fn check(&self, message: &MessageDescriptor, bytes: &[u8]) -> Result<(), Error> {
        self.check_inside(self.known(message.full_name())?, bytes, MAX_DEPTH)
    }

    fn check_inside(&self, shape: &Shape, mut bytes: &[u8], depth: usize) -> Result<(), Error> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        while !bytes.is_empty() {
            let (number, came) = encoding::decode_key(&mut bytes)?;
            let Some(field) = shape.numbered(number) else {
                encoding::skip_field(came, number, &mut bytes, DecodeContext::default())?;
                continue;
            };
            let wanted = field.kind.wire_type();
            if is_packed(field, came) {
                let mut packed = chunk(&mut bytes)?;
                while !packed.is_empty() {
                    encoding::skip_field(wanted, number, &mut packed, DecodeContext::default())?;
                }
                continue;
            }
            encoding::check_wire_type(wanted, came)?;
            if let Some(inner) = self.inner(field) {
                self.check_inside(inner, chunk(&mut bytes)?, depth)?;
            } else if field.kind == Kind::String {
                let text = std::str::from_utf8(chunk(&mut bytes)?);
                text.map_err(|_| NOT_UTF8)?;
            } else {
                encoding::skip_field(came, number, &mut bytes, DecodeContext::default())?;
            }
        }
        Ok(())
    }

    /// The message that a field holds.
    pub(super) fn inner(&self, field: &Field) -> Option<&Shape> {
        field.message.and_then(|at| self.inner.shapes.get(at))
    }
}

/// Several values at once.
pub(super) fn is_packed(field: &Field, came: WireType) -> bool {
    came == WireType::LengthDelimited
        && field.kind.wire_type() != came
        && field.holds == Holds::List
}

/// Bytes with their length before them.
pub(super) fn chunk<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let length = usize::try_from(encoding::decode_varint(bytes)?).ok();
    let split = length.and_then(|length| bytes.split_at_checked(length));
    let (chunk, rest) = split.ok_or(Error::Malformed("ends too early"))?;
    *bytes = rest;
    Ok(chunk)
}

/// A message that has a JSON of its own.
pub(super) fn well_known(special: Special, bytes: &[u8]) -> Result<Json, Error> {
    Ok(match special {
        Special::Timestamp => timestamp(&prost_types::Timestamp::decode(bytes)?),
        Special::Struct => Json::Object(from_struct(prost_types::Struct::decode(bytes)?)),
        Special::ListValue => from_list(prost_types::ListValue::decode(bytes)?),
        Special::Value => from_value(prost_types::Value::decode(bytes)?),
    })
}

/// A value that is neither text nor bytes nor a message.
pub(super) fn scalar(field: &Field, came: WireType, bytes: &mut &[u8]) -> Result<Json, Error> {
    macro_rules! read {
        ($kind:ident) => {{
            let mut value = Default::default();
            encoding::$kind::merge(came, &mut value, bytes, DecodeContext::default())?;
            value
        }};
    }
    Ok(match &field.kind {
        Kind::Bool => read!(bool).into(),
        Kind::Int32 => read!(int32).into(),
        Kind::Sint32 => read!(sint32).into(),
        Kind::Sfixed32 => read!(sfixed32).into(),
        Kind::Int64 => read!(int64).into(),
        Kind::Sint64 => read!(sint64).into(),
        Kind::Sfixed64 => read!(sfixed64).into(),
        Kind::Uint32 => read!(uint32).into(),
        Kind::Fixed32 => read!(fixed32).into(),
        Kind::Uint64 => read!(uint64).into(),
        Kind::Fixed64 => read!(fixed64).into(),
        Kind::Float => number(read!(float).into()),
        Kind::Double => number(read!(double)),
        Kind::Enum(_) => field.name_of(read!(int32)).into(),
        Kind::String | Kind::Bytes | Kind::Message(_) => {
            return Err(Error::Malformed("is no single value"));
        }
    })
}

fn timestamp(time: &prost_types::Timestamp) -> Json {
    jiff::Timestamp::new(time.seconds, time.nanos)
        .map_or(Json::Null, |time| time.to_string().into())
}

/// A tree of JSON as text. Its keys are strings, so writing it cannot fail.
pub(super) fn append(json: &Json, text: &mut String) {
    match json {
        Json::String(string) => quote(string, text),
        other => text.push_str(&serde_json::to_string(other).unwrap_or_default()),
    }
}

/// A string as JSON has it, in half of the time that `serde_json` takes: an answer is mostly
/// strings, and most of them have nothing to escape.
pub(super) fn quote(string: &str, text: &mut String) {
    text.push('"');
    // Without an early exit the compiler vectorizes the loop, which is faster than to stop.
    let escaped = |byte| u8::from(matches!(byte, 0..=0x1f | b'"' | b'\\'));
    if string.bytes().fold(0, |found, byte| found | escaped(byte)) > 0 {
        escape(string, text);
    } else {
        text.push_str(string);
    }
    text.push('"');
}

/// Escapes the inside of a JSON string as `serde_json` does.
pub fn escape(string: &str, text: &mut String) {
    let mut rest = string;
    while let Some(at) = special(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        text.push_str(plain);
        let mut chars = from.chars();
        match chars.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\n') => text.push_str("\\n"),
            Some('\r') => text.push_str("\\r"),
            Some('\t') => text.push_str("\\t"),
            Some('\u{8}') => text.push_str("\\b"),
            Some('\u{c}') => text.push_str("\\f"),
            Some(other) => {
                let quoted = serde_json::to_string(&other).unwrap_or_default();
                text.push_str(quoted.trim_matches('"'));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
}

/// Returns the index of the first byte that a JSON string cannot hold as it is, eight bytes
/// at a time.
fn special(bytes: &[u8]) -> Option<usize> {
    const EVERY_BYTE: u64 = 0x0101_0101_0101_0101;
    // The highest bit of the first byte below a bound, and maybe of later ones.
    let below =
        |word: u64, bound: u64| word.wrapping_sub(EVERY_BYTE * bound) & !word & (EVERY_BYTE << 7);
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (EVERY_BYTE * u64::from(b'"')), 1);
        let back = below(word ^ (EVERY_BYTE * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | back;
        if found != 0 {
            let before = bytes.len() - rest.len();
            return Some(before + found.trailing_zeros() as usize / 8);
        }
        rest = after;
    }
    let found = rest
        .iter()
        .position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\'));
    found.map(|at| bytes.len() - rest.len() + at)
}
