//! Text by bytes is what the descriptor says.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use prost_reflect::{FieldDescriptor, Kind, MapKey, Value as Any};

use super::super::json::{quote, well_known};
use super::super::shape::{Field, Holds};
use super::super::values::number;
use super::*;
use base64::Engine as _;

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

/// A message as JSON, by its descriptor: slow, and another way than by its bytes.
fn tree(contract: &Contract, message: &DynamicMessage) -> Json {
    let shape = contract
        .known(message.descriptor().full_name())
        .expect("a shape");
    if let Some(special) = shape.special {
        return well_known(special, &message.encode_to_vec()).expect("a well-known message");
    }
    let mut object = Map::new();
    for shown in &shape.fields {
        let field = &shown.descriptor;
        let is_set = message.has_field(field);
        if !is_set && (shown.holds == Holds::Maybe || shown.omit_empty) {
            continue;
        }
        let value = if is_set {
            value_of(contract, shown, &message.get_field(field))
        } else {
            shown.zero.clone()
        };
        if shown.omit_empty && shown.holds != Holds::Maybe && value == shown.zero {
            continue;
        }
        object.insert(shown.json.clone(), value);
    }
    Json::Object(object)
}

fn value_of(contract: &Contract, field: &Field, value: &Any) -> Json {
    match value {
        Any::Message(message) => tree(contract, message),
        Any::List(list) => list
            .iter()
            .map(|it| value_of(contract, field, it))
            .collect(),
        Any::Map(map) => {
            let of = contract.inner(field).and_then(|entry| entry.field("value"));
            let entries = map.iter().map(|(key, value)| {
                let key = key
                    .as_str()
                    .map_or_else(|| format!("{key:?}"), str::to_owned);
                (key, value_of(contract, of.expect("a value"), value))
            });
            Json::Object(entries.collect::<BTreeMap<_, _>>().into_iter().collect())
        }
        Any::Bytes(bytes) => base64::engine::general_purpose::STANDARD
            .encode(bytes)
            .into(),
        Any::String(text) => text.clone().into(),
        Any::EnumNumber(number) => field.name_of(*number).into(),
        Any::Bool(it) => (*it).into(),
        Any::I32(it) => (*it).into(),
        Any::I64(it) => (*it).into(),
        Any::U32(it) => (*it).into(),
        Any::U64(it) => (*it).into(),
        Any::F32(it) => number(f64::from(*it)),
        Any::F64(it) => number(*it),
    }
}

/// What both ways make of bytes.
fn both(contract: &Contract, message: &MessageDescriptor, bytes: &[u8]) -> [Option<String>; 2] {
    let tree = DynamicMessage::decode(message.clone(), bytes).ok();
    let tree = tree.map(|message| self::tree(contract, &message));
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
    fn text_is_what_the_descriptor_says(seed in 1_u64..) {
        let contract = contract();
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
                let [_, text] = both(&contract, &message, &bytes);
                if let Some(text) = &text {
                    prop_assert!(serde_json::from_str::<Json>(text).is_ok(), "{}", text);
                }
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
