//! Solutions are graded by what they do, and nobody is told what is hidden.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use model::Problem;
use repertoire_courses::{
    Busy, Documents, Exercise, Graded, Graders, LearningPath, Solution, Verdict, Worker,
    check_together, read,
};
use sandbox::Sandbox;
use serde_json::{Map, Value, json};

fn graders() -> Graders {
    let child = env!("CARGO_BIN_EXE_courses-sandbox-child");
    Graders::new(Sandbox::new(child.into(), Vec::new()))
}

/// An exercise of a validation and files; `files` begins with the starter and the solution.
fn exercise(validation: &str, files: &[(&str, &str)]) -> Arc<Exercise> {
    path(validation, files).exercises[0].clone()
}

fn path(validation: &str, files: &[(&str, &str)]) -> LearningPath {
    let header = "---\nname: A\ndescription: B\ncategory: abc\ndifficulty: beginner\n\
                  estimated_hours: 1\nobjectives: [C]\n---\nText\n";
    let exercise = format!(
        "---\ntitle: A\ntype: practice\ndifficulty: easy\nestimated_minutes: 1\n\
         hints: [CANARY-HINT, second]\n\
         advice:\n  - {{ when: present, pattern: GOOD, kind: exemplary, text: Good word }}\n\
         {validation}---\nText\n"
    );
    let folder = "exercises/01-abc";
    let mut all = BTreeMap::from([
        ("PATH.md".to_owned(), Bytes::from(header)),
        (format!("{folder}/EXERCISE.md"), Bytes::from(exercise)),
    ]);
    for (path, text) in files {
        all.insert(format!("{folder}/{path}"), Bytes::from((*text).to_owned()));
    }
    let (path, problems) = read("numbers", &all);
    let is_odd = problems
        .iter()
        .any(|p| p.severity == model::Severity::Error);
    assert!(!is_odd, "{problems:#?}");
    path.expect("a path")
}

async fn grade(exercise: &Arc<Exercise>, solution: &str) -> Graded {
    graders()
        .grade(exercise, &exercise.one_text(solution))
        .await
}

const ADD: &str = "\
validation:
  type: test
  language: javascript
  cases:
    - { description: adds, input: 'add(1, 2)', expected: 3, look_at: The sign }
    - { description: gives objects, input: 'pair(1)', expected: '{a: 1, b: [undefined]}' }
    - description: refuses texts
      input: add('1', 2)
      throws: { name: TypeError, message: numbers }
      weight: 2
    - { description: knows CANARY-NAME, input: 'add(777, 1)', expected: 778, hidden: true, look_at: Larger ones }
";

fn add() -> Arc<Exercise> {
    exercise(
        ADD,
        &[("starter.js", "// begin"), ("solution.js", SOLUTION)],
    )
}

const SOLUTION: &str = "\
function add(a, b) {
  if (typeof a !== 'number') throw new TypeError('numbers only');
  return a + b;
}
const pair = (a) => ({ b: [undefined], a });
";

#[tokio::test]
async fn javascript_is_graded_by_values_and_errors() {
    let exercise = add();
    let graded = grade(&exercise, &format!("{SOLUTION}// no GOOD word\nlet GOOD;")).await;
    assert_eq!(
        (graded.verdict, graded.score),
        (Verdict::Pass, 1.0),
        "{graded:?}"
    );
    assert_eq!(
        graded.feedback.summary,
        "All 4 tests pass, the hidden one too."
    );
    assert_eq!(graded.feedback.exemplary_aspects, ["Good word"]);
    // The word in the comment alone is none.
    let graded = grade(&exercise, &format!("{SOLUTION}// GOOD")).await;
    assert_eq!(graded.feedback.exemplary_aspects, Vec::<String>::new());

    let graded = grade(&exercise, &SOLUTION.replace("a + b", "a - b")).await;
    assert_eq!(graded.verdict, Verdict::Fail);
    assert!((graded.score - 0.6).abs() < 1e-9, "{}", graded.score);
    let feedback = &graded.feedback;
    assert_eq!(
        feedback.summary,
        "2 of 4 tests pass. Look first at \"adds\": it gave -1, and 3 was expected."
    );
    let first = &feedback.results[0];
    assert_eq!(
        (first.expected.as_deref(), first.actual.as_deref()),
        (Some("3"), Some("-1"))
    );
    assert_eq!(feedback.suggestions, ["The sign", "Larger ones"]);
    let hidden = &feedback.results[3];
    assert!(!hidden.passed);
    assert_eq!((&hidden.expected, &hidden.actual), (&None, &None));

    let graded = grade(&exercise, "function add( {").await;
    assert_eq!((graded.verdict, graded.score), (Verdict::Fail, 0.0));
    let summary = &graded.feedback.summary;
    assert!(
        summary.contains("All end with the same error: SyntaxError"),
        "{summary}"
    );
    for other in [
        "throw new RangeError('numbers')",
        "throw new TypeError('no')",
        "return 1",
    ] {
        let solution = SOLUTION.replace("throw new TypeError('numbers only')", other);
        let graded = grade(&exercise, &solution).await;
        assert_eq!(graded.verdict, Verdict::Fail, "{other}");
        assert!(!graded.feedback.results[2].passed, "{other}");
    }
    // What is not settled, too deep or too much is no error of the sandbox.
    for loops in [
        "const add = () => new Promise(() => {}); const pair = add;",
        "const add = (a) => add(a); const pair = add;",
    ] {
        assert_eq!(
            grade(&exercise, loops).await.verdict,
            Verdict::Fail,
            "{loops}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_found_out_is_an_error_and_says_what_to_look_for() {
    let exercise = add();
    let graded = grade(&exercise, "for (;;) {}").await;
    assert_eq!((graded.verdict, graded.score), (Verdict::Error, 0.0));
    let words = format!("{:?}", graded.feedback);
    assert!(words.contains("loop that never ends"), "{words}");
    assert!(
        graded.feedback.summary.contains("costs you nothing"),
        "{words}"
    );
    // A loop in one case is a failure of that case.
    let graded = grade(
        &exercise,
        &SOLUTION.replace("({ b: [undefined], a })", "{ for (;;) {} }"),
    )
    .await;
    assert_eq!(graded.verdict, Verdict::Fail, "{graded:?}");
    assert!(graded.feedback.results[0].passed);
    assert!(!graded.feedback.results[1].passed);
    // No sandbox, no worker, nobody who reads configs.
    let gone = Graders::new(Sandbox::new("/nowhere/at/all".into(), Vec::new()));
    let graded = gone.grade(&exercise, &exercise.one_text(SOLUTION)).await;
    assert_eq!(graded.verdict, Verdict::Error);
    assert!(!format!("{graded:?}").contains("nowhere"), "{graded:?}");
    for exercise in [worker(), config()] {
        let graded = graders()
            .grade(&exercise, &exercise.one_text("right: 1"))
            .await;
        assert_eq!(graded.verdict, Verdict::Error, "{graded:?}");
    }
}

#[tokio::test]
async fn who_writes_modules_is_told_that_none_are_needed() {
    let gives = "the tests see what you wrote all the same";
    let takes = "what the exercise gives you is there already";
    for (line, word, instead) in [
        ("export const x = 1;", "export", gives),
        ("export default add;", "export", gives),
        ("export { add };", "export", gives),
        ("module.exports = { add };", "module.exports", gives),
        ("exports.add = add;", "exports", gives),
        ("import { test } from 'vitest';", "import", takes),
        ("import * as fs from 'fs';", "import", takes),
        ("import 'jest';", "import", takes),
        ("const fs = require('fs');", "require", takes),
    ] {
        let graded = grade(&add(), &format!("{SOLUTION}{line}\n")).await;
        let said = format!("No modules are needed here: leave out `{word}`, {instead}");
        assert_eq!(
            graded.feedback.summary,
            format!("None of 4 tests passes yet. All end with the same error: {said}."),
            "{line}"
        );
    }
    // Another mistake is told as what it is.
    let graded = grade(&add(), "const a = ; // export it\n").await;
    assert!(
        graded.feedback.summary.contains("SyntaxError"),
        "{graded:?}"
    );
}

#[tokio::test]
async fn an_error_that_all_cases_share_is_said_once_and_nothing_else_is() {
    let graded = grade(&add(), "function add( {").await;
    let told = graded.feedback.results.iter().map(|result| {
        let says_why = result
            .error
            .as_deref()
            .map(|error| error.contains("SyntaxError"));
        (result.passed, says_why, result.look_at.clone())
    });
    let told: Vec<_> = told.collect();
    let rest = (false, None, None);
    assert_eq!(
        told,
        [(false, Some(true), None), rest.clone(), rest.clone(), rest]
    );
    assert_eq!(graded.feedback.suggestions, Vec::<String>::new());
    // What is not found of one pattern says nothing of the next.
    let two = exercise(
        "validation:\n  type: pattern\n  cases:\n    \
         - { must_match: one, description: a, look_at: The first }\n    \
         - { must_match: two, description: b, look_at: The second }\n",
        &[("starter.txt", "x"), ("solution.txt", "one two")],
    );
    let graded = grade(&two, "nothing").await;
    assert_eq!(graded.feedback.suggestions, ["The first", "The second"]);
    assert_eq!(
        graded.feedback.summary,
        "None of 2 tests passes yet. Look first at \"a\": It is not there."
    );
}

#[tokio::test]
async fn lines_may_end_as_on_another_system() {
    let cases = [
        (add(), SOLUTION.to_owned()),
        (self::skill(), SKILL.to_owned()),
        (output("exact"), "a\nb\n".to_owned()),
    ];
    for (exercise, solution) in cases {
        let one = grade(&exercise, &solution).await;
        let other = grade(&exercise, &solution.replace('\n', "\r\n")).await;
        assert_eq!(one, other);
    }
    let lines = exercise(
        "validation:\n  type: pattern\n  cases:\n    - { must_match: '(?m)^## Steps\\n\\n1. ', description: a }\n",
        &[("starter.md", "x"), ("solution.md", "## Steps\n\n1. go\n")],
    );
    let graded = grade(&lines, "## Steps\r\n\r\n1. go\r\n").await;
    assert_eq!(graded.verdict, Verdict::Pass, "{graded:?}");
}

#[tokio::test]
async fn what_is_no_solution_at_all_fails() {
    let exercise = add();
    for files in [
        vec![],
        vec![("solution.js", " \n".to_owned())],
        vec![("a.js", SOLUTION.to_owned()), ("b.js", "1".to_owned())],
        vec![("solution.js", " ".repeat(300_000) + SOLUTION)],
    ] {
        let files = files
            .into_iter()
            .map(|(path, text)| (path.to_owned(), text));
        let solution = Solution {
            files: files.collect(),
        };
        let graded = graders().grade(&exercise, &solution).await;
        assert_eq!((graded.verdict, graded.score), (Verdict::Fail, 0.0));
        assert!(!graded.feedback.summary.is_empty());
    }
}

fn tests() -> Arc<Exercise> {
    exercise(
        "validation:\n  type: test\n  language: javascript-tests\n  cases:\n    \
         - { subject: right.js, expect: pass, description: right }\n    \
         - { subject: wrong.js, expect: fail, description: wrong }\n    \
         - { subject: canary.js, expect: fail, description: hidden, hidden: true }\n",
        &[
            ("starter.js", "// begin"),
            ("solution.js", TESTS),
            ("right.js", "function add(a, b) { return a + b; }"),
            ("wrong.js", "function add(a, b) { return a - b; }"),
            (
                "canary.js",
                "function add(a, b) { return a === 5 ? 'CANARY' : a + b; }",
            ),
        ],
    )
}

const TESTS: &str =
    "test('a', () => expect(add(1, 2)).toBe(3)); test('b', () => expect(add(5, 2)).toBe(7));";

#[tokio::test]
async fn tests_are_graded_by_what_they_say_of_subjects() {
    let exercise = tests();
    assert_eq!(grade(&exercise, TESTS).await.verdict, Verdict::Pass);
    for (solution, passed) in [
        (
            "test('a', () => expect(add(1, 2)).toBe(3));",
            [true, true, false],
        ),
        ("test('a', () => {});", [true, false, false]),
        ("test('a', () => expect(1).toBe(2));", [false, true, true]),
        ("let nothing;", [false, false, false]),
        ("throw new Error('x');", [false, false, false]),
    ] {
        let graded = grade(&exercise, solution).await;
        assert_eq!(graded.verdict, Verdict::Fail, "{solution}");
        let results = graded.feedback.results.iter().map(|r| r.passed);
        assert_eq!(
            results.collect::<Vec<_>>(),
            passed,
            "{solution}: {graded:?}"
        );
    }
}

fn sql(options: &str, solution: &str) -> Arc<Exercise> {
    exercise(
        &format!(
            "validation:\n  type: test\n  language: sql\n{options}  cases:\n    \
             - {{ data: a.sql, description: a }}\n    \
             - {{ data: b.sql, description: b, hidden: true }}\n"
        ),
        &[
            ("starter.sql", "-- begin"),
            ("solution.sql", solution),
            (
                "a.sql",
                "CREATE TABLE t (n, name); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (2, 'y');",
            ),
            (
                "b.sql",
                "CREATE TABLE t (n, name); INSERT INTO t VALUES (3, 'CANARY');",
            ),
        ],
    )
}

#[tokio::test]
async fn sql_is_graded_by_rows() {
    let bag = sql("", "SELECT n, name FROM t");
    for (solution, verdict) in [
        ("SELECT n, name FROM t ORDER BY n DESC", Verdict::Pass),
        ("SELECT n * 1.0 AS other, name FROM t", Verdict::Pass),
        ("SELECT DISTINCT n, name FROM t", Verdict::Fail),
        ("SELECT name, n FROM t", Verdict::Fail),
        ("SELECT n FROM t", Verdict::Fail),
        ("SELECT n, name FROM u", Verdict::Fail),
        ("DELETE FROM t", Verdict::Fail),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x), 1 FROM c",
            Verdict::Error,
        ),
    ] {
        assert_eq!(grade(&bag, solution).await.verdict, verdict, "{solution}");
    }
    let graded = grade(&bag, "SELECT n, name FROM t WHERE n = 1").await;
    let first = &graded.feedback.results[0];
    assert_eq!(
        first.expected.as_deref(),
        Some("n | name\n--+-----\n1 | x\n2 | y\n2 | y")
    );
    assert_eq!(
        first.error.as_deref(),
        Some("It has fewer rows than it should")
    );
    let list = sql(
        "  ordered: true\n  column_names: true\n",
        "SELECT n, name FROM t ORDER BY n",
    );
    for (solution, verdict) in [
        ("SELECT n, NAME FROM t ORDER BY n", Verdict::Pass),
        ("SELECT n, name FROM t ORDER BY n DESC", Verdict::Fail),
        ("SELECT n, name AS x FROM t ORDER BY n", Verdict::Fail),
    ] {
        assert_eq!(grade(&list, solution).await.verdict, verdict, "{solution}");
    }
}

fn output(comparator: &str) -> Arc<Exercise> {
    exercise(
        &format!(
            "validation:\n  type: output\n  language: javascript\n  comparator: {comparator}\n  \
             cases:\n    - {{ input: '3', expected: \"1\\n2\\n3\\n\", description: three }}\n    \
             - {{ input: '1', expected: '1', description: hidden, hidden: true }}\n"
        ),
        &[("starter.js", "// begin"), ("solution.js", COUNT)],
    )
}

const COUNT: &str = "for (let i = 1; i <= input; i++) console.log(i);";

#[tokio::test]
async fn output_is_compared_and_the_difference_shown() {
    let exercise = output("trimmed");
    assert_eq!(grade(&exercise, COUNT).await.verdict, Verdict::Pass);
    let graded = grade(
        &exercise,
        &COUNT.replace("log(i)", "log(i === 2 ? 'x' : i)"),
    )
    .await;
    assert_eq!(graded.verdict, Verdict::Fail);
    let error = graded.feedback.results[0]
        .error
        .as_deref()
        .expect("a difference");
    assert!(error.contains("-2\n+x"), "{error}");
    assert_eq!(grade(&output("exact"), COUNT).await.verdict, Verdict::Fail);
    let text = "validation: { type: output, language: text, comparator: whitespace, \
                expected_output: 'CANARY b', show_expected: false }\n";
    let text = self::exercise(text, &[("starter.txt", "?"), ("solution.txt", "CANARY b")]);
    assert_eq!(grade(&text, "CANARY\nb").await.verdict, Verdict::Pass);
    let graded = grade(&text, "c").await;
    assert_eq!(graded.verdict, Verdict::Fail);
    assert!(!format!("{graded:?}").contains("CANARY"));
}

fn pattern() -> Arc<Exercise> {
    exercise(
        "validation:\n  type: pattern\n  strip_comments: shell\n  cases:\n    \
         - { must_match: 'CANARY|set -e', description: stops }\n    \
         - { must_not_match: '(?m)^rm', description: keeps, hidden: true }\n",
        &[("starter.sh", "ls"), ("solution.sh", "set -e\nls")],
    )
}

#[tokio::test]
async fn patterns_are_looked_for_outside_of_comments() {
    let exercise = pattern();
    assert_eq!(
        grade(&exercise, "set -e\n# rm").await.verdict,
        Verdict::Pass
    );
    assert_eq!(grade(&exercise, "# set -e").await.verdict, Verdict::Fail);
    let graded = grade(&exercise, "set -e\nrm x").await;
    assert_eq!(graded.verdict, Verdict::Fail);
    assert!((graded.score - 0.5).abs() < 1e-9);
}

#[tokio::test]
async fn a_person_is_waited_for() {
    let manual = exercise(
        "validation: { type: manual, checklist: [It is kind] }\n",
        &[("starter.md", "x"), ("solution.md", "CANARY")],
    );
    let graded = grade(&manual, "Hello").await;
    assert_eq!(graded.verdict, Verdict::Pending);
    assert!(graded.feedback.summary.contains("It is kind"));
    assert_eq!(manual.checklist(), ["It is kind"]);
}

const SKILL: &str = "---\nname: notes\ndescription: Writes release notes from commits\n\
                     allowed-tools: Read Bash(git log:*)\n---\n\n# Steps\n\n1. Read the log\n";

fn skill() -> Arc<Exercise> {
    exercise(
        "validation:\n  type: test\n  language: skill\n  fixtures: fixtures\n  cases:\n    \
         - { ask: { pointer: /name }, expected: notes, description: a }\n    \
         - { ask: { pointer: /allowed_tools }, contains: Read, description: b }\n    \
         - { ask: { pointer: /outline/0 }, expected: Steps, description: c }\n    \
         - { ask: { problems: warning }, expected: [], description: d }\n    \
         - { ask: { check_tool: Bash, arguments: { command: git log -1 } }, expected: allowed, description: e }\n    \
         - { ask: { check_tool: Bash, arguments: { command: git push } }, expected: denied, description: f }\n    \
         - { ask: { check_tool: Read, compose: [strict] }, expected: denied, description: g }\n    \
         - { ask: { compose: [strict] }, at: /valid, expected: true, description: h }\n    \
         - { ask: { compose: [needy] }, at: /errors, contains: MISSING_REQUIRED_SKILL, description: i }\n    \
         - { ask: { found_for: write releases }, expected: 1, description: j, hidden: true }\n    \
         - { ask: { lines: body }, at_most: 5, description: k }\n    \
         - { ask: { pointer: /license }, absent: true, description: l }\n",
        &[
            ("starter.md", "no skill"),
            ("solution.md", SKILL),
            (
                "fixtures/strict/SKILL.md",
                "---\nname: strict\ndescription: CANARY-STRICT forbids\nforbidden-tools: Read\n---\nText\n",
            ),
            (
                "fixtures/needy/SKILL.md",
                "---\nname: needy\ndescription: Needs CANARY\nrequires-skills: []\ncompatibility-rules:\n  - { type: requires, skill: nobody }\n---\nText about releases\n",
            ),
        ],
    )
}

#[tokio::test]
async fn skills_are_graded_by_what_the_product_makes_of_them() {
    let exercise = skill();
    let graded = grade(&exercise, SKILL).await;
    let failed: Vec<_> = graded
        .feedback
        .results
        .iter()
        .filter(|r| !r.passed)
        .collect();
    assert_eq!(graded.verdict, Verdict::Pass, "{failed:#?} {graded:?}");
    for (from, to, name) in [
        ("name: notes", "name: other", "a"),
        ("Read Bash", "Grep Bash", "b"),
        ("# Steps", "# Way", "c"),
        ("name: notes", "name: Notes!", "d"),
        ("git log", "git diff", "e"),
        ("Bash(git log:*)", "Bash", "f"),
        ("Writes release notes from commits", "Helps", "j"),
        ("1. Read", "\n\n\n\n1. Read", "k"),
        ("name: notes", "name: notes\nlicense: MIT", "l"),
    ] {
        let graded = grade(&exercise, &SKILL.replacen(from, to, 1)).await;
        let results = &graded.feedback.results;
        assert!(
            results.iter().any(|r| r.name == name && !r.passed),
            "{name}: {results:#?}"
        );
        assert_eq!(graded.verdict, Verdict::Fail);
    }
    let graded = grade(&exercise, "no skill at all").await;
    assert_eq!((graded.verdict, graded.score), (Verdict::Fail, 0.0));
    assert!(
        graded.feedback.summary.contains("front-matter-missing"),
        "{graded:?}"
    );
}

#[tokio::test]
async fn a_skill_of_nothing_but_patterns_of_tools_is_answered_at_once() {
    let patterns: Vec<_> = (0..3_000).map(|n| format!("Bash(*a*a*a*a*a{n})")).collect();
    let skill = SKILL.replace("Read Bash(git log:*)", &patterns.join(" "));
    let exercise = self::skill();
    let graded = tokio::time::timeout(Duration::from_secs(10), grade(&exercise, &skill));
    let graded = graded.await.expect("an answer in time");
    assert_eq!((graded.verdict, graded.score), (Verdict::Fail, 0.0));
    assert_eq!(
        graded.feedback.summary,
        "None of 12 tests passes yet. All end with the same error: It names 3000 tools; at most 100 are looked at."
    );
}

#[tokio::test]
async fn a_learner_who_hands_in_endless_loops_holds_up_nobody_else() {
    let exercise = &add();
    let graders = &graders();
    let grade = |learner: &'static str, text: String| async move {
        let turn = graders.turn(learner, exercise).await?;
        Ok::<_, Busy>(
            graders
                .grade_in(&turn, exercise, &exercise.one_text(text))
                .await,
        )
    };
    let loops = |n: usize| grade("ann", format!("for (;;) {{}} // {n}"));
    let (mut loops, bob) = (
        (0..40).map(loops).collect::<FuturesUnordered<_>>(),
        grade("bob", SOLUTION.to_owned()),
    );
    // What is too much of one learner is refused before anything is graded.
    for _ in 0..8 {
        let refused = loops.next().await.expect("an answer");
        assert_eq!(refused, Err(Busy::Learner));
    }
    let bob = match select(std::pin::pin!(bob), loops.collect::<Vec<_>>()).await {
        Either::Left((bob, _)) => bob.expect("graded"),
        Either::Right((graded, _)) => panic!("ann's came first: {graded:?}"),
    };
    assert_eq!(bob.verdict, Verdict::Pass, "{bob:?}");
}

fn worker() -> Arc<Exercise> {
    exercise(
        "validation:\n  type: test\n  language: python\n  grader: { skill: local/graders/python, method: grade }\n  \
         cases:\n    - { input: [1], expected: 2, description: a }\n    \
         - { input: [CANARY-IN], expected: [CANARY], description: b, hidden: true }\n",
        &[("starter.py", "pass"), ("solution.py", "right")],
    )
}

/// Answers by what the solution says; keeps what it was asked.
#[derive(Debug, Default)]
struct Scripted(std::sync::Mutex<Vec<Map<String, Value>>>);

impl Worker for Scripted {
    fn grade<'a>(
        &'a self,
        skill: &'a str,
        method: &'a str,
        request: Map<String, Value>,
        _: Duration,
    ) -> handler::Work<'a, Result<Value, String>> {
        assert_eq!((skill, method), ("local/graders/python", "grade"));
        let solution = request["files"]["solution.py"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.0.lock().expect("a lock").push(request);
        Box::pin(async move {
            match solution.as_str() {
                "right" => Ok(json!({"cases": [{"value": 2.0}, {"value": ["CANARY"]}]})),
                "wrong" => Ok(json!({"cases": [{"value": 3}, {"value": ["CANARY2"]}]})),
                "throws" => Ok(json!({"cases": [{"error": "E: 1"}, {"error": "CANARY"}]})),
                "short" => Ok(json!({"cases": [{"value": 2}]})),
                "silent" => std::future::pending().await,
                _ => Err("CANARY in a log".to_owned()),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_runs_and_does_not_judge() {
    let exercise = worker();
    let scripted = Arc::new(Scripted::default());
    let mut graders = graders();
    graders.worker = Some(Arc::clone(&scripted) as Arc<dyn Worker>);
    for (solution, verdict) in [
        ("right", Verdict::Pass),
        ("wrong", Verdict::Fail),
        ("throws", Verdict::Fail),
        ("short", Verdict::Error),
        ("silent", Verdict::Error),
        ("broken", Verdict::Error),
    ] {
        let graded = graders.grade(&exercise, &exercise.one_text(solution)).await;
        assert_eq!(graded.verdict, verdict, "{solution}");
        assert!(!format!("{graded:?}").contains("CANARY"), "{graded:?}");
    }
    let asked = scripted.0.lock().expect("a lock");
    assert_eq!(asked[0]["inputs"], json!([[1], ["CANARY-IN"]]));
    // What is expected is not sent.
    assert!(!json!(*asked).to_string().contains("\"CANARY\""));
}

fn config() -> Arc<Exercise> {
    exercise(
        "validation:\n  type: test\n  language: config\n  cases:\n    \
         - { ask: { pointer: /right }, expected: 1, description: a }\n    \
         - { ask: { problems: error }, expected: [], description: b, hidden: true }\n",
        &[("starter.yaml", "wrong: 1"), ("solution.yaml", "right: 1")],
    )
}

#[derive(Debug)]
struct Words;

impl Documents for Words {
    fn read(&self, text: &str) -> (Value, Vec<Problem>) {
        assert!(!text.contains('*'), "what could be a bomb goes no further");
        match text {
            "right: 1" => (json!({"right": 1}), Vec::new()),
            _ => (
                json!({}),
                vec![Problem::error("unknown-key", "", 1, "CANARY")],
            ),
        }
    }
}

#[tokio::test]
async fn configs_are_graded_by_what_reads_them() {
    let mut graders = graders();
    graders.documents = Some(Arc::new(Words));
    let exercise = config();
    let bomb = format!("right: 1\nx: &a [1]\ny: [{}]", ["*a"; 100].join(", "));
    for (solution, verdict) in [
        ("right: 1", Verdict::Pass),
        ("left: 1", Verdict::Fail),
        (&bomb, Verdict::Fail),
    ] {
        let graded = graders.grade(&exercise, &exercise.one_text(solution)).await;
        assert_eq!(graded.verdict, verdict);
        assert!(!format!("{graded:?}").contains("CANARY"));
    }
}

/// Whatever solutions try, and whatever they end with, nothing of a hidden case is told.
#[tokio::test]
async fn nobody_is_told_what_is_hidden() {
    let secrets = ["777", "778", "CANARY", "second"];
    let kinds = [
        (
            add(),
            SOLUTION,
            &[
                "const add = (...all) => { throw new Error(all.join()); }; const pair = add;",
                "const add = (...all) => all; const pair = add;",
                "const add = (...all) => { class E extends Error { get name() { return String(all) } } throw new E(all.join()); }; const pair = add;",
                "const add = (...all) => { for (;;) {} }; const pair = (a) => a;",
                "let add = () => { throw [7, 7] }",
            ][..],
        ),
        (
            tests(),
            TESTS,
            &[
                "test('a', () => { throw new Error(add.toString() + add(5, 1)); });",
                "throw new Error(add.toString() + String(add(5, 1)));",
                "test(String(add(5, 1)), () => {});",
                "console.log(add(5, 1)); test('x' + add(5, 1), () => expect(add(5, 1)).toBe(6));",
            ],
        ),
        (
            sql("", "SELECT n, name FROM t"),
            "SELECT n, name FROM t",
            &[
                "SELECT name, name FROM t",
                "SELECT CAST(name AS INTEGER) FROM t WHERE name = 'CANAR' || 'Y'",
                "SELECT json(name), 1 FROM t",
                "SELECT sql, 1 FROM sqlite_schema",
            ],
        ),
        (
            output("trimmed"),
            COUNT,
            &[
                "console.log(input); throw new Error(input + 776);",
                "console.log('777'.length)",
            ],
        ),
        (pattern(), "set -e", &["ls", "rm"]),
        (
            skill(),
            SKILL,
            &[
                "---\nname: a\ndescription: b\n---\n",
                "nothing",
                "---\nname: a\n---\n",
            ],
        ),
    ];
    for (exercise, right, solutions) in kinds {
        for solution in solutions.iter().chain([&right, &"?"]) {
            let graded = grade(&exercise, solution).await;
            let told = graded.feedback;
            let names: Vec<&str> = told.results.iter().map(|r| r.name.as_str()).collect();
            // Descriptions are shown, also of hidden cases.
            let words = format!("{told:?}").replace("CANARY-NAME", "");
            for secret in secrets {
                let is_own = solution.contains(secret);
                assert!(
                    is_own || !words.contains(secret),
                    "{secret}: {words} {names:?}"
                );
            }
        }
        // Nor is anything of it where an exercise is printed.
        let printed = format!("{exercise:?}").replace("CANARY-NAME", "");
        assert!(!printed.contains("CANARY"), "{printed}");
    }
}

#[tokio::test]
async fn the_gate_wants_starters_that_fail_and_solutions_that_pass() {
    let rules = |validation: String, files: Vec<(&'static str, &'static str)>| async move {
        let path = path(&validation, &files);
        let problems = graders().check(&path).await;
        let rules = problems
            .iter()
            .map(|p| format!("{} {}:{}", p.rule, p.file, p.line));
        (rules.collect::<Vec<String>>(), format!("{problems:?}"))
    };
    let md = "exercises/01-abc/EXERCISE.md";
    let (told, _) = rules(
        ADD.to_owned(),
        vec![("starter.js", "//"), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(told, Vec::<String>::new());
    let (told, _) = rules(
        ADD.to_owned(),
        vec![("starter.js", SOLUTION), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(told, [format!("starter-passes {md}:9")]);
    let (told, words) = rules(
        ADD.to_owned(),
        vec![
            ("starter.js", "for(;;);"),
            ("solution.js", "let add = (...a) => a.join()"),
        ],
    )
    .await;
    assert_eq!(
        told,
        [
            format!("solution-fails {md}:13"),
            format!("starter-not-graded {md}:13")
        ]
    );
    assert!(!words.contains("777"), "{words}");
    let (told, _) = rules(
        ADD.replace("hidden: true, ", ""),
        vec![("starter.js", "//"), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(told, [format!("cases-not-hidden {md}:9")]);
    // What is expected cannot be computed.
    let (told, _) = rules(
        ADD.replace("expected: 778", "expected: nothing()"),
        vec![("starter.js", "//"), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(
        told,
        [
            format!("solution-not-graded {md}:0"),
            format!("starter-not-graded {md}:0")
        ]
    );
}

#[test]
fn paths_go_together() {
    let path = |id: &str, more: &str, exercises: &[(&str, &str)]| {
        let header = format!(
            "---\nname: A\ndescription: B\ncategory: abc\ndifficulty: beginner\n\
             estimated_hours: 1\nobjectives: [C]\n{more}---\nText\n"
        );
        let mut files = BTreeMap::from([("PATH.md".to_owned(), Bytes::from(header))]);
        for (at, (id, more)) in exercises.iter().enumerate() {
            let folder = format!("exercises/{at}-{id}");
            let exercise = format!(
                "---\ntitle: A\ntype: practice\ndifficulty: easy\nestimated_minutes: 1\n{more}\n\
                 hints: [a, b]\nvalidation: {{ type: manual, checklist: [a] }}\n---\nText\n"
            );
            files.insert(format!("{folder}/EXERCISE.md"), Bytes::from(exercise));
            files.insert(format!("{folder}/starter.md"), Bytes::from_static(b"x"));
            files.insert(format!("{folder}/solution.md"), Bytes::from_static(b"y"));
        }
        let (path, problems) = read(id, &files);
        assert_eq!(problems, Vec::new());
        Arc::new(path.expect("a path"))
    };
    let told = |paths: &[Arc<LearningPath>]| -> Vec<String> {
        let told = check_together(paths).into_iter();
        told.map(|(id, p)| {
            let file = p.file.replace("/EXERCISE.md", "");
            match p.line {
                0 => format!("{id} {} {file}", p.rule),
                line => format!("{id} {} {file}:{line}", p.rule),
            }
        })
        .collect()
    };
    let first = path(
        "first",
        "",
        &[
            ("one", "teaches: [aaa]"),
            ("two", "requires: [aaa]\nteaches: [bbb]"),
        ],
    );
    let second = path(
        "second",
        "prerequisites: [first]\nrelated_paths: [first]\n",
        &[
            ("three", "requires: [bbb, ccc]"),
            ("four", "teaches: [ccc]"),
        ],
    );
    assert_eq!(
        told(&[Arc::clone(&first), Arc::clone(&second)]),
        Vec::<String>::new()
    );
    let none = "achievements: [{ id: xyz, name: a, description: b, icon: c, when: { exercise_completed: zzz, path_completed: yyy, concept_learned: qqq } }]\nrelated_paths: [nowhere]\nprerequisites: [gone]\n";
    let third = path(
        "third",
        none,
        &[
            ("one", "teaches: [ddd]"),
            ("five", "requires: [aaa]"),
            ("six", "requires: [eee]\nteaches: [fff]"),
            ("seven", "requires: [fff]\nteaches: [eee]"),
        ],
    );
    assert_eq!(
        told(&[Arc::clone(&first), third]),
        [
            "third exercise-id-duplicate exercises/0-one",
            "third path-prerequisite-unknown PATH.md",
            "third path-related-unknown PATH.md",
            "third achievement-when-unknown PATH.md",
            "third achievement-when-unknown PATH.md",
            "third achievement-when-unknown PATH.md",
            "third concept-not-taught exercises/1-five:6",
            "third concept-cycle exercises/2-six:6",
            "third concept-cycle exercises/3-seven:6",
        ]
    );
    let circle = path("circle", "prerequisites: [second]\n", &[("eight", "")]);
    let begin = path(
        "first",
        "prerequisites: [circle]\n",
        &[("one", "teaches: [aaa, bbb]")],
    );
    assert_eq!(
        told(&[begin, second, circle]),
        [
            "first path-prerequisites-cycle PATH.md",
            "second path-prerequisites-cycle PATH.md",
            "circle path-prerequisites-cycle PATH.md",
        ]
    );
}

/// What somebody may hand in who wants to know what is hidden, or to stop the server.
fn attacks() -> Vec<String> {
    let many = |part: &str, times: usize| part.repeat(times);
    let numbered = |part: &str, times: usize| -> String {
        (0..times)
            .map(|n| part.replace('#', &n.to_string()))
            .collect()
    };
    let front = |keys: &str| format!("---\nname: a\ndescription: Helps\n{keys}\n---\nText\n");
    let texts = [
        // Without an end, and without a bound.
        "for (;;) {}",
        "test('a', async () => { for (;;) await null })",
        "test('a', (done) => {})",
        "const all = []; for (;;) all.push(new Array(1e6).fill(all));",
        "(function f() { f(); })();",
        "console.log('x'.repeat(1e8));",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n), 1 FROM r",
        "SELECT zeroblob(900000000), randomblob(900000000)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n, 'x' FROM r",
        // What is around.
        "for (const key of Reflect.ownKeys(globalThis)) console.log(key, String(globalThis[key]));",
        "throw new Error(new Error().stack + String(globalThis));",
        "test(String(Reflect.ownKeys(globalThis)), () => { throw new Error(add.toString()); });",
        "const add = (...all) => { throw new TypeError(JSON.stringify([all, input])); };",
        "require('fs').readFileSync('/proc/self/environ');",
        "import('fs').then((fs) => console.log(fs));",
        "Object.prototype.passed = true; JSON.stringify = () => '[]'; Array.prototype.every = () => true;",
        "test = (name, body) => body(); expect = () => ({ toBe() {} });",
        "ATTACH DATABASE '/etc/passwd' AS e",
        "SELECT load_extension('/lib/x.so'), 1",
        "SELECT readfile('/etc/passwd'), 1",
        "PRAGMA writable_schema = 1; SELECT sql, name FROM sqlite_schema",
        "SELECT 1, name FROM t UNION SELECT sql, tbl_name FROM sqlite_schema",
        // Grammar.
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
        "a: !!python/object/apply:os.system [ls]",
        "a: {<<: *nothing}",
        "\0\u{feff}\u{202e}\r\r\n",
        "cat <<END",
        "f() { f; }; f",
    ];
    let mut all: Vec<String> = texts.iter().map(ToString::to_string).collect();
    all.extend([
        front(&format!(
            "allowed-tools: {}",
            numbered("Bash(*a*a*a*a*a#) ", 3_000)
        )),
        front(&format!("forbidden-tools: {}", numbered("Bash(a* #) ", 99))),
        front(&format!(
            "compatibility-rules:\n{}",
            numbered("  - { type: requires, skill: s# }\n", 1_200)
        )),
        front(&format!("tags: {}", many("[", 5_000))),
        many("[", 30_000),
        many("(", 30_000),
        many("{\"a\":", 8_000),
        many("`${", 15_000),
        many("'", 30_000),
        many("$(", 30_000),
        many("x ", 30_000),
        many("-- /* ", 8_000),
        many("# \n", 20_000),
        many("a=$a$a$a\n", 5_000),
        numbered("f#() {\n", 5_000),
        numbered("SELECT #; ", 5_000),
    ]);
    all
}

#[tokio::test]
async fn no_attack_on_any_grader_passes_lasts_or_is_told_what_is_hidden() {
    let mut graders = graders();
    graders.worker = Some(Arc::new(Scripted(std::sync::Mutex::default())));
    graders.documents = Some(Arc::new(Words));
    let graders = &graders;
    let text = |lines: &str| exercise(lines, &[("starter.txt", "x"), ("solution.txt", "y")]);
    let kinds = [
        ("expressions", add()),
        ("tests", tests()),
        ("sql", sql("", "SELECT n, name FROM t")),
        ("skill", self::skill()),
        ("config", config()),
        ("worker", worker()),
        ("output of a program", output("trimmed")),
        (
            "output",
            text(
                "validation:\n  type: output\n  language: text\n  comparator: exact\n  \
                  show_expected: false\n  expected_output: CANARY\n",
            ),
        ),
        (
            "output of JSON",
            text(
                "validation:\n  type: output\n  language: text\n  comparator: json\n  \
                  show_expected: false\n  expected_output: '{\"a\": \"CANARY\", \"b\": 1}'\n",
            ),
        ),
        ("pattern", pattern()),
        (
            "manual",
            text("validation: { type: manual, checklist: [It is kind] }\n"),
        ),
    ];
    let attacks = attacks();
    let pairs = kinds
        .iter()
        .flat_map(|(kind, exercise)| attacks.iter().map(move |attack| (*kind, exercise, attack)));
    let graded = futures_util::stream::iter(pairs).map(|(kind, exercise, attack)| async move {
        let solution = exercise.one_text(attack.as_str());
        let graded = graders.grade(exercise, &solution);
        // Far more than any takes, so that a busy machine fails nothing.
        let graded = tokio::time::timeout(Duration::from_secs(60), graded).await;
        (kind, attack, graded)
    });
    let mut graded = graded.buffer_unordered(4);
    while let Some((kind, attack, graded)) = graded.next().await {
        let attack = attack.get(..80).unwrap_or(attack);
        let graded = graded.unwrap_or_else(|_| panic!("{kind} does not end: {attack}"));
        let is_taken = graded.verdict == Verdict::Pass;
        let waits = graded.verdict == Verdict::Pending;
        assert!(!is_taken && waits == (kind == "manual"), "{kind}: {attack}");
        let words = format!("{graded:?}").replace("CANARY-NAME", "");
        for secret in ["CANARY", "777", "778"] {
            assert!(!words.contains(secret), "{kind}: {attack}: {words}");
        }
    }
}
