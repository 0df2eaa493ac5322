//! JSON as values of `google.protobuf.Struct`, and back.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Value as Json};

use model::whole;

/// JSON as a value of a message.
#[must_use]
pub fn to_value(json: Json) -> Value {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(value),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(items) => Kind::ListValue(ListValue {
            values: items.into_iter().map(to_value).collect(),
        }),
        Json::Object(members) => Kind::StructValue(to_struct(members)),
    };
    Value { kind: Some(kind) }
}

/// Members of an object as a message.
#[must_use]
pub fn to_struct(members: Map<String, Json>) -> Struct {
    let members = members.into_iter();
    Struct {
        fields: members.map(|(name, json)| (name, to_value(json))).collect(),
    }
}

/// A value of a message as JSON.
#[must_use]
pub fn from_value(value: Value) -> Json {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(value)) => value.into(),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::ListValue(list)) => from_list(list),
        Some(Kind::StructValue(object)) => Json::Object(from_struct(object)),
    }
}

/// The same of a list.
#[must_use]
pub fn from_list(list: ListValue) -> Json {
    list.values.into_iter().map(from_value).collect()
}

/// The members of an object of a message, by name.
#[must_use]
pub fn from_struct(object: Struct) -> Map<String, Json> {
    let fields = object.fields.into_iter();
    fields
        .map(|(name, value)| (name, from_value(value)))
        .collect()
}

/// A number; a whole one without a fraction: `3`, not `3.0`.
#[must_use]
pub fn number(number: f64) -> Json {
    match whole(number) {
        Some(whole) => whole.into(),
        None => number.into(),
    }
}
