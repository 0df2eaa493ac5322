//! Fixtures that always answer the same: contents, prompts, resources.

use rmcp::model::{CallToolResult, GetPromptResult, JsonObject, ReadResourceResult};
use serde_json::{Value, json};

use crate::catalog::{WATCHED, read};

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A millisecond of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// What a tool says that does nothing but answer; None for any other.
pub(crate) fn tool(name: &str, arguments: &JsonObject) -> Option<CallToolResult> {
    let content = match name {
        "json_schema_2020_12_tool" => json!([text(&json!(arguments).to_string())]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_custom_header" => json!([text(&word(arguments, "value"))]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_image_content" => json!([image()]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_error_handling" => {
            let content = [text("This tool intentionally returns an error for testing")];
            return Some(CallToolResult::error(read(json!(content))));
        }
        _ => return None,
    };
    Some(CallToolResult::success(read(content)))
}

/// A prompt that needs nobody's answer; None for any other.
pub(crate) fn prompt(name: &str, arguments: &JsonObject) -> Option<GetPromptResult> {
    let contents = match name {
        "test_prompt_with_arguments" => {
            let (first, second) = (word(arguments, "arg1"), word(arguments, "arg2"));
            vec![text(&format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => vec![
            resource(
                &word(arguments, "resourceUri"),
                "text/plain",
                "Embedded resource content for testing.",
            ),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        _ => return None,
    };
    Some(said(&contents))
}

/// A prompt in which the user says all this.
pub(crate) fn said(contents: &[Value]) -> GetPromptResult {
    let messages: Vec<Value> = contents
        .iter()
        .map(|content| json!({ "role": "user", "content": content }))
        .collect();
    GetPromptResult::new(read(json!(messages)))
}

/// A resource of ours; None for any other.
pub(crate) fn contents(uri: &str) -> Option<ReadResourceResult> {
    let content = match uri {
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "test://static-text" => {
            let text = "This is the content of the static text resource.";
            json!({ "uri": uri, "mimeType": "text/plain", "text": text })
        }
        WATCHED => json!({ "uri": uri, "mimeType": "text/plain", "text": "Nothing happens here." }),
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let text =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": text.to_string() })
        }
    };
    Some(ReadResourceResult::new(vec![read(content)]))
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

/// An argument that is a text; nothing where it is not there.
pub(crate) fn word(arguments: &JsonObject, name: &str) -> String {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
