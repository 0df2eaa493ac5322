//! The contract's messages as JSON, by their descriptors.
//!
//! Rules of this room:
//!
//! * Field names as in the proto files; enums as their short lower-case name;
//!   times as RFC 3339; `Struct` as plain JSON; 64-bit integers as numbers;
//!   absent optional fields left out, all others always there.
//! * No message is named here: a new field or message needs no code.
//!
//! Not here: what a face does with the JSON.

use base64::Engine as _;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, ReflectMessage as _,
    Value,
};
use serde_json::{Map, Value as Json};

use crate::contract::FILE_DESCRIPTOR_SET;

/// The descriptors of the contract.
#[derive(Debug, Clone)]
pub struct Contract {
    pool: DescriptorPool,
    field_option: prost_reflect::ExtensionDescriptor,
}

/// A message cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The descriptor set of this binary is not whole.
    #[error("the contract's descriptors: {0}")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// The contract has no such message or option.
    #[error("the contract has no `{0}`")]
    Unknown(String),
    /// The bytes are not such a message.
    #[error("the message: {0}")]
    Decode(#[from] prost::DecodeError),
}

impl Contract {
    /// The contract that this binary was built with.
    ///
    /// # Errors
    /// The descriptor set is not whole, which a test rules out.
    pub fn load() -> Result<Self, Error> {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET)?;
        let name = "repertoire.v1.field";
        let field_option = pool
            .get_extension_by_name(name)
            .ok_or_else(|| Error::Unknown(name.to_owned()))?;
        Ok(Self { pool, field_option })
    }

    /// A message of the contract as JSON; `name` is its name in the package.
    ///
    /// # Errors
    /// The contract has no such message.
    pub fn json(&self, name: &str, message: &impl Message) -> Result<Json, Error> {
        let full = format!("repertoire.v1.{name}");
        let descriptor = self
            .pool
            .get_message_by_name(&full)
            .ok_or(Error::Unknown(full))?;
        let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())?;
        Ok(self.message(&message))
    }

    fn message(&self, message: &DynamicMessage) -> Json {
        let descriptor = message.descriptor();
        match descriptor.full_name() {
            "google.protobuf.Timestamp" => return timestamp(message),
            "google.protobuf.Struct" => {
                let fields = message.get_field_by_name("fields");
                return fields
                    .as_deref()
                    .map_or(Json::Null, |fields| self.value(fields, None));
            }
            "google.protobuf.ListValue" => {
                let values = message.get_field_by_name("values");
                return values
                    .as_deref()
                    .map_or(Json::Null, |values| self.value(values, None));
            }
            "google.protobuf.Value" => {
                let set = message.fields().next();
                return set.map_or(Json::Null, |(field, value)| match field.name() {
                    "null_value" => Json::Null,
                    _ => self.value(value, Some(&field)),
                });
            }
            _ => {}
        }
        let mut fields = Map::new();
        for field in descriptor.fields() {
            if field.supports_presence() && !message.has_field(&field) {
                continue;
            }
            let value = message.get_field(&field);
            fields.insert(self.name(&field), self.value(&value, Some(&field)));
        }
        Json::Object(fields)
    }

    /// Name of a field in JSON.
    fn name(&self, field: &FieldDescriptor) -> String {
        let options = field.options();
        let option = options.get_extension(&self.field_option);
        let json = option
            .as_message()
            .and_then(|option| option.get_field_by_name("json"));
        json.as_deref()
            .and_then(Value::as_str)
            .filter(|json| !json.is_empty())
            .unwrap_or_else(|| field.name())
            .to_owned()
    }

    fn value(&self, value: &Value, field: Option<&FieldDescriptor>) -> Json {
        match value {
            Value::Bool(bool) => (*bool).into(),
            Value::I32(number) => (*number).into(),
            Value::I64(number) => (*number).into(),
            Value::U32(number) => (*number).into(),
            Value::U64(number) => (*number).into(),
            Value::F32(number) => self.number(f64::from(*number)),
            Value::F64(number) => self.number(*number),
            Value::String(text) => text.as_str().into(),
            Value::Bytes(bytes) => base64::engine::general_purpose::STANDARD
                .encode(bytes)
                .into(),
            Value::EnumNumber(number) => match field.map(FieldDescriptor::kind) {
                Some(Kind::Enum(names)) => enum_name(&names, *number).into(),
                _ => (*number).into(),
            },
            Value::Message(message) => self.message(message),
            Value::List(values) => values
                .iter()
                .map(|value| self.value(value, field))
                .collect(),
            Value::Map(entries) => {
                let mut sorted: Vec<_> = entries
                    .iter()
                    .filter_map(|(key, value)| Some((key.as_str()?, value)))
                    .collect();
                sorted.sort_by_key(|(key, _)| *key);
                let value_field = None;
                Json::Object(
                    sorted
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), self.value(value, value_field)))
                        .collect(),
                )
            }
        }
    }

    /// Whole numbers of a `Struct` without a fraction: `3`, not `3.0`.
    #[expect(
        clippy::unused_self,
        reason = "one way to call for every kind of value"
    )]
    fn number(&self, number: f64) -> Json {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and in range"
        )]
        if number.fract() == 0.0 && number.abs() < 9e15 {
            (number as i64).into()
        } else {
            serde_json::Number::from_f64(number).map_or(Json::Null, Json::Number)
        }
    }
}

/// `TRUST_TIER_OFFICIAL` of `TrustTier` is `official`.
fn enum_name(names: &EnumDescriptor, number: i32) -> String {
    let Some(value) = names.get_value(number) else {
        return number.to_string();
    };
    let mut prefix = String::new();
    for c in names.name().chars() {
        if c.is_ascii_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(c.to_ascii_uppercase());
    }
    prefix.push('_');
    value
        .name()
        .strip_prefix(&prefix)
        .unwrap_or(value.name())
        .to_ascii_lowercase()
}

fn timestamp(message: &DynamicMessage) -> Json {
    let part = |name: &str| message.get_field_by_name(name);
    let seconds = part("seconds")
        .and_then(|value| value.as_i64())
        .unwrap_or_default();
    let nanos = part("nanos")
        .and_then(|value| value.as_i32())
        .unwrap_or_default();
    jiff::Timestamp::new(seconds, nanos).map_or(Json::Null, |time| time.to_string().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::v1;

    #[test]
    fn a_message_is_written_as_the_specifications_write_it() {
        let contract = Contract::load().expect("the contract");
        let entry = v1::SkillMetadata {
            id: "a/b/c".to_owned(),
            name: "C".to_owned(),
            ..Default::default()
        };
        assert_eq!(
            contract.json("SkillMetadata", &entry).expect("JSON"),
            json!({"id": "a/b/c", "name": "C", "description": "", "category": "", "version": ""})
        );
        let read = v1::ReadSkillResponse {
            uri: "skill://c".to_owned(),
            mime_type: "text/markdown".to_owned(),
            text: "x".to_owned(),
            shadowed_ids: vec![],
        };
        assert_eq!(
            contract.json("ReadSkillResponse", &read).expect("JSON"),
            json!({"uri": "skill://c", "mimeType": "text/markdown", "text": "x", "shadowed_ids": []})
        );
        let change = v1::FieldChange {
            field: "n".to_owned(),
            r#type: v1::ChangeType::Modified.into(),
            old_value: Some(prost_types::Value::from(1.0)),
            new_value: Some(prost_types::Value {
                kind: Some(prost_types::value::Kind::NullValue(0)),
            }),
        };
        assert_eq!(
            contract.json("FieldChange", &change).expect("JSON"),
            json!({"field": "n", "type": "modified", "old_value": 1, "new_value": null})
        );
        let info = v1::VersionInfo {
            created_at: Some(prost_types::Timestamp {
                seconds: 0,
                nanos: 500_000_000,
            }),
            size_bytes: 1 << 60,
            ..Default::default()
        };
        let info = contract.json("VersionInfo", &info).expect("JSON");
        assert_eq!(info["created_at"], json!("1970-01-01T00:00:00.5Z"));
        assert_eq!(info["size_bytes"], json!(1_u64 << 60));
    }
}
