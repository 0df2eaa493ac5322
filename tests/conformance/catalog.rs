//! What the suite expects to find, by name: tools, prompts, resources, templates.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The tool and the prompt that come and go: see `Fixtures::change`.
pub(crate) const CHANGING_TOOL: &str = "test_changing_tool";
pub(crate) const CHANGING_PROMPT: &str = "test_changing_prompt";

/// The resource that one can subscribe to; it never changes.
pub(crate) const WATCHED: &str = "test://watched-resource";

const TOOLS: &[(&str, &str)] = &[
    ("test_audio_content", "Answers with a sound"),
    (
        "test_elicitation_sep1034_defaults",
        "Asks the user for values that have defaults",
    ),
    (
        "test_elicitation_sep1330_enums",
        "Asks the user to choose, in all five ways",
    ),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_error_handling", "Always fails"),
    ("test_image_content", "Answers with an image"),
    (
        "test_input_required_result_capabilities",
        "Asks only what the client can answer",
    ),
    (
        "test_input_required_result_elicitation",
        "Asks the user for a name",
    ),
    (
        "test_input_required_result_list_roots",
        "Asks the client for its roots",
    ),
    ("test_input_required_result_multi_round", "Asks twice"),
    (
        "test_input_required_result_multiple_inputs",
        "Asks three things at once",
    ),
    (
        "test_input_required_result_request_state",
        "Asks, and hands out a state",
    ),
    (
        "test_input_required_result_sampling",
        "Asks the client's model",
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks, and notices another state than its own",
    ),
    (
        "test_logging_tool",
        "Writes to the client's log, if the client wants it",
    ),
    ("test_missing_capability", "Needs a client that can sample"),
    (
        "test_multiple_content_types",
        "Answers with a text, an image and a resource",
    ),
    ("test_simple_text", "Answers with a text"),
    ("test_streaming_elicitation", "Asks the user, over a stream"),
    (
        "test_tool_with_logging",
        "Writes to the client's log as it goes",
    ),
    ("test_tool_with_progress", "Tells how far it is as it goes"),
    ("test_trigger_prompt_change", "Changes the list of prompts"),
    ("test_trigger_tool_change", "Changes the list of tools"),
];

pub(crate) fn tools() -> Vec<Tool> {
    let mut tools: Vec<Tool> = TOOLS
        .iter()
        .map(|(name, description)| tool(name, description, &nothing()))
        .collect();
    tools.push(tool(
        "json_schema_2020_12_tool",
        "Takes what only JSON Schema 2020-12 can say",
        &schema_2020_12(),
    ));
    let value = json!({ "type": "string", "x-mcp-header": "Value" });
    tools.push(tool(
        "test_custom_header",
        "Takes a value that also rides in a header",
        &object("value", &value),
    ));
    let text = json!({ "type": "string" });
    tools.push(tool(
        "test_elicitation",
        "Asks the user for a name and an address",
        &object("message", &text),
    ));
    tools.push(tool(
        "test_sampling",
        "Asks the client's model",
        &object("prompt", &text),
    ));
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    tools
}

pub(crate) fn changing_tool() -> Tool {
    tool(CHANGING_TOOL, "Is there every other time", &nothing())
}

pub(crate) fn prompts() -> Vec<Prompt> {
    read(json!([
        {
            "name": "test_input_required_result_prompt",
            "description": "Asks the user before there is a prompt",
        },
        {
            "name": "test_prompt_with_arguments",
            "description": "Repeats its arguments",
            "arguments": [
                { "name": "arg1", "description": "The first", "required": true },
                { "name": "arg2", "description": "The second", "required": true },
            ],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "Carries a resource",
            "arguments": [{ "name": "resourceUri", "description": "Its name", "required": true }],
        },
        { "name": "test_prompt_with_image", "description": "Carries an image" },
        { "name": "test_simple_prompt", "description": "Says one sentence" },
    ]))
}

pub(crate) fn changing_prompt() -> Prompt {
    read(json!({ "name": CHANGING_PROMPT, "description": "Is there every other time" }))
}

pub(crate) fn resources() -> Vec<Resource> {
    read(json!([
        {
            "uri": "test://static-binary",
            "name": "static-binary",
            "description": "Some bytes",
            "mimeType": "image/png",
        },
        {
            "uri": "test://static-text",
            "name": "static-text",
            "description": "A sentence",
            "mimeType": "text/plain",
        },
        {
            "uri": WATCHED,
            "name": "watched-resource",
            "description": "Something to subscribe to",
            "mimeType": "text/plain",
        },
    ]))
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    read(json!([{
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "A document for each id",
        "mimeType": "application/json",
    }]))
}

fn tool(name: &str, description: &str, schema: &Value) -> Tool {
    read(json!({ "name": name, "description": description, "inputSchema": schema }))
}

fn nothing() -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

fn object(field: &str, schema: &Value) -> Value {
    json!({ "type": "object", "properties": { field: schema }, "required": [field], "additionalProperties": false })
}

/// Every keyword that a server might lose on the way: the scenario names them.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A message of the protocol from the JSON that it is on the wire.
pub(crate) fn read<T: DeserializeOwned>(wire: Value) -> T {
    serde_json::from_value(wire).expect("a fixture is what it says it is")
}
