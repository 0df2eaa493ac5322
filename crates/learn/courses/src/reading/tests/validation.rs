//! Rules of what grades an exercise, each broken once.

use bytes::Bytes;
use model::Severity;

use super::{EXERCISE, files, path, read, rules, validated};
use crate::{ValidationKind, limits};

#[test]
fn rules_of_starters_and_solutions() {
    let change = |remove: &[&str], add: &[(&str, &str)]| {
        let mut files = files(EXERCISE);
        for path in remove {
            files.remove(&format!("exercises/01-add-two/{path}"));
        }
        for (path, text) in add {
            let path = format!("exercises/01-add-two/{path}");
            files.insert(path, Bytes::from((*text).to_owned()));
        }
        files
    };
    for (remove, add, rule) in [
        (
            &["starter.js"][..],
            &[][..],
            &["exercise-starter-missing"][..],
        ),
        (&["solution.js"], &[], &["exercise-solution-missing"]),
        (&[], &[("starter.js", " \n")], &["exercise-starter-empty"]),
        (
            &[],
            &[("starter.sql", "x")],
            &["exercise-starter-ambiguous"],
        ),
        (
            &["starter.js"],
            &[("starter.sql", "x")],
            &["exercise-starter-ending", "exercise-starter-shape"],
        ),
        (
            &["starter.js"],
            &[("starter/a.js", "x")],
            &["exercise-starter-not-one-text", "exercise-starter-shape"],
        ),
        (
            &[],
            &[("solution.js", "a\0b")],
            &["exercise-solution-invalid"],
        ),
    ] {
        let (path, problems) = read("numbers", &change(remove, add));
        assert!(path.is_none());
        let errors = problems.iter().filter(|p| p.severity == Severity::Error);
        let errors: Vec<&str> = errors.map(|p| p.rule.as_str()).collect();
        assert_eq!(errors, rule, "{remove:?} {add:?}");
    }
}

#[test]
fn every_kind_of_validation_is_read() {
    let md = [("starter.md", "x"), ("solution.md", "y")];
    let sql = [
        ("starter.sql", "x"),
        ("solution.sql", "y"),
        ("shop.sql", "z"),
    ];
    let skill = [md[0], md[1], ("fixtures/a/SKILL.md", "---\nname: a\n---\n")];
    let tests = [("correct.js", "x")];
    for (validation, files, kind, language, shown) in [
        (
            "validation: { type: test, language: javascript-tests, cases: [{ subject: correct.js, expect: pass, description: a }] }\n",
            &tests[..],
            ValidationKind::Test,
            "javascript",
            1,
        ),
        (
            "validation: { type: test, language: sql, ordered: true, may_write: true, cases: [{ data: shop.sql, query: SELECT 1, description: a, hidden: true }] }\n",
            &sql,
            ValidationKind::Test,
            "sql",
            0,
        ),
        (
            "validation: { type: test, language: skill, fixtures: fixtures, cases: [{ ask: { compose: [a], policy: union }, at: /valid, expected: true, description: a }, { ask: { check_tool: Read, compose: [a] }, expected: allowed, description: b }, { ask: { found_for: q }, at_least: 1, description: c }, { ask: { lines: body }, at_most: 9, description: d }] }\n",
            &skill,
            ValidationKind::Test,
            "markdown",
            4,
        ),
        (
            "validation: { type: test, language: config, cases: [{ ask: { problems: error }, expected: [], description: a }] }\n",
            &[("starter.yaml", "a: 1"), ("solution.yaml", "a: 2")],
            ValidationKind::Test,
            "yaml",
            1,
        ),
        (
            "validation: { type: test, language: python, grader: { skill: local/graders/python, method: grade }, cases: [{ input: [1], expected: 2, description: a }] }\n",
            &[("starter.py", "x"), ("solution.py", "y")],
            ValidationKind::Test,
            "python",
            1,
        ),
        (
            "validation: { type: output, language: text, comparator: { float: 0.5 }, expected_output: '1.0' }\n",
            &md,
            ValidationKind::Output,
            "",
            0,
        ),
        (
            "validation: { type: output, language: javascript, comparator: exact, cases: [{ input: a, expected: b, description: c }] }\n",
            &[],
            ValidationKind::Output,
            "javascript",
            1,
        ),
        (
            "validation: { type: pattern, strip_comments: sql, cases: [{ must_match: a, description: a }, { must_not_match: b, description: b }] }\n",
            &sql[..2],
            ValidationKind::Pattern,
            "sql",
            2,
        ),
        (
            "validation: { type: manual, checklist: [a, b] }\n",
            &md,
            ValidationKind::Manual,
            "",
            0,
        ),
    ] {
        let path = path(&validated(validation, files));
        let exercise = &path.exercises[0];
        assert_eq!(exercise.validation, kind, "{validation}");
        assert_eq!(exercise.language, language, "{validation}");
        assert_eq!(exercise.shown_cases.len(), shown, "{validation}");
        assert_eq!(
            exercise.expected_output.is_some(),
            validation.contains("'1.0'")
        );
        assert_eq!(
            exercise.checklist.len(),
            2 * usize::from(kind == ValidationKind::Manual)
        );
    }
}

#[test]
fn rules_of_every_kind_of_validation() {
    let case = |start: &str, case: &str| {
        format!("validation: {{ {start}, cases: [{{ {case}, description: d }}] }}\n")
    };
    let output = "type: output, language: javascript, comparator: exact";
    let tests = "type: test, language: javascript-tests";
    let sql = "type: test, language: sql";
    let skill = "type: test, language: skill";
    let many =
        vec!["{ input: '1', expected: 1, description: d }"; limits::MAX_CASES + 1].join(", ");
    for (validation, rule) in [
        ("validation: 3\n".to_owned(), "exercise-validation-invalid"),
        (String::new(), "exercise-validation-missing"),
        ("validation: { type: test, language: javascript }\n".to_owned(), "validation-cases-missing"),
        ("validation: { type: test, language: javascript, cases: [] }\n".to_owned(), "validation-cases-missing"),
        ("validation: { type: test, language: javascript, cases: [3] }\n".to_owned(), "validation-cases-invalid"),
        (format!("validation: {{ type: test, language: javascript, cases: [{many}] }}\n"), "validation-cases-too-many"),
        (case(tests, "expect: pass"), "case-subject-missing"),
        (case(tests, "expect: pass, subject: no.js"), "case-subject-file-missing"),
        (case(tests, "expect: maybe, subject: setup.js"), "case-expect-invalid"),
        (case(tests, "subject: setup.js"), "case-expect-missing"),
        (case(sql, "ordered: true"), "case-data-missing"),
        (case(&format!("{sql}, may_write: true"), "data: setup.js"), "case-query-missing"),
        (case(skill, "expected: 1"), "case-ask-missing"),
        (case(skill, "ask: {}, expected: 1"), "ask-missing"),
        (case(skill, "ask: { pointer: /a, problems: info }, expected: 1"), "ask-ambiguous"),
        (case(skill, "ask: { pointer: a }, expected: 1"), "ask-pointer-invalid"),
        (case(skill, "ask: { problems: bad }, expected: 1"), "ask-problems-invalid"),
        (case(skill, "ask: { compose: [nobody] }, expected: 1"), "ask-compose-unknown"),
        (case(skill, "ask: { compose: [], policy: both }, expected: 1"), "ask-policy-invalid"),
        (case(skill, "ask: { check_tool: Read, arguments: 3 }, expected: 1"), "ask-arguments-invalid"),
        (case(skill, "ask: { lines: head }, expected: 1"), "ask-lines-invalid"),
        (case(skill, "ask: { pointer: /a, depth: 3 }, expected: 1"), "ask-unknown-key"),
        (case(skill, "ask: { pointer: /a }"), "case-matcher-missing"),
        (case(skill, "ask: { pointer: /a }, expected: 1, at_least: 1"), "case-matcher-ambiguous"),
        (case(skill, "ask: { pointer: /a }, matches: '['"), "case-matches-invalid"),
        (case(skill, "ask: { pointer: /a }, at: b, expected: 1"), "case-at-invalid"),
        (case(&format!("{skill}, fixtures: none"), "ask: { pointer: /a }, expected: 1"), "validation-fixtures-missing"),
        (case("type: test, language: config", "ask: { lines: body }, expected: 1"), "ask-missing"),
        (case("type: test, language: x, grader: { skill: a }", "expected: 1"), "grader-method-missing"),
        (case("type: test, language: x, grader: { skill: a, method: b }", "input: 1"), "case-expected-missing"),
        (format!("validation: {{ {output} }}\n"), "validation-expected-output-missing"),
        (case(&format!("{output}, expected_output: a"), "expected: a"), "validation-expected-output-ambiguous"),
        (case(output, "input: a"), "case-expected-missing"),
        (case(&format!("{output}, show_expected: true"), "expected: a"), "validation-show-expected-ambiguous"),
        (case("type: output, language: text, comparator: exact", "input: a, expected: a"), "validation-cases-input"),
        ("validation: { type: output, language: text, expected_output: a }\n".to_owned(), "validation-comparator-missing"),
        ("validation: { type: output, language: text, comparator: near, expected_output: a }\n".to_owned(), "validation-comparator-invalid"),
        ("validation: { type: output, language: text, comparator: { float: -1 }, expected_output: a }\n".to_owned(), "validation-comparator-invalid"),
        ("validation: { type: output, language: ruby, comparator: exact, expected_output: a }\n".to_owned(), "validation-language-invalid"),
        (case("type: pattern", "hidden: true"), "case-must-match-missing"),
        (case("type: pattern", "must_match: a, must_not_match: b"), "case-must-match-ambiguous"),
        (case("type: pattern", "must_match: '('"), "case-must-match-invalid"),
        (case("type: pattern, strip_comments: lisp", "must_match: a"), "validation-strip-comments-invalid"),
        ("validation: { type: manual }\n".to_owned(), "validation-checklist-missing"),
    ] {
        let mut files = validated(&validation, &[]);
        files.insert("exercises/01-add-two/setup.js".to_owned(), Bytes::from("x"));
        let (path, problems) = read("numbers", &files);
        assert!(path.is_none(), "{validation}");
        let told = problems.iter().any(|p| p.rule == rule && p.severity == Severity::Error);
        assert!(told, "{rule}: {:?}", rules(&problems));
    }
}
