//! Output that a program prints, or that is handed in as a text.

use std::collections::BTreeSet;

use sandbox::{Outcome, Program};
use serde_json::Value;

use super::{Graders, text, without_result};
use crate::compare::{Comparator, same_json, same_output};
use crate::feedback::{CaseOutcome, Stuck, WrongCase};
use crate::grading::{Case, Output, OutputSource, Part, below};
use crate::{Solution, render};

impl Graders {
    pub(super) async fn output(
        &self,
        source: OutputSource,
        comparator: Comparator,
        cases: &[Case<Output>],
        solution: &Solution,
    ) -> Result<Vec<CaseOutcome>, Stuck> {
        let outcomes = match source {
            OutputSource::Text => {
                let text = text(solution);
                cases
                    .iter()
                    .map(|_| Outcome::Output(text.clone()))
                    .collect()
            }
            OutputSource::JavaScript => {
                let program = Program::Script {
                    setup: String::new(),
                    solution: text(solution),
                    cases: cases.iter().map(|case| case.check.input.clone()).collect(),
                };
                self.run(program, cases.len()).await?
            }
        };
        let found = cases.iter().zip(&outcomes);
        let found = found.map(|(case, outcome)| match outcome {
            Outcome::Output(actual) => match &case.check.part {
                Some(part) => judge_part(part, &case.check.expected, actual),
                None => judge(comparator, &case.check.expected, actual),
            },
            other => without_result(other, solution),
        });
        Ok(found.collect())
    }
}

/// Judges a part of what was printed as JSON.
fn judge_part(part: &Part, expected: &str, actual: &str) -> CaseOutcome {
    // It was JSON when the exercise was read, else it would have no parts.
    let expected = serde_json::from_str::<Value>(expected).unwrap_or_default();
    let actual = match serde_json::from_str::<Value>(actual) {
        Ok(actual) => actual,
        Err(error) => {
            return CaseOutcome::Wrong(WrongCase::error(
                format!("It is no JSON: {error}"),
                "It is no JSON",
            ));
        }
    };
    let (expected, actual, plain) = match part {
        Part::At(at) => {
            let (expected, actual) = (expected.pointer(at), actual.pointer(at));
            match (expected, actual) {
                (_, None) => (expected, None, "It is not there"),
                (expected, Some(actual)) if same_json(expected.unwrap_or(&Value::Null), actual) => {
                    return CaseOutcome::Right;
                }
                _ => (expected, actual, "It is something else"),
            }
        }
        // A key that is missing is the mistake of the part that asks for its value.
        Part::Keys if keys(&actual).is_subset(&keys(&expected)) => return CaseOutcome::Right,
        Part::Keys => (None, None, "There is more in it than was asked for"),
    };
    CaseOutcome::Wrong(WrongCase {
        expected: expected.map(render::json),
        actual: actual.map(render::json),
        is_of_case: true,
        ..WrongCase::error(plain, plain)
    })
}

/// The JSON pointers of all values of an object, also of those in objects inside of it.
fn keys(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        for (key, value) in value.as_object().into_iter().flatten() {
            let at = below(&at, key);
            open.push((at.clone(), value));
            found.insert(at);
        }
    }
    found
}

fn judge(comparator: Comparator, expected: &str, actual: &str) -> CaseOutcome {
    if same_output(comparator, expected, actual) {
        return CaseOutcome::Right;
    }
    let plain = if actual.trim().is_empty() {
        "Nothing was printed"
    } else if comparator != Comparator::Whitespace
        && same_output(Comparator::Whitespace, expected, actual)
    {
        "The words are right; spaces or the ends of lines are not"
    } else {
        "Something else was printed"
    };
    let error = render::difference(expected, actual).unwrap_or_else(|| plain.to_owned());
    CaseOutcome::Wrong(WrongCase {
        error: Some(error),
        plain: Some(plain),
        ..WrongCase::other(render::output(expected), render::output(actual))
    })
}
