//! Front matter that is broken as it is in the wild. Of each case: the problems, the
//! description, the other keys that are kept, and the body where it is not plain.

use serde_json::{Value, json};

use super::*;
use crate::body;

/// What a text comes to: problems, description, and the keys beside name and description.
fn read_to(text: &str) -> (Vec<String>, String, Value) {
    let reading = read_text(text);
    let problems = listed(&reading);
    let Some(skill) = reading.skill else {
        return (problems, String::new(), Value::Null);
    };
    let mut kept = skill.front_matter;
    let known = ["name", "description"];
    kept.retain(|key, _| !known.contains(&key.as_str()));
    (problems, skill.description, Value::Object(kept))
}

fn check(front: &str, problems: &[&str], description: &str, kept: &Value) {
    let text = with_front(front);
    let problems: Vec<String> = problems.iter().map(|p| (*p).to_owned()).collect();
    assert_eq!(
        read_to(&text),
        (problems, description.to_owned(), kept.clone()),
        "{front}"
    );
    assert_eq!(body(&text), "Do it.\n");
}

const REPAIRED_3: &[&str] = &["warning 3 front-matter-repaired"];

#[test]
fn values_that_go_on_at_the_edge_are_read_as_lenient_readers_read_them() {
    let none = json!({});
    for (value, description) in [
        ("\"One\ntwo: three\nfour.\"", "One two: three four."),
        ("\"One\n\nname: two\"", "One\nname: two"),
        (
            "\"One \\\"quoted\\\"\n**bold** two\"",
            "One \"quoted\" **bold** two",
        ),
        (
            "\"One\n**Two**: three\n- four\"  # done",
            "One **Two**: three - four",
        ),
        ("'It''s one\nand: two'", "It's one and: two"),
        ("\"One\n# two\n  three\"", "One # two three"),
    ] {
        check(
            &format!("name: demo\ndescription: {value}\n"),
            REPAIRED_3,
            description,
            &none,
        );
    }
    check(
        &format!(
            "{GOOD}license: [a,\nb]\nmetadata: {{\n\"x\": {{\"y\": \"}}\"}},\n\"z\": [1]\n}}\n"
        ),
        &[
            "warning 4 front-matter-repaired",
            "warning 4 license-invalid",
            "warning 6 front-matter-repaired",
        ],
        "Shows how.",
        &json!({"license": ["a", "b"], "metadata": {"x": {"y": "}"}, "z": [1]}}),
    );
    // An indented line needs no help, and a mark without a partner gives none.
    check(
        "name: demo\ndescription: \"One\n  two\"\n",
        &[],
        "One two",
        &none,
    );
    check(
        "name: demo\ndescription: \"One\nlicense: MIT\n",
        REPAIRED_3,
        "\"One",
        &json!({"license": "MIT"}),
    );
}

#[test]
fn a_description_of_many_lines_that_is_no_yaml_is_read_as_text() {
    let none = json!({});
    for (value, description) in [
        (
            "**Bold** text\n  goes on: here\n  **and** ends.",
            "**Bold** text goes on: here **and** ends.",
        ),
        (
            "Use when:\n  - one: x: y\n  - two",
            "Use when: - one: x: y - two",
        ),
        (
            "Shows how\nto do it, when asked.",
            "Shows how to do it, when asked.",
        ),
        ("[x] done\n  and more", "[x] done and more"),
        ("`code` first\n  and more", "`code` first and more"),
        ("@scope does it\n  and more", "@scope does it and more"),
        ("One: two\n\n  Three: four", "One: two\nThree: four"),
        ("|\nOne\ntwo", "One\ntwo"),
        (">-\nOne\ntwo", "One two"),
        ("\n**Bold**\ntext", "**Bold** text"),
        ("\n  - **One**: x\n  - two", "- **One**: x - two"),
        (
            "\"One: \"two\" and\n  three\"",
            "\"One: \"two\" and three\"",
        ),
        ("One\n\ttwo: three", "One two: three"),
    ] {
        let front = format!("name: demo\ndescription: {value}\nlicense: MIT\n");
        check(&front, REPAIRED_3, description, &json!({"license": "MIT"}));
        let front = format!("description: {value}\nname: demo\n");
        check(
            &front,
            &["warning 2 front-matter-repaired"],
            description,
            &none,
        );
        // Lines end as they do on other systems.
        let front = front.replace('\n', "\r\n");
        let (problems, read, _) = read_to(&with_front(&front));
        assert_eq!(
            problems,
            ["warning 2 front-matter-repaired", "info 2 line-endings"],
            "{front:?}"
        );
        assert_eq!(read, description, "{front:?}");
    }
}

#[test]
fn a_key_that_is_no_yaml_is_left_out_alone_and_told() {
    for (broken, kept) in [
        ("tags:\n  - a\n b: c\n", json!({})),
        ("metadata:\n\ta: b\n", json!({})),
        (
            "metadata: {\"a\": {\"b\": 1}\n",
            json!({"metadata": "{\"a\": {\"b\": 1}"}),
        ),
        ("metadata: {\"a\": {\n  \"b\": 1\n}\n", json!({})),
        ("note: *x\n  *y\n", json!({})),
        ("note: {{x}}\n  y\n", json!({})),
        ("a.b: 'one' two\n  three\n", json!({})),
    ] {
        let front = format!("{GOOD}{broken}license: MIT\n");
        let (problems, description, read) = read_to(&with_front(&front));
        let rule = if kept == json!({}) {
            "dropped"
        } else {
            "repaired"
        };
        let told = format!("warning 4 front-matter-{rule}");
        assert!(problems.contains(&told), "{broken}: {problems:?}");
        assert!(
            problems.iter().all(|p| !p.starts_with("error")),
            "{problems:?}"
        );
        let mut kept = kept;
        kept["license"] = json!("MIT");
        assert_eq!(
            (description.as_str(), read),
            ("Shows how.", kept),
            "{broken}"
        );
    }
    let reading = read_text(&with_front(&format!("{GOOD}tags:\n  - a\n b: c\n")));
    assert_eq!(
        message(&reading),
        "`tags` was left out, since it is not YAML: while parsing a block mapping, did not find \
         expected key"
    );
}

#[test]
fn prose_inside_front_matter_is_left_out_or_begins_the_body() {
    check(
        &format!("A skill.\n{GOOD}"),
        &["warning 2 front-matter-dropped"],
        "Shows how.",
        &json!({}),
    );
    check(
        &format!("{GOOD}license: MIT\nSee the folder.\n"),
        &["warning 5 front-matter-dropped"],
        "Shows how.",
        &json!({"license": "MIT"}),
    );
    let reading = read_text(&with_front(&format!("{GOOD}license: MIT\nSee it.\n")));
    assert_eq!(
        message(&reading),
        "`See it.` is no line of `key: value`; it was left out with what belongs to it"
    );
    let (problems, ..) = read_to(&with_front(&format!(
        "{GOOD}Note: *a\n *b\nNote: c\nTip: d\n"
    )));
    assert_eq!(
        problems,
        [
            "warning 4 front-matter-dropped",
            "warning 6 front-matter-dropped",
            "info 7 unknown-key"
        ]
    );
    // The second fence is a rule of the text.
    for (text, instructions, line) in [
        (
            format!("---\n{GOOD}\n# Title\n\nProse.\n\n---\n\nMore.\n"),
            "# Title\n\nProse.\n\n---\n\nMore.\n",
            3,
        ),
        (
            format!("---\n{GOOD}# Title\nProse: it.\n\n- x\nEnd.\n---\nMore.\n"),
            "# Title\nProse: it.\n\n- x\nEnd.\n---\nMore.\n",
            3,
        ),
        (
            format!("---\n{GOOD}----\n# Title\n\n---\nMore.\n"),
            "# Title\n\n---\nMore.\n",
            3,
        ),
    ] {
        let (problems, description, _) = read_to(&text);
        if text.contains("Prose: it.") {
            // A key, as far as one can tell: it is left out with what belongs to it.
            assert_eq!(description, "Shows how.");
            continue;
        }
        assert_eq!(problems, ["warning 1 front-matter-unclosed"], "{text}");
        assert_eq!(
            (description.as_str(), body(&text)),
            ("Shows how.", instructions)
        );
        assert!(message(&read_text(&text)).contains(&format!("up to line {line}.")));
    }
    // What YAML takes is no prose, however it looks.
    check(
        &format!("{GOOD}\n# a comment\n\"quoted key\": x\n? asked\n: answered\n"),
        &["info 6 unknown-key"],
        "Shows how.",
        &json!({"quoted key": "x", "asked": "answered"}),
    );
}

#[test]
fn front_matter_that_is_never_closed_ends_where_prose_begins() {
    for (below, instructions) in [
        ("\n# Title\n\nProse: it.\n", "# Title\n\nProse: it.\n"),
        ("\nNote: it is prose.\n", "Note: it is prose.\n"),
        ("# Title\n\nProse.\n", "# Title\n\nProse.\n"),
        ("Prose.\n", "Prose.\n"),
        ("```\ncode\n```\n", "```\ncode\n```\n"),
        ("----\n\nProse.\n", "Prose.\n"),
        (" ---\nProse.\n", "Prose.\n"),
        ("--\nProse.\n", "Prose.\n"),
        ("\u{2014}\nProse.\n", "Prose.\n"),
        ("...\nProse.\n", "Prose.\n"),
        ("***\nProse.\n", "Prose.\n"),
        ("\n", ""),
        ("", ""),
    ] {
        let text = format!("---\nlicense: MIT\n{GOOD}{below}");
        let (mut problems, description, kept) = read_to(&text);
        problems.retain(|problem| !problem.ends_with("body-empty"));
        assert_eq!(problems, ["warning 1 front-matter-unclosed"], "{text}");
        assert_eq!(
            (description.as_str(), kept, body(&text)),
            ("Shows how.", json!({"license": "MIT"}), instructions),
            "{text}"
        );
    }
    let whole = "---\nname: demo\ndescription: |\n  One.\n\n  Two.\ntags:\n- a\n- b\n\n# Title\n";
    let (_, description, kept) = read_to(whole);
    assert_eq!(
        (description.as_str(), kept),
        ("One.\n\nTwo.", json!({"tags": ["a", "b"]}))
    );
    assert_eq!(body(whole), "# Title\n");
    // A rule above a text is no fence.
    for text in [
        "---\n",
        "---\n# Title\n\nProse.\n",
        "---\nname: demo\n\nProse.\n",
    ] {
        assert_eq!(
            listed(&read_text(text)),
            ["error 1 front-matter-unclosed"],
            "{text}"
        );
    }
}

#[test]
fn what_limits_a_skill_is_never_left_out() {
    for key in [
        "forbidden_tools",
        "forbidden-tools",
        "compatibility_rules",
        "Composability-Rules",
        "disable-model-invocation",
    ] {
        let reading = read_text(&with_front(&format!("{GOOD}{key}: [a,\n  b: c: d\n")));
        let rules: Vec<_> = listed(&reading);
        assert!(
            rules
                .iter()
                .any(|p| p.starts_with("error") && p.ends_with("front-matter-unreadable")),
            "{key}: {rules:?}"
        );
        assert_eq!(reading.skill, None);
    }
}

#[test]
fn what_the_guard_refuses_is_not_saved() {
    let broken = "tags:\n  - a\n b: c\n";
    for (front, rule) in [
        (format!("{broken}a: &x 1\nb: *x\n"), "front-matter-alias"),
        (format!("{broken}a: !important x\n"), "front-matter-tag"),
        (
            format!("{broken}name: other\n"),
            "front-matter-duplicate-key",
        ),
        (
            format!("{broken}a: {}\n", "[".repeat(40)),
            "front-matter-too-deep",
        ),
        (
            format!("{broken}a: [{}]\n", vec!["1"; 10_001].join(",")),
            "front-matter-too-many-nodes",
        ),
    ] {
        let rules: Vec<_> = read_text(&with_front(&format!("{GOOD}{front}"))).problems;
        let rules: Vec<_> = rules.iter().map(|p| p.rule.as_str()).collect();
        assert_eq!(rules, [rule], "{front:.60}");
    }
    // Nothing is left of prose alone.
    let prose = read_text(&with_front("Just prose.\nMore: of it: x\n y\n"));
    assert_eq!(listed(&prose), ["error 3 front-matter-unreadable"]);
}
