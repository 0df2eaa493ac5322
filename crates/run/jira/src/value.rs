//! Values of Jira's fields as text.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::adf;

/// Appends to a text.
#[expect(clippy::expect_used, reason = "a text takes whatever is written to it")]
pub(super) fn add(to: &mut String, what: fmt::Arguments<'_>) {
    fmt::Write::write_fmt(to, what).expect("written");
}

/// A value in words; empty for none.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => legacy_sprint(text).unwrap_or_else(|| text.trim().to_owned()),
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().map(self::text).collect();
            let texts: Vec<&str> = texts
                .iter()
                .map(String::as_str)
                .filter(|text| !text.is_empty())
                .collect();
            texts.join(", ")
        }
        Value::Object(_) if adf::is_document(value) => adf::text(value),
        Value::Object(_) => object(value),
    }
}

/// People, statuses, versions, options and the like have a name somewhere.
fn object(value: &Value) -> String {
    if let (Some(key), Some(summary)) = (
        value.get("key").and_then(Value::as_str),
        value.pointer("/fields/summary").and_then(Value::as_str),
    ) {
        return format!("{key} {}", one_line(summary));
    }
    let named = ["displayName", "name", "value", "key", "filename"]
        .iter()
        .find_map(|name| value.get(name).and_then(Value::as_str));
    let Some(named) = named else {
        return match value.as_object() {
            Some(map) if map.is_empty() => String::new(),
            _ => value.to_string(),
        };
    };
    let mut text = named.trim().to_owned();
    // The second of two cascading lists.
    if let Some(child) = value.pointer("/child/value").and_then(Value::as_str) {
        text = format!("{text} / {child}");
    }
    // A sprint.
    if let (Some(state), Some(_)) = (
        value.get("state").and_then(Value::as_str),
        value.get("boardId"),
    ) {
        text = format!("{text} ({state})");
    }
    text
}

/// Data Center writes sprints as its own objects print themselves.
fn legacy_sprint(text: &str) -> Option<String> {
    let (_, inner) = text.split_once("greenhopper.service.sprint.Sprint@")?;
    let part = |name: &str| {
        let (_, rest) = inner.split_once(&format!("{name}="))?;
        rest.split([',', ']']).next()
    };
    let name = part(",name")?;
    let state = part(",state")?.to_ascii_lowercase();
    Some(format!("{name} ({state})"))
}

/// The members of a list; none where it is not one.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The members of an object below a name; none where it is not one.
pub(super) fn members<'a>(
    value: &'a Value,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    let object = value.get(name).and_then(Value::as_object);
    object.into_iter().flatten()
}

/// A member of an object, in words.
pub(super) fn at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).map(text).unwrap_or_default()
}

/// `2025-01-31T10:20:30.000+0100` as `2025-01-31 10:20 +0100`; any other text as it
/// is.
pub(super) fn when(text: &str) -> Cow<'_, str> {
    let is_date =
        |date: &str| date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    let parts = text.split_once('T').and_then(|(date, time)| {
        let (minutes, rest) = time.split_at_checked(5)?;
        let (seconds, zone) = rest.split_at(rest.find(['+', '-', 'Z'])?);
        let is_time = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_digit() || matches!(c, ':' | '.'))
        };
        let is_moment = is_date(date) && is_time(minutes) && is_time(seconds) && zone.len() <= 6;
        is_moment.then(|| format!("{date} {minutes} {zone}"))
    });
    parts.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// A text without line ends and controls.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// A text with a capital letter at its beginning.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// Cuts a text after some characters, and adds how many are missing.
pub(super) fn cut(text: &str, max: usize) -> String {
    let more = text.chars().count().saturating_sub(max);
    if more == 0 {
        return text.to_owned();
    }
    let first: String = text.chars().take(max).collect();
    format!("{first}… (cut, {more} more characters)")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_value_has_words() {
        for (value, words) in [
            (json!(null), ""),
            (json!(5.0), "5.0"),
            (json!({"displayName": "Ada", "accountId": "1"}), "Ada"),
            (json!({"name": "High", "id": "2"}), "High"),
            (
                json!([{"value": "A"}, null, {"value": "B", "child": {"value": "C"}}]),
                "A, B / C",
            ),
            (
                json!({"key": "ABC-1", "fields": {"summary": "An\nepic"}}),
                "ABC-1 An epic",
            ),
            (
                json!({"id": 7, "name": "Sprint 7", "state": "active", "boardId": 1}),
                "Sprint 7 (active)",
            ),
            (
                json!(
                    "com.atlassian.greenhopper.service.sprint.Sprint@1f[id=3,rapidViewId=1,state=CLOSED,name=Sprint 3,goal=]"
                ),
                "Sprint 3 (closed)",
            ),
            (json!({"progress": 1}), r#"{"progress":1}"#),
            (json!({}), ""),
        ] {
            assert_eq!(text(&value), words);
        }
    }

    #[test]
    fn moments_keep_their_zone_and_cuts_are_told() {
        assert_eq!(
            when("2025-01-31T10:20:30.000+0100"),
            "2025-01-31 10:20 +0100"
        );
        assert_eq!(when("2025-01-31T10:20:30.000Z"), "2025-01-31 10:20 Z");
        for other in [
            "2025-01-31",
            "STOP 12345-6",
            "2025-01-31Tea at 5 - or later",
            "",
        ] {
            assert_eq!(when(other), other);
        }
        assert_eq!(cut("äöü", 2), "äö… (cut, 1 more characters)");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(one_line(" a\r\n\u{7}b  c "), "a b c");
    }
}
