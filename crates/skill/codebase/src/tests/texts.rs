//! Texts: versions, patterns, JSON with comments, lines of YAML.

use super::super::text::{json, quoted, yaml_lines};
use super::super::version::{among, shown};

#[test]
fn a_single_version_is_shown_bare_and_a_range_as_written() {
    for (written, expected) in [
        ("^18.2.0", Some("18.2.0")),
        ("~1.2", Some("1.2")),
        ("~> 7.1", Some("7.1")),
        ("==4.2.1", Some("4.2.1")),
        ("=1.0.0-rc.1", Some("1.0.0-rc.1")),
        ("v1.9.1", Some("1.9.1")),
        (">=3.11", Some(">=3.11")),
        (">=5,<6", Some(">=5,<6")),
        ("1.x", Some("1.x")),
        ("^1 || ^2", Some("^1 || ^2")),
        ("latest", Some("latest")),
        ("npm:preact@^10.0.0", Some("10.0.0")),
        ("workspace:^1.2.0", Some("1.2.0")),
        ("workspace:*", None),
        ("*", None),
        ("", None),
        ("file:../x", None),
        ("https://user:secret@example.org/x.tgz", None),
        ("user/repository#1.0", None),
        ("$version", None),
    ] {
        assert_eq!(shown(written).as_deref(), expected, "{written}");
    }
}

#[test]
fn of_several_versions_the_one_that_is_meant_is_taken() {
    let versions = ["0.6.1", "0.7.4", "1.0.0"].map(str::to_owned);
    assert_eq!(among(&versions, Some("0.7")), Some("0.7.4"));
    assert_eq!(among(&versions, Some("^1")), Some("1.0.0"));
    assert_eq!(among(&versions, Some("0")), None);
    assert_eq!(among(&versions, None), None);
    assert_eq!(among(&versions[..1], None), Some("0.6.1"));
}

#[test]
fn comments_and_last_commas_of_json_are_read_over() {
    let text = "\u{feff}{ // one\n \"a\": \"// no, \\\" no\", /* two */ \"b\": [1, 2,\n],\n}";
    assert_eq!(
        json(text),
        Ok(serde_json::json!({"a": "// no, \" no", "b": [1, 2]}))
    );
    let broken = json("{\n// x\n\"a\" 1}").expect_err("broken");
    assert_eq!(broken.line, Some(3));
}

#[test]
fn quotes_of_both_kinds_are_found() {
    assert_eq!(quoted("gem 'a', \"b'c\", 'd"), ["a", "b'c"]);
    assert_eq!(quoted("é\"ü\"é"), ["ü"]);
}

#[test]
fn lines_of_yaml_are_taken_apart() {
    let text = "a: 1 # x\n'b c': \"d # e\"\n- f\n  - g: h\nurl: http://x\n#\n---\n\"open: 1\n";
    let lines: Vec<_> = yaml_lines(text)
        .map(|line| (line.indent, line.item, line.key, line.value))
        .collect();
    assert_eq!(
        lines,
        [
            (0, false, "a", "1"),
            (0, false, "b c", "d # e"),
            (0, true, "", "f"),
            (2, true, "g", "h"),
            (0, false, "url", "http://x"),
            (0, false, "\"open", "1"),
        ]
    );
}
