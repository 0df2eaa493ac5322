use serde_json::json;

use super::*;
use model::{CompatibilityRuleType, ComposabilityRuleType};

#[test]
fn names_that_break_the_standard_are_taken_and_reported() {
    for (name, slug, rules) in [
        (
            "My Skill",
            "my-skill",
            ["name-folder-mismatch", "name-nonstandard"].as_slice(),
        ),
        (
            "write_sql",
            "write_sql",
            &["name-folder-mismatch", "name-nonstandard"],
        ),
        ("a/b", "a-b", &["name-folder-mismatch", "name-nonstandard"]),
        (
            "demo--x",
            "demo-x",
            &["name-folder-mismatch", "name-nonstandard"],
        ),
        (
            "日本語",
            "demo",
            &["name-folder-mismatch", "name-nonstandard"],
        ),
        ("42", "42", &["name-folder-mismatch", "name-not-text"]),
        ("demo", "demo", &[]),
    ] {
        let reading = read_text(&with_front(&format!("name: {name}\ndescription: x\n")));
        let rules: Vec<String> = rules
            .iter()
            .map(|rule| format!("warning 2 {rule}"))
            .collect();
        assert_eq!(listed(&reading), rules, "{name}");
        assert_eq!(reading.slug.as_deref(), Some(slug));
        assert_eq!(reading.skill.expect("a skill").name, name);
    }
    let long = "a".repeat(65);
    assert_eq!(
        found(&format!("name: {long}\ndescription: x\n")),
        ["warning 2 name-folder-mismatch", "warning 2 name-too-long"]
    );
}

#[test]
fn a_name_is_taken_from_the_folder_or_nowhere() {
    for front in [
        "description: x\n",
        "name:\ndescription: x\n",
        "name: ' '\ndescription: x\n",
    ] {
        let reading = read_text(&with_front(front));
        assert_eq!(listed(&reading), ["warning 1 name-missing"], "{front}");
        assert_eq!(reading.skill.expect("a skill").name, "demo");
    }
    assert_eq!(
        found("name: [a]\ndescription: x\n"),
        ["warning 1 name-missing", "warning 2 name-not-text"]
    );
    // The id that it is published as gives one too.
    for (front, rule, name) in [
        ("description: x\n", "warning 1 name-missing", "demo-2"),
        (
            "name: 日本語\ndescription: x\n",
            "warning 2 name-nonstandard",
            "日本語",
        ),
    ] {
        let options = ReadOptions {
            slug: Some("demo-2"),
            ..ReadOptions::default()
        };
        let text = with_front(front);
        let reading = read(&files([("SKILL.md", text.as_bytes())]), &options);
        assert_eq!(listed(&reading), [rule]);
        assert_eq!(reading.slug.as_deref(), Some("demo-2"));
        assert_eq!(reading.skill.expect("a skill").name, name);
    }
    let nowhere = |front: &str| {
        let text = with_front(front);
        listed(&read(
            &files([("SKILL.md", text.as_bytes())]),
            &ReadOptions::default(),
        ))
    };
    assert_eq!(
        nowhere("description: x\n"),
        ["error 1 name-unusable", "warning 1 name-missing"]
    );
    assert_eq!(
        nowhere("name: 日本語\ndescription: x\n"),
        ["error 2 name-unusable", "warning 2 name-nonstandard"]
    );
}

#[test]
fn names_with_characters_that_are_not_seen_are_refused() {
    for hidden in [
        '\u{202e}',
        '\u{200b}',
        '\u{e0041}',
        '\u{7}',
        '\u{ad}',
        '\u{2066}',
        '\u{feff}',
        '\u{3164}',
    ] {
        let name = format!("\"de\\U{:08x}mo\"", u32::from(hidden));
        let listed = found(&format!("name: {name}\ndescription: x\n"));
        assert_eq!(
            listed.first().map(String::as_str),
            Some("error 2 name-hidden-characters"),
            "{hidden:?}"
        );
    }
    let raw = found("name: de\u{202e}mo\ndescription: x\n");
    assert_eq!(
        raw.first().map(String::as_str),
        Some("error 2 name-hidden-characters")
    );
}

#[test]
fn a_description_is_required_and_limited() {
    assert_eq!(found("name: demo\n"), ["error 1 description-missing"]);
    assert_eq!(
        found("name: demo\ndescription: '  '\n"),
        ["error 3 description-missing"]
    );
    assert_eq!(
        found("name: demo\ndescription: {a: b}\n"),
        ["error 3 description-invalid"]
    );
    assert_eq!(
        found(""),
        ["error 1 description-missing", "warning 1 name-missing"]
    );
    let of = |chars: usize| found(&format!("name: demo\ndescription: {}\n", "ü".repeat(chars)));
    assert_eq!(of(1_024), NOTHING);
    assert_eq!(of(1_025), ["warning 3 description-too-long"]);
    assert_eq!(of(8_192), ["warning 3 description-too-long"]);
    assert_eq!(of(8_193), ["error 3 description-too-long"]);
    let list = read_text(&with_front(
        "name: demo\ndescription:\n  - One.\n  - Two.\n",
    ));
    assert_eq!(listed(&list), ["warning 3 description-not-text"]);
    assert_eq!(list.skill.expect("a skill").description, "One. Two.");
}

#[test]
fn a_version_stays_as_it_was_written() {
    for (front, version, rules) in [
        ("version: 1.2.3\n", "1.2.3", [].as_slice()),
        ("version: 1.10\n", "1.10", &["info 4 version-not-semver"]),
        ("version: 1.0\n", "1.0", &["info 4 version-not-semver"]),
        ("version: \"2\"\n", "2", &["info 4 version-not-semver"]),
        ("metadata:\n  version: 3.0.0\n", "3.0.0", &[]),
        (
            "metadata: {version: 1.20}\n",
            "1.20",
            &["info 4 version-not-semver"],
        ),
        ("version: 1.0.0\nmetadata: {version: 2.0.0}\n", "1.0.0", &[]),
    ] {
        assert_eq!(
            skill_with(front).version.as_deref(),
            Some(version),
            "{front}"
        );
        assert_eq!(found_after_good(front), rules, "{front}");
    }
    assert_eq!(skill_with("version:\n").version, None);
    assert_eq!(
        found_after_good("version: [1]\n"),
        ["warning 4 version-invalid"]
    );
}

#[test]
fn keys_count_in_any_spelling_and_the_standards_own_first() {
    let reading = read_text(&with_front(
        "Name: demo\nDESCRIPTION: x\nAllowed_Tools: Read\n",
    ));
    assert_eq!(
        listed(&reading),
        ["info 2 key-spelling", "info 3 key-spelling"]
    );
    assert_eq!(reading.skill.expect("a skill").allowed_tools, ["Read"]);
    let both = "allowed_tools: [Write]\nallowed-tools: Read\n";
    assert_eq!(skill_with(both).allowed_tools, ["Read"]);
    assert_eq!(found_after_good(both), ["warning 4 key-ambiguous"]);
}

#[test]
fn unknown_keys_are_kept_and_named_once() {
    let front = "slug: x\nversion: 1.0.0\nmodel: opus\n";
    let reading = read_text(&with_front(&format!("{GOOD}{front}")));
    assert_eq!(listed(&reading), ["info 4 unknown-key"]);
    assert_eq!(
        message(&reading),
        "Unknown keys, stored as they are: `slug` (line 4), `model` (line 6)"
    );
    let kept = reading.skill.expect("a skill").front_matter;
    assert_eq!(
        serde_json::to_string(&kept).expect("JSON"),
        r#"{"name":"demo","description":"Shows how.","slug":"x","version":"1.0.0","model":"opus"}"#
    );
}

#[test]
fn allowed_tools_are_split_outside_parentheses() {
    let tools = |front: &str| skill_with(front).allowed_tools;
    assert_eq!(tools("allowed-tools: Read Write\n"), ["Read", "Write"]);
    assert_eq!(
        tools("allowed-tools: Bash(git add:*, git commit:*), Read\n"),
        ["Bash(git add:*, git commit:*)", "Read"]
    );
    assert_eq!(
        tools("allowed-tools:\n  - Bash(npm run:*)\n  - Read\n"),
        ["Bash(npm run:*)", "Read"]
    );
    assert_eq!(tools("allowed_tools: []\n"), NOTHING);
    assert_eq!(tools("allowed-tools: Bash(a b\n"), ["Bash(a b"]);
    assert_eq!(
        found_after_good("allowed-tools: Bash(a b\n"),
        ["warning 4 allowed-tools-invalid"]
    );
    assert_eq!(
        found_after_good("allowed-tools: {a: b}\n"),
        ["warning 4 allowed-tools-invalid"]
    );
}

#[test]
fn lists_are_lists_and_one_text_is_a_list_of_one() {
    let front = "forbidden_tools: Bash Write\nexecution_protocol: First, look\npostconditions: [1.0, null, yes]\n";
    let skill = skill_with(front);
    // A tool's name has no spaces: taken whole, nothing would be forbidden.
    assert_eq!(skill.forbidden_tools, ["Bash", "Write"]);
    assert_eq!(skill.execution_protocol, ["First, look"]);
    assert_eq!(skill.postconditions, ["1.0", "yes"]);
    assert_eq!(
        found_after_good(front),
        [
            "warning 4 forbidden-tools-invalid",
            "warning 5 execution-protocol-invalid",
            "info 6 postconditions-element"
        ]
    );
}

#[test]
fn several_categories_are_one_text_or_a_list_of_either_key() {
    for (front, main, others) in [
        ("category: testing\n", "testing", &[][..]),
        ("category: [testing, docs]\n", "testing", &["docs"]),
        ("categories: [testing, docs]\n", "testing", &["docs"]),
        ("categories: testing, docs\n", "testing", &["docs"]),
        (
            "categories: [docs, Testing]\ncategory: testing\n",
            "testing",
            &["docs"],
        ),
        ("metadata:\n  categories: [a, b, c]\n", "a", &["b", "c"]),
        ("categories: []\n", "", &[]),
    ] {
        let skill = skill_with(front);
        assert_eq!(skill.category, main, "{front}");
        assert_eq!(skill.other_categories, others, "{front}");
        assert_eq!(found_after_good(front), Vec::<String>::new(), "{front}");
    }
    let skill = skill_with("category: {a: b}\n");
    assert_eq!(
        (skill.category.as_str(), skill.other_categories),
        ("", vec![])
    );
    assert_eq!(
        found_after_good("category: {a: b}\n"),
        ["warning 4 category-invalid"]
    );
}

#[test]
fn catalog_fields_come_from_the_top_or_from_metadata() {
    let skill = skill_with(
        "metadata:\n  author: Ann\n  category: data\n  tags: a, b\n  triggers: [x]\n  homepage: https://h\n",
    );
    assert_eq!(
        (skill.author.as_deref(), skill.category.as_str()),
        (Some("Ann"), "data")
    );
    assert_eq!(
        (skill.tags, skill.triggers),
        (vec!["a".to_owned(), "b".to_owned()], vec!["x".to_owned()])
    );
    assert_eq!(skill.homepage, "https://h");
    assert_eq!(
        skill_with("author: Top\nmetadata: {author: Below}\n")
            .author
            .as_deref(),
        Some("Top")
    );
    assert_eq!(
        found_after_good("author: {name: Ann}\n"),
        ["warning 4 author-invalid"]
    );
    assert_eq!(
        found_after_good("metadata: {author: {name: Ann}}\n"),
        ["info 4 author-invalid"]
    );
    assert_eq!(
        found_after_good("metadata: text\n"),
        ["warning 4 metadata-invalid"]
    );
    assert_eq!(found_after_good("metadata:\n"), NOTHING);
    assert_eq!(
        found_after_good("metadata:\n  io.modelcontextprotocol/x: 1\n"),
        ["warning 5 metadata-reserved"]
    );
}

#[test]
fn compatibility_and_license_are_kept_whatever_they_are() {
    let skill = skill_with("compatibility: {python: '3'}\nlicense: [MIT]\n");
    assert_eq!(
        (skill.compatibility.as_str(), skill.license.as_str()),
        (r#"{"python":"3"}"#, r#"["MIT"]"#)
    );
    assert_eq!(
        found_after_good("compatibility: {python: '3'}\nlicense: [MIT]\n"),
        [
            "warning 4 compatibility-invalid",
            "warning 5 license-invalid"
        ]
    );
    let long = format!("compatibility: {}\n", "x".repeat(501));
    assert_eq!(
        found_after_good(&long),
        ["warning 4 compatibility-too-long"]
    );
}

#[test]
fn rules_and_contracts_have_their_types() {
    let skill = skill_with(
        "output_contract: {type: report, schema: {type: object}}
compatibility_rules:
  - {type: requires, skill: a, reason: r}
composability_rules:
  - {type: forbids, skill: b}
tool_configs:
  - name: t
    method: m
    args:
      - {name: q, required: true, default: 3}
",
    );
    assert_eq!(
        skill.output_contract.map(|c| c.kind).as_deref(),
        Some("report")
    );
    assert_eq!(
        skill.compatibility_rules[0].kind,
        CompatibilityRuleType::Requires
    );
    assert_eq!(
        skill.composability_rules[0].kind,
        ComposabilityRuleType::Forbids
    );
    let argument = &skill.tool_configs[0].args[0];
    assert_eq!(
        (argument.kind.as_str(), &argument.default),
        ("string", &Some(json!(3)))
    );
}

#[test]
fn a_rule_of_the_wrong_shape_leaves_its_key_out_and_says_why() {
    let front =
        "compatibility_rules:\n  - {type: requires, skill: a}\n  - {type: wants, skill: b}\n";
    let reading = read_text(&with_front(&format!("{GOOD}{front}")));
    assert_eq!(listed(&reading), ["warning 6 compatibility-rules-invalid"]);
    assert!(
        message(&reading).contains("element 2: unknown variant `wants`"),
        "{reading:?}"
    );
    assert_eq!(reading.skill.expect("a skill").compatibility_rules, []);
    assert_eq!(
        found_after_good("tool_configs: none\n"),
        ["warning 4 tool-configs-invalid"]
    );
    assert_eq!(
        found_after_good("output_contract: {schema: 1}\n"),
        ["warning 4 output-contract-invalid"]
    );
}

#[test]
fn keys_of_claude_code_are_known() {
    let front =
        "argument-hint: \"[issue]\"\nuser-invocable: false\ndisable-model-invocation: true\n";
    assert_eq!(found_after_good(front), NOTHING);
    let skill = skill_with(front);
    assert!(skill.disable_model_invocation);
    assert_eq!(
        (
            &skill.front_matter["argument-hint"],
            &skill.front_matter["user-invocable"]
        ),
        (&json!("[issue]"), &json!(false))
    );
    for (value, is_disabled) in [
        ("true", true),
        ("'Yes'", true),
        ("on", true),
        ("false", false),
        ("no", false),
        ("~", false),
    ] {
        let front = format!("disable_model_invocation: {value}\n");
        assert_eq!(
            skill_with(&front).disable_model_invocation,
            is_disabled,
            "{value}"
        );
        assert_eq!(found_after_good(&front), NOTHING, "{value}");
    }
    let odd = "disable-model-invocation: [x]\n";
    assert!(skill_with(odd).disable_model_invocation);
    assert_eq!(
        found_after_good(odd),
        ["warning 4 disable-model-invocation-invalid"]
    );
    assert!(!skill_with("").disable_model_invocation);
}
