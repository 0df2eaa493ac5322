//! What a tool answers: text that is passed on as it is.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::Refusal;
use super::json::{append, quote};

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct ToolAnswer {
    /// What a model reads. None: the text of the structured answer.
    pub text: Option<String>,
    /// What a program reads. None: a refusal of a tool without an envelope.
    pub structured: Option<JsonText>,
    /// Why it was refused, where it was.
    pub refusal: Option<Refusal>,
}

/// The text of a JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(pub(super) String);

impl JsonText {
    /// The text of this one.
    #[must_use]
    pub fn of(json: &Json) -> Self {
        let mut text = String::new();
        append(json, &mut text);
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the text says.
    #[must_use]
    pub fn json(&self) -> Json {
        // Never nothing, since it was written by us.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// What an answer with an envelope comes in.
pub(super) fn envelope(
    data: Option<&JsonText>,
    refusal: Option<&Refusal>,
    took: Duration,
    request_id: &str,
) -> JsonText {
    let mut text = String::with_capacity(data.map_or(0, |data| data.0.len()) + 256);
    text.push_str("{\"success\":");
    text.push_str(if refusal.is_none() { "true" } else { "false" });
    let mut member = |name: &str, write: &dyn Fn(&mut String)| {
        text.push(',');
        quote(name, &mut text);
        text.push(':');
        write(&mut text);
    };
    if let Some(data) = data {
        member("data", &|text| text.push_str(&data.0));
    }
    if let Some(refusal) = refusal {
        member("error", &|text| append(&refusal.json(), text));
    }
    let millis = (took.as_secs_f64() * 1e6).round() / 1e3;
    let metadata = json!({"execution_time_ms": millis, "request_id": request_id});
    member("metadata", &|text| append(&metadata, text));
    text.push('}');
    JsonText(text)
}
