use serde_json::json;

use super::*;

#[test]
fn prose_without_quotes_is_repaired_and_reported() {
    for value in [
        "Use when: the user asks",
        "**bold** text",
        "*foo bar",
        "*foo",
        "`code` first",
        "@scope does it",
        "%d of it",
        "[x] done",
        "[link](url) text: more",
        "{{placeholder}} text",
        "\"quoted\" and more",
        "'a' or 'b'",
        "- a dash",
        "> quote me",
        "ends with a colon:",
        "& and",
    ] {
        let reading = read_text(&with_front(&format!(
            "name: demo\ndescription: {value}\nlicense: MIT\n"
        )));
        assert_eq!(
            listed(&reading),
            ["warning 3 front-matter-repaired"],
            "{value}"
        );
        let skill = reading.skill.expect("a skill");
        assert_eq!(
            (skill.description.as_str(), skill.license.as_str()),
            (value, "MIT")
        );
    }
}

#[test]
fn quotes_that_belong_around_a_value_are_not_part_of_it() {
    for (value, meant) in [("'it's here'", "it's here"), (r#""a \d b""#, r"a \d b")] {
        let reading = read_text(&with_front(&format!("name: demo\ndescription: {value}\n")));
        assert_eq!(
            listed(&reading),
            ["warning 3 front-matter-repaired"],
            "{value}"
        );
        assert_eq!(reading.skill.expect("a skill").description, meant);
    }
}

#[test]
fn only_the_lines_that_cannot_be_read_are_repaired() {
    let front = "name: demo\ndescription: a: b\ntags: [x, y]\nnote: |\n  key: with: colons\nquote: \"a: b\"\r\nlast: c: d\r\n";
    let reading = read_text(&with_front(front));
    assert_eq!(
        listed(&reading),
        [
            "warning 3 front-matter-repaired",
            "warning 8 front-matter-repaired",
            "info 4 unknown-key",
            "info 7 line-endings"
        ]
        .map(|line| line.replace("info 4 unknown-key", "info 5 unknown-key"))
    );
    let kept = reading.skill.expect("a skill").front_matter;
    assert_eq!(
        serde_json::Value::Object(kept),
        json!({"name": "demo", "description": "a: b", "tags": ["x", "y"],
               "note": "key: with: colons\n", "quote": "a: b", "last": "c: d"})
    );
}

#[test]
fn surrogates_of_json_are_decoded() {
    let front = "metadata: {\"emoji\": \"\\ud83e\\udde0!\", \"path\": \"C:\\\\ud83e\"}\nplain: \\ud83e\\udde0\n";
    let reading = read_text(&with_front(&format!("{GOOD}{front}")));
    assert_eq!(
        listed(&reading),
        ["warning 4 front-matter-repaired", "info 5 unknown-key"]
    );
    let kept = reading.skill.expect("a skill").front_matter;
    assert_eq!(
        kept["metadata"],
        json!({"emoji": "🧠!", "path": "C:\\ud83e"})
    );
    assert_eq!(kept["plain"], json!("\\ud83e\\udde0"));
    // Half a pair is no character.
    assert_eq!(
        found_after_good("metadata: {\"emoji\": {\"a\": \"\\ud83e\"}}\n"),
        [
            "warning 4 front-matter-repaired",
            "warning 4 metadata-invalid"
        ]
    );
}

#[test]
fn values_are_what_yaml_says_they_are() {
    let front = "a: no\nb: on\nc: true\nd: 0x1F\ne: 1.5\nf: ~\ng: 'null'\nh: [1, two]\ni: 2026-01-01\n<<: {x: y}\n";
    let kept = skill_with(front).front_matter;
    let kept: serde_json::Map<String, serde_json::Value> = kept.into_iter().skip(2).collect();
    assert_eq!(
        serde_json::Value::Object(kept),
        json!({"a": "no", "b": "on", "c": true, "d": 31, "e": 1.5, "f": null, "g": "null",
               "h": [1, "two"], "i": "2026-01-01", "<<": {"x": "y"}})
    );
}

#[test]
fn numbers_that_json_cannot_hold_stay_text() {
    let digits = "12345678901234567890123456789012345678901234";
    for number in [
        digits,
        "36893488147419103232",
        "-36893488147419103232",
        ".nan",
        "-.inf",
    ] {
        let front = format!("{GOOD}metadata:\n  n: {number}\n");
        assert_eq!(found(&front), ["warning 5 number-not-exact"], "{number}");
        let kept = read_text(&with_front(&front))
            .skill
            .expect("a skill")
            .front_matter;
        assert_eq!(kept["metadata"]["n"], json!(number));
    }
}

#[test]
fn keys_that_are_no_text_become_it() {
    let front = "1.10: a\ntrue: b\nmetadata:\n  ~: c\n  2: d\n";
    let reading = read_text(&with_front(&format!("{GOOD}{front}")));
    assert_eq!(
        listed(&reading),
        ["warning 4 key-not-text", "info 4 unknown-key"]
    );
    let kept = reading.skill.expect("a skill").front_matter;
    let keys: Vec<&str> = kept.keys().map(String::as_str).collect();
    assert_eq!(keys, ["name", "description", "1.10", "true", "metadata"]);
    assert_eq!(kept["metadata"], json!({"~": "c", "2": "d"}));
}

#[test]
fn a_repair_says_what_was_wrong_and_what_to_do() {
    for (value, cause) in [
        (
            "Use when: x",
            "has a colon that YAML takes for the end of a key",
        ),
        (
            "**b** x",
            "begins with `*`, which means something else in YAML",
        ),
        ("\"a\" b", "has a quote `\"` that YAML cannot pair"),
    ] {
        let reading = read_text(&with_front(&format!("name: demo\ndescription: {value}\n")));
        assert_eq!(
            message(&reading),
            format!(
                "The value of `description` {cause}; it was read as if it were in quotes. Put it in quotes"
            )
        );
    }
}

#[test]
fn the_example_of_progressive_disclosure_is_read_whole() {
    let front = "category: database
version: \"2.0.0\"

# Tools
tool_configs:
  - name: sql_list_tables
    description: \"List all tables.\"
    method: list_tables
    args: []

  - name: sql_get_samples
    method: load_details
    args:
      - name: resource
        type: string
        default: \"samples\"
resource_configs:
  - name: samples
    dynamic: true
    method: get_sample_rows
";
    assert_eq!(found_after_good(front), NOTHING);
    let skill = skill_with(front);
    let tools: Vec<&str> = skill
        .tool_configs
        .iter()
        .map(|t| t.method.as_str())
        .collect();
    assert_eq!(tools, ["list_tables", "load_details"]);
    assert_eq!(
        skill.tool_configs[1].args[0].default,
        Some(json!("samples"))
    );
    assert!(skill.resource_configs[0].dynamic);
    assert_eq!(
        (skill.category.as_str(), skill.version.as_deref()),
        ("database", Some("2.0.0"))
    );
}
