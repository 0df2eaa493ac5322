//! Solutions are graded by what they do, and nobody is told what is hidden.

mod code;
mod gate;
mod secrecy;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::Problem;
use repertoire_courses::{
    Documents, Exercise, Graded, Graders, LearningPath, Solution, Verdict, Worker, read,
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
    assert_eq!(manual.checklist, ["It is kind"]);
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
