//! Messages that mean one thing: JSON whose keys are there once, of a depth that
//! is bounded.

use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::{Value as Json, json};

use crate::gateway::strict_json;

/// JSON-RPC 2.0: what was sent is no JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON-RPC 2.0: what was sent is no request.
const INVALID_REQUEST: i32 = -32600;

fn error(id: &Json, code: i32, message: &str) -> Vec<u8> {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    answer.to_string().into_bytes()
}

/// The id that an answer to a text bears: the request's, where it has one.
fn id(text: &[u8]) -> Json {
    /// Of a text with two ids none is the right one: reading it fails.
    #[derive(serde::Deserialize)]
    struct Request {
        id: Json,
    }
    // An array could be read as a request, too.
    let object = text.trim_ascii_start().starts_with(b"{");
    let request = object.then(|| serde_json::from_slice::<Request>(text));
    match request {
        Some(Ok(Request { id })) if id.is_string() || id.is_i64() || id.is_u64() => id,
        _ => Json::Null,
    }
}

/// The answer to a text that means nothing, or two things. None: it is fine.
#[must_use]
pub fn refuse_ambiguous(text: &[u8]) -> Option<Vec<u8>> {
    let refusal = strict_json(text).err()?;
    Some(error(&id(text), PARSE_ERROR, &refusal.message))
}

/// A text as a message; the error is the answer to it.
pub(super) fn message(text: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Vec<u8>> {
    if let Some(answer) = refuse_ambiguous(text) {
        return Err(answer);
    }
    serde_json::from_slice(text).map_err(|_| {
        let sentence = "The message is no JSON-RPC request, notification or answer of MCP";
        error(&id(text), INVALID_REQUEST, sentence)
    })
}

/// The answer to a message that is too long to be read.
pub(super) fn too_long(most: usize) -> Vec<u8> {
    let sentence = format!("A message has {most} bytes at most");
    error(&Json::Null, INVALID_REQUEST, &sentence)
}
