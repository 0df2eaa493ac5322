//! Arguments of tools: from what a skill declares to a JSON Schema, and calls
//! held to it.

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Value, json};

use model::{NOT_EXACT, ToolArgument, ToolConfig, inexact, shown, whole};

/// Problems that are reported at once.
const MAX_PROBLEMS: usize = 32;
/// Characters of a problem's message.
const MAX_MESSAGE_CHARS: usize = 300;

/// A mistake in an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// Path of the argument, such as `arguments.query`.
    pub field: String,
    /// Description of the mistake, in the words that all tools of this server use.
    pub message: String,
    /// Rule that it breaks.
    pub rule: &'static str,
}

/// The JSON Schema of a tool's arguments.
pub(super) fn schema(tool: &ToolConfig) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    for argument in &tool.args {
        properties.insert(argument.name.clone(), property(argument));
        if argument.required && !required.contains(&argument.name.as_str()) {
            required.push(&argument.name);
        }
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// Accepts other spellings of a value by models and hosts: null where an argument is left
/// out, and a number or an object as text.
fn normalize(argument: &ToolArgument, arguments: &mut Map<String, Value>) {
    let kind = kind(&argument.kind);
    let Some(given) = arguments.get(&argument.name) else {
        return;
    };
    if given.is_null() && !argument.required && kind.is_some() {
        arguments.shift_remove(&argument.name);
        return;
    }
    let (Some(text), Some(kind)) = (given.as_str(), kind) else {
        return;
    };
    let read = serde_json::from_str::<Value>(text.trim()).ok();
    // Only the declared type counts: the text "5" stays a text where a text is declared.
    let read = read.filter(|read| match kind {
        "integer" | "number" => read.is_number(),
        "boolean" => read.is_boolean(),
        "array" => read.is_array(),
        "object" => read.is_object(),
        _ => false,
    });
    if let Some(read) = read {
        arguments.insert(argument.name.clone(), read);
    }
}

fn property(argument: &ToolArgument) -> Value {
    let mut property = Map::new();
    if let Some(kind) = kind(&argument.kind) {
        property.insert("type".to_owned(), json!(kind));
        if kind == "array" {
            // Hosts refuse a list that does not say what it holds.
            property.insert("items".to_owned(), json!({}));
        }
    }
    if !argument.description.is_empty() {
        property.insert("description".to_owned(), json!(argument.description));
    }
    if let Some(default) = &argument.default {
        property.insert("default".to_owned(), default.clone());
    }
    Value::Object(property)
}

/// The JSON Schema type that an author means; other systems' words are common.
/// None: any value.
pub(super) fn kind(written: &str) -> Option<&'static str> {
    Some(match written.trim().to_ascii_lowercase().as_str() {
        "" | "string" | "str" | "text" => "string",
        "integer" | "int" => "integer",
        "number" | "float" | "double" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "dict" | "map" => "object",
        _ => return None,
    })
}

/// Fills in defaults, and holds arguments to a schema.
pub(super) fn check(
    tool: &ToolConfig,
    validator: &Validator,
    mut arguments: Map<String, Value>,
) -> Result<Map<String, Value>, Vec<ArgumentProblem>> {
    for argument in &tool.args {
        normalize(argument, &mut arguments);
    }
    for argument in &tool.args {
        if let Some(default) = &argument.default
            && !arguments.contains_key(&argument.name)
        {
            arguments.insert(argument.name.clone(), default.clone());
        }
    }
    // The schema comes later, because to it a rounded id is an integer like any other.
    let inexact = inexact_integers(tool, &arguments);
    if !inexact.is_empty() {
        return Err(inexact);
    }
    let arguments = Value::Object(arguments);
    let errors = validator.iter_errors(&arguments).take(MAX_PROBLEMS);
    let problems: Vec<_> = errors.map(|error| problem(&error)).collect();
    match arguments {
        Value::Object(arguments) if problems.is_empty() => Ok(arguments),
        _ => Err(problems),
    }
}

/// Integers that arrived as doubles which cannot hold them all. A number that need
/// not be whole may be that large.
fn inexact_integers(tool: &ToolConfig, arguments: &Map<String, Value>) -> Vec<ArgumentProblem> {
    let slot = |(name, value): (&String, &Value)| {
        let argument = tool.args.iter().find(|argument| argument.name == *name);
        match argument.and_then(|argument| kind(&argument.kind)) {
            Some("number") => None,
            Some("integer") => {
                let number = value.as_f64()?;
                whole(number.trunc()).is_none().then(|| name.clone())
            }
            _ => inexact(name, value),
        }
    };
    let slots = arguments.iter().filter_map(slot).take(MAX_PROBLEMS);
    slots
        .map(|slot| ArgumentProblem {
            field: format!("arguments.{slot}"),
            message: NOT_EXACT.to_owned(),
            rule: "json",
        })
        .collect()
}

fn problem(error: &jsonschema::ValidationError<'_>) -> ArgumentProblem {
    let mut field = "arguments".to_owned();
    for part in error.instance_path().as_str().split('/').skip(1) {
        field.push('.');
        field.push_str(&part.replace("~1", "/").replace("~0", "~"));
    }
    let (message, rule) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            field.push('.');
            field.push_str(property.as_str().unwrap_or_default());
            ("Required".to_owned(), "required")
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let keys: Vec<_> = unexpected.iter().map(|key| format!("'{key}'")).collect();
            let message = format!("Unrecognized key(s) in object: {}", keys.join(", "));
            (message, "json")
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    let kinds: Vec<_> = kinds.iter().map(|kind| kind.to_string()).collect();
                    kinds.join(" or ")
                }
            };
            let expected = expected.trim_matches('"');
            let received = received(error.instance());
            (format!("Expected {expected}, received {received}"), "json")
        }
        // Without masking, the library would quote the value, which may be long or secret.
        _ => (error.masked().to_string(), "schema"),
    };
    ArgumentProblem {
        field: shown(&field, MAX_MESSAGE_CHARS),
        message: shown(&message, MAX_MESSAGE_CHARS),
        rule,
    }
}

fn received(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_a_double_cannot_hold_are_refused_by_name() {
        let argument = |name: &str, kind: &str| ToolArgument {
            name: name.to_owned(),
            kind: kind.to_owned(),
            description: String::new(),
            required: false,
            default: None,
        };
        let tool = ToolConfig {
            name: "ask".to_owned(),
            description: String::new(),
            method: "ask".to_owned(),
            args: vec![
                argument("id", "integer"),
                argument("rate", "number"),
                argument("rows", "array"),
                argument("name", "string"),
            ],
        };
        let schema = Value::Object(schema(&tool));
        let validator = jsonschema::options().build(&schema).expect("a schema");
        let checked = |arguments: Value| {
            let Value::Object(arguments) = arguments else {
                panic!("not an object");
            };
            let problems = check(&tool, &validator, arguments)
                .err()
                .unwrap_or_default();
            let places = problems.into_iter().map(|problem| {
                assert_eq!(problem.message, NOT_EXACT);
                problem.field
            });
            places.collect::<Vec<_>>()
        };
        for (arguments, places) in [
            (
                json!({"id": 9_007_199_254_740_991_i64, "rate": 1e300}),
                vec![],
            ),
            (json!({"name": "9007199254740993", "rate": 1e20}), vec![]),
            // As they come from a client that had to round: 2^53 + 1 and a large one.
            (json!({"id": 9_007_199_254_740_992.0}), vec!["arguments.id"]),
            (
                json!({"id": 12_345_678_901_234_567_890_123.0}),
                vec!["arguments.id"],
            ),
            (
                json!({"id": -9_007_199_254_740_993_i64, "rows": [{"at": u64::MAX}]}),
                vec!["arguments.id", "arguments.rows[0].at"],
            ),
        ] {
            assert_eq!(checked(arguments.clone()), places, "{arguments}");
        }
    }
}
