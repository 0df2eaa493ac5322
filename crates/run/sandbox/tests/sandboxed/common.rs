//! What the tests of this crate share.

use std::time::Duration;

use repertoire_sandbox::{Job, Limits, Outcome, Program, Sandbox, SqlCase, Value};

/// The sandbox, by the child of this crate.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_sandbox-child").into(), Vec::new()).require(true)
}

/// Limits under which only processor time counts: however little of a processor a busy
/// machine gives the child, no test that is right ends by the clock.
pub(crate) fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(10),
        wall_time: Duration::from_secs(240),
        ..Limits::default()
    }
}

/// Runs a job that a sandbox can run.
pub(crate) async fn run(program: Program, limits: Limits) -> Vec<Outcome> {
    let job = Job { program, limits };
    sandbox().run(&job).await.expect("a sandbox that works")
}

/// What expressions give after a solution.
pub(crate) async fn expressions(solution: &str, cases: &[&str]) -> Vec<Outcome> {
    expressions_within(limits(), solution, cases).await
}

/// The same, within limits.
pub(crate) async fn expressions_within(
    limits: Limits,
    solution: &str,
    cases: &[&str],
) -> Vec<Outcome> {
    let program = Program::Expressions {
        setup: String::new(),
        solution: solution.to_owned(),
        cases: cases.iter().map(|case| (*case).to_owned()).collect(),
    };
    run(program, limits).await
}

/// What one expression gives, alone.
pub(crate) async fn expression(source: &str) -> Outcome {
    expressions("", &[source]).await.remove(0)
}

/// What a script writes.
pub(crate) async fn script(solution: &str, input: &str) -> Outcome {
    let program = Program::Script {
        setup: String::new(),
        solution: solution.to_owned(),
        cases: vec![input.to_owned()],
    };
    run(program, limits()).await.remove(0)
}

/// What a file of tests says of a subject.
pub(crate) async fn tests(subject: &str, solution: &str) -> Outcome {
    let program = Program::Tests {
        setup: String::new(),
        solution: solution.to_owned(),
        cases: vec![subject.to_owned()],
    };
    run(program, limits()).await.remove(0)
}

/// What SQL gives on a database.
pub(crate) async fn sql(data: &str, solution: &str) -> Outcome {
    let program = Program::Sql {
        solution: solution.to_owned(),
        may_write: false,
        cases: vec![SqlCase {
            data: data.to_owned(),
            query: None,
        }],
    };
    run(program, limits()).await.remove(0)
}

/// A number as an outcome.
pub(crate) fn number(number: f64) -> Outcome {
    Outcome::Value(Value::Number(number))
}

/// A text as an outcome.
pub(crate) fn text(text: &str) -> Outcome {
    Outcome::Value(Value::Text(text.to_owned()))
}
