//! Front matter that means harm. What matters is the rule, and that it is
//! decided before it costs anything.

use super::*;

fn rules(front: &str) -> Vec<String> {
    let reading = read_text(&with_front(front));
    reading.problems.into_iter().map(|p| p.rule).collect()
}

#[test]
fn anchors_and_aliases_are_refused() {
    for front in [
        "a: &x 1\nb: *x\n",
        "a: &x [*x]\n",
        "a: &x {b: c}\n<<: *x\n",
        "base: &b {x: y}\nmetadata:\n  <<: *b\n",
        "- &x a\n",
        "&k key: v\n",
    ] {
        assert_eq!(rules(front), ["front-matter-alias"], "{front}");
    }
}

#[test]
fn a_thousand_million_laughs_are_not_laughed() {
    let mut front = String::from("a0: &a0 [lol,lol,lol]\n");
    for level in 1..=9 {
        let item = format!("*a{}", level - 1);
        let items = vec![item; 9].join(",");
        front = format!("{front}a{level}: &a{level} [{items}]\n");
    }
    assert_eq!(rules(&front), ["front-matter-alias"]);
}

#[test]
fn thirteen_kilobytes_of_aliases_do_not_become_half_a_gigabyte() {
    let front = format!(
        "a: &x [{}]\nb: [{}]\n",
        vec!["1"; 5_000].join(","),
        vec!["*x"; 1_000].join(",")
    );
    assert_eq!(rules(&front), ["front-matter-alias"]);
}

#[test]
fn a_hundred_and_twenty_kilobytes_of_aliases_are_too_large_at_once() {
    let front = format!(
        "a: &x {}\nb: [{}]\n",
        "x".repeat(60_000),
        vec!["*x"; 20_000].join(",")
    );
    assert_eq!(rules(&front), ["front-matter-too-large"]);
    let front = format!(
        "a: &x {}\nb: [{}]\n",
        "x".repeat(30_000),
        vec!["*x"; 10_000].join(",")
    );
    assert_eq!(rules(&front), ["front-matter-alias"]);
}

#[test]
fn an_alias_stays_refused_where_another_line_is_repaired() {
    assert_eq!(
        rules("description: Use when: x\na: &x 1\nb: *x\n"),
        ["front-matter-alias"]
    );
    assert_eq!(
        rules("description: **bold** text\na: &x 1\nb: *x\n"),
        ["front-matter-alias"]
    );
}

#[test]
fn deep_nesting_is_refused_however_it_is_written() {
    assert_eq!(
        rules(&format!("a: {}\n", "[".repeat(200_000))),
        ["front-matter-too-large"]
    );
    for deep in [
        format!("a: {}\n", "[".repeat(60_000)),
        format!("a: {}{}\n", "[".repeat(100), "]".repeat(100)),
        format!("a: {}\n", "{b: ".repeat(10_000)),
        format!("a:\n  {}x\n", "- ".repeat(20_000)),
        (0..200).fold(String::new(), |text, depth| {
            text + &" ".repeat(depth) + "a:\n"
        }),
    ] {
        assert_eq!(rules(&deep), ["front-matter-too-deep"], "{deep:.40}");
    }
    // A map is no key, so this ends at its second level.
    assert_eq!(
        rules(&format!("{}x\n", "? ".repeat(20_000))),
        ["front-matter-unreadable"]
    );
    assert_eq!(
        rules(&format!("{GOOD}a: {}{}\n", "[".repeat(31), "]".repeat(31))),
        ["unknown-key"]
    );
    assert_eq!(
        rules(&format!("a: {}{}\n", "[".repeat(32), "]".repeat(32))),
        ["front-matter-too-deep"]
    );
}

#[test]
fn many_nodes_are_refused() {
    let front = format!("a: [{}]\n", vec!["1"; 10_001].join(","));
    assert_eq!(rules(&front), ["front-matter-too-many-nodes"]);
}

#[test]
fn foreign_tags_are_refused_and_core_tags_are_taken() {
    for front in [
        "a: !!python/object/apply:os.system [ls]\n",
        "a: !Foo bar\n",
        "a: !important\n",
        "a: !!binary aGk=\n",
        "a: !<tag:x,2026:y> z\n",
        "!Foo {a: b}\n",
    ] {
        assert_eq!(rules(front), ["front-matter-tag"], "{front}");
    }
    assert_eq!(
        skill_with("a: !!str 1\nb: !!int 2\n").front_matter["a"],
        serde_json::json!("1")
    );
}

#[test]
fn two_keys_of_one_name_are_refused_by_name() {
    let reading = read_text(&with_front("name: a\ndescription: x\nname: b\n"));
    assert_eq!(listed(&reading), ["error 4 front-matter-duplicate-key"]);
    assert_eq!(
        message(&reading),
        "The key `name` is here and on line 2; keep one of them"
    );
    assert_eq!(
        rules("metadata:\n  a: 1\n  'a': 2\n"),
        ["front-matter-duplicate-key"]
    );
}

#[test]
fn a_second_document_is_refused() {
    assert_eq!(
        rules(&format!("{GOOD}...\na: b\n")),
        ["front-matter-documents"]
    );
    assert_eq!(
        rules(&format!("{GOOD}--- {{a: b}}\n")),
        ["front-matter-documents"]
    );
}

#[test]
fn front_matter_that_is_no_map_is_refused() {
    for front in ["- a\n- b\n", "only prose here\n", "42\n", "[a, b]\n"] {
        assert_eq!(rules(front), ["front-matter-not-a-map"], "{front}");
    }
}

#[test]
fn control_characters_in_yaml_are_refused() {
    assert_eq!(
        rules("name: demo\ndescription: a\u{1}b\n"),
        ["front-matter-unreadable"]
    );
}

#[test]
fn messages_do_not_carry_what_is_not_seen() {
    let reading = read_text(&with_front(&format!("{GOOD}\"a\\e[31m\\u202e\": 1\n")));
    let messages: Vec<_> = reading
        .problems
        .iter()
        .map(|p| p.message.as_str())
        .collect();
    assert_eq!(
        messages,
        [
            "`a\\u{1b}[31m\\u{202e}` has a control character: \\u{1b}",
            "Unknown keys, stored as they are: `a\\u{1b}[31m\\u{202e}` (line 4)",
        ]
    );
}

#[test]
fn what_only_one_of_two_yaml_readers_takes_for_a_comment_stays_a_comment() {
    // To `serde_yaml` alone a line ends at these characters.
    let lists = vec!["[]"; 5_000].join(",");
    let aliases = vec!["*x"; 1_000].join(",");
    for (end, rule) in [
        ("\u{85}", "front-matter-unreadable"),
        ("\u{2028}", "front-matter-repaired"),
        ("\u{2029}", "front-matter-repaired"),
    ] {
        let front = format!("{GOOD}# c{end}a: &x [{lists}]{end}b: [{aliases}]\n");
        assert_eq!(rules(&front), [rule], "{end:?}");
        let front = format!("{GOOD}# c{end}{}\n", "a: {".repeat(10_000));
        assert_eq!(rules(&front), [rule], "{end:?}");
    }
    let reading = read_text(&with_front("name: demo\ndescription: One.\u{2028}Two.\n"));
    assert_eq!(listed(&reading), ["warning 3 front-matter-repaired"]);
    assert_eq!(reading.skill.expect("a skill").description, "One. Two.");
}

#[test]
fn problems_are_counted_where_they_are_too_many_to_list() {
    let numbers: Vec<String> = (0..500).map(|n| format!("  k{n}: .nan\n")).collect();
    let reading = read_text(&with_front(&format!(
        "{GOOD}metadata:\n{}",
        numbers.concat()
    )));
    assert_eq!(reading.problems.len(), 201);
    let last = reading.problems.last().expect("a problem");
    assert_eq!(
        (last.rule.as_str(), last.message.as_str()),
        ("more-problems", "300 more problems are not listed")
    );
}
