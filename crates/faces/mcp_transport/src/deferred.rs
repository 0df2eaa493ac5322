//! Texts that an answer is completed with.
//!
//! rmcp takes a structured answer as a tree and writes it out, and its text as a
//! string and escapes it; both exist as text already, and are long. Where an answer
//! is one JSON, the handler gives rmcp marks instead and defers the texts. Once rmcp has
//! written the answer, the texts replace their marks.
//!
//! Streams and the stored answers of sessions are as rmcp has them: there nothing is
//! deferred.

use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value as Json;

use gateway::{JsonText, escape};

/// A string that nobody outside of this process knows, so that no request can make
/// an answer hold it.
static SECRET: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().simple().to_string());

/// A mark, as JSON.
static TEXT: LazyLock<String> = LazyLock::new(|| format!("\"text-{}\"", *SECRET));
static STRUCTURED: LazyLock<String> = LazyLock::new(|| format!("\"json-{}\"", *SECRET));

/// The deferred texts of the answer to a request. Goes with the request; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DeferredBody(Arc<OnceLock<Left>>);

#[derive(Debug)]
struct Left {
    /// None: that of the structured answer.
    text: Option<String>,
    structured: JsonText,
}

/// An answer lacks the mark of a text that was deferred.
#[derive(Debug, thiserror::Error)]
#[error("an answer has no place for its structured content")]
pub struct NoPlace;

impl DeferredBody {
    /// Returns where the answer to a request may defer its texts: if it comes over HTTP, as
    /// one JSON.
    #[must_use]
    pub fn of(request: &RequestContext<RoleServer>) -> Option<&Self> {
        let parts = request.extensions.get::<http::request::Parts>()?;
        let deferred = parts.extensions.get::<Self>()?;
        // A client that asks for progress may be answered by a stream.
        let wants_progress = request.meta.get_progress_token().is_some();
        (!wants_progress && deferred.0.get().is_none()).then_some(deferred)
    }

    /// Defers the texts. Returns what the answer holds instead.
    #[must_use]
    pub fn leave(
        &self,
        text: Option<String>,
        structured: Option<JsonText>,
    ) -> (String, Option<Json>) {
        let Some(structured) = structured else {
            return (text.unwrap_or_default(), None);
        };
        let unquoted = |mark: &str| mark.trim_matches('"').to_owned();
        match self.0.set(Left { text, structured }) {
            Ok(()) => (unquoted(&TEXT), Some(unquoted(&STRUCTURED).into())),
            // Never: the one handler of a request defers its texts once.
            Err(left) => {
                let json = left.structured.as_str();
                let text = left.text.unwrap_or_else(|| json.to_owned());
                (text, serde_json::from_str(json).ok())
            }
        }
    }

    /// Returns whether texts were deferred.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.0.get().is_some()
    }

    /// Completes an answer with its texts; returns it as it is where none were deferred, or where
    /// it is another one than the handler gave.
    ///
    /// # Errors
    /// The answer has no place for them.
    pub fn complete(&self, answer: Bytes) -> Result<Bytes, NoPlace> {
        let Some(Left { text, structured }) = self.0.get() else {
            return Ok(answer);
        };
        let Ok(written) = std::str::from_utf8(&answer) else {
            return Ok(answer);
        };
        let Some((before, rest)) = written.split_once(TEXT.as_str()) else {
            return Ok(answer);
        };
        let (between, after) = rest.split_once(STRUCTURED.as_str()).ok_or(NoPlace)?;
        let structured = structured.as_str();
        let text = text.as_deref().unwrap_or(structured);
        // A quote in twenty characters is escaped.
        let length = answer.len() + structured.len() + text.len() + text.len() / 8 + 64;
        let mut whole = String::with_capacity(length);
        whole.push_str(before);
        whole.push('"');
        escape(text, &mut whole);
        whole.push('"');
        whole.push_str(between);
        whole.push_str(structured);
        whole.push_str(after);
        Ok(whole.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(text: Option<&str>, structured: &Json) -> (DeferredBody, Bytes) {
        let aside = DeferredBody::default();
        let structured = Some(JsonText::of(structured));
        let (text, structured) = aside.leave(text.map(str::to_owned), structured);
        let answer = json!({"id": "\"", "text": text, "structured": structured, "more": 1});
        (aside, answer.to_string().into())
    }

    #[test]
    fn an_answer_is_what_it_would_be_without_marks() {
        let structured = json!({"a": "é\n\"\\", "b": [1, {}]});
        for text in [None, Some("x"), Some(""), Some("\"\u{1}")] {
            let (aside, answer) = left(text, &structured);
            let whole = aside.complete(answer).expect("a place");
            let own = structured.to_string();
            let json = json!({
                "id": "\"", "text": text.unwrap_or(&own), "structured": structured, "more": 1,
            });
            assert_eq!(whole, json.to_string());
        }
    }

    #[test]
    fn an_answer_without_marks_stays_as_it_is() {
        let (aside, _) = left(None, &json!({}));
        for other in [&b"{}"[..], b"", b"\xff"] {
            assert_eq!(aside.complete(other.into()).expect("no mark"), other);
        }
        assert_eq!(
            DeferredBody::default()
                .complete("x".into())
                .expect("nothing"),
            "x"
        );
        let half = format!("{{\"text\":{}}}", *TEXT);
        aside.complete(half.into()).expect_err("no place");
    }

    #[test]
    fn without_a_structured_answer_nothing_is_left() {
        let aside = DeferredBody::default();
        assert_eq!(
            aside.leave(Some("x".to_owned()), None),
            ("x".to_owned(), None)
        );
        assert!(!aside.is_left());
    }

    #[test]
    fn texts_are_left_once_and_are_in_the_answer_itself_after_that() {
        let structured = json!({"a": 1});
        let (aside, _) = left(None, &structured);
        for (text, told) in [(None, "{\"a\":1}"), (Some("x"), "x")] {
            let again = aside.leave(text.map(str::to_owned), Some(JsonText::of(&structured)));
            assert_eq!(again, (told.to_owned(), Some(structured.clone())));
        }
        assert!(aside.is_left());
    }
}
