//! Messages as JSON.

use base64::Engine as _;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage as _, Value};
use serde_json::{Map, Value as Json};

use super::Contract;
use super::shape::{Field, Special};

impl Contract {
    /// A message as JSON: see the module.
    pub(super) fn write(&self, message: &DynamicMessage) -> Json {
        let descriptor = message.descriptor();
        let Some(shape) = self.shape(&descriptor) else {
            return Json::Null;
        };
        match shape.special {
            Some(Special::Timestamp) => return timestamp(message),
            Some(Special::Struct) => return self.inside(message, "fields"),
            Some(Special::ListValue) => return self.inside(message, "values"),
            Some(Special::Value) => {
                let set = message.fields().next();
                return set.map_or(Json::Null, |(field, value)| match field.name() {
                    "null_value" => Json::Null,
                    _ => self.value(value, None),
                });
            }
            None => {}
        }
        let mut fields = Map::new();
        for field in &shape.fields {
            let left_out = field.descriptor.supports_presence() || field.omit_empty;
            if left_out && !message.has_field(&field.descriptor) {
                continue;
            }
            let value = message.get_field(&field.descriptor);
            fields.insert(field.json.clone(), self.value(&value, Some(field)));
        }
        Json::Object(fields)
    }

    fn inside(&self, message: &DynamicMessage, field: &str) -> Json {
        let value = message.get_field_by_name(field);
        value
            .as_deref()
            .map_or(Json::Null, |value| self.value(value, None))
    }

    fn value(&self, value: &Value, field: Option<&Field>) -> Json {
        match value {
            Value::Bool(bool) => (*bool).into(),
            Value::I32(number) => (*number).into(),
            Value::I64(number) => (*number).into(),
            Value::U32(number) => (*number).into(),
            Value::U64(number) => (*number).into(),
            Value::F32(float) => number(f64::from(*float)),
            Value::F64(float) => number(*float),
            Value::String(text) => text.as_str().into(),
            Value::Bytes(bytes) => base64::engine::general_purpose::STANDARD
                .encode(bytes)
                .into(),
            Value::EnumNumber(number) => {
                let names = field.map(|field| &*field.names).unwrap_or_default();
                let name = names.iter().find(|name| name.number == *number);
                // A number that this contract does not name comes from a newer one.
                name.map_or_else(|| number.to_string(), |name| name.short.clone())
                    .into()
            }
            Value::Message(message) => self.write(message),
            Value::List(values) => values
                .iter()
                .map(|value| self.value(value, field))
                .collect(),
            Value::Map(entries) => {
                let mut sorted: Vec<_> = entries.iter().map(|(k, v)| (key(k), v)).collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                let entries = sorted.into_iter();
                Json::Object(entries.map(|(k, v)| (k, self.value(v, None))).collect())
            }
        }
    }
}

fn key(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

/// Whole numbers of a `Struct` without a fraction: `3`, not `3.0`.
fn number(number: f64) -> Json {
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
