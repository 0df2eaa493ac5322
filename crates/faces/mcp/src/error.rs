//! Refusals as protocol errors, for methods that have no other place for them.

use rmcp::ErrorData;
use serde_json::json;

use gateway::Refusal;
use model::{SkillUri, shown};

/// Characters that are repeated of an address: more than any that names something has.
const ADDRESS_CHARS: usize = 4_000;

/// An address as it is repeated to whoever gave it.
pub(super) fn address(uri: &str) -> String {
    shown(SkillUri::without_credentials(uri), ADDRESS_CHARS)
}

/// A refusal as a JSON-RPC error. A fault is told without its insides; it was
/// logged where it happened.
pub(super) fn protocol(refusal: &Refusal) -> ErrorData {
    let data = Some(refusal.json());
    if refusal.is_missing() || refusal.is_invalid() {
        return ErrorData::invalid_params(refusal.text(), data);
    }
    ErrorData::internal_error(refusal.text(), data)
}

/// The refusal of a method of the Skills extension, with the address: what is not
/// there is a wrong parameter in it, in both eras.
pub(super) fn skill(refusal: &Refusal, uri: &str) -> ErrorData {
    let mut error = protocol(refusal);
    if let Some(data) = error.data.as_mut().and_then(|data| data.as_object_mut()) {
        data.insert("uri".to_owned(), json!(address(uri)));
    }
    error
}

/// The refusal of a read: what is not there is told as MCP tells it, with the
/// address.
pub(super) fn resource(refusal: &Refusal, uri: &str) -> ErrorData {
    if !refusal.is_missing() && !refusal.is_invalid() {
        return protocol(refusal);
    }
    let mut data = refusal.json();
    if let Some(data) = data.as_object_mut() {
        data.insert("uri".to_owned(), json!(address(uri)));
    }
    ErrorData::resource_not_found(refusal.text(), Some(data))
}
