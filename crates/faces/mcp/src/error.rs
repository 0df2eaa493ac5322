//! Refusals as protocol errors, for methods whose results cannot hold them.

use rmcp::ErrorData;
use serde_json::{Value as Json, json};

use gateway::Refusal;
use model::{SkillUri, shown};

/// Characters of an address that an error repeats: more than any valid one has.
const ADDRESS_CHARS: usize = 4_000;

/// Returns an address as an error repeats it.
pub(super) fn address(uri: &str) -> String {
    shown(SkillUri::without_credentials(uri), ADDRESS_CHARS)
}

/// Converts a refusal to a JSON-RPC error.
pub(super) fn protocol(refusal: &Refusal) -> ErrorData {
    let data = Some(refusal.json());
    if refusal.is_missing() || refusal.is_invalid() {
        return ErrorData::invalid_params(refusal.text(), data);
    }
    ErrorData::internal_error(refusal.text(), data)
}

/// Converts the refusal of a method of the Skills extension, for which a missing skill is a wrong
/// parameter in both eras, and adds the address.
pub(super) fn skill(refusal: &Refusal, uri: &str) -> ErrorData {
    let mut error = protocol(refusal);
    error.data = error.data.map(|data| with_uri(data, uri));
    error
}

/// Converts the refusal of a read: MCP has an error of its own for a missing resource.
pub(super) fn resource(refusal: &Refusal, uri: &str) -> ErrorData {
    if !refusal.is_missing() && !refusal.is_invalid() {
        return protocol(refusal);
    }
    let data = with_uri(refusal.json(), uri);
    ErrorData::resource_not_found(refusal.text(), Some(data))
}

fn with_uri(mut data: Json, uri: &str) -> Json {
    if let Some(data) = data.as_object_mut() {
        data.insert("uri".to_owned(), json!(address(uri)));
    }
    data
}
