//! Schemas that are referred to: of requests and of answers, which differ.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::MessageDescriptor;
use serde_json::{Value as Json, json};

use super::schema::Schemas;

/// Where the schemas are in a document.
pub(super) const SCHEMAS: &str = "#/components/schemas/";

/// The schemas of all messages that were referred to, and of those that these refer
/// to.
pub(super) fn components(schemas: &mut Schemas<'_>) -> BTreeMap<String, Json> {
    let mut written = BTreeMap::new();
    let mut at = 0;
    // By index, since writing a schema appends those that it refers to.
    while let Some(message) = schemas.named.get(at).cloned() {
        at += 1;
        written.insert(message.name().to_owned(), component(schemas, &message));
    }
    written
}

fn component(schemas: &mut Schemas<'_>, message: &MessageDescriptor) -> Json {
    let mut schema = schemas.object(message, None);
    let comment = schemas.comment(message);
    if let Json::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!(comment));
    }
    schema
}

/// Messages that are written one way in requests and another in answers, or that
/// hold such a one.
pub(super) fn differing(
    requests: &BTreeMap<String, Json>,
    answers: &BTreeMap<String, Json>,
) -> BTreeSet<String> {
    let both = |name: &&String| answers.contains_key(*name);
    let mut differing: BTreeSet<_> = requests
        .keys()
        .filter(both)
        .filter(|name| requests.get(*name) != answers.get(*name))
        .cloned()
        .collect();
    // One more message that differs may make those that hold it differ, so until none is found.
    loop {
        let mut more = requests.iter().filter(|(name, schema)| {
            let mut holds = false;
            let mut schema = (*schema).clone();
            for_each_reference(&mut schema, &mut |name| holds |= differing.contains(name));
            holds && both(name) && !differing.contains(*name)
        });
        let Some((name, _)) = more.next() else { break };
        let name = name.clone();
        differing.insert(name);
    }
    differing
}

/// Lets a schema of a request refer to the forms of requests.
pub(super) fn as_input(schema: &mut Json, differing: &BTreeSet<String>) {
    for_each_reference(schema, &mut |name| {
        if differing.contains(name) {
            name.push_str("Input");
        }
    });
}

/// Visits the names that a schema refers to.
pub(super) fn for_each_reference(schema: &mut Json, visit: &mut impl FnMut(&mut String)) {
    match schema {
        Json::Array(items) => {
            for item in items {
                for_each_reference(item, visit);
            }
        }
        Json::Object(fields) => {
            for (key, value) in fields {
                if let (Json::String(text), "$ref") = (&mut *value, key.as_str()) {
                    if let Some(name) = text.strip_prefix(SCHEMAS) {
                        let mut name = name.to_owned();
                        visit(&mut name);
                        *text = format!("{SCHEMAS}{name}");
                    }
                } else {
                    for_each_reference(value, visit);
                }
            }
        }
        _ => {}
    }
}

/// Visits what requests hold: bodies and parameters.
pub(super) fn for_each_request(paths: &mut Json, visit: &mut impl FnMut(&mut Json)) {
    let items = paths.as_object_mut().into_iter().flatten();
    let operations = items.filter_map(|(_, item)| item.as_object_mut());
    for (_, operation) in operations.flatten() {
        for part in ["parameters", "requestBody"] {
            if let Some(part) = operation.get_mut(part) {
                visit(part);
            }
        }
    }
}
