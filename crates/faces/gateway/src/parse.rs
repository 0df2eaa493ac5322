//! Reads JSON as messages; problems are reported in the sentences of the specifications.
//!
//! Reports everything that is wrong, not only the first. Rules of the contract are left to the
//! service, which checks every request.

use base64::Engine as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};
use serde_json::{Map, Value as Json};

use super::Contract;
use super::shape::{Field, Holds, Special};
use super::strict::strict_json;
use model::{FieldProblem, NOT_EXACT, is_inexact, shown};

/// The problems of a value: field, rule, sentence.
pub(super) type Wrong = Vec<FieldProblem>;

/// The rule that JSON of the wrong form breaks.
const FORM: &str = "json";
/// The rule of keys that are not known, whose sentence names all of them.
const UNKNOWN: &str = FieldProblem::UNKNOWN;

/// Names the kind of a value, as the specifications do.
fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "float",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Reads one value; problems go to `wrong`.
struct MessageReader<'a> {
    contract: &'a Contract,
    /// A model, or the host of one, wrote it.
    is_of_a_model: bool,
    wrong: Wrong,
}

impl Contract {
    /// A message from JSON; `only` names the fields that it may have, as a tool: what
    /// models and their hosts write for the same value is read as it there.
    pub(super) fn read(
        &self,
        message: &MessageDescriptor,
        json: Map<String, Json>,
        only: Option<&[String]>,
    ) -> Result<DynamicMessage, Wrong> {
        let mut reader = MessageReader {
            contract: self,
            is_of_a_model: only.is_some(),
            wrong: Vec::new(),
        };
        let read = reader.object(message, json, only, "");
        if reader.wrong.is_empty() {
            Ok(read)
        } else {
            Err(reader.wrong)
        }
    }
}

impl MessageReader<'_> {
    fn say(&mut self, path: &str, rule: &'static str, message: String) {
        self.wrong.push(FieldProblem {
            field: path.to_owned(),
            message,
            rule,
        });
    }

    fn expected<T>(&mut self, path: &str, wanted: &str, json: &Json) -> Option<T> {
        // Whole numbers and fractions differ only where a whole one is wanted.
        let received = match kind_of(json) {
            "float" if wanted != "integer" => "number",
            kind => kind,
        };
        let sentence = format!("Expected {wanted}, received {received}");
        self.say(path, FORM, sentence);
        None
    }

    fn object(
        &mut self,
        descriptor: &MessageDescriptor,
        json: Map<String, Json>,
        only: Option<&[String]>,
        path: &str,
    ) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        let Some(shape) = self.contract.shape(descriptor) else {
            return message;
        };
        let may = |name: &str| only.is_none_or(|only| only.iter().any(|n| n == name));
        for field in &shape.fields {
            if field.required && may(&field.json) && !json.contains_key(&field.json) {
                self.say(&join(path, &field.json), "required", "Required".to_owned());
            }
        }
        let mut unknown = Vec::new();
        for (name, value) in json {
            let Some(field) = shape.field(&name).filter(|_| may(&name)) else {
                unknown.push(name);
                continue;
            };
            if self.is_absent(field, &value) {
                continue;
            }
            let index = join(path, &name);
            if let Some(value) = self.field(field, value, &index) {
                if let Some(oneof) = field.descriptor.containing_oneof()
                    && let Some(other) = oneof.fields().find(|f| message.has_field(f))
                    && other.number() != field.descriptor.number()
                {
                    let sentence = format!("Only one of '{}' and '{name}'", other.name());
                    self.say(&index, FORM, sentence);
                }
                message.set_field(&field.descriptor, value);
            }
        }
        // Each name repeats the whole sentence, so the answer grows with the square of them.
        unknown.truncate(16);
        let names: Vec<_> = unknown.iter().map(|name| escaped(name)).collect();
        let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
        let sentence = format!("Unrecognized key(s) in object: {}", quoted.join(", "));
        for name in &names {
            self.say(&join(path, name), UNKNOWN, sentence.clone());
        }
        message
    }

    /// Null, and an empty text where the field holds no text, say what leaving the
    /// field out says: hosts that require every argument send them.
    fn is_absent(&self, field: &Field, json: &Json) -> bool {
        let holds_null = || self.special(&field.kind) == Some(Special::Value);
        let is_null = json.is_null() && !holds_null();
        let is_text = || matches!(field.kind, Kind::String | Kind::Bytes) && !holds_list(field);
        let is_empty = json == "" && !is_text() && !holds_null();
        self.is_of_a_model && !field.required && (is_null || is_empty)
    }

    fn special(&self, kind: &Kind) -> Option<Special> {
        self.contract.shape(kind.as_message()?)?.special
    }

    /// Returns the value that a text stands for where no text is wanted: models write `"3"` for 3,
    /// and an object as its JSON.
    fn meant(&self, kind: &Kind, json: Json) -> Json {
        let Json::String(text) = &json else {
            return json;
        };
        if !self.is_of_a_model {
            return json;
        }
        // Programs get an error, as the document of REST says; a model is served by what it meant.
        let text = text.trim();
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let read = match kind {
            Kind::Bool => text.parse().ok().map(Json::Bool),
            Kind::Message(_) if self.special(kind) == Some(Special::Struct) => {
                let read = strict_json(text.as_bytes()).ok();
                read.filter(Json::is_object)
            }
            Kind::String | Kind::Bytes | Kind::Enum(_) | Kind::Message(_) => None,
            _ if is_number(text) => {
                let read: Option<Json> = serde_json::from_str(text).ok();
                read.filter(Json::is_number)
            }
            _ => None,
        };
        read.unwrap_or(json)
    }

    fn field(&mut self, field: &Field, json: Json, path: &str) -> Option<Value> {
        let descriptor = &field.descriptor;
        if descriptor.is_map() {
            return self.map(descriptor, json, path);
        }
        if !descriptor.is_list() {
            return self.one(field, json, path);
        }
        let items = match self.items(&field.kind, json) {
            Ok(items) => items,
            Err(json) => return self.expected(path, "array", &json),
        };
        let read = items.into_iter().enumerate();
        // Collected first: to stop at the first wrong item would hide the others.
        let values: Vec<_> = read
            .map(|(at, item)| self.one(field, item, &format!("{path}[{at}]")))
            .collect();
        values.into_iter().collect::<Option<_>>().map(Value::List)
    }

    /// The items of a list; of a model also one of them alone, or the list as its JSON.
    fn items(&self, kind: &Kind, json: Json) -> Result<Vec<Json>, Json> {
        match (json, kind) {
            (Json::Array(items), _) => Ok(items),
            (json, _) if !self.is_of_a_model => Err(json),
            (Json::String(text), Kind::String | Kind::Enum(_)) => {
                match strict_json(text.trim().as_bytes()) {
                    Ok(Json::Array(items)) => Ok(items),
                    _ => Ok(vec![Json::String(text)]),
                }
            }
            (json @ Json::Object(_), Kind::Message(_)) => Ok(vec![json]),
            (json, _) => Err(json),
        }
    }

    fn map(&mut self, field: &FieldDescriptor, json: Json, path: &str) -> Option<Value> {
        let Json::Object(entries) = json else {
            return self.expected(path, "object", &json);
        };
        let Kind::Message(entry) = field.kind() else {
            return None;
        };
        let shape = self.contract.shape(&entry)?;
        let value = shape.field("value")?;
        let mut map = std::collections::HashMap::new();
        for (key, item) in entries {
            let index = join(path, &escaped(&key));
            let item = self.one(value, item, &index);
            map.insert(MapKey::String(key), item?);
        }
        Some(Value::Map(map))
    }

    fn one(&mut self, field: &Field, json: Json, path: &str) -> Option<Value> {
        let json = self.meant(&field.kind, json);
        match field.descriptor.kind() {
            Kind::Bool => match json {
                Json::Bool(value) => Some(Value::Bool(value)),
                other => self.expected(path, "boolean", &other),
            },
            Kind::String => match json {
                Json::String(text) => Some(Value::String(text)),
                other => self.expected(path, "string", &other),
            },
            Kind::Bytes => match json {
                Json::String(text) => {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(&text);
                    if let Ok(bytes) = bytes {
                        return Some(Value::Bytes(bytes.into()));
                    }
                    let sentence = "Expected base64, received other text";
                    self.say(path, FORM, sentence.to_owned());
                    None
                }
                other => self.expected(path, "string", &other),
            },
            Kind::Double | Kind::Float => match json.as_f64() {
                Some(number) if field.descriptor.kind() == Kind::Double => Some(Value::F64(number)),
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a float of the contract has this precision"
                )]
                Some(number) => Some(Value::F32(number as f32)),
                None => self.expected(path, "number", &json),
            },
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => self
                .whole(&json, path, i32::MIN.into(), i32::MAX.into())
                .and_then(|number| i32::try_from(number).ok())
                .map(Value::I32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => self
                .whole(&json, path, i64::MIN.into(), i64::MAX.into())
                .and_then(|number| i64::try_from(number).ok())
                .map(Value::I64),
            Kind::Uint32 | Kind::Fixed32 => self
                .whole(&json, path, 0, u32::MAX.into())
                .and_then(|number| u32::try_from(number).ok())
                .map(Value::U32),
            Kind::Uint64 | Kind::Fixed64 => self
                .whole(&json, path, 0, u64::MAX.into())
                .and_then(|number| u64::try_from(number).ok())
                .map(Value::U64),
            Kind::Enum(_) => self.name(field, &json, path),
            Kind::Message(message) => self.message(&message, json, path),
        }
    }

    /// A whole number between two bounds; `3.0` is one, as JSON Schema has it.
    fn whole(&mut self, json: &Json, path: &str, min: i128, max: i128) -> Option<i128> {
        let number = match json {
            Json::Number(number) => number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from))
                .or_else(|| number.as_f64().and_then(exact)),
            _ => return self.expected(path, "number", json),
        };
        let Some(number) = number else {
            return self.expected(path, "integer", json);
        };
        let sentence = if number < min {
            format!("Number must be greater than or equal to {min}")
        } else if number > max {
            format!("Number must be less than or equal to {max}")
        } else {
            return Some(number);
        };
        self.say(path, FORM, sentence);
        None
    }

    fn name(&mut self, field: &Field, json: &Json, path: &str) -> Option<Value> {
        let Json::String(name) = json else {
            return self.expected(path, "string", json);
        };
        // Zero is the value of a field that was left out, so it has no name in a request.
        let known = || field.names.iter().filter(|known| known.number != 0);
        if let Some(known) = known().find(|known| known.short == *name) {
            return Some(Value::EnumNumber(known.number));
        }
        let names: Vec<_> = known().map(|known| format!("'{}'", known.short)).collect();
        let sentence = format!(
            "Invalid enum value. Expected {}, received '{}'",
            names.join(" | "),
            escaped(name)
        );
        self.say(path, FORM, sentence);
        None
    }

    fn message(&mut self, of: &MessageDescriptor, json: Json, path: &str) -> Option<Value> {
        let special = self.contract.shape(of).and_then(|shape| shape.special);
        let message = match (special, json) {
            (Some(Special::Timestamp), Json::String(text)) => {
                let Some(time) = timestamp(of, &text) else {
                    let sentence = "Expected a time such as 2026-01-31T12:00:00Z, or a date";
                    self.say(path, FORM, sentence.to_owned());
                    return None;
                };
                time
            }
            (Some(Special::Timestamp), other) => return self.expected(path, "string", &other),
            (Some(Special::Value), json) => self.free(of, json, path)?,
            (Some(Special::Struct), Json::Object(fields)) => self.free_struct(of, fields, path)?,
            (Some(Special::ListValue), Json::Array(items)) => self.free_list(of, items, path)?,
            (Some(Special::ListValue), other) => return self.expected(path, "array", &other),
            (None, Json::Object(fields)) => self.object(of, fields, None, path),
            (_, other) => return self.expected(path, "object", &other),
        };
        Some(Value::Message(message))
    }
}

fn holds_list(field: &Field) -> bool {
    matches!(field.holds, Holds::List | Holds::Map)
}

/// Returns as much of a caller's text as a message may repeat.
pub(super) fn escaped(text: &str) -> String {
    shown(text, 80)
}

/// A float as the whole number that it is.
fn exact(float: f64) -> Option<i128> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and in range"
    )]
    (float.fract() == 0.0 && float.abs() < 1e19).then_some(float as i128)
}

fn timestamp(of: &MessageDescriptor, text: &str) -> Option<DynamicMessage> {
    let time = text.parse().ok().or_else(|| midnight(text))?;
    let mut message = DynamicMessage::new(of.clone());
    message.set_field_by_name("seconds", Value::I64(time.as_second()));
    message.set_field_by_name("nanos", Value::I32(time.subsec_nanosecond()));
    Some(message)
}

/// Where a date begins in UTC.
fn midnight(text: &str) -> Option<jiff::Timestamp> {
    // A longer text has a time of its own that could not be parsed: midnight would be wrong.
    let text = Some(text).filter(|text| text.len() == "2026-01-31".len())?;
    let date: jiff::civil::Date = text.parse().ok()?;
    let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}

/// The message kind of a field of one of `google.protobuf`'s free-form messages.
fn inner(of: &MessageDescriptor, field: &str) -> Option<MessageDescriptor> {
    match of.get_field_by_name(field)?.kind() {
        Kind::Message(message) if message.is_map_entry() => {
            match message.map_entry_value_field().kind() {
                Kind::Message(value) => Some(value),
                _ => None,
            }
        }
        Kind::Message(message) => Some(message),
        _ => None,
    }
}

/// Free-form JSON. The parser bounded its depth.
impl MessageReader<'_> {
    /// Reads any JSON as a `google.protobuf.Value`, whose numbers are doubles.
    fn free(&mut self, of: &MessageDescriptor, json: Json, path: &str) -> Option<DynamicMessage> {
        let mut message = DynamicMessage::new(of.clone());
        let (field, value) = match json {
            Json::Null => ("null_value", Value::EnumNumber(0)),
            Json::Bool(value) => ("bool_value", Value::Bool(value)),
            // Only whole numbers are refused: a fraction means what a double holds of it.
            Json::Number(number) if !number.is_f64() && is_inexact(&number) => {
                self.say(path, FORM, NOT_EXACT.to_owned());
                return None;
            }
            Json::Number(number) => ("number_value", Value::F64(number.as_f64()?)),
            Json::String(text) => ("string_value", Value::String(text)),
            Json::Array(items) => {
                let list = self.free_list(&inner(of, "list_value")?, items, path)?;
                ("list_value", Value::Message(list))
            }
            Json::Object(fields) => {
                let fields = self.free_struct(&inner(of, "struct_value")?, fields, path)?;
                ("struct_value", Value::Message(fields))
            }
        };
        message.set_field_by_name(field, value);
        Some(message)
    }

    fn free_struct(
        &mut self,
        of: &MessageDescriptor,
        fields: Map<String, Json>,
        path: &str,
    ) -> Option<DynamicMessage> {
        let value = inner(of, "fields")?;
        let read = fields.into_iter().map(|(key, json)| {
            let entry = self.free(&value, json, &join(path, &escaped(&key)));
            Some((MapKey::String(key), Value::Message(entry?)))
        });
        // Collected first: to stop at the first error would hide the others.
        let entries: Vec<_> = read.collect();
        let mut message = DynamicMessage::new(of.clone());
        let entries = entries.into_iter().collect::<Option<_>>()?;
        message.set_field_by_name("fields", Value::Map(entries));
        Some(message)
    }

    fn free_list(
        &mut self,
        of: &MessageDescriptor,
        items: Vec<Json>,
        path: &str,
    ) -> Option<DynamicMessage> {
        let value = inner(of, "values")?;
        let read = items.into_iter().enumerate();
        let items: Vec<_> = read
            .map(|(at, json)| self.free(&value, json, &format!("{path}[{at}]")))
            .collect();
        let items = items.into_iter().map(|item| item.map(Value::Message));
        let mut message = DynamicMessage::new(of.clone());
        message.set_field_by_name("values", Value::List(items.collect::<Option<_>>()?));
        Some(message)
    }
}
