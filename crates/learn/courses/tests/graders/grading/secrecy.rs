//! What is hidden stays hidden, and no attack on a grader passes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::StreamExt as _;
use repertoire_courses::Verdict;

use super::{
    COUNT, SKILL, SOLUTION, Scripted, TESTS, Words, add, config, exercise, grade, graders, output,
    pattern, skill, sql, tests, worker,
};

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
