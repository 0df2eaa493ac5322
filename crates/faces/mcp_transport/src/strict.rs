//! Messages with one meaning: JSON-RPC 2.0, as JSON of a bounded depth whose
//! keys are there once.
//!
//! The library reads a message leniently: of two keys it takes the last, a cursor
//! of another type is none, and parameters of another form make a method that it
//! does not know. So a message is checked here before the library sees it, and `unknown`
//! tells what the library could not.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, CustomRequest, ErrorCode, GetPromptRequestParams,
    GetSkillRequestParams, InitializeRequestParams, ProtocolVersion,
    ReadResourceDirectoryRequestParams, ReadResourceRequestParams, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use gateway::strict_json;
use model::shown;

/// JSON-RPC 2.0: what was sent is no JSON.
const PARSE_ERROR_CODE: i32 = -32700;
/// JSON-RPC 2.0: what was sent is no request.
const INVALID_REQUEST_CODE: i32 = -32600;
/// JSON-RPC 2.0: the parameters of a method are not of its form.
const INVALID_PARAMS_CODE: i32 = -32602;
/// The method that asks for a stream of what changes.
const LISTEN: &str = "subscriptions/listen";
/// The method that calls a tool.
const CALL_TOOL: &str = "tools/call";
/// Where a request names its protocol.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Characters of a caller's text that an answer repeats.
const SHOWN_CHARS: usize = 64;

fn error(id: &Json, code: i32, message: &str) -> Vec<u8> {
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    answer.to_string().into_bytes()
}

/// Returns the id for the answer to a text: that of the request, where it has one.
fn id(text: &[u8]) -> Json {
    /// A text with two ids fails to parse: neither of them is the right one.
    #[derive(serde::Deserialize)]
    struct Request {
        id: Json,
    }
    // serde also reads a struct from an array.
    let object = text.trim_ascii_start().starts_with(b"{");
    let request = object.then(|| serde_json::from_slice::<Request>(text));
    match request {
        Some(Ok(Request { id })) if is_id(&id) => id,
        _ => Json::Null,
    }
}

fn is_id(id: &Json) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// It begins a session.
    Initialize,
    /// It names the newest protocol, which has no sessions.
    Newest,
    /// It names the newest protocol, and asks for a stream of changes.
    Listen,
    /// Any other.
    Other,
}

/// The facts of a message that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its kind.
    pub kind: MessageKind,
    /// The tool that it calls. None: it calls none, or does not say which.
    pub tool: Option<String>,
}

impl From<MessageKind> for Checked {
    fn from(kind: MessageKind) -> Self {
        Self { kind, tool: None }
    }
}

/// Checks a text before it is handled; the error is the answer to it, a JSON-RPC
/// error.
///
/// # Errors
/// It is no JSON, has a key twice, or is no message of JSON-RPC 2.0.
pub fn check(text: &[u8]) -> Result<Checked, Vec<u8>> {
    let message = strict_json(text)
        .map_err(|refusal| error(&id(text), PARSE_ERROR_CODE, &refusal.message))?;
    let fail = |code, sentence: &str| {
        let id = message.get("id").filter(|id| is_id(id));
        Err(error(id.unwrap_or(&Json::Null), code, sentence))
    };
    if let Some(sentence) = malformed(&message) {
        return fail(INVALID_REQUEST_CODE, sentence);
    }
    let params = message.get("params");
    let cursor = params.and_then(|params| params.get("cursor"));
    if cursor.is_some_and(|cursor| !cursor.is_string()) {
        return fail(
            INVALID_PARAMS_CODE,
            "A cursor is the text `nextCursor` of the page before",
        );
    }
    let version = params.and_then(|params| params.get("_meta"));
    let version = version.and_then(|meta| meta.get(VERSION));
    // The newest protocol, which is named in each request, has no sessions to begin.
    let method = message.get("method").and_then(Json::as_str);
    if method != Some("initialize") || version.is_some() {
        let version = version.and_then(Json::as_str);
        let newest = version == Some(ProtocolVersion::V_2026_07_28.as_str());
        let kind = match (newest, method == Some(LISTEN)) {
            (true, true) => MessageKind::Listen,
            (true, false) => MessageKind::Newest,
            (false, _) => MessageKind::Other,
        };
        let called = params.filter(|_| method == Some(CALL_TOOL));
        let name = called.and_then(|params| params.get("name")?.as_str());
        let tool = name.map(str::to_owned);
        return Ok(Checked { kind, tool });
    }
    let params = params.cloned().unwrap_or_default();
    match serde_json::from_value::<InitializeRequestParams>(params) {
        Ok(_) => Ok(MessageKind::Initialize.into()),
        Err(why) => fail(INVALID_PARAMS_CODE, &form("initialize", &why)),
    }
}

/// Returns why a JSON is no message of JSON-RPC 2.0.
fn malformed(message: &Json) -> Option<&'static str> {
    let Json::Object(members) = message else {
        return Some("A message is one JSON-RPC object; batches are no longer a part of MCP");
    };
    if members.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Some("A JSON-RPC message has `\"jsonrpc\": \"2.0\"`");
    }
    if members.get("id").is_some_and(|id| !is_id(id)) {
        return Some("The id of a JSON-RPC message is text or a whole number");
    }
    let answers = members.contains_key("result") || members.contains_key("error");
    match members.get("method") {
        Some(Json::String(_)) if answers => {
            Some("A JSON-RPC message is a request or an answer, not both")
        }
        Some(Json::String(_)) => match members.get("params") {
            None | Some(Json::Object(_)) => None,
            Some(_) => Some("The params of an MCP message are an object"),
        },
        Some(_) => Some("The method of a JSON-RPC message is text"),
        None if answers && members.contains_key("id") => None,
        None => Some("A JSON-RPC message has a method, or the id and the result of a request"),
    }
}

/// Parses a message; the error is the answer to it.
pub(super) fn message(text: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Vec<u8>> {
    check(text)?;
    serde_json::from_slice(text).map_err(|_| {
        let sentence = "The message is no JSON-RPC request, notification or answer of MCP";
        error(&id(text), INVALID_REQUEST_CODE, sentence)
    })
}

/// Builds the answer to a message that is too long to be read.
pub(super) fn too_long(max: usize) -> Vec<u8> {
    let sentence = format!("A message has {max} bytes at most");
    error(&Json::Null, INVALID_REQUEST_CODE, &sentence)
}

fn form(method: &str, why: &serde_json::Error) -> String {
    let why = shown(&why.to_string(), 300);
    format!("The params of {method} are not of its form: {why}")
}

/// Returns what is wrong with a request that the library could not parse: a method that it does
/// not know, or one whose parameters it could not read.
///
/// `sessions`: the request is of the era of sessions, which subscribes by methods
/// that the newest protocol does not have.
#[must_use]
pub fn unknown(request: &CustomRequest, sessions: bool) -> ErrorData {
    fn why<T: DeserializeOwned>(params: Json) -> Option<serde_json::Error> {
        serde_json::from_value::<T>(params).err()
    }
    let params = request.params.clone().unwrap_or_else(|| json!({}));
    let why = match request.method.as_str() {
        CALL_TOOL => why::<CallToolRequestParams>(params),
        "resources/read" => why::<ReadResourceRequestParams>(params),
        "resources/subscribe" if sessions => why::<SubscribeRequestParams>(params),
        "resources/unsubscribe" if sessions => why::<UnsubscribeRequestParams>(params),
        "resources/directory/read" => why::<ReadResourceDirectoryRequestParams>(params),
        "prompts/get" => why::<GetPromptRequestParams>(params),
        "completion/complete" => why::<CompleteRequestParams>(params),
        "skills/get" => why::<GetSkillRequestParams>(params),
        _ => None,
    };
    if let Some(why) = why {
        return ErrorData::invalid_params(form(&request.method, &why), None);
    }
    let method = shown(&request.method, SHOWN_CHARS);
    let sentence = format!("This server has no method '{method}'");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, sentence, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_messages() {
        let words = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "null",
            "\"jsonrpc\":\"2.0\"",
            "\"id\":",
            "\"method\":",
            "\"params\":",
            "\"_meta\":",
            "\"cursor\":1",
            "initialize",
            "tools/call",
            "\"result\":{}",
            "\"error\":{}",
            "\\u0065",
            "1e400",
            "\"protocolVersion\":\"2026-07-28\"",
        ];
        testing::fuzz("mcp_message", &words, |input| {
            for answer in [check(input).err(), message(input).err()]
                .into_iter()
                .flatten()
            {
                let answer: Json = serde_json::from_slice(&answer).expect("an answer");
                assert_eq!(answer.get("jsonrpc"), Some(&Json::from("2.0")));
            }
        });
    }

    #[test]
    fn a_message_is_told_by_its_method_and_its_protocol() {
        let newest = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let older = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}"#;
        let begin = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#;
        for (method, params, kind) in [
            ("tools/list", "{}", MessageKind::Other),
            ("tools/list", older, MessageKind::Other),
            ("tools/list", newest, MessageKind::Newest),
            (LISTEN, newest, MessageKind::Listen),
            (LISTEN, older, MessageKind::Other),
            ("initialize", begin, MessageKind::Initialize),
            ("initialize", newest, MessageKind::Newest),
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            assert_eq!(check(text.as_bytes()), Ok(kind.into()), "{text}");
        }
    }

    #[test]
    fn a_call_of_a_tool_says_which_and_nothing_else_does() {
        for (method, params, tool) in [
            (
                "tools/call",
                r#"{"name":"find_skills"}"#,
                Some("find_skills"),
            ),
            ("tools/call", r#"{"name":7}"#, None),
            ("tools/call", "{}", None),
            ("prompts/get", r#"{"name":"find_skills"}"#, None),
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let checked = check(text.as_bytes()).expect("a message");
            assert_eq!(checked.tool.as_deref(), tool, "{text}");
        }
        let without = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
        assert_eq!(check(without), Ok(MessageKind::Other.into()));
    }

    #[test]
    fn what_is_no_message_is_told_with_the_id_that_it_has() {
        for (text, id, code, sentence) in [
            (
                r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
                json!(7),
                INVALID_REQUEST_CODE,
                "A JSON-RPC message has `\"jsonrpc\": \"2.0\"`",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                Json::Null,
                INVALID_REQUEST_CODE,
                "The id of a JSON-RPC message is text or a whole number",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                Json::Null,
                INVALID_REQUEST_CODE,
                "The id of a JSON-RPC message is text or a whole number",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":7}"#,
                json!("a"),
                INVALID_REQUEST_CODE,
                "The method of a JSON-RPC message is text",
            ),
            (
                r#"{"jsonrpc":"2.0","id":-7,"method":"ping","params":[1]}"#,
                json!(-7),
                INVALID_REQUEST_CODE,
                "The params of an MCP message are an object",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#,
                json!(7),
                INVALID_REQUEST_CODE,
                "A JSON-RPC message is a request or an answer, not both",
            ),
            (
                r#"{"jsonrpc":"2.0","result":{}}"#,
                Json::Null,
                INVALID_REQUEST_CODE,
                "A JSON-RPC message has a method, or the id and the result of a request",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":1}}"#,
                json!(7),
                INVALID_PARAMS_CODE,
                "A cursor is the text `nextCursor` of the page before",
            ),
        ] {
            let answer = check(text.as_bytes()).expect_err("refused");
            let answer: Json = serde_json::from_slice(&answer).expect("an answer");
            let error = json!({"code": code, "message": sentence});
            let expected = json!({"jsonrpc": "2.0", "id": id, "error": error});
            assert_eq!(answer, expected, "{text}");
        }
    }

    #[test]
    fn a_method_that_there_is_none_of_is_told_apart_from_one_with_wrong_params() {
        let code = |method: &str, sessions| {
            let request = CustomRequest::new(method, Some(json!({"uri": 7, "name": 7})));
            unknown(&request, sessions).code
        };
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            assert_eq!(code(method, true), ErrorCode::INVALID_PARAMS, "{method}");
            assert_eq!(code(method, false), ErrorCode::METHOD_NOT_FOUND, "{method}");
        }
        for method in ["tools/call", "resources/read", "prompts/get"] {
            assert_eq!(code(method, false), ErrorCode::INVALID_PARAMS, "{method}");
        }
        let long = unknown(&CustomRequest::new("x".repeat(65), None), true);
        let expected = format!("This server has no method '{}…'", "x".repeat(64));
        assert_eq!(
            (long.code, long.message.as_ref()),
            (ErrorCode::METHOD_NOT_FOUND, expected.as_str())
        );
    }
}
