//! Questions about a document, and whether their answers are what they should be.

use serde_json::{Value, json};

use crate::compare::same_json;
use crate::feedback::{CaseOutcome, WrongCase};
use crate::grading::{Matcher, Question};
use crate::render;

/// An answer; none: there is no such value.
pub(super) type Answer = Option<Value>;

/// Compares an answer with what it should be.
pub(super) fn judge(question: &Question, answer: &Answer) -> CaseOutcome {
    let answer = answer
        .as_ref()
        .and_then(|answer| answer.pointer(&question.at))
        .filter(|answer| !answer.is_null());
    if fits(&question.matcher, answer) {
        return CaseOutcome::Right;
    }
    let actual = answer.map_or_else(|| "nothing".to_owned(), render::json);
    CaseOutcome::Wrong(WrongCase::other(render::matcher(&question.matcher), actual))
}

fn fits(matcher: &Matcher, answer: Option<&Value>) -> bool {
    match (matcher, answer) {
        (Matcher::Absent, answer) => answer.is_none(),
        (Matcher::Expected(expected), answer) => {
            same_json(expected, answer.unwrap_or(&Value::Null))
        }
        (_, None) => false,
        (Matcher::Contains(part), Some(answer)) => contains(answer, part),
        (Matcher::Matches(pattern), Some(answer)) => match answer {
            Value::String(text) => pattern.is_match(text),
            Value::Number(_) | Value::Bool(_) => pattern.is_match(&answer.to_string()),
            _ => false,
        },
        (Matcher::AtLeast(number), Some(answer)) => {
            size(answer).is_some_and(|size| size >= *number)
        }
        (Matcher::AtMost(number), Some(answer)) => size(answer).is_some_and(|size| size <= *number),
    }
}

/// A list has an element, a text a part, an object these entries.
fn contains(answer: &Value, part: &Value) -> bool {
    match (answer, part) {
        (Value::Array(list), part) => list.iter().any(|element| same_json(element, part)),
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Object(map), Value::Object(part)) => part.iter().all(|(key, value)| {
            let found = map.get(key);
            found.is_some_and(|found| same_json(found, value))
        }),
        _ => false,
    }
}

/// A number, or how long a list or a text is.
#[expect(clippy::cast_precision_loss, reason = "lengths of what was bounded")]
fn size(answer: &Value) -> Option<f64> {
    match answer {
        Value::Number(number) => number.as_f64(),
        Value::Array(list) => Some(list.len() as f64),
        Value::Object(map) => Some(map.len() as f64),
        Value::String(text) => Some(text.chars().count() as f64),
        Value::Null | Value::Bool(_) => None,
    }
}

/// Rules that problems of this severity or a worse one break, in order, each once.
pub(super) fn broken(problems: &[model::Problem], min: model::Severity) -> Value {
    // A worse severity is the lesser one.
    let rules = problems.iter().filter(|problem| problem.severity <= min);
    let rules: std::collections::BTreeSet<&str> = rules.map(|p| p.rule.as_str()).collect();
    json!(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_take_what_they_say() {
        let like = |pattern: &str| Matcher::Matches(regex::Regex::new(pattern).expect("a pattern"));
        for (matcher, answer, fits_it) in [
            (
                Matcher::Expected(json!([1, "a"])),
                Some(json!([1.0, "a"])),
                true,
            ),
            (Matcher::Expected(json!([])), None, false),
            (Matcher::Expected(Value::Null), None, true),
            (
                Matcher::Contains(json!("Read")),
                Some(json!(["Read", "Grep"])),
                true,
            ),
            (Matcher::Contains(json!("Re")), Some(json!(["Read"])), false),
            (Matcher::Contains(json!("Re")), Some(json!("Read")), true),
            (
                Matcher::Contains(json!({"a": 1})),
                Some(json!({"a": 1, "b": 2})),
                true,
            ),
            (Matcher::Contains(json!("x")), None, false),
            (like("^1"), Some(json!(10)), true),
            (like("a"), Some(json!(["a"])), false),
            (Matcher::AtLeast(2.0), Some(json!([1, 2])), true),
            (Matcher::AtLeast(2.0), Some(json!(1.5)), false),
            (Matcher::AtMost(3.0), Some(json!("äöü")), true),
            (Matcher::AtMost(3.0), None, false),
            (Matcher::Absent, None, true),
            (Matcher::Absent, Some(json!([])), false),
        ] {
            assert_eq!(
                fits(&matcher, answer.as_ref()),
                fits_it,
                "{matcher:?} {answer:?}"
            );
        }
    }
}
