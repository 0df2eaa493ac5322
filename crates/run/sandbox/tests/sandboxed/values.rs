//! Every kind of value, as it comes out.

use crate::common::{expression, expressions, number, text};
use repertoire_sandbox::{Outcome, Value};

fn value(value: Value) -> Outcome {
    Outcome::Value(value)
}

fn numbers(numbers: &[f64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Number).collect()
}

#[tokio::test]
async fn every_kind_of_value_comes_out_as_what_it_is() {
    let found = |source: &'static str| async move { expression(source).await };
    let cases: Vec<(&str, Value)> = vec![
        ("undefined", Value::Undefined),
        ("null", Value::Null),
        ("1 < 2", Value::Bool(true)),
        ("1 + 2", Value::Number(3.0)),
        ("0.1 + 0.2", Value::Number(0.1 + 0.2)),
        ("0 / 0", Value::NotFinite("NaN".into())),
        ("1 / 0", Value::NotFinite("Infinity".into())),
        ("-1 / 0", Value::NotFinite("-Infinity".into())),
        ("2n ** 70n", Value::BigInt("1180591620717411303424".into())),
        ("'gr\\u00fcn'", Value::Text("grün".into())),
        ("[1, 2]", Value::Array(numbers(&[1.0, 2.0]))),
        (
            "[1,,3]",
            Value::Array(vec![
                Value::Number(1.0),
                Value::Undefined,
                Value::Number(3.0),
            ]),
        ),
        (
            "{b: 1, a: undefined}",
            Value::Object(vec![
                ("b".into(), Value::Number(1.0)),
                ("a".into(), Value::Undefined),
            ]),
        ),
        (
            "new Map([['a', 1]])",
            Value::Map(vec![(Value::Text("a".into()), Value::Number(1.0))]),
        ),
        ("new Set([3, 3, 4])", Value::Set(numbers(&[3.0, 4.0]))),
        ("new Date(5)", Value::Date(Some(5.0))),
        ("new Date(NaN)", Value::Date(None)),
        (
            "new RangeError('far')",
            Value::Error("RangeError".into(), "far".into()),
        ),
        ("function f() {}", Value::Function("f".into())),
        ("class A {}", Value::Function("A".into())),
        ("Symbol('s')", Value::Symbol("s".into())),
        (
            "(() => { const a = {}; a.a = a; return a })()",
            Value::Object(vec![("a".into(), Value::Cycle)]),
        ),
        (
            "(() => { const a = {}; return [a, a] })()",
            Value::Array(vec![Value::Object(vec![]), Value::Object(vec![])]),
        ),
        (
            "class P { constructor() { this.x = 1 } get y() { return 2 } }; new P()",
            Value::Object(vec![("x".into(), Value::Number(1.0))]),
        ),
        ("new Proxy([7], {})", Value::Array(numbers(&[7.0]))),
    ];
    for (source, expected) in cases {
        assert_eq!(found(source).await, value(expected), "{source}");
    }
    let Outcome::Value(Value::Number(zero)) = expression("-0").await else {
        panic!("no number");
    };
    assert!(zero == 0.0 && zero.is_sign_negative());
}

#[tokio::test]
async fn a_promise_is_what_it_settles_to() {
    assert_eq!(expression("Promise.resolve(4)").await, number(4.0));
    let waits = "new Promise(done => setTimeout(() => done('late'), 3600000))";
    assert_eq!(expression(waits).await, text("late"));
    assert_eq!(
        expression("await Promise.resolve(2) + 1").await,
        number(3.0)
    );
    let Outcome::Thrown { name, message, .. } =
        expression("Promise.reject(new TypeError('no'))").await
    else {
        panic!("it does not throw");
    };
    assert_eq!((name.as_str(), message.as_str()), ("TypeError", "no"));
}

#[tokio::test]
async fn cases_run_after_the_solution_and_know_nothing_of_each_other() {
    let solution = "let calls = 0;\nfunction add(a, b) { calls++; return a + b }";
    let found = expressions(
        solution,
        &[
            "add(1, 2)",
            "calls",
            "globalThis.left = 1; Object.prototype.left = 2; Array.prototype.push = null; 0",
            "typeof left + [].left + typeof [].push",
        ],
    )
    .await;
    let expected = [
        number(3.0),
        number(0.0),
        number(0.0),
        text("undefinedundefinedfunction"),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_error_has_its_name_its_message_and_its_line() {
    let solution = "function f(x) {\n  if (x > 1) {\n    throw new RangeError('too much');\n  }\n}";
    let found = expressions(solution, &["f(2)"]).await;
    let expected = Outcome::Thrown {
        name: "RangeError".into(),
        message: "too much".into(),
        line: Some(3),
    };
    assert_eq!(found, [expected]);
    let Outcome::Thrown { name, line, .. } =
        expressions("let a = 1;\nlet b = ;", &["a"]).await.remove(0)
    else {
        panic!("it reads");
    };
    assert_eq!((name.as_str(), line), ("SyntaxError", Some(2)));
}

#[tokio::test]
async fn a_value_may_be_as_deep_as_it_can_be_read_again() {
    for (source, is_whole) in [
        ("let a = 0; for (let i = 0; i < 32; i++) a = [a]; a", true),
        ("let a = 0; for (let i = 0; i < 33; i++) a = [a]; a", false),
        ("let a = 0; for (let i = 0; i < 32; i++) a = {a}; a", true),
        (
            "let a = 0; for (let i = 0; i < 32; i++) a = new Map([[a, a]]); a",
            false,
        ),
        (
            "let a = 0; for (let i = 0; i < 32; i++) a = new Map([[1, a]]); a",
            true,
        ),
        (
            "let a = 0; for (let i = 0; i < 32; i++) a = new Map([[a, 1]]); a",
            true,
        ),
        (
            "let a = 0; for (let i = 0; i < 32; i++) a = new Set([a]); a",
            true,
        ),
    ] {
        let found = expression(source).await;
        assert_eq!(
            matches!(found, Outcome::Value(_)),
            is_whole,
            "{source}: {found:?}"
        );
    }
}
