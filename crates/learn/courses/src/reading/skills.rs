//! Reads questions to a skill, or to a config.

use composition::ToolPolicy;
use model::Severity;
use serde_json::Map;

use super::cases::{ReadCase, regex};
use super::keys::Keys;
use crate::grading::{Ask, Fixtures, Matcher, Question};
use crate::{limits, render};

/// The kind of document that a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Skill,
    Config,
}

pub(super) fn question(
    keys: &Keys<'_>,
    about: About,
    fixtures: &Fixtures,
) -> Option<ReadCase<Question>> {
    if !keys.has("ask") {
        keys.wrong("ask", "missing", "There is no `ask`");
    }
    let ask = keys.keys("ask", "ask");
    let ask = ask.and_then(|ask| read_ask(&ask, about, fixtures));
    let at = keys
        .text("at", limits::MAX_SENTENCE_CHARS)
        .unwrap_or_default();
    check_pointer(keys, "at", &at);
    let matcher = matcher(keys);
    let input = keys.text("input", limits::MAX_PARAGRAPH_CHARS);
    let (ask, matcher) = (ask?, matcher?);
    Some(ReadCase {
        input: input.or_else(|| Some(render::ask(&ask))),
        expected: Some(render::matcher(&matcher)),
        check: Question { ask, at, matcher },
    })
}

fn check_pointer(keys: &Keys<'_>, key: &str, pointer: &str) {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        keys.wrong(key, "invalid", "A JSON pointer begins with /");
    }
}

// The first two can be asked of a config, too.
const ASKS: &[&str] = &[
    "pointer",
    "problems",
    "check_tool",
    "compose",
    "found_for",
    "lines",
];

fn read_ask(keys: &Keys<'_>, about: About, fixtures: &Fixtures) -> Option<Ask> {
    let known = if about == About::Skill {
        ASKS
    } else {
        ASKS.get(..2).unwrap_or_default()
    };
    let given: Vec<&str> = known.iter().copied().filter(|ask| keys.has(ask)).collect();
    let ask = match given.as_slice() {
        ["pointer"] => {
            let pointer = keys.text("pointer", limits::MAX_SENTENCE_CHARS)?;
            check_pointer(keys, "pointer", &pointer);
            Some(Ask::Pointer(pointer))
        }
        ["problems"] => {
            let severities = [
                ("error", Severity::Error),
                ("warning", Severity::Warning),
                ("info", Severity::Info),
            ];
            keys.choice("problems", &severities).map(Ask::Problems)
        }
        ["check_tool"] | ["check_tool", "compose"] => {
            let tool = keys.text("check_tool", limits::MAX_NAME_CHARS);
            let arguments = match keys.value("arguments") {
                None => Some(Map::new()),
                Some(value) => value.as_object().cloned(),
            };
            if arguments.is_none() {
                keys.wrong(
                    "arguments",
                    "invalid",
                    "`arguments` must be lines of `key: value`",
                );
            }
            let (fixtures, policy) = composed(keys, fixtures);
            tool.zip(arguments).map(|(tool, arguments)| Ask::CheckTool {
                tool,
                arguments,
                fixtures,
                policy,
            })
        }
        ["compose"] => {
            let (fixtures, policy) = composed(keys, fixtures);
            Some(Ask::Compose { fixtures, policy })
        }
        ["found_for"] => keys
            .text("found_for", limits::MAX_SENTENCE_CHARS)
            .map(Ask::FoundFor),
        ["lines"] => keys.choice("lines", &[("body", ())]).map(|()| Ask::Lines),
        [] => {
            let message = format!("`ask` asks nothing; it can be one of {}", known.join(", "));
            keys.wrong_here("missing", message);
            None
        }
        several => {
            let message = format!("`ask` asks more than one thing: {}", several.join(", "));
            keys.wrong_here("ambiguous", message);
            None
        }
    };
    // After a refusal not every key was asked for.
    if ask.is_some() {
        keys.end();
    }
    ask
}

fn composed(keys: &Keys<'_>, fixtures: &Fixtures) -> (Vec<String>, ToolPolicy) {
    let names = keys.texts("compose", limits::MAX_LIST_ITEMS, limits::MAX_NAME_CHARS);
    for name in names.iter().filter(|name| !fixtures.contains_key(*name)) {
        let message = format!("There is no fixture `{name}`");
        keys.wrong("compose", "unknown", message);
    }
    let policies = [
        ("union", ToolPolicy::Union),
        ("intersection", ToolPolicy::Intersection),
    ];
    (names, keys.choice("policy", &policies).unwrap_or_default())
}

fn matcher(keys: &Keys<'_>) -> Option<Matcher> {
    let expected = keys.any("expected").cloned().map(Matcher::Expected);
    let contains = keys.value("contains").cloned().map(Matcher::Contains);
    let matches = regex(keys, "matches").map(Matcher::Matches);
    let at_least = keys.number("at_least", -1e9, 1e9).map(Matcher::AtLeast);
    let at_most = keys.number("at_most", -1e9, 1e9).map(Matcher::AtMost);
    let absent = keys
        .flag("absent")
        .filter(|absent| *absent)
        .map(|_| Matcher::Absent);
    let mut given: Vec<Matcher> = [expected, contains, matches, at_least, at_most, absent]
        .into_iter()
        .flatten()
        .collect();
    let found = given.pop();
    if !given.is_empty() {
        keys.wrong_here(
            "matcher-ambiguous",
            "There is more than one thing that is expected",
        );
        return None;
    }
    if found.is_none() {
        let message = "Nothing is expected: give one of expected, contains, matches, at_least, at_most, absent";
        keys.wrong_here("matcher-missing", message);
    }
    found
}
