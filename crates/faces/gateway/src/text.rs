//! Requests whose values come as text, from the path and the query of a URL.

use prost_reflect::{Cardinality, Kind};
use serde_json::{Map, Value as Json};

use super::shape::{Field, Shape};
use super::{Contract, Method, Refusal, Route, RouteBody};
use model::{Failure, FieldProblem};

/// The parts of an HTTP request to a route.
#[derive(Debug, Default)]
pub struct Parts {
    /// Values of the path, by the names of the template.
    pub path: Vec<(String, String)>,
    /// Values of the query, in order.
    pub query: Vec<(String, String)>,
    /// The body. None: it was empty.
    pub body: Option<Json>,
}

impl Contract {
    /// The JSON of a request that came to a route.
    ///
    /// # Errors
    /// The body is no object where one is wanted, or two places of the request
    /// hold one field.
    pub fn merge(
        &self,
        method: &Method,
        route: &Route,
        parts: Parts,
    ) -> Result<Map<String, Json>, Refusal> {
        let Parts { path, query, body } = parts;
        let mut wrong = Vec::new();
        let mut say = |field: &str, message: String| {
            wrong.push(FieldProblem {
                field: field.to_owned(),
                message,
                rule: "json",
            });
        };
        let mut request = Map::new();
        match (&route.body, body) {
            (RouteBody::All, Some(Json::Object(fields))) => request = fields,
            (RouteBody::All, Some(_)) => say("", "Expected an object as the body".to_owned()),
            (RouteBody::Field(field), Some(body)) => {
                request.insert(field.clone(), body);
            }
            (RouteBody::None, Some(_)) => say("", "Expected no body".to_owned()),
            (_, None) => {}
        }
        let shape = self.shape(&method.input);
        for (name, text) in path {
            let field = shape.and_then(|shape| shape.proto_field(&name));
            let Some(field) = field else { continue };
            let value = value(field, text);
            match request.get(&field.json) {
                Some(other) if *other != value => {
                    say(
                        &field.json,
                        format!("The body says {other}, the path {value}"),
                    );
                }
                _ => {
                    request.insert(field.json.clone(), value);
                }
            }
        }
        for (name, text) in query {
            let fields = shape.map_or_else(Vec::new, |shape| self.named(shape, &name));
            let (field, above) = match fields.split_last() {
                Some((field, above)) => (Some(*field), above),
                None => (None, [].as_slice()),
            };
            let list = field.is_some_and(|field| field.descriptor.is_list());
            let value = match field {
                Some(field) => value(field, text),
                // An unknown name is refused when the request is read, with all others.
                None => Json::String(text),
            };
            if route.body == RouteBody::All {
                say(&name, format!("Unrecognized key(s) in object: '{name}'"));
                continue;
            }
            let Some(object) = object(&mut request, above) else {
                say(&name, "Given twice".to_owned());
                continue;
            };
            let key = field.map_or_else(|| name.clone(), |field| field.json.clone());
            match object.get_mut(&key) {
                None if list => {
                    object.insert(key, Json::Array(vec![value]));
                }
                None => {
                    object.insert(key, value);
                }
                Some(Json::Array(values)) if list => values.push(value),
                Some(_) => say(&name, "Given twice".to_owned()),
            }
        }
        if wrong.is_empty() {
            Ok(request)
        } else {
            Err(Failure::invalid(wrong).into())
        }
    }

    /// The fields that a name with dots leads through, such as `filters.source`; none where
    /// it leads to none.
    fn named<'a>(&'a self, shape: &'a Shape, name: &str) -> Vec<&'a Field> {
        let mut fields = Vec::new();
        let mut shape = Some(shape);
        for name in name.split('.') {
            let Some(field) = shape.and_then(|shape| shape.field(name)) else {
                return Vec::new();
            };
            shape = self.parts(field);
            fields.push(field);
        }
        fields
    }

    /// The message that a field holds one of, where its fields have names of their own in
    /// a query.
    pub(super) fn parts(&self, field: &Field) -> Option<&Shape> {
        let Kind::Message(message) = field.descriptor.kind() else {
            return None;
        };
        let shape = self.shape(&message)?;
        (shape.special.is_none() && field.descriptor.cardinality() != Cardinality::Repeated)
            .then_some(shape)
    }
}

/// Returns the object at the end of these fields; none where something else is there.
fn object<'a>(
    mut request: &'a mut Map<String, Json>,
    above: &[&Field],
) -> Option<&'a mut Map<String, Json>> {
    for field in above {
        let inside = request.entry(field.json.clone());
        request = inside
            .or_insert_with(|| Json::Object(Map::new()))
            .as_object_mut()?;
    }
    Some(request)
}

/// Converts text to a value of a field. Text that is no such value stays text, and is refused
/// with its field when the request is read.
fn value(field: &Field, text: String) -> Json {
    let read = match field.descriptor.kind() {
        Kind::String | Kind::Bytes | Kind::Enum(_) => None,
        // Only objects: a time is a message, too, and its JSON is a text.
        Kind::Message(_) => serde_json::from_str(&text).ok().filter(Json::is_object),
        Kind::Bool => text.parse().ok().map(Json::Bool),
        _ => serde_json::from_str(&text).ok().filter(Json::is_number),
    };
    read.unwrap_or(Json::String(text))
}
