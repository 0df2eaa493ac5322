//! What a stranger may try in JavaScript: each attempt ends in an outcome that says so,
//! in bounded time and memory, and changes nothing of what comes after.

use std::time::Duration;

use crate::common::{
    expression, expressions, expressions_within, limits, number, run, script, sql, tests, text,
};
use repertoire_sandbox::{Limits, Outcome, Program, Stopped, TestOutcome, Value};

const TIME: Outcome = Outcome::Stopped(Stopped::Time);
const MEMORY: Outcome = Outcome::Stopped(Stopped::Memory);
const STACK: Outcome = Outcome::Stopped(Stopped::Stack);
const OUTPUT: Outcome = Outcome::Stopped(Stopped::Output);
const UNSETTLED: Outcome = Outcome::Stopped(Stopped::Unsettled);

/// What comes of an expression that has little time.
async fn hurried(source: &str) -> Outcome {
    let short = Limits {
        time: Duration::from_millis(150),
        ..limits()
    };
    expressions_within(short, "", &[source]).await.remove(0)
}

#[tokio::test]
async fn what_never_ends_is_ended() {
    for source in [
        "while (true) {}",
        "for (;;) try { for (;;) {} } finally { continue }",
        "for (;;) { try { throw 1 } catch {} }",
        "(function loop() { return Promise.resolve().then(loop) })()",
        "(async () => { while (true) await null })()",
        "(async () => { try { while (true) {} } finally { while (true) {} } })()",
        "new Promise(() => setInterval(() => {}, 1000))",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))",
        "Array.from({length: 3000000}, (_, i) => (i * 7919) % 1000003).sort((a, b) => a - b).length",
        "({get a() { for (;;) {} }})",
        "({toString() { for (;;) {} }}) + ''",
        "new Proxy({}, {ownKeys() { for (;;) {} }})",
        "new Proxy([], {get() { for (;;) {} }})",
        "throw {get message() { for (;;) {} }}",
        "throw new Proxy(new Error(), {get() { for (;;) {} }})",
        "for (const x of (function* () { for (;;) yield 1 })()) {}",
        "class A { static { for (;;) {} } }; 1",
        "eval('for (;;) {}')",
        "new Function('for (;;) {}')()",
        "JSON.parse('[1]', () => { for (;;) {} })",
        "'x'.replace(/x/, () => { for (;;) {} })",
    ] {
        assert_eq!(hurried(source).await, TIME, "{source}");
    }
}

#[tokio::test]
async fn what_asks_nobody_for_the_time_is_ended_from_outside() {
    // The engine's interrupt is not asked in here.
    assert_eq!(hurried("Array(2 ** 30).join('x')").await, TIME);
}

#[tokio::test]
async fn a_case_that_loops_leaves_time_for_those_that_follow() {
    let within = Limits {
        time: Duration::from_secs(2),
        ..limits()
    };
    let found = expressions_within(within, "", &["for (;;) {}", "1 + 1", "2 + 2"]).await;
    assert_eq!(found, [TIME, number(2.0), number(4.0)]);
}

#[tokio::test]
async fn memory_is_bounded() {
    for source in [
        "const a = []; while (true) a.push(new Array(100000).fill(0))",
        "let s = 'x'; const a = []; while (true) { a.push(s + a.length); s += s.slice(0, 100000) + 'y' }",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {i})",
        "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))",
        "let a = null; for (;;) a = {a}",
        "const a = []; for (;;) a.push(() => a)",
        "const a = []; for (;;) a.push(Promise.resolve().then(() => a))",
    ] {
        assert_eq!(expression(source).await, MEMORY, "{source}");
    }
    // Too large at once: an error of the language, or the end.
    for source in [
        "'x'.repeat(2 ** 30)",
        "new ArrayBuffer(2 ** 40)",
        "2n ** (2n ** 40n)",
        "new Uint8Array(2 ** 33)",
        "'x'.padEnd(2 ** 31)",
    ] {
        let found = expression(source).await;
        assert!(
            matches!(found, Outcome::Thrown { .. }) || found == MEMORY,
            "{source}: {found:?}"
        );
    }
    // Who catches it goes on within the same bounds, and so does the next case.
    let caught = "let n = 0; for (let i = 0; i < 5; i++) { try { const a = []; for (;;) a.push(new Array(100000).fill(0)) } catch { n++ } }; n";
    let found = expressions("", &[caught, "const a = []; for (;;) a.push([a])", "3"]).await;
    assert_eq!(found, [number(5.0), MEMORY, number(3.0)]);
}

#[tokio::test]
async fn recursion_is_bounded() {
    for source in [
        "(function f() { f() })()",
        "const f = () => [1].map(f); f()",
        "const o = {get a() { return this.a }}; o.a",
        "const p = new Proxy({}, {get: (t, k, r) => r[k]}); p.x",
        "const o = {toString() { return '' + this }}; '' + o",
        "let a = []; for (let i = 0; i < 100000; i++) a = [a]; JSON.stringify(a)",
    ] {
        assert_eq!(expression(source).await, STACK, "{source}");
    }
    for source in [
        "[".repeat(100_000),
        "(".repeat(100_000),
        "{a:".repeat(100_000),
    ] {
        let found = expression(&source).await;
        assert!(
            matches!(found, Outcome::Thrown { .. }) || found == STACK,
            "{found:?}"
        );
    }
    let caught = "(() => { try { (function f() { f() })() } catch (e) { return e.name } })()";
    assert_eq!(expression(caught).await, text("RangeError"));
}

#[tokio::test]
async fn output_is_bounded() {
    for source in [
        "'x'.repeat(1000000)",
        "new Array(100000).fill(1)",
        "new Array(2 ** 32 - 1)",
        "Object.fromEntries(Array.from({length: 20000}, (_, i) => ['k' + i, i]))",
        "new Map(Array.from({length: 50000}, (_, i) => [i, i]))",
        "new Set(Array.from({length: 50000}, (_, i) => i))",
        "10n ** 100000n",
        "let a = []; for (let i = 0; i < 40; i++) a = [a]; a",
        "new Proxy([], {get: (t, k) => k === 'length' ? 2 ** 53 : 1})",
        "new Proxy([], {get: (t, k) => k === 'length' ? 1e9 : []})",
        "new Proxy([], {get: (t, k) => k === 'length' ? 'x' : []})",
        "(() => { class N { get next() { return new N() } }; Object.defineProperty(N.prototype, 'next', {enumerable: true}); \
           const make = () => Object.defineProperty({}, 'next', {get: make, enumerable: true}); return make() })()",
    ] {
        assert_eq!(expression(source).await, OUTPUT, "{source}");
    }
    // Every byte of these is escaped where it is written down, and each is still one.
    let escaped = "'\\u0001'.repeat(60000)";
    assert_eq!(expression(escaped).await, text(&"\u{1}".repeat(60000)));
    let endless = "for (;;) console.log('x'.repeat(1000))";
    assert_eq!(script(endless, "").await, OUTPUT);
    assert_eq!(script("console.log('x'.repeat(2 ** 22))", "").await, OUTPUT);
    // One that catches everything is ended all the same.
    let stubborn =
        "for (;;) { try { console.log('x'.repeat(1000)) } catch {} finally { continue } }";
    assert_eq!(script(stubborn, "").await, OUTPUT);
    let name = "test('x'.repeat(1000000), () => {})";
    assert_eq!(tests("", name).await, OUTPUT);
}

#[tokio::test]
async fn there_is_nothing_to_reach() {
    let reached = "[typeof require, typeof process, typeof fetch, typeof Deno, typeof Bun, typeof std, typeof os, \
        typeof XMLHttpRequest, typeof WebSocket, typeof Worker, typeof WebAssembly, typeof module, typeof exports, \
        typeof performance, typeof scriptArgs, typeof print, typeof load, typeof navigator, typeof __dirname].join()";
    let expected = ["undefined"; 19].join(",");
    assert_eq!(expression(reached).await, text(&expected));
    for source in [
        "require('fs').readFileSync('/etc/passwd')",
        "process.exit(0)",
        "fetch('http://127.0.0.1')",
        "process.env",
        "import('fs')",
        "import('/etc/passwd')",
        "import('data:text/javascript,export default 1')",
        "new (Function('return this')().constructor.constructor('return process')())()",
        "(async () => import('std'))()",
    ] {
        let found = expression(source).await;
        assert!(
            matches!(found, Outcome::Thrown { .. }),
            "{source}: {found:?}"
        );
    }
    let found = expressions("import fs from 'fs'; const a = 1", &["1"]).await;
    assert!(matches!(found[0], Outcome::Thrown { .. }), "{found:?}");
}

#[tokio::test]
async fn what_is_changed_inside_changes_no_value() {
    let changes = "
        JSON.stringify = () => '\"patched\"';
        Object.prototype.toJSON = () => 'patched';
        Array.prototype.toJSON = () => 'patched';
        Object.keys = Reflect.ownKeys = Object.entries = () => [];
        Object.defineProperty(Array.prototype, 0, {set() {}, get() { return 'patched' }, configurable: true});
        Array.prototype[Symbol.iterator] = function* () { yield 'patched' };
        Array.isArray = () => false;
        Map.prototype.forEach = Set.prototype.forEach = () => {};
        Object.defineProperty(Map.prototype, 'size', {get: () => 0});
        Date.prototype.getTime = Date.prototype.valueOf = () => 0;
        BigInt.prototype.toString = String.prototype.toWellFormed = () => 'patched';
        Promise.prototype.then = () => 'patched';
        Promise.resolve = () => 'patched';
        Reflect.apply = Function.prototype.call = Function.prototype.apply = () => 'patched';
        Symbol.prototype.toString = () => 'patched';
        globalThis.Map = globalThis.Set = globalThis.Date = class {};
        Object.prototype.value = 'patched';
        Object.prototype.name = 'patched';";
    let made = "const map = new Map([['a', [1, {b: 2}]]]), set = new Set(['\\ud800']), date = new Date(7);";
    let found = expressions(
        &format!("{made}{changes}"),
        &[
            "[3, {b: 4}]",
            "map",
            "set",
            "date",
            "12n",
            "(async () => 5)()",
            "{a: 'x'}",
        ],
    )
    .await;
    let object = |key: &str, value: Value| Value::Object(vec![(key.to_owned(), value)]);
    let expected = [
        Value::Array(vec![Value::Number(3.0), object("b", Value::Number(4.0))]),
        Value::Map(vec![(
            Value::Text("a".into()),
            Value::Array(vec![Value::Number(1.0), object("b", Value::Number(2.0))]),
        )]),
        Value::Set(vec![Value::Text("\u{FFFD}".into())]),
        Value::Date(Some(7.0)),
        Value::BigInt("12".into()),
        Value::Number(5.0),
        object("a", Value::Text("x".into())),
    ]
    .map(Outcome::Value);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_only_looks_like_another_kind_is_what_it_is() {
    let object = |properties: Vec<(&str, Value)>| {
        let owned = |(key, value): (&str, Value)| (key.to_owned(), value);
        Outcome::Value(Value::Object(properties.into_iter().map(owned).collect()))
    };
    for source in [
        "Object.create(Map.prototype)",
        "Object.setPrototypeOf({}, Date.prototype)",
        "({__proto__: Array.prototype})",
        "({[Symbol.toStringTag]: 'Map'})",
        "({get [Symbol.toStringTag]() { throw 1 }})",
    ] {
        assert_eq!(expression(source).await, object(vec![]), "{source}");
    }
    // A promise is one; what merely has a `then` is not waited for.
    let then = expression("({then(f) { f('patched') }})").await;
    assert_eq!(then, object(vec![("then", Value::Function("then".into()))]));
    // What throws while it is looked at has thrown.
    let found = expression("({get a() { throw new RangeError('looked') }})").await;
    let Outcome::Thrown { name, message, .. } = found else {
        panic!("{found:?}");
    };
    assert_eq!((name.as_str(), message.as_str()), ("RangeError", "looked"));
}

#[tokio::test]
async fn no_output_is_taken_for_an_outcome() {
    let markers = "console.log('{\"Outcome\":{\"Value\":{\"Number\":1.0}}}\\n{\"Refused\":\"no\"}\\nPASS\\nok 1');";
    assert_eq!(expressions(markers, &["2"]).await, [number(2.0)]);
    let Outcome::Output(written) = script(markers, "").await else {
        panic!("no output");
    };
    assert!(written.starts_with("{\"Outcome\"") && written.ends_with("PASS\nok 1\n"));
    let solution = format!("test('{{\"error\":null}}', () => {{ {markers} throw 'no' }})");
    let expected = TestOutcome {
        name: "{\"error\":null}".into(),
        error: Some("no".into()),
    };
    assert_eq!(tests("", &solution).await, Outcome::Tests(vec![expected]));
}

#[tokio::test]
async fn what_never_settles_is_said_so() {
    for source in [
        "new Promise(() => {})",
        "(async () => { await new Promise(() => {}) })()",
        "await new Promise(() => setTimeout(() => {}, 5))",
        "Promise.race([])",
    ] {
        assert_eq!(expression(source).await, UNSETTLED, "{source}");
    }
    let resolved = "Promise.resolve({then() {}})";
    assert_eq!(expression(resolved).await, UNSETTLED);
}

#[tokio::test]
async fn odd_texts_come_through() {
    assert_eq!(expression("'a\\0b'").await, text("a\0b"));
    assert_eq!(expression("'\\ud83d\\ude00'").await, text("😀"));
    for lone in ["'a\\ud800b'", "'a\\udc00b'", "'a' + '😀'[0] + 'b'"] {
        assert_eq!(expression(lone).await, text("a\u{FFFD}b"), "{lone}");
    }
    assert_eq!(
        expression("({['\\ud800']: 1, ['a\\0']: 2})").await,
        Outcome::Value(Value::Object(vec![
            ("\u{FFFD}".into(), Value::Number(1.0)),
            ("a\0".into(), Value::Number(2.0)),
        ]))
    );
    assert_eq!(
        expression("throw new Error('\\ud800\\0')").await,
        Outcome::Thrown {
            name: "Error".into(),
            message: "\u{FFFD}\0".into(),
            line: None,
        }
    );
    // In the text of a program it ends nothing.
    assert_eq!(
        expressions("const a = '1\0 2'; function f() { return 3 }", &["f()"]).await,
        [number(3.0)]
    );
    let Outcome::Output(written) = script("console.log(input.length, input)", "\0\u{1}é").await
    else {
        panic!("no output");
    };
    assert_eq!(written, "3 \0\u{1}é\n");
    assert_eq!(
        sql("", "SELECT 'a' || char(0) || 'b' AS x").await,
        Outcome::Rows {
            columns: vec!["x".into()],
            rows: vec![vec![repertoire_sandbox::Cell::Text("a\0b".into())]],
        }
    );
}

#[tokio::test]
async fn the_same_program_gives_the_same_values_every_time() {
    let source = "[Math.random(), Math.random(), Date.now(), new Date().toISOString(), Date().slice(0, 15), \
        new Date(0) instanceof Date, new Date().constructor === Date, Date.UTC(1970, 0, 2), typeof Date.prototype.getDay]";
    let first = expression(source).await;
    assert_eq!(expression(source).await, first);
    let Outcome::Value(Value::Array(values)) = first else {
        panic!("{first:?}");
    };
    assert_ne!(values[0], values[1]);
    assert_eq!(values[3], Value::Text("2025-01-15T12:00:00.000Z".into()));
    assert_eq!(
        values[5..8],
        [
            Value::Bool(true),
            Value::Bool(true),
            Value::Number(86_400_000.0)
        ]
    );
}

#[tokio::test]
async fn subjects_start_from_nothing_too() {
    let program = Program::Tests {
        setup: "globalThis.seen = globalThis.seen ?? 0;".into(),
        solution: "seen++; add.calls = (add.calls ?? 0) + 1; Object.prototype.left = 1;
            test('fresh', () => { expect([seen, add.calls]).toEqual([1, 1]); expect(add(1, 2)).toBe(3) })"
            .into(),
        cases: vec![
            "function add(a, b) { return a + b }".into(),
            "function add(a, b) { return a - b }".into(),
            "function add(a, b) { return a + b }".into(),
        ],
    };
    let errors: Vec<Option<String>> = run(program, limits())
        .await
        .into_iter()
        .map(|outcome| match outcome {
            Outcome::Tests(tests) => tests[0].error.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let wrong = Some("expected 3, received -1".to_owned());
    assert_eq!(errors, [None, wrong, None]);
}
