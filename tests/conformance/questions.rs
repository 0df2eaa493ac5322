//! Tools that talk while they work, the way clients before 2026-07-28 do it:
//! requests to the client, log messages and progress in the middle of a call.

#![expect(
    deprecated,
    reason = "the suite asks for logging and sampling, which the newest protocol gives up"
)]

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, CreateMessageRequestParams,
    ElicitRequestParams, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};

use crate::answers::{text, word};
use crate::catalog::read;

/// What the suite wants between two messages.
const PAUSE: Duration = Duration::from_millis(50);

type Context = RequestContext<RoleServer>;

/// Runs a tool of this kind; None for any other.
pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<CallToolResult> {
    let argument = |name| {
        word(
            request
                .arguments
                .as_ref()
                .unwrap_or(&serde_json::Map::new()),
            name,
        )
    };
    let said = match &*request.name {
        "test_tool_with_logging" | "test_logging_tool" => log(context).await,
        "test_tool_with_progress" => progress(context).await,
        "test_sampling" => sample(&argument("prompt"), context).await,
        "test_elicitation" => {
            let fields = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            elicit(
                "User response",
                &argument("message"),
                &fields,
                &["username", "email"],
                context,
            )
            .await
        }
        "test_elicitation_sep1034_defaults" => {
            elicit(
                "Elicitation completed",
                "Change what is wrong",
                &defaults(),
                &[],
                context,
            )
            .await
        }
        "test_elicitation_sep1330_enums" => {
            elicit("Elicitation completed", "Choose", &choices(), &[], context).await
        }
        _ => return None,
    };
    Some(match said {
        Ok(said) => CallToolResult::success(vec![ContentBlock::text(said)]),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    })
}

async fn log(context: &Context) -> Result<String, ServiceError> {
    let stateless = context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let wanted = !stateless || context.meta.log_level().is_some();
    for (at, message) in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ]
    .into_iter()
    .enumerate()
    {
        if at > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            context.peer.notify_logging_message(message).await?;
        }
    }
    Ok("Said what there was to say".to_owned())
}

async fn progress(context: &Context) -> Result<String, ServiceError> {
    for percent in [0.0, 50.0, 100.0] {
        if percent > 0.0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(token) = context.meta.get_progress_token() {
            let step = ProgressNotificationParam::new(token, percent).with_total(100.0);
            context.peer.notify_progress(step).await?;
        }
    }
    Ok("Went all the way".to_owned())
}

async fn sample(prompt: &str, context: &Context) -> Result<String, ServiceError> {
    let messages = json!([{ "role": "user", "content": text(prompt) }]);
    let question: CreateMessageRequestParams =
        read(json!({ "messages": messages, "maxTokens": 100 }));
    let answer = serde_json::to_value(context.peer.create_message(question).await?)
        .expect("a message is JSON");
    let said = answer
        .pointer("/content/text")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(format!("LLM response: {said}"))
}

async fn elicit(
    intro: &str,
    message: &str,
    fields: &Value,
    required: &[&str],
    context: &Context,
) -> Result<String, ServiceError> {
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    let question: ElicitRequestParams =
        read(json!({ "mode": "form", "message": message, "requestedSchema": schema }));
    let answer = serde_json::to_value(context.peer.create_elicitation(question).await?)
        .expect("an answer is JSON");
    let action = answer
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let filled_in = answer.get("content").unwrap_or(&Value::Null);
    Ok(format!("{intro}: action={action}, content={filled_in}"))
}

/// SEP-1034: a default for each kind of value.
fn defaults() -> Value {
    json!({
        "name": { "type": "string", "description": "A name", "default": "John Doe" },
        "age": { "type": "integer", "description": "An age", "default": 30 },
        "score": { "type": "number", "description": "A score", "default": 95.5 },
        "status": {
            "type": "string",
            "description": "A status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": { "type": "boolean", "description": "Whether it is so", "default": true },
    })
}

/// SEP-1330: the five ways to offer a choice.
fn choices() -> Value {
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["One", "Two", "Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
        },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    })
}
