//! Messages as the faces need them, worked out once.
//!
//! Options and comments are read from the descriptors when the contract is
//! loaded, so that no call searches for them by name.

use std::collections::HashMap;

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, Value,
};
use serde_json::{Value as Json, json};

use super::Error;
use super::comment::Comments;
use super::method::{extension, is, text, words};

/// A message.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) special: Option<Special>,
    pub(super) fields: Vec<Field>,
    by_name: HashMap<String, usize>,
    /// Numbers of the fields, in order, with their indexes.
    by_number: Vec<(u32, usize)>,
    /// Its comment in the proto file.
    pub(super) comment: String,
}

/// A message with a JSON form of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Timestamp,
    Struct,
    ListValue,
    Value,
}

/// A field.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the contract, independent of the others"
)]
pub(super) struct Field {
    pub(super) descriptor: FieldDescriptor,
    pub(super) kind: Kind,
    /// Index of its message among all of the contract.
    pub(super) message: Option<usize>,
    /// Indexes of the other fields of its oneof.
    pub(super) rivals: Vec<usize>,
    pub(super) holds: Holds,
    /// Its JSON where it is not set.
    pub(super) zero: Json,
    /// The same as text.
    pub(super) zero_text: String,
    /// Its name in JSON.
    pub(super) json: String,
    /// The same as text, with the colon behind it.
    pub(super) quoted: String,
    pub(super) comment: String,
    pub(super) rules: Rules,
    /// A request without it is refused.
    pub(super) required: bool,
    /// The block that a tool shows of it instead of the whole answer.
    pub(super) block: Option<BlockKind>,
    /// Left out of the JSON where it is empty.
    pub(super) omit_empty: bool,
    /// An answer that has it was refused, as the envelope then tells.
    pub(super) refusal: bool,
    /// A session that a connection remembers.
    pub(super) remembered: bool,
    /// Names of its enum.
    pub(super) names: Vec<Name>,
}

/// `repertoire.v1.Block`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Image,
    Link,
}

impl BlockKind {
    fn of(option: &DynamicMessage) -> Option<Self> {
        match option.get_field_by_name("block")?.as_enum_number()? {
            1 => Some(Self::Text),
            2 => Some(Self::Image),
            3 => Some(Self::Link),
            _ => None,
        }
    }
}

/// How many values a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// One, which is zero where it is not set.
    One,
    /// One or none.
    Maybe,
    List,
    Map,
}

impl Holds {
    fn of(field: &FieldDescriptor) -> Self {
        if field.is_map() {
            Self::Map
        } else if field.is_list() {
            Self::List
        } else if field.supports_presence() {
            Self::Maybe
        } else {
            Self::One
        }
    }
}

/// A value of an enum.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) number: i32,
    /// `official` of `TRUST_TIER_OFFICIAL`.
    pub(super) short: String,
    pub(super) comment: String,
}

/// The rules of `buf.validate` that JSON Schema can say as well.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) required: bool,
    pub(super) min_len: Option<u64>,
    pub(super) max_len: Option<u64>,
    pub(super) gte: Option<i64>,
    pub(super) lte: Option<i64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) items: Option<Box<Self>>,
}

/// The options by which the contract speaks of its fields.
pub(super) struct FieldOptions {
    field: ExtensionDescriptor,
    rules: ExtensionDescriptor,
}

impl Shape {
    pub(super) fn field(&self, json: &str) -> Option<&Field> {
        self.by_name.get(json).and_then(|at| self.fields.get(*at))
    }

    /// The field that names a session which a connection remembers.
    pub(super) fn remembered(&self) -> Option<&Field> {
        self.fields.iter().find(|field| field.remembered)
    }

    /// Returns the index of the field with a number.
    pub(super) fn index(&self, number: u32) -> Option<usize> {
        let numbers = &self.by_number;
        let at = numbers.binary_search_by_key(&number, |(number, _)| *number);
        numbers.get(at.ok()?).map(|(_, at)| *at)
    }

    /// The field with this name in the proto file.
    pub(super) fn proto_field(&self, name: &str) -> Option<&Field> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.descriptor.name() == name)
    }

    pub(super) fn numbered(&self, number: u32) -> Option<&Field> {
        self.index(number).and_then(|at| self.fields.get(at))
    }
}

impl Field {
    /// The JSON of the field where it is not set.
    fn nothing(&self) -> Json {
        match (self.holds, &self.kind) {
            (Holds::Map, _) => json!({}),
            (Holds::List, _) => json!([]),
            (Holds::Maybe, _) | (_, Kind::Message(_)) => Json::Null,
            (_, Kind::Bool) => json!(false),
            (_, Kind::String | Kind::Bytes) => json!(""),
            (_, Kind::Enum(_)) => json!(self.name_of(0)),
            _ => json!(0),
        }
    }

    /// Name of a value of its enum.
    pub(super) fn name_of(&self, number: i32) -> String {
        let name = self.names.iter().find(|name| name.number == number);
        // A server of a newer contract may send a number that this one does not name.
        name.map_or_else(|| number.to_string(), |name| name.short.clone())
    }
}

impl FieldOptions {
    pub(super) fn new(pool: &DescriptorPool) -> Result<Self, Error> {
        Ok(Self {
            field: extension(pool, "repertoire.v1.field")?,
            rules: extension(pool, "buf.validate.field")?,
        })
    }

    /// Builds a shape. `places` are the indexes of all messages, by full name.
    pub(super) fn shape(
        &self,
        message: &MessageDescriptor,
        comments: &Comments,
        places: &HashMap<String, usize>,
    ) -> Shape {
        let special = match message.full_name() {
            "google.protobuf.Timestamp" => Some(Special::Timestamp),
            "google.protobuf.Struct" => Some(Special::Struct),
            "google.protobuf.ListValue" => Some(Special::ListValue),
            "google.protobuf.Value" => Some(Special::Value),
            _ => None,
        };
        let mut fields: Vec<_> = message
            .fields()
            .map(|field| self.field(field, comments, places))
            .collect();
        // As the proto file writes them, which is the order a reader expects.
        fields.sort_by_key(|field| field.descriptor.path().to_vec());
        let oneofs: Vec<_> = fields
            .iter()
            .map(|field| field.descriptor.containing_oneof())
            .collect();
        for (at, field) in fields.iter_mut().enumerate() {
            let mine = field.descriptor.containing_oneof();
            let others = oneofs.iter().enumerate();
            let others = others.filter(|(other, of)| *other != at && of.is_some() && **of == mine);
            field.rivals = others.map(|(other, _)| other).collect();
        }
        let mut by_number: Vec<_> = fields
            .iter()
            .enumerate()
            .map(|(at, field)| (field.descriptor.number(), at))
            .collect();
        by_number.sort_unstable();
        let by_name = fields
            .iter()
            .enumerate()
            .map(|(at, field)| (field.json.clone(), at))
            .collect();
        Shape {
            special,
            fields,
            by_name,
            by_number,
            comment: comments.of(&message.parent_file(), message.path()),
        }
    }

    fn field(
        &self,
        descriptor: FieldDescriptor,
        comments: &Comments,
        places: &HashMap<String, usize>,
    ) -> Field {
        let options = descriptor.options();
        let ours = options.get_extension(&self.field);
        let ours = ours.as_message();
        let is = |name: &str| ours.is_some_and(|ours| is(ours, name));
        let rules = options.get_extension(&self.rules);
        let rules = rules.as_message().map(Rules::read).unwrap_or_default();
        let kind = descriptor.kind();
        let names = match &kind {
            Kind::Enum(names) => {
                // `TrustTier` has `TRUST_TIER_OFFICIAL`.
                let prefix = words(names.name(), '_').to_ascii_uppercase() + "_";
                let short = |name: &str| {
                    let short = name.strip_prefix(&prefix).unwrap_or(name);
                    short.to_ascii_lowercase()
                };
                names
                    .values()
                    .map(|value| Name {
                        number: value.number(),
                        short: short(value.name()),
                        comment: comments.of(&names.parent_file(), value.path()),
                    })
                    .collect()
            }
            _ => Vec::new(),
        };
        let json = ours.map(|ours| text(ours, "json"));
        let json = json.filter(|json| !json.is_empty());
        let json = json.unwrap_or_else(|| descriptor.name().to_owned());
        let mut field = Field {
            message: kind
                .as_message()
                .and_then(|of| places.get(of.full_name()).copied()),
            rivals: Vec::new(),
            holds: Holds::of(&descriptor),
            zero: Json::Null,
            zero_text: String::new(),
            kind,
            quoted: format!("{}:", json!(json)),
            json,
            comment: comments.of(
                &descriptor.parent_message().parent_file(),
                descriptor.path(),
            ),
            required: rules.refuses_zero(&descriptor),
            rules,
            block: ours.and_then(BlockKind::of),
            omit_empty: is("omit_empty"),
            refusal: is("refusal"),
            remembered: is("remembered"),
            names,
            descriptor,
        };
        field.zero = field.nothing();
        field.zero_text = field.zero.to_string();
        field
    }
}

impl Rules {
    fn read(rules: &DynamicMessage) -> Self {
        let mut read = Self::default();
        for (rule, of) in rules.fields() {
            if rule.name() == "required" {
                read.required = of.as_bool() == Some(true);
            }
            let Some(of) = of.as_message() else { continue };
            for (bound, limit) in of.fields() {
                match bound.name() {
                    "min_len" => read.min_len = limit.as_u64(),
                    "max_len" => read.max_len = limit.as_u64(),
                    "min_items" => read.min_items = limit.as_u64(),
                    "max_items" => read.max_items = limit.as_u64(),
                    "gte" => read.gte = whole(limit),
                    "lte" => read.lte = whole(limit),
                    "items" => read.items = limit.as_message().map(Self::read).map(Box::new),
                    _ => {}
                }
            }
        }
        read
    }

    /// A field without presence that is left out is zero: where zero breaks a
    /// rule, the field is required.
    fn refuses_zero(&self, field: &FieldDescriptor) -> bool {
        if field.supports_presence() {
            return self.required;
        }
        let list = field.cardinality() == Cardinality::Repeated;
        self.required
            || self.min_items.is_some_and(|min| min > 0)
            || (!list && self.min_len.is_some_and(|min| min > 0))
            || (!list && self.gte.is_some_and(|min| min > 0))
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::I32(number) => Some(i64::from(*number)),
        Value::I64(number) => Some(*number),
        Value::U32(number) => Some(i64::from(*number)),
        Value::U64(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}
