//! Programs that write.

use crate::common::{expression, script, text};
use repertoire_sandbox::{Outcome, Value};

async fn written(solution: &str, input: &str) -> String {
    match script(solution, input).await {
        Outcome::Output(written) => written,
        other => panic!("no output: {other:?}"),
    }
}

#[tokio::test]
async fn a_script_writes_what_a_terminal_would_show() {
    let script = "
        console.log('plain', 1, -0, 2n, true, null, undefined);
        console.log();
        console.log([1, 'a', [2, [3, [4]]]], {a: 1, 'b-c': {d: new Map([['k', new Set([1])]])}});
        console.log([1, 2, 3, 4, 5, 6, 7]);
        console.log('%s is %d years, %i, %f, %o, 100%', 'Ada', '36', 1.9, 2.5, {a: 1}, 'more');
        console.log('50%', 'of', '%s');
        console.log('%%s');
        console.log(new Error('wrong').message, () => 1, class A {}, Symbol('s'), new Date(0));
        console.error('not here');
        console.info(`it's \"here\"`, [`it's`]);";
    let expected = "plain 1 -0 2n true null undefined\n\n\
        [ 1, 'a', [ 2, [ 3, [Array] ] ] ] { a: 1, 'b-c': { d: Map(1) { 'k' => [Set] } } }\n\
        [\n  1, 2, 3, 4,\n  5, 6, 7\n]\n\
        Ada is 36 years, 1, 2.5, { a: 1 }, 100% more\n\
        50% of %s\n\
        %%s\n\
        wrong [Function (anonymous)] [Function: A] Symbol(s) 1970-01-01T00:00:00.000Z\n\
        it's \"here\" [ \"it's\" ]\n";
    assert_eq!(written(script, "").await, expected);
}

#[tokio::test]
async fn it_reads_its_input_and_runs_to_its_end() {
    let script = "
        const sum = input.trim().split('\\n').map(Number).reduce((a, b) => a + b, 0);
        setTimeout(() => console.log('later', sum), 1000);
        setTimeout(() => console.log('sooner'), 10);
        Promise.resolve().then(() => console.log('job'));
        queueMicrotask(() => console.log('task'));
        console.log('first');";
    let expected = "first\njob\ntask\nsooner\nlater 6\n";
    assert_eq!(written(script, "1\n2\n3\n").await, expected);
}

#[tokio::test]
async fn a_script_that_breaks_has_thrown_wherever_it_does() {
    for (source, said) in [
        ("null.x", "cannot read property 'x' of null"),
        ("setTimeout(() => { throw new Error('late') }, 5)", "late"),
        (
            "(async () => { await null; throw new Error('lost') })()",
            "lost",
        ),
        ("Promise.reject(new Error('alone'))", "alone"),
        ("const f = ;", "unexpected token in expression: ';'"),
    ] {
        let outcome = script(&format!("console.log(1);\n{source}"), "").await;
        let Outcome::Thrown { message, .. } = outcome else {
            panic!("{source}: {outcome:?}");
        };
        assert_eq!(message, said, "{source}");
    }
    let caught = "const p = Promise.reject(new Error('x')); setTimeout(() => p.catch(e => console.log(e.message)), 5)";
    assert_eq!(written(caught, "").await, "x\n");
}

#[tokio::test]
async fn structured_clone_copies_data_and_no_functions() {
    let source = "(() => { const a = {d: new Date(5), m: new Map([[1, [2]]]), r: /x/g}; a.self = a; \
        const b = structuredClone(a); \
        return [b !== a, b.self === b, b.d.getTime(), b.m.get(1)[0], b.m !== a.m, String(b.r)].join() })()";
    assert_eq!(expression(source).await, text("true,true,5,2,true,/x/g"));
    let outcome = expression("structuredClone(() => 1)").await;
    assert!(matches!(outcome, Outcome::Thrown { .. }), "{outcome:?}");
}

#[tokio::test]
async fn what_waits_and_what_does_not_are_both_values() {
    // A stranger's `then` is asked only where an expression waits.
    let outcome = crate::common::expressions(
        "Object.prototype.then = function (done) { done('patched') }",
        &["[1]", "{a: 2}"],
    )
    .await;
    let expected = [
        Value::Array(vec![Value::Number(1.0)]),
        Value::Object(vec![("a".into(), Value::Number(2.0))]),
    ];
    assert_eq!(outcome, expected.map(Outcome::Value));
}
