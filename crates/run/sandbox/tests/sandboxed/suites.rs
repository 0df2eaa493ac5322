//! Tests that a learner wrote, run against subjects.

use crate::common::tests;
use repertoire_sandbox::{Outcome, Stopped};

/// Names and errors of the tests of a file.
async fn told(subject: &str, solution: &str) -> Vec<(String, String)> {
    match tests(subject, solution).await {
        Outcome::Tests(tests) => tests
            .into_iter()
            .map(|test| (test.name, test.error.unwrap_or_default()))
            .collect(),
        other => panic!("no tests: {other:?}"),
    }
}

/// The error of the only test, empty where it passes.
async fn error(subject: &str, body: &str) -> String {
    let solution = format!("test('it', async () => {{ {body} }})");
    told(subject, &solution).await.remove(0).1
}

#[tokio::test]
async fn tests_are_told_by_name_in_the_order_in_which_they_ran() {
    let solution = "
        const log = [];
        beforeAll(() => log.push('all'));
        beforeEach(async () => { await null; log.push('each') });
        describe('add', () => {
            beforeEach(() => log.push('inner'));
            afterEach(() => log.push('after'));
            it('adds', () => { expect(add(1, 2)).toBe(3) });
            describe('of two', () => {
                test('is wrong', () => { expect(add(1, 2)).toBe(4) });
            });
        });
        test('order', () => {
            expect(log).toEqual(['all', 'each', 'inner', 'after', 'each', 'inner', 'after', 'each']);
        });";
    let found = told("function add(a, b) { return a + b }", solution).await;
    let expected = [
        ("add › adds", ""),
        ("add › of two › is wrong", "expected 4, received 3"),
        ("order", ""),
    ];
    let expected: Vec<(String, String)> = expected
        .map(|(name, error)| (name.to_owned(), error.to_owned()))
        .into();
    assert_eq!(found, expected);
}

/// A value, a matcher that holds for it, and one that does not.
const MATCHERS: &[(&str, &str, &str)] = &[
    ("1", "toBe(1)", "toBe(2)"),
    ("-0", "toBe(-0)", "toBe(0)"),
    (
        "{a: [1, {b: 2}], c: undefined}",
        "toEqual({a: [1, {b: 2}]})",
        "toEqual({a: [1, {b: 3}]})",
    ),
    (
        "{a: 1}",
        "toStrictEqual({a: 1})",
        "toStrictEqual({a: 1, b: undefined})",
    ),
    (
        "new Map([[{a: 1}, 2]])",
        "toEqual(new Map([[{a: 1}, 2]]))",
        "toEqual(new Map([[{a: 2}, 2]]))",
    ),
    (
        "new Set([[1]])",
        "toEqual(new Set([[1]]))",
        "toEqual(new Set([[2]]))",
    ),
    (
        "new Date(5)",
        "toEqual(new Date(5))",
        "toEqual(new Date(6))",
    ),
    ("null", "toBeNull()", "toBeUndefined()"),
    ("undefined", "toBeUndefined()", "toBeDefined()"),
    ("0", "toBeDefined()", "toBeNull()"),
    ("'a'", "toBeTruthy()", "toBeFalsy()"),
    ("0", "toBeFalsy()", "toBeTruthy()"),
    ("NaN", "toBeNaN()", "toBe(0)"),
    ("[1, 2]", "toContain(2)", "toContain(3)"),
    ("'abc'", "toContain('bc')", "toContain('d')"),
    (
        "[{a: 1}]",
        "toContainEqual({a: 1})",
        "toContainEqual({a: 2})",
    ),
    ("'abc'", "toHaveLength(3)", "toHaveLength(2)"),
    (
        "{a: {b: [7]}}",
        "toHaveProperty('a.b[0]', 7)",
        "toHaveProperty('a.c')",
    ),
    ("'hello'", "toMatch(/^h/)", "toMatch('x')"),
    (
        "{a: 1, b: {c: 2, d: 3}}",
        "toMatchObject({b: {c: 2}})",
        "toMatchObject({b: {c: 3}})",
    ),
    (
        "() => { throw new TypeError('no way') }",
        "toThrow('way')",
        "toThrow(RangeError)",
    ),
    (
        "() => { throw new TypeError('no way') }",
        "toThrow(/no/)",
        "toThrow('yes')",
    ),
    (
        "() => { throw new TypeError('no way') }",
        "toThrow(TypeError)",
        "toThrow(new Error('other'))",
    ),
    ("3", "toBeGreaterThan(2)", "toBeGreaterThan(3)"),
    (
        "3",
        "toBeGreaterThanOrEqual(3)",
        "toBeGreaterThanOrEqual(4)",
    ),
    ("3", "toBeLessThan(4)", "toBeLessThan(3)"),
    ("3", "toBeLessThanOrEqual(3)", "toBeLessThanOrEqual(2)"),
    ("0.1 + 0.2", "toBeCloseTo(0.3, 5)", "toBeCloseTo(0.4)"),
    (
        "new RangeError('x')",
        "toBeInstanceOf(RangeError)",
        "toBeInstanceOf(TypeError)",
    ),
    (
        "{a: 5, b: 'x'}",
        "toEqual({a: expect.any(Number), b: expect.anything()})",
        "toEqual({a: expect.any(String), b: 'x'})",
    ),
    (
        "(() => { const f = jest.fn(); f(1, 'a'); f(2); return f })()",
        "toHaveBeenCalledWith(1, 'a')",
        "toHaveBeenCalledWith(3)",
    ),
    (
        "(() => { const f = jest.fn(); f(1); f(2); return f })()",
        "toHaveBeenLastCalledWith(2)",
        "toHaveBeenLastCalledWith(1)",
    ),
    (
        "(() => { const f = jest.fn(); f(1); f(2); return f })()",
        "toHaveBeenCalledTimes(2)",
        "toHaveBeenCalledTimes(1)",
    ),
    (
        "(() => { const f = jest.fn(); f(); return f })()",
        "toHaveBeenCalled()",
        "toHaveBeenCalledTimes(0)",
    ),
];

#[tokio::test]
async fn every_matcher_holds_and_fails() {
    let mut solution = Vec::new();
    for (value, holds, fails) in MATCHERS {
        for (matcher, passes) in [
            ((*holds).to_owned(), true),
            ((*fails).to_owned(), false),
            (format!("not.{holds}"), false),
            (format!("not.{fails}"), true),
        ] {
            let name = format!("{passes} expect({value}).{matcher}");
            solution.push(format!(
                "test({name:?}, () => {{ expect({value}).{matcher} }});\n"
            ));
        }
    }
    let found = told("", &solution.concat()).await;
    assert_eq!(found.len(), MATCHERS.len() * 4);
    for (name, error) in found {
        assert_eq!(
            name.starts_with("true"),
            error.is_empty(),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn errors_say_what_was_expected_and_what_was_received() {
    for (body, said) in [
        ("expect('4').toBe(4)", "expected 4, received '4'"),
        (
            "expect({a: 1}).toBe({a: 1})",
            "expected { a: 1 }, received { a: 1 }: equal, but not the same object (toEqual compares what is in it)",
        ),
        ("expect(3).not.toBe(3)", "expected 3 not to be 3"),
        ("expect([1]).toContain(2)", "expected [ 1 ] to contain 2"),
        (
            "expect(() => 1).toThrow(RangeError)",
            "expected it to throw a RangeError, but it threw nothing",
        ),
        (
            "const f = jest.fn(); f(1); expect(f).toHaveBeenCalledWith(2)",
            "expected the mock to have been called with (2), but it was called with (1)",
        ),
        ("null.x", "TypeError: cannot read property 'x' of null"),
        ("throw 'text'", "text"),
        ("await new Promise(() => {})", "its promise never settles"),
        (
            "const f = () => f() + 1; f()",
            "it calls itself without end",
        ),
        (
            "await expect(Promise.resolve(1)).rejects.toThrow()",
            "expected the promise to reject, but it resolved to 1",
        ),
        (
            "expect.assertions(2); expect(1).toBe(1)",
            "expected 2 assertions, but 1 were made",
        ),
        (
            "setTimeout(() => { throw new Error('late') }, 5); await new Promise(r => setTimeout(r, 9))",
            "Error: late",
        ),
    ] {
        assert_eq!(error("", body).await, said, "{body}");
    }
}

#[tokio::test]
async fn a_test_that_is_handed_done_waits_until_it_is_called() {
    for (body, said) in [
        ("done()", ""),
        ("setTimeout(() => { expect(1).toBe(1); done() }, 5)", ""),
        (
            "Promise.resolve(1).then((one) => { expect(one).toBe(1); done() })",
            "",
        ),
        (
            "setTimeout(() => { expect(1).toBe(2); done() }, 5)",
            "expected 2, received 1",
        ),
        (
            "Promise.resolve(1).then((one) => { try { expect(one).toBe(2); done() } catch (error) { done(error) } })",
            "expected 2, received 1",
        ),
        ("done(new Error('no'))", "Error: no"),
        ("done('no')", "no"),
        ("done.fail('no')", "no"),
        ("done.fail()", "done.fail() was called"),
        ("throw new Error('no')", "Error: no"),
        (
            "expect(1).toBe(1)",
            "it is handed `done`, which is never called",
        ),
    ] {
        for call in [
            format!("test('t', (done) => {{ {body} }})"),
            format!("beforeEach((done) => {{ {body} }}); test('t', () => {{}})"),
            format!("test('t', async (done) => {{ {body} }})"),
        ] {
            let Outcome::Tests(tests) = tests("", &call).await else {
                panic!("{call}");
            };
            let error = tests[0].error.clone().unwrap_or_default();
            assert_eq!(error, said, "{call}");
        }
    }
}

#[tokio::test]
async fn promises_timers_and_mocks_work_as_in_jest() {
    for body in [
        "await expect(Promise.resolve(4)).resolves.toBe(4)",
        "await expect(Promise.reject(new RangeError('far'))).rejects.toThrow('far')",
        "await expect(Promise.reject(new RangeError('far'))).rejects.toBeInstanceOf(RangeError)",
        "await expect(Promise.resolve(4)).resolves.not.toBe(5)",
        "const f = jest.fn(x => x + 1); expect(f(1)).toBe(2); expect(f.mock.calls).toEqual([[1]]); \
         expect(f.mock.results[0]).toEqual({type: 'return', value: 2})",
        "const f = jest.fn().mockReturnValue(1).mockReturnValueOnce(2); expect([f(), f()]).toEqual([2, 1])",
        "const f = jest.fn().mockResolvedValueOnce('a').mockRejectedValue(new Error('b')); \
         expect(await f()).toBe('a'); await expect(f()).rejects.toThrow('b')",
        "const f = jest.fn(() => 1); f(); f.mockClear(); expect(f).not.toHaveBeenCalled(); expect(f()).toBe(1); \
         f.mockReset(); expect(f()).toBeUndefined()",
        "const o = {a() { return this.b }, b: 3}; const s = jest.spyOn(o, 'a'); expect(o.a()).toBe(3); \
         s.mockReturnValue(4); expect(o.a()).toBe(4); s.mockRestore(); expect(o.a()).toBe(3); \
         expect(jest.isMockFunction(o.a)).toBe(false)",
        "jest.useFakeTimers(); const f = jest.fn(); setTimeout(f, 1000); jest.advanceTimersByTime(999); \
         expect(f).not.toHaveBeenCalled(); jest.advanceTimersByTime(1); expect(f).toHaveBeenCalledTimes(1); \
         jest.useRealTimers()",
        "jest.useFakeTimers(); const f = jest.fn(); const i = setInterval(f, 10); jest.advanceTimersByTime(35); \
         clearInterval(i); jest.runAllTimers(); expect(f).toHaveBeenCalledTimes(3); jest.useRealTimers()",
        "jest.useFakeTimers(); const then = Date.now(); jest.advanceTimersByTime(50); expect(Date.now() - then).toBe(50)",
        "const then = Date.now(); await new Promise(r => setTimeout(r, 86400000)); expect(Date.now() - then).toBe(86400000)",
    ] {
        assert_eq!(error("", body).await, "", "{body}");
    }
}

#[tokio::test]
async fn only_skip_and_each_choose_what_runs() {
    let names = |found: Vec<(String, String)>| -> Vec<String> {
        found.into_iter().map(|(name, _)| name).collect()
    };
    let only = "test('a', () => {}); describe('d', () => { test.only('b', () => {}); test('c', () => {}) });
        describe.only('e', () => { test('f', () => {}); test.skip('g', () => {}) })";
    assert_eq!(names(told("", only).await), ["d › b", "e › f"]);
    let each = "test.each([[1, 2], [3, 4]])('%d and %d', (a, b) => { expect(b - a).toBe(1) })";
    assert_eq!(names(told("", each).await), ["1 and 2", "3 and 4"]);
}

#[tokio::test]
async fn a_hook_that_fails_fails_what_it_prepares() {
    let solution =
        "describe('a', () => { beforeAll(() => { throw new Error('no') }); test('b', () => {});
        describe('c', () => { test('d', () => {}) }) }); test('e', () => {});
        describe('f', () => { afterEach(() => { throw 'after' }); test('g', () => {}) });
        describe('h', () => { afterAll(() => { throw 'all' }); test('i', () => {}) })";
    let found = told("", solution).await;
    let expected = [
        ("a › b", "Error: no"),
        ("a › c › d", "Error: no"),
        ("e", ""),
        ("f › g", "after"),
        ("h › i", ""),
        ("h › afterAll", "all"),
    ];
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_tests_are_written_with_cannot_be_replaced() {
    for change in [
        "expect = () => ({toBe() {}})",
        "globalThis.expect = () => ({toBe() {}})",
        "try { expect.any = 1; Object.defineProperty(globalThis, 'test', {value: 1}) } catch {}",
        "Promise.prototype.then = () => {}; Array.prototype.push = () => {}",
        "Object.prototype.error = undefined; Error.prototype.name = ''",
    ] {
        let solution = format!("{change}; test('x', async () => {{ expect(1).toBe(2) }})");
        let found = told("", &solution).await;
        assert_eq!(found.len(), 1, "{change}");
        assert_ne!(found[0].1, "", "{change}");
    }
    for change in [
        "function expect() {}",
        "const test = () => {}",
        "let jest = 1",
    ] {
        let outcome = tests("", change).await;
        assert!(
            matches!(outcome, Outcome::Thrown { .. }),
            "{change}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn tests_cannot_read_what_they_test() {
    let subject = "function secret() { return 'canary' } class Hidden { canary() {} }
        const arrow = () => 'canary';";
    for read in [
        "secret.toString()",
        "String(secret)",
        "`${Hidden}`",
        "arrow + ''",
        "Function.prototype.toString.call(secret)",
        "(() => {}).constructor.prototype.toString.call(arrow)",
        "(async () => {}).constructor.prototype.toString.call(secret)",
        "Object.getPrototypeOf(function* () {}).toString.call(secret)",
        "Reflect.apply(Function.prototype.toString, Hidden, [])",
        "(delete Function.prototype.toString, secret + '')",
        "new Error().stack",
        "(() => { try { secret.x.y } catch (e) { return e.stack + e.message } })()",
        "JSON.stringify(Reflect.ownKeys(globalThis))",
    ] {
        assert_eq!(
            error(subject, &format!("expect({read}).not.toMatch('canary')")).await,
            "",
            "{read}"
        );
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_or_never_ends_has_no_tests() {
    let Outcome::Thrown { name, line, .. } = tests("", "test('a', () => {})\ntest('b'").await
    else {
        panic!("it was read");
    };
    assert_eq!((name.as_str(), line), ("SyntaxError", Some(2)));
    let Outcome::Thrown { message, .. } = tests("", "const jestItself = require('jest')").await
    else {
        panic!("it ran");
    };
    assert_eq!(message, "require is not defined");
    let many = "for (let i = 0; i < 1e5; i++) test('a test with some name', () => {})";
    assert_eq!(tests("", many).await, Outcome::Stopped(Stopped::Output));
}
