//! Reads cases: the keys that all of them have, and those of each language.

use super::files::Files;
use super::keys::Keys;
use super::pattern;
use crate::grading::{
    Case, CaseInfo, Comparison, Database, Expectation, ExpectedResult, Output, Pattern, Subject,
};
use crate::{ShownCase, limits};

/// A case of one language, and its texts for learners where it is not hidden.
pub(super) struct ReadCase<T> {
    pub(super) check: T,
    pub(super) input: Option<String>,
    pub(super) expected: Option<String>,
}

/// Reads the cases, each by `read`.
pub(super) fn all<T>(
    validation: &Keys<'_>,
    read: impl Fn(&Keys<'_>) -> Option<ReadCase<T>>,
) -> Vec<Case<T>> {
    let list = validation.list("cases", "case", limits::MAX_CASES);
    if list.is_empty()
        && validation
            .value("cases")
            .is_none_or(|v| v.as_array().is_some_and(Vec::is_empty))
    {
        validation.wrong("cases", "missing", "There are no `cases`");
    }
    let cases = list.iter().map(|keys| {
        let description = keys.required_text("description", limits::MAX_SENTENCE_CHARS);
        let hidden = keys.flag("hidden").unwrap_or(false);
        let weight = keys.whole("weight", 1, limits::MAX_WEIGHT).unwrap_or(1);
        let look_at = keys.text("look_at", limits::MAX_SENTENCE_CHARS);
        // After a refusal not every key was asked for, so `end` would report keys that are right.
        let read = read(keys)?;
        keys.end();
        #[expect(clippy::cast_precision_loss, reason = "at most 100")]
        let weight = weight as f64;
        Some(Case {
            info: CaseInfo {
                description,
                hidden,
                weight,
                look_at,
                input: read.input,
                expected: read.expected,
                line: keys.line(),
            },
            check: read.check,
        })
    });
    cases.flatten().collect()
}

/// Cases that may be seen.
pub(super) fn shown(cases: &[&CaseInfo]) -> Vec<ShownCase> {
    let shown = cases.iter().filter(|case| !case.hidden);
    shown
        .map(|case| ShownCase {
            input: case.input.clone().unwrap_or_default(),
            expected: case.expected.clone().unwrap_or_default(),
            description: case.description.clone(),
        })
        .collect()
}

/// The texts for learners of a case whose own keys say nothing to them.
fn words(keys: &Keys<'_>) -> (Option<String>, Option<String>) {
    (
        keys.text("input", limits::MAX_PARAGRAPH_CHARS),
        keys.text("expected", limits::MAX_PARAGRAPH_CHARS),
    )
}

pub(super) fn expectation(keys: &Keys<'_>) -> Option<ReadCase<Expectation>> {
    let input = keys.required_text("input", limits::MAX_PARAGRAPH_CHARS);
    let expected = keys.expression("expected", limits::MAX_PARAGRAPH_CHARS);
    let thrown = thrown(keys);
    let (result, shown) = match (expected, thrown) {
        (Some(expected), None) => (ExpectedResult::Value(expected.clone()), expected),
        (None, Some((name, message))) => {
            let shown = format!("throws {name}");
            (ExpectedResult::Thrown { name, message }, shown)
        }
        (None, None) => {
            if !keys.has("throws") && keys.any("expected").is_none() {
                keys.wrong(
                    "expected",
                    "missing",
                    "There is neither `expected` nor `throws`",
                );
            }
            return None;
        }
        (Some(_), Some(_)) => {
            keys.wrong(
                "throws",
                "ambiguous",
                "There are both `expected` and `throws`",
            );
            return None;
        }
    };
    Some(ReadCase {
        check: Expectation {
            input: input.clone(),
            result,
        },
        input: Some(input),
        expected: Some(shown),
    })
}

/// The name of the error that a case expects, and a pattern of its message.
fn thrown(keys: &Keys<'_>) -> Option<(String, Option<regex::Regex>)> {
    if keys.value("throws")?.is_string() {
        return Some((keys.required_text("throws", limits::MAX_NAME_CHARS), None));
    }
    let thrown = keys.keys("throws", "case-throws")?;
    let name = thrown.required_text("name", limits::MAX_NAME_CHARS);
    let message = regex(&thrown, "message");
    thrown.end();
    Some((name, message))
}

/// A pattern of a key, if there is one that can be built.
pub(super) fn regex(keys: &Keys<'_>, key: &'static str) -> Option<regex::Regex> {
    let text = keys.text(key, limits::MAX_PATTERN_CHARS)?;
    let built = pattern(&text);
    let wrong = |reason| keys.wrong(key, "invalid", format!("The pattern is wrong: {reason}"));
    built.map_err(wrong).ok()
}

/// The text of the file that a key names.
pub(super) fn file(keys: &Keys<'_>, key: &'static str, files: &Files) -> Option<String> {
    let path = keys.text(key, 200)?;
    let text = files.text(&path);
    let wrong = |(how, message): (&str, String)| keys.wrong(key, &format!("file-{how}"), message);
    text.map_err(wrong).ok()
}

pub(super) fn subject(keys: &Keys<'_>, files: &Files) -> Option<ReadCase<Subject>> {
    if !keys.has("subject") {
        keys.wrong(
            "subject",
            "missing",
            "There is no `subject`: the file that is tested",
        );
    }
    let source = file(keys, "subject", files);
    let is_right = keys.required_choice("expect", &[("pass", true), ("fail", false)]);
    let (input, expected) = words(keys);
    let is_right = is_right?;
    let default = if is_right {
        "every test passes"
    } else {
        "at least one test fails"
    };
    Some(ReadCase {
        check: Subject {
            source: source?,
            is_right,
        },
        input,
        expected: expected.or(Some(default.to_owned())),
    })
}

pub(super) fn database(
    keys: &Keys<'_>,
    files: &Files,
    may_write: bool,
) -> Option<ReadCase<Database>> {
    if !keys.has("data") {
        keys.wrong(
            "data",
            "missing",
            "There is no `data`: the file that makes the tables",
        );
    }
    let data = file(keys, "data", files);
    let query = keys.text("query", limits::MAX_PARAGRAPH_CHARS);
    // A solution that writes returns no rows itself.
    if may_write && query.is_none() {
        let message = "There is no `query`, by which is seen what the solution wrote";
        keys.wrong("query", "missing", message);
    }
    let (input, expected) = words(keys);
    let data = data?;
    Some(ReadCase {
        input: input.or_else(|| Some(data.clone())),
        check: Database { data, query },
        expected,
    })
}

pub(super) fn comparison(keys: &Keys<'_>) -> Option<ReadCase<Comparison>> {
    let input = keys.any("input").cloned().unwrap_or_default();
    let Some(expected) = keys.any("expected") else {
        keys.wrong("expected", "missing", "There is no `expected`");
        return None;
    };
    Some(ReadCase {
        input: Some(crate::render::json(&input)),
        expected: Some(crate::render::json(expected)),
        check: Comparison {
            input,
            expected: expected.clone(),
        },
    })
}

pub(super) fn output(keys: &Keys<'_>) -> Option<ReadCase<Output>> {
    let input = keys.exact_text("input", limits::MAX_PARAGRAPH_CHARS);
    let expected = keys.exact_text("expected", limits::MAX_PARAGRAPH_CHARS);
    if expected.is_none() && !keys.has("expected") {
        keys.wrong("expected", "missing", "There is no `expected`");
    }
    let expected = expected?;
    Some(ReadCase {
        input: input.clone(),
        expected: Some(expected.clone()),
        check: Output {
            part: None,
            input: input.unwrap_or_default(),
            expected,
        },
    })
}

pub(super) fn pattern_case(keys: &Keys<'_>) -> Option<ReadCase<Pattern>> {
    let must = regex(keys, "must_match");
    let must_not = regex(keys, "must_not_match");
    let check = match (keys.has("must_match"), keys.has("must_not_match")) {
        (true, false) => Pattern {
            pattern: must?,
            must_match: true,
        },
        (false, true) => Pattern {
            pattern: must_not?,
            must_match: false,
        },
        (true, true) => {
            let message = "There are both `must_match` and `must_not_match`; make two cases";
            keys.wrong("must_match", "ambiguous", message);
            return None;
        }
        (false, false) => {
            let message = "There is neither `must_match` nor `must_not_match`";
            keys.wrong("must_match", "missing", message);
            return None;
        }
    };
    let (input, expected) = words(keys);
    Some(ReadCase {
        check,
        input,
        expected,
    })
}
