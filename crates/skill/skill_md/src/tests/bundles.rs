use super::*;
use crate::body;
use model::{MAX_FILES, MAX_SKILL_BYTES};

const SKILL: &[u8] = b"---\nname: demo\ndescription: Shows how.\n---\nDo it.\n";

fn found_in(given: &BTreeMap<FilePath, Bytes>) -> Vec<String> {
    let options = ReadOptions {
        strict: false,
        folder: Some("demo"),
        ..ReadOptions::default()
    };
    let reading = read(given, &options);
    reading
        .problems
        .iter()
        .map(|p| format!("{} {}", p.file, p.rule))
        .collect()
}

#[test]
fn a_plain_skill_has_no_problems() {
    let reading = read_text(&with_front(GOOD));
    let skill = reading.skill.as_ref().expect("a skill");
    assert_eq!(listed(&reading), NOTHING);
    assert_eq!(reading.slug.as_deref(), Some("demo"));
    assert_eq!(
        (skill.name.as_str(), skill.description.as_str()),
        ("demo", "Shows how.")
    );
    assert_eq!(
        (skill.excerpt.as_str(), skill.long_description.as_str()),
        ("Do it.", "Do it.")
    );
    assert_eq!((skill.chars, skill.entry.as_str()), (50, "SKILL.md"));
}

#[test]
fn a_spelling_of_skill_md_that_is_not_the_standards_is_taken_and_reported() {
    for name in ["skill.md", "Skill.md", "SKILL.MD"] {
        assert_eq!(
            found_in(&files([(name, SKILL)])),
            [format!("{name} skill-md-case")]
        );
    }
}

#[test]
fn a_folder_without_skill_md_is_refused() {
    assert_eq!(
        found_in(&files([("README.md", SKILL)])),
        [" skill-md-missing"]
    );
    assert_eq!(
        found_in(&files([("a/SKILL.md", SKILL)])),
        [" skill-md-missing"]
    );
    assert_eq!(found_in(&BTreeMap::new()), [" skill-md-missing"]);
}

#[test]
fn paths_that_a_disk_would_take_for_one_are_refused() {
    assert_eq!(
        found_in(&files([("SKILL.md", SKILL), ("skill.md", SKILL)])),
        ["skill.md path-collision"]
    );
    assert_eq!(
        found_in(&files([("SKILL.md", SKILL), ("é", b""), ("e\u{301}", b"")])),
        ["é path-collision"]
    );
    assert_eq!(
        found_in(&files([
            ("SKILL.md", SKILL),
            ("Docs", b""),
            ("docs/x/y.md", b"")
        ])),
        ["docs/x/y.md path-inside-file"]
    );
}

#[test]
fn too_many_files_or_bytes_are_refused() {
    let mut many = files([("SKILL.md", SKILL)]);
    for index in 0..MAX_FILES {
        many.insert(format!("f{index}").parse().expect("a path"), Bytes::new());
    }
    assert_eq!(found_in(&many), [" too-many-files"]);
    let mut large = files([("SKILL.md", SKILL)]);
    let half = Bytes::from(vec![
        b' ';
        usize::try_from(MAX_SKILL_BYTES / 2).expect("a size")
    ]);
    large.insert("a".parse().expect("a path"), half.clone());
    large.insert("b".parse().expect("a path"), half);
    assert_eq!(found_in(&large), [" skill-too-large"]);
}

#[test]
fn a_body_of_ten_mebibytes_is_refused_before_it_is_read() {
    let text = format!("{}{}", with_front(GOOD), "x".repeat(10 << 20));
    assert_eq!(listed(&read_text(&text)), ["error 0 skill-md-too-large"]);
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_line() {
    let options = ReadOptions::default();
    let reading = read(
        &files([("SKILL.md", b"---\nname: x\n\xff\n---\n".as_slice())]),
        &options,
    );
    assert_eq!(listed(&reading), ["error 3 not-utf8"]);
    assert_eq!(
        listed(&read_text("---\nname: a\0b\n---\n")),
        ["error 2 nul-character"]
    );
}

#[test]
fn what_editors_leave_behind_is_reported() {
    let text = with_front(GOOD);
    assert_eq!(
        listed(&read_text(&format!("\u{feff}{text}"))),
        ["warning 1 byte-order-mark"]
    );
    let reading = read_text(&text.replace('\n', "\r\n"));
    assert_eq!(listed(&reading), ["info 1 line-endings"]);
    assert_eq!(reading.skill.expect("a skill").description, "Shows how.");
    let mixed = format!("---\r\n{GOOD}--- \t\r\nDo it.\n");
    assert_eq!(listed(&read_text(&mixed)), ["info 1 line-endings"]);
}

#[test]
fn strict_makes_errors_of_warnings_and_leaves_what_is_only_said() {
    let text = with_front("name: Other\ndescription: x\nfoo: 1\n");
    let options = ReadOptions {
        strict: true,
        folder: Some("demo"),
        ..ReadOptions::default()
    };
    let reading = read(&files([("SKILL.md", text.as_bytes())]), &options);
    assert_eq!(
        listed(&reading),
        [
            "error 2 name-folder-mismatch",
            "error 2 name-nonstandard",
            "info 4 unknown-key"
        ]
    );
    assert_eq!(
        (reading.skill, reading.slug.as_deref()),
        (None, Some("other"))
    );
}

#[test]
fn a_late_fence_is_found_and_told() {
    for (before, after, line, word) in [
        ("\n\n", "", 3, "blank lines"),
        ("<!-- made\nby x -->\n", "", 3, "an HTML comment"),
        ("\n<!-- a --> <!-- b -->\n\n", "", 4, "an HTML comment"),
        ("```yaml\n", "```\n", 2, "a code fence"),
        ("\u{feff}\n~~~\n", "~~~\n", 3, "a code fence"),
    ] {
        let text = format!("{before}---\n{GOOD}license: [x]\n---\n{after}\nDo it.\n");
        let reading = read_text(&text);
        let wanted = [
            format!("warning {line} front-matter-not-first"),
            format!("warning {} license-invalid", line + 3),
        ];
        let found: Vec<_> = listed(&reading)
            .into_iter()
            .filter(|problem| !problem.contains("byte-order-mark"))
            .collect();
        assert_eq!(found, wanted, "{text}");
        let problem = reading
            .problems
            .iter()
            .find(|p| p.rule == "front-matter-not-first");
        assert!(problem.expect("it").message.contains(word), "{reading:?}");
        assert_eq!(reading.skill.expect("a skill").description, "Shows how.");
        assert_eq!(body(&text), "Do it.\n", "{text}");
    }
    for text in [
        "",
        "# Title\n\n---\n\ntext\n",
        "<!-- a --> text\n---\nname: x\ndescription: y\n---\n",
        "```\ncode\n---\nname: x\ndescription: y\n---\n",
        "```\n```\n---\nname: x\ndescription: y\n---\n",
        "  ---\nname: x\n---\n",
        "----\nname: x\n---\n",
        "\u{feff}",
    ] {
        let rules: Vec<_> = read_text(text)
            .problems
            .into_iter()
            .map(|p| (p.line, p.rule))
            .collect();
        assert!(
            rules.contains(&(1, "front-matter-missing".to_owned())),
            "{text:?}: {rules:?}"
        );
    }
}

#[test]
fn a_payload_below_a_hundred_thousand_blank_lines_is_no_front_matter() {
    let text = format!("{}{}", "\n".repeat(100_000), with_front(GOOD));
    assert_eq!(
        listed(&read_text(&text)),
        ["error 100001 front-matter-missing"]
    );
}

#[test]
fn front_matter_ends_at_a_line_and_only_there() {
    assert_eq!(
        listed(&read_text("---\nname: demo\n --- \n")),
        ["error 1 front-matter-unclosed"]
    );
    // Comments hide as well as blank lines do.
    let comment = format!("<!-- {} -->\n{}", "x".repeat(5_000), with_front(GOOD));
    assert_eq!(
        listed(&read_text(&comment)),
        ["error 2 front-matter-missing"]
    );
    let text = with_front("name: demo\ndescription: a --- b\nnote: |\n  x\n  ---\n  y\n");
    assert_eq!(
        read_text(&text).skill.expect("a skill").description,
        "a --- b"
    );
    assert_eq!(body(&text), "Do it.\n");
    assert_eq!(body("---\n---\n---\nx"), "---\nx");
    assert_eq!(body("---\na: b\n---"), "");
}

#[test]
fn a_body_that_is_empty_or_long_is_reported() {
    assert_eq!(
        listed(&read_text(&format!("---\n{GOOD}---\n \n"))),
        ["warning 4 body-empty"]
    );
    let long = format!("{}{}", with_front(GOOD), "x\n".repeat(500));
    assert_eq!(listed(&read_text(&long)), ["info 5 body-long"]);
}

#[test]
fn the_first_paragraph_is_prose() {
    for (body, paragraph) in [
        (
            "# T\n\n- a\n- b\n\n  more of b\n\nReal\nprose.\n\nNext.",
            "Real prose.",
        ),
        ("<!-- a\n\nb -->\n```sh\nx\n\ny\n```\nText\n# H", "Text"),
        (
            "Title\n=====\n\n1. a\n\n| a |\n|---|\n\n***\n\n**Bold** text",
            "**Bold** text",
        ),
        ("    code\n\n<p>x</p>\n", ""),
        ("```\nnever closed\n\nText", ""),
        ("Text\n```\ncode\n```", "Text"),
    ] {
        let reading = read_text(&format!("---\n{GOOD}---\n{body}"));
        assert_eq!(
            reading.skill.expect("a skill").long_description,
            paragraph,
            "{body:?}"
        );
    }
    let long = format!("---\n{GOOD}---\n{}", "é".repeat(3_000));
    let skill = read_text(&long).skill.expect("a skill");
    assert_eq!(skill.long_description, "é".repeat(1_000));
    assert_eq!(skill.excerpt, "é".repeat(2_000));
}

#[test]
fn resources_are_compared_with_the_files() {
    let front = "resource_configs:
  - name: a
    file: a.md
  - name: a
    file: b.md
  - name: c
    dynamic: true
  - name: d
    dynamic: true
    method: make
tool_configs:
  - name: t
    method: run
  - name: t
";
    let text = with_front(&format!("{GOOD}{front}"));
    let options = ReadOptions {
        strict: false,
        folder: Some("demo"),
        ..ReadOptions::default()
    };
    let reading = read(
        &files([("SKILL.md", text.as_bytes()), ("a.md", b"")]),
        &options,
    );
    assert_eq!(
        listed(&reading),
        [
            "warning 7 resource-file-missing",
            "warning 7 resource-name-duplicate",
            "warning 9 resource-source-missing",
            "warning 17 tool-method-missing",
            "warning 17 tool-name-duplicate",
        ]
    );
    assert_eq!(reading.skill.expect("a skill").resource_configs.len(), 4);
}

#[test]
fn a_tool_whose_name_few_hosts_take_is_told() {
    let found = |name: &str| {
        let front = format!("{GOOD}tool_configs:\n  - {{name: \"{name}\", method: run}}\n");
        let text = with_front(&front);
        let options = ReadOptions {
            folder: Some("demo"),
            ..ReadOptions::default()
        };
        listed(&read(&files([("SKILL.md", text.as_bytes())]), &options)).join(", ")
    };
    for name in ["sql_query", "Get-Issue", "_x", &"a".repeat(64)] {
        assert_eq!(found(name), "", "{name}");
    }
    for name in ["9lives", "foo.bar", "a b", "", &"a".repeat(65)] {
        assert_eq!(found(name), "warning 5 tool-name-nonstandard", "{name}");
    }
}
