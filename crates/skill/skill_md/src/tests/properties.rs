use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Draft, body, render};
use model::{ResourceConfig, ToolArgument, ToolConfig};

/// Whatever is read: lines are in the file, and what is accepted is whole.
fn check(text: &str) -> Result<(), TestCaseError> {
    let reading = read_text(text);
    let lines = text.split('\n').count();
    for problem in &reading.problems {
        prop_assert!(problem.line as usize <= lines, "{problem} of {lines} lines");
        prop_assert!(!problem.message.is_empty());
    }
    let is_refused = reading
        .problems
        .iter()
        .any(|p| p.severity == model::Severity::Error);
    prop_assert_eq!(reading.skill.is_some(), !is_refused);
    if let Some(skill) = reading.skill {
        prop_assert!(!skill.description.trim().is_empty());
        prop_assert!(reading.slug.is_some_and(|slug| !slug.is_empty()));
        prop_assert!(text.ends_with(body(text)));
    }
    Ok(())
}

const VALID: &str = "---
name: demo
description: \"Shows how: quoted\"
version: 1.10
allowed-tools: Bash(git:*), Read
tags: [a, 'b', 3]
metadata:
  author: \"x\\u00e9\"
  deep: {a: [1, {b: ~}]}
notes: |
  line one
    line two
folded: >-
  some
  text
tool_configs:
  - name: t
    method: m
    args:
      - {name: q, default: 1.5}
---
# Title

Prose.
";

/// Pieces that YAML and Markdown are sensitive to.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "\n",
            "---\n",
            "\n---\n",
            ":",
            ": ",
            "- ",
            "? ",
            "&a",
            "*a",
            "!",
            "!!str ",
            "!<",
            "%",
            "%YAML 1.2\n",
            "%TAG ! x\n",
            "@",
            "`",
            "\"",
            "'",
            "[",
            "]",
            "{",
            "}",
            ",",
            "|",
            ">",
            "|2\n",
            ">-\n",
            "#",
            " #",
            "\t",
            "  ",
            "\r",
            "\r\n",
            "...",
            "...\n",
            "<<",
            "~",
            "\\",
            "\\u",
            "\\ud83e\\udde0",
            "\\x0",
            "\u{feff}",
            "\u{85}",
            "\u{2028}",
            "\0",
            "é",
            "🧠",
            "\u{1}",
            "a",
            "1",
            ".nan",
            "name",
            "description: ",
            "key:\n",
            "```\n",
            "<!--",
            "-->",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,4}",
        any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z_-]{1,8}",
        ".{1,20}",
        proptest::collection::vec(piece(), 0..8).prop_map(|p| p.concat())
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn argument()(name in text(), kind in text(), description in text(), required: bool, default in proptest::option::of(value())) -> ToolArgument {
        // A default of null is no default.
        let default = default.filter(|value| !value.is_null());
        ToolArgument { name, kind, description, required, default }
    }
}

prop_compose! {
    fn tool()(name in text(), description in text(), method in text(), args in proptest::collection::vec(argument(), 0..3)) -> ToolConfig {
        ToolConfig { name, description, method, args }
    }
}

prop_compose! {
    fn resource()(name in text(), description in text(), file in text(), dynamic: bool, method in text()) -> ResourceConfig {
        ResourceConfig { name, description, file, dynamic, method }
    }
}

prop_compose! {
    fn draft()(
        name in "[a-zA-Z0-9][a-zA-Z0-9 _-]{0,20}|true|null|1e3|0x1F|é[a-z]", description in "[!-~]|x.{0,80}|[ -~]{0,40}y", category in text(),
        version in proptest::option::of(text()), author in proptest::option::of(text()), core_content in text(),
        tool_configs in proptest::collection::vec(tool(), 0..3), resource_configs in proptest::collection::vec(resource(), 0..3),
    ) -> Draft {
        Draft { name, description, category, version, author, core_content: core_content.replace('\0', ""), tool_configs, resource_configs }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in proptest::collection::vec(piece(), 0..60).prop_map(|p| p.concat())) {
        check(&text)?;
        check(&with_front(&text))?;
        check(&with_front(&format!("{GOOD}{text}\n")))?;
    }

    #[test]
    fn broken_front_matter_is_read_without_harm(
        edits in proptest::collection::vec((0..VALID.len(), 0..6_usize, piece()), 1..5),
    ) {
        let mut text = VALID.to_owned();
        for (at, length, piece) in edits {
            let floor = |mut at: usize| { while !text.is_char_boundary(at) { at -= 1; } at };
            let start = floor(at.min(text.len()));
            let end = floor((at + length).min(text.len())).max(start);
            text.replace_range(start..end, &piece);
        }
        check(&text)?;
    }

    #[test]
    fn what_is_written_reads_back(draft in draft()) {
        let text = render(&draft);
        prop_assert_eq!(&text, &render(&draft));
        let reading = read_text(&text);
        let Some(skill) = reading.skill else {
            // Only for what the draft has that nobody would see.
            let mut errors = reading.problems.iter().filter(|p| p.severity == model::Severity::Error);
            prop_assert!(errors.all(|p| p.rule == "hidden-character"), "{:?}\n{}", reading.problems, text);
            return Ok(());
        };
        let some = |text: Option<String>| text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
        prop_assert_eq!(&skill.name, &draft.name);
        prop_assert_eq!(skill.description.as_str(), draft.description.trim());
        prop_assert_eq!(skill.category.as_str(), draft.category.trim());
        prop_assert_eq!(skill.version, some(draft.version));
        prop_assert_eq!(skill.author, some(draft.author));
        prop_assert_eq!(skill.tool_configs, draft.tool_configs);
        prop_assert_eq!(skill.resource_configs, draft.resource_configs);
        prop_assert_eq!(body(&text).trim_matches('\n'), draft.core_content.trim_matches('\n'));
    }
}

#[test]
fn a_rendered_skill_looks_as_a_person_would_write_it() {
    let draft = Draft {
        name: "write_sql".to_owned(),
        description: "Writes \"SQL\": fast".to_owned(),
        category: "database".to_owned(),
        version: Some("1.10".to_owned()),
        author: None,
        core_content: "# SQL\n".to_owned(),
        tool_configs: vec![ToolConfig {
            name: "sql_query".to_owned(),
            description: String::new(),
            method: "execute_query".to_owned(),
            args: vec![ToolArgument {
                name: "query".to_owned(),
                kind: "string".to_owned(),
                description: "The query".to_owned(),
                required: true,
                default: Some(serde_json::json!({"a": [1, "no"]})),
            }],
        }],
        resource_configs: vec![ResourceConfig {
            name: "samples".to_owned(),
            description: String::new(),
            file: String::new(),
            dynamic: true,
            method: "no".to_owned(),
        }],
    };
    assert_eq!(
        render(&draft),
        "---
name: write_sql
description: \"Writes \\\"SQL\\\": fast\"
category: database
version: \"1.10\"
tool_configs:
  - name: sql_query
    method: execute_query
    args:
      - name: query
        type: string
        description: \"The query\"
        required: true
        default: {\"a\": [1, \"no\"]}
resource_configs:
  - name: samples
    dynamic: true
    method: \"no\"
---

# SQL
"
    );
}
