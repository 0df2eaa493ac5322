//! Tools: rpcs as agents see them.
//!
//! Where two tools of a set share a name, the set has one that accepts the
//! arguments of either.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::method::ToolOption;
use super::{Contract, Method};

/// A tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name, such as `get_skill`.
    pub name: String,
    /// A person's name for it.
    pub title: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input: Map<String, Json>,
    /// JSON Schema of its structured answer. None: it answers for a model alone.
    pub output: Option<Map<String, Json>>,
    /// The argument that names the session of loaded skills, which a connection
    /// remembers.
    pub session: Option<String>,
    /// Its effects.
    pub hints: Hints,
    /// Its description goes on with the list of skills.
    pub catalog: bool,
    pub(super) forms: Vec<Form>,
}

/// The effects of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the hints of MCP")]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may remove or replace something.
    pub destructive: bool,
    /// Calling it twice with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It may reach what is outside of the server.
    pub open_world: bool,
}

/// One rpc that a tool calls.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) method: Arc<Method>,
    /// Arguments it accepts, by their JSON names.
    pub(super) fields: Vec<String>,
    pub(super) envelope: bool,
    /// Its answer has no structured content.
    pub(super) text_only: bool,
    /// The rpc that reports its progress.
    pub(super) progress: Option<Arc<Method>>,
}

impl Form {
    /// The names of its arguments.
    fn arguments(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }
}

impl Tool {
    /// The arguments that it takes, in each of its forms.
    pub(super) fn takes(&self) -> String {
        let forms = self.forms.iter().map(|form| form.fields.join(", "));
        let forms: Vec<_> = forms.collect();
        match forms.as_slice() {
            [all] if all.is_empty() => "It takes no arguments".to_owned(),
            [all] => format!("It takes: {all}"),
            several => format!(
                "It takes the arguments of one form: {}",
                several.join("; or ")
            ),
        }
    }

    /// The form that arguments are meant for: the one that knows most of them,
    /// the first of equals.
    pub(super) fn form(&self, arguments: &Map<String, Json>) -> Option<&Form> {
        let unknown = |form: &&Form| {
            let names = arguments.keys();
            names.filter(|name| !form.fields.contains(*name)).count()
        };
        self.forms.iter().min_by_key(unknown)
    }
}

/// Returns the streaming rpc of a name, of the same service as another one.
fn progress(contract: &Contract, of: &Method, name: &str) -> Option<Arc<Method>> {
    let mut methods = contract.methods().iter();
    let found = methods.find(|method| method.service == of.service && method.name == name);
    found.filter(|method| method.server_streaming).cloned()
}

/// The tools of a set; `None` is all there are.
pub(super) fn toolset(contract: &Contract, name: Option<&str>) -> Vec<Arc<Tool>> {
    let mut tools: Vec<Tool> = Vec::new();
    for method in contract.methods() {
        let of_set = |option: &&ToolOption| match name {
            Some(name) => option.toolsets.iter().any(|set| set == name),
            // Without a set each rpc is one tool: further forms are for sets with few tools.
            None => method
                .tools
                .first()
                .is_some_and(|first| std::ptr::eq(first, *option)),
        };
        for option in method.tools.iter().filter(of_set) {
            // A tool call has one request.
            if method.client_streaming {
                continue;
            }
            let fields = contract.field_names(&method.input, &option.fields);
            let only = Some(fields.as_slice());
            let output = (!option.text_only).then(|| {
                let answer = contract.answer_schema(method);
                object(if option.envelope {
                    envelope(&answer)
                } else {
                    answer
                })
            });
            let description = match option.description.as_str() {
                "" => &method.description,
                own => own,
            };
            let tool = Tool {
                name: option.name.clone(),
                title: option.title.clone(),
                description: in_words_of_tools(contract, description),
                input: object(contract.request_schema(method, only)),
                output,
                session: contract.shape(&method.input).and_then(|shape| {
                    let field = shape.remembered()?;
                    fields.contains(&field.json).then(|| field.json.clone())
                }),
                hints: option.hints,
                catalog: option.catalog,
                forms: vec![Form {
                    method: Arc::clone(method),
                    fields,
                    envelope: option.envelope,
                    text_only: option.text_only,
                    progress: progress(contract, method, &option.progress),
                }],
            };
            match tools.iter_mut().find(|other| other.name == tool.name) {
                Some(other) => merge(other, tool),
                None => tools.push(tool),
            }
        }
    }
    tools.into_iter().map(Arc::new).collect()
}

/// Replaces the names of rpcs in a comment by those of their tools, which its reader knows.
fn in_words_of_tools(contract: &Contract, description: &str) -> String {
    let mut text = description.to_owned();
    for method in contract.methods() {
        if let Some(tool) = method.tools.first() {
            text = text.replace(&format!("`{}`", method.name), &format!("`{}`", tool.name));
        }
    }
    text
}

fn object(schema: Json) -> Map<String, Json> {
    match schema {
        Json::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Two tools of one name as one. Clients take neither `oneOf` nor `anyOf` for the
/// arguments of a tool, so its description says what goes with what.
fn merge(into: &mut Tool, other: Tool) {
    let forms = into.forms.iter().chain(&other.forms);
    let forms: Vec<_> = forms.map(Form::arguments).collect();
    into.description = format!(
        "{}\n\nOr: {}\n\nTakes the arguments of one form: {}.",
        into.description,
        other.description,
        forms.join("; or "),
    );
    if let (Some(Json::Object(mine)), Some(Json::Object(theirs))) = (
        into.input.get_mut("properties"),
        other.input.get("properties"),
    ) {
        for (name, schema) in theirs {
            mine.entry(name.clone()).or_insert_with(|| schema.clone());
        }
    }
    // One form requires what the other does not know. A missing argument is reported when the
    // form is chosen and its arguments are read.
    into.input.remove("required");
    into.output = match (into.output.take(), other.output) {
        (Some(mine), Some(theirs)) => {
            Some(object(json!({"type": "object", "anyOf": [mine, theirs]})))
        }
        // One of them answers for a model alone.
        _ => None,
    };
    into.session = into.session.take().or(other.session);
    into.hints.read_only &= other.hints.read_only;
    into.hints.destructive |= other.hints.destructive;
    into.hints.idempotent &= other.hints.idempotent;
    into.hints.open_world |= other.hints.open_world;
    into.catalog |= other.catalog;
    into.forms.extend(other.forms);
}

/// The schema of the envelope of the tool specification.
fn envelope(data: &Json) -> Json {
    json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean", "description": "The call did what it was asked."},
            "data": data,
            "error": {
                "type": "object",
                "description": "Why it did not.",
                "properties": {
                    "code": {"type": "string", "description": "Stable code, such as SKILL_NOT_FOUND."},
                    "message": {"type": "string", "description": "What happened."},
                    "details": {"type": "object", "additionalProperties": true, "description": "Facts for programs."},
                    "recovery_suggestions": {
                        "type": "array", "items": {"type": "string"},
                        "description": "What to do next.",
                    },
                },
                "required": ["code", "message"],
                "additionalProperties": false,
            },
            "metadata": {
                "type": "object",
                "properties": {
                    "execution_time_ms": {"type": "number", "minimum": 0, "description": "How long the call took."},
                    "cached": {"type": "boolean", "description": "It comes from a cache."},
                    "index_version": {"type": "string", "description": "State of the index that it was found in."},
                    "request_id": {"type": "string", "description": "Name of the call in the server's log."},
                },
                "required": ["execution_time_ms", "cached", "request_id"],
                "additionalProperties": false,
            },
        },
        "required": ["success", "metadata"],
        "additionalProperties": false,
    })
}
