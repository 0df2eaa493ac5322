//! What nobody sees, and secrets.

use super::*;
use model::Problem;

/// A value as YAML writes it, with escapes.
fn escaped(c: char) -> String {
    format!("\"a\\U{:08x}b\"", u32::from(c))
}

#[test]
fn no_field_carries_what_only_deceives() {
    for c in [
        '\u{0}',
        '\u{1b}',
        '\u{7f}',
        '\u{9b}',
        '\u{202e}',
        '\u{2066}',
        '\u{E0041}',
        '\u{E0100}',
    ] {
        let value = escaped(c);
        for (field, position) in [
            (format!("license: {value}"), "license"),
            (format!("author: {value}"), "author"),
            (format!("category: {value}"), "category"),
            (format!("tags: [ok, {value}]"), "tags[1]"),
            (format!("triggers: [{value}]"), "triggers[0]"),
            (format!("metadata: {{when: {value}}}"), "metadata.when"),
            (
                format!("tool_configs: [{{name: t, description: {value}, method: m}}]"),
                "tool_configs[0].description",
            ),
            (
                format!(
                    "tool_configs: [{{name: t, method: m, args: [{{name: x, description: {value}}}]}}]"
                ),
                "tool_configs[0].args[0].description",
            ),
            (format!("whatever: {value}"), "whatever"),
        ] {
            let reading = read_text(&with_front(&format!("{GOOD}{field}\n")));
            let errors: Vec<_> = reading
                .problems
                .iter()
                .filter(|p| p.rule == "hidden-character")
                .collect();
            let [error] = errors.as_slice() else {
                panic!("{field}: {:?}", reading.problems)
            };
            assert!(
                error
                    .message
                    .starts_with(&format!("`{position}` has a character"))
                    || error
                        .message
                        .starts_with(&format!("`{position}` has a control")),
                "{}",
                error.message
            );
            assert_eq!((error.line, reading.skill), (4, None), "{field}");
        }
    }
    let description = format!("name: demo\ndescription: {}\n", escaped('\u{E0041}'));
    assert_eq!(found(&description), ["error 3 hidden-character"]);
}

#[test]
fn what_is_only_odd_is_reported_and_what_a_script_or_an_emoji_needs_is_not() {
    assert_eq!(
        found_after_good("license: \"M\u{200d}IT\"\n"),
        ["warning 4 zero-width-character"]
    );
    for text in ["👩‍💻 for developers ⚠️", "می‌خواهم", "क्‍ष", "日本語", "naïve"]
    {
        let front = format!("name: demo\ndescription: {text}\n");
        assert_eq!(found(&front), NOTHING, "{text}");
    }
}

#[test]
fn instructions_and_files_are_accepted_with_a_warning_that_names_the_line() {
    let text = format!(
        "---\n{GOOD}---\nDo it.\n\nThen \u{1b}[2J rest\u{E0041}\u{E0042}.\nA wo\u{200b}rd.\n"
    );
    let files = files([
        ("SKILL.md", text.as_bytes()),
        ("a.md", "fine\u{200b}\n\nnot \u{202e}fine".as_bytes()),
        ("b.bin", b"\0\x1b"),
        ("c.txt", b"\xef\xbb\xbffine"),
    ]);
    let reading = read(
        &files,
        &ReadOptions {
            strict: false,
            folder: Some("demo"),
            ..ReadOptions::default()
        },
    );
    assert!(reading.skill.is_some());
    let lines: Vec<_> = reading.problems.iter().map(Problem::to_string).collect();
    assert_eq!(
        lines,
        [
            "SKILL.md:7: hidden-character-in-text: There is a character that carries hidden text: \\u{e0041}, and 1 more below",
            "SKILL.md:7: hidden-character-in-text: There is a control character: \\u{1b}",
            "SKILL.md:8: zero-width-character-in-text: There is a character that is not seen: \\u{200b}",
            "a.md:3: hidden-character-in-text: There is a character that reverses the direction of writing: \\u{202e}",
        ]
    );
}

#[test]
fn what_looks_like_a_secret_is_reported_with_its_place_and_without_its_text() {
    let random: String = (0..40)
        .map(|at| char::from(b"q7Zk2mWx9LpR4tVb8NcY"[at % 20]))
        .collect();
    let text = format!("---\n{GOOD}---\nUse\nghp_{random} or AKIAIOSFODNN7EXAMPLE.\n");
    let key = format!("-----BEGIN PRIVATE KEY-----\n{random}{random}\n-----END PRIVATE KEY-----\n");
    let files = files([
        ("SKILL.md", text.as_bytes()),
        (".env", b"A=1\n"),
        (".env.example", b"A=\n"),
        ("deploy/id_ed25519", key.as_bytes()),
        (
            "docs.md",
            b"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
        ),
    ]);
    let reading = read(
        &files,
        &ReadOptions {
            strict: false,
            folder: Some("demo"),
            ..ReadOptions::default()
        },
    );
    let found: Vec<_> = reading
        .problems
        .iter()
        .map(|p| (p.file.as_str(), p.line, p.rule.as_str(), p.severity))
        .collect();
    let warning = model::Severity::Warning;
    assert_eq!(
        found,
        [
            (".env", 0, "secret-file", warning),
            ("SKILL.md", 6, "secret-in-text", warning),
            ("deploy/id_ed25519", 0, "secret-file", warning),
            ("deploy/id_ed25519", 1, "secret-in-text", warning),
        ]
    );
    assert!(
        reading
            .problems
            .iter()
            .all(|p| !p.message.contains(&random)),
        "{:?}",
        reading.problems
    );
}
