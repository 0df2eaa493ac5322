//! Messages as JSON Schema 2020-12.
//!
//! The schema of a request describes what is accepted, that of an answer what is sent: only
//! requests have required fields by rule, only answers have every field that is
//! always there. Nothing else may be in either.

use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{Map, Value as Json, json};

use super::comment::summary;
use super::shape::{Field, Special};
use super::{Contract, Method};

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Answer,
}

/// Writes schemas.
pub(super) struct Schemas<'a> {
    contract: &'a Contract,
    way: Direction,
    /// What messages inside messages refer to, such as `#/components/schemas/`;
    /// none: they are written out, which every client understands.
    refs: Option<&'a str>,
    /// Messages that are being written out, so that one inside itself ends.
    open: Vec<String>,
    /// Messages that were referred to.
    pub(super) named: Vec<MessageDescriptor>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(contract: &'a Contract, way: Direction, refs: Option<&'a str>) -> Self {
        Self {
            contract,
            way,
            refs,
            open: Vec::new(),
            named: Vec::new(),
        }
    }

    /// The schema of a message; `only` names the fields that it may have.
    pub(super) fn object(&mut self, message: &MessageDescriptor, only: Option<&[String]>) -> Json {
        let Some(shape) = self.contract.shape(message) else {
            return json!({"type": "object"});
        };
        self.open.push(message.full_name().to_owned());
        let mut properties = Map::new();
        let mut required = Vec::new();
        let shown = |field: &&Field| only.is_none_or(|only| only.contains(&field.json));
        for field in shape.fields.iter().filter(shown) {
            properties.insert(field.json.clone(), self.field(field));
            let always = match self.way {
                Direction::Request => field.required,
                Direction::Answer => !field.descriptor.supports_presence() && !field.omit_empty,
            };
            if always {
                required.push(field.json.as_str());
            }
        }
        self.open.pop();
        let mut schema = json!({"type": "object", "properties": properties});
        let closed = !self.is_tool_input();
        if let Json::Object(schema) = &mut schema {
            if !required.is_empty() {
                schema.insert("required".to_owned(), json!(required));
            }
            if closed {
                schema.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        schema
    }

    /// The arguments of a tool. Hosts convert these for their models, and some fail at
    /// `additionalProperties`; what is unknown is refused by the call in any case.
    fn is_tool_input(&self) -> bool {
        self.way == Direction::Request && self.refs.is_none()
    }

    /// Returns the comment of a message.
    pub(super) fn comment(&self, message: &MessageDescriptor) -> &'a str {
        let shape = self.contract.shape(message);
        shape.map_or("", |shape| &shape.comment)
    }

    /// The schema of a field, with its description.
    pub(super) fn field(&mut self, field: &Field) -> Json {
        let descriptor = &field.descriptor;
        let mut schema = if descriptor.is_map() {
            let value = match descriptor.kind() {
                Kind::Message(entry) => self.contract.shape(&entry).map(|shape| {
                    let value = shape.field("value");
                    value.map_or(json!({}), |value| self.one(value))
                }),
                _ => None,
            };
            if self.is_tool_input() {
                json!({"type": "object"})
            } else {
                json!({"type": "object", "additionalProperties": value.unwrap_or_default()})
            }
        } else if descriptor.is_list() {
            let mut schema = Map::new();
            schema.insert("type".to_owned(), json!("array"));
            schema.insert("items".to_owned(), self.one(field));
            self.bound(&mut schema, "minItems", field.rules.min_items);
            self.bound(&mut schema, "maxItems", field.rules.max_items);
            Json::Object(schema)
        } else {
            self.one(field)
        };
        let description = self.description(field);
        if let Json::Object(schema) = &mut schema
            && !description.is_empty()
        {
            schema.insert("description".to_owned(), description.into());
        }
        schema
    }

    /// Describes a field of a request in full, for the reader that fills it in.
    fn description(&self, field: &Field) -> String {
        if self.way == Direction::Answer && self.refs.is_none() {
            return summary(&field.comment).to_owned();
        }
        let mut text = field.comment.clone();
        if self.is_tool_input() && matches!(field.descriptor.kind(), Kind::Bytes) {
            text.push_str(if text.is_empty() {
                "Base64."
            } else {
                " Base64."
            });
        }
        for name in field.names.iter().filter(|name| name.number != 0) {
            if text.is_empty() {
                text.push_str("One of these.");
            }
            text.push_str(if text.contains("\n* ") { "\n" } else { "\n\n" });
            text.extend(["* `", &name.short, "`: ", &name.comment]);
        }
        text
    }

    fn bound(&self, schema: &mut Map<String, Json>, name: &str, limit: Option<u64>) {
        // Rules bind requests only: a limit in the schema of an answer would be a promise.
        if let Some(limit) = limit.filter(|limit| *limit > 0)
            && self.way == Direction::Request
        {
            schema.insert(name.to_owned(), limit.into());
        }
    }

    /// The schema of one value of a field.
    fn one(&mut self, field: &Field) -> Json {
        let rules = match &field.rules.items {
            Some(items) if field.descriptor.is_list() => items,
            _ => &field.rules,
        };
        let is_tool_input = self.is_tool_input();
        let mut schema = Map::new();
        let mut say = |key: &str, value: Json| schema.insert(key.to_owned(), value);
        match field.descriptor.kind() {
            Kind::Bool => {
                say("type", json!("boolean"));
            }
            Kind::String => {
                say("type", json!("string"));
                let min = rules.min_len.or(rules.required.then_some(1));
                self.bound(&mut schema, "minLength", min);
                self.bound(&mut schema, "maxLength", rules.max_len);
            }
            Kind::Bytes => {
                say("type", json!("string"));
                // Some hosts refuse this keyword; for tools the description says it.
                if !is_tool_input {
                    say("contentEncoding", json!("base64"));
                }
                let max = rules.max_len.map(|bytes| bytes.div_ceil(3) * 4);
                self.bound(&mut schema, "maxLength", max);
            }
            Kind::Double | Kind::Float => {
                say("type", json!("number"));
            }
            Kind::Enum(_) => {
                say("type", json!("string"));
                let sent = self.way == Direction::Answer;
                let names = field.names.iter();
                let names: Vec<_> = names
                    .filter(|name| sent || name.number != 0)
                    .map(|name| name.short.as_str())
                    .collect();
                say("enum", json!(names));
            }
            Kind::Message(message) => return self.message(&message),
            whole => {
                say("type", json!("integer"));
                let unsigned = matches!(
                    whole,
                    Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64
                );
                let bounded = self.way == Direction::Request;
                let min = rules.gte.filter(|_| bounded).or(unsigned.then_some(0));
                if let Some(min) = min {
                    say("minimum", json!(min));
                }
                if let Some(max) = rules.lte.filter(|_| bounded) {
                    say("maximum", json!(max));
                }
                let short = matches!(
                    whole,
                    Kind::Int32 | Kind::Uint32 | Kind::Sint32 | Kind::Fixed32 | Kind::Sfixed32
                );
                // No validator knows formats of unsigned numbers, and some warn of each.
                let format = match (short, unsigned) {
                    (true, false) => Some("int32"),
                    (true, true) | (false, false) => Some("int64"),
                    (false, true) => None,
                };
                if let Some(format) = format {
                    say("format", json!(format));
                }
            }
        }
        Json::Object(schema)
    }

    fn message(&mut self, message: &MessageDescriptor) -> Json {
        match self.contract.shape(message).and_then(|shape| shape.special) {
            Some(Special::Timestamp) => return json!({"type": "string", "format": "date-time"}),
            Some(Special::Struct) if self.is_tool_input() => return json!({"type": "object"}),
            Some(Special::Struct) => return json!({"type": "object", "additionalProperties": true}),
            Some(Special::ListValue) => return json!({"type": "array", "items": {}}),
            // Hosts convert a list of types in different ways; no type means any to all of them.
            Some(Special::Value) if self.is_tool_input() => return json!({}),
            Some(Special::Value) => {
                let any = ["null", "boolean", "number", "string", "array", "object"];
                // Some clients want `items` wherever a value may be an array.
                return json!({"type": any, "items": {}});
            }
            None => {}
        }
        if let Some(prefix) = self.refs {
            if !self.named.contains(message) {
                self.named.push(message.clone());
            }
            return json!({"$ref": format!("{prefix}{}", message.name())});
        }
        // A message inside itself, written out, would never end.
        if self.open.iter().any(|open| open == message.full_name()) {
            return json!({"type": "object"});
        }
        self.object(message, None)
    }
}

impl Contract {
    /// Returns the schema of what a form of a tool accepts.
    pub(super) fn request_schema(&self, method: &Method, only: Option<&[String]>) -> Json {
        Schemas::new(self, Direction::Request, None).object(&method.input, only)
    }

    /// Returns the schema of an answer; of a stream, that of the list of its messages.
    pub(super) fn answer_schema(&self, method: &Method) -> Json {
        let answer = Schemas::new(self, Direction::Answer, None).object(&method.output, None);
        if !method.server_streaming {
            return answer;
        }
        json!({
            "type": "object",
            "properties": {
                "messages": {"type": "array", "items": answer, "description": "What was streamed, in order."},
                "left_out": {
                    "type": "integer", "minimum": 0,
                    "description": "How many earlier messages are left out.",
                },
            },
            "required": ["messages", "left_out"],
            "additionalProperties": false,
        })
    }
}
