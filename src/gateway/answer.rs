//! What a tool answers, as a tree or as the text that is passed on as it is.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::json::{append, quote, text_of};
use super::{Contract, Error, Method, Refusal};

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct ToolAnswer<D> {
    /// What a model reads. None: the text of the structured answer.
    pub text: Option<String>,
    /// What a program reads. None: a refusal of a tool without an envelope.
    pub structured: Option<D>,
    /// Why it was refused, where it was.
    pub refusal: Option<Refusal>,
}

/// A structured answer in one of two forms: the tree, or the text that is passed on as it is.
pub trait Structured: Sized + Send {
    /// A message in this form.
    ///
    /// # Errors
    /// The bytes are not such a message.
    fn write(contract: &Contract, method: &Method, bytes: &[u8]) -> Result<Self, Error>;

    /// A tree in this form.
    fn of(json: Json) -> Self;

    /// Members of an object, in this order.
    fn object(members: Vec<(&str, Self)>) -> Self;

    /// Its text.
    fn text(&self) -> String;
}

impl Structured for Json {
    fn write(contract: &Contract, method: &Method, bytes: &[u8]) -> Result<Self, Error> {
        contract.write(&method.output, bytes)
    }

    fn of(json: Json) -> Self {
        json
    }

    fn object(members: Vec<(&str, Self)>) -> Self {
        let members = members.into_iter();
        Self::Object(members.map(|(name, it)| (name.to_owned(), it)).collect())
    }

    fn text(&self) -> String {
        text_of(self)
    }
}

/// The text of a JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Structured for JsonText {
    fn write(contract: &Contract, method: &Method, bytes: &[u8]) -> Result<Self, Error> {
        let mut text = String::new();
        contract.write_text(&method.output, bytes, &mut text)?;
        Ok(Self(text))
    }

    fn of(json: Json) -> Self {
        let mut text = String::new();
        append(&json, &mut text);
        Self(text)
    }

    fn object(members: Vec<(&str, Self)>) -> Self {
        let length: usize = members
            .iter()
            .map(|(name, it)| name.len() + it.0.len() + 4)
            .sum();
        let mut text = String::with_capacity(length + 2);
        for (at, (name, member)) in members.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            quote(name, &mut text);
            text.push(':');
            text.push_str(&member.0);
        }
        text.push('}');
        Self(text)
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// What an answer with an envelope comes in.
pub(super) fn envelope<D: Structured>(
    data: Option<D>,
    refusal: Option<&Refusal>,
    took: Duration,
    request_id: &str,
) -> D {
    let mut members = vec![("success", D::of(refusal.is_none().into()))];
    if let Some(data) = data {
        members.push(("data", data));
    }
    if let Some(refusal) = refusal {
        members.push(("error", D::of(refusal.json())));
    }
    let millis = (took.as_secs_f64() * 1e6).round() / 1e3;
    let metadata = json!({"execution_time_ms": millis, "request_id": request_id});
    members.push(("metadata", D::of(metadata)));
    D::object(members)
}
