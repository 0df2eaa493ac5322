//! JavaScript: values of expressions, and the verdicts of a learner's tests.

use std::sync::Arc;

use sandbox::{Outcome, Program, TestOutcome};

use super::{Graders, not_computed, text, thrown, without_result};
use crate::comments::CommentStyle;
use crate::compare::same_value;
use crate::feedback::{CaseOutcome, Stuck, WrongCase};
use crate::grading::{Case, Expectation, Expected, ExpectedResult, Subject};
use crate::{Exercise, Solution, render};

impl Graders {
    pub(super) async fn expressions(
        &self,
        exercise: &Exercise,
        setup: &str,
        cases: &[Case<Expectation>],
        solution: &Solution,
    ) -> Result<Vec<CaseOutcome>, Stuck> {
        // Computed once for an exercise. A failure is not stored: the next solution tries again.
        let expected = &exercise.grading.expected;
        let expected = expected
            .get_or_try_init(|| self.values(setup, cases))
            .await?;
        let Expected::Values(values) = &**expected else {
            return Err(Stuck("The exercise is graded in another way".to_owned()));
        };
        let program = Program::Expressions {
            setup: setup.to_owned(),
            solution: text(solution),
            cases: cases.iter().map(|case| case.check.input.clone()).collect(),
        };
        let outcomes = self.run(program, cases.len()).await?;
        let found = cases.iter().zip(values).zip(&outcomes);
        let found = found
            .map(|((case, value), outcome)| judge(&case.check, value.as_ref(), outcome, solution));
        Ok(found.collect())
    }

    /// The values that cases expect, computed in a process without a learner's solution.
    async fn values(
        &self,
        setup: &str,
        cases: &[Case<Expectation>],
    ) -> Result<Arc<Expected>, Stuck> {
        // A case that expects an error gets an expression too, so that positions match. The
        // parentheses make `{a: 1}` an object and no block; the line break ends a comment.
        let expressions = cases.iter().map(|case| match &case.check.result {
            ExpectedResult::Value(expression) => format!("({expression}\n)"),
            ExpectedResult::Thrown { .. } => "undefined".to_owned(),
        });
        let program = Program::Expressions {
            setup: setup.to_owned(),
            // A learner's code in the same process could read what is expected.
            solution: String::new(),
            cases: expressions.collect(),
        };
        let outcomes = self.run(program, cases.len()).await?;
        let values =
            cases
                .iter()
                .zip(outcomes)
                .map(|(case, outcome)| match (&case.check.result, outcome) {
                    (ExpectedResult::Thrown { .. }, _) => Ok(None),
                    (ExpectedResult::Value(_), Outcome::Value(value)) => Ok(Some(value)),
                    (ExpectedResult::Value(_), _) => Err(not_computed(&case.info)),
                });
        let values: Result<Vec<_>, Stuck> = values.collect();
        Ok(Arc::new(Expected::Values(values?)))
    }

    pub(super) async fn tests(
        &self,
        setup: &str,
        cases: &[Case<Subject>],
        solution: &Solution,
    ) -> Result<Vec<CaseOutcome>, Stuck> {
        let program = Program::Tests {
            setup: setup.to_owned(),
            solution: text(solution),
            // Without `is_right`: the learner's tests run there, and must find out themselves.
            cases: cases.iter().map(|case| case.check.source.clone()).collect(),
        };
        let outcomes = self.run(program, cases.len()).await?;
        let found = cases.iter().zip(&outcomes);
        let found = found.map(|(case, outcome)| match outcome {
            Outcome::Tests(tests) => verdict(case.check.is_right, tests),
            other => without_result(other, solution),
        });
        Ok(found.collect())
    }
}

fn judge(
    wanted: &Expectation,
    value: Option<&sandbox::Value>,
    outcome: &Outcome,
    solution: &Solution,
) -> CaseOutcome {
    match (&wanted.result, value, outcome) {
        (ExpectedResult::Value(_), Some(expected), Outcome::Value(actual)) => {
            if same_value(expected, actual) {
                return CaseOutcome::Right;
            }
            let (expected, actual) = (render::value(expected), render::value(actual));
            let alike = "They look alike here; they differ further inside";
            let error = (expected == actual).then(|| alike.to_owned());
            CaseOutcome::Wrong(WrongCase {
                error,
                ..WrongCase::other(expected, actual)
            })
        }
        (
            ExpectedResult::Thrown { name, message },
            _,
            Outcome::Thrown {
                name: n,
                message: m,
                line,
            },
        ) => {
            let is_like = message.as_ref().is_none_or(|message| message.is_match(m));
            if n == name && is_like {
                return CaseOutcome::Right;
            }
            let expected = match message {
                Some(message) if n == name => {
                    format!("{name} with a message like {}", message.as_str())
                }
                _ => format!("throws {name}"),
            };
            CaseOutcome::Wrong(WrongCase {
                expected: Some(expected),
                ..WrongCase::error(thrown(n, m, *line, solution), "It ended with another error")
            })
        }
        (ExpectedResult::Thrown { name, .. }, _, Outcome::Value(actual)) => {
            let expected = format!("throws {name}");
            CaseOutcome::Wrong(WrongCase::other(expected, render::value(actual)))
        }
        (_, _, outcome) => without_result(outcome, solution),
    }
}

/// A hint where a solution uses modules, as most code outside of exercises does.
pub(super) fn modules(name: &str, message: &str, solution: &Solution) -> Option<String> {
    const GIVES: &str = "the tests see what you wrote all the same";
    const TAKES: &str = "what the exercise gives you is there already";
    let (word, instead) = match (name, message) {
        ("ReferenceError", "require is not defined") => ("require", TAKES),
        ("ReferenceError", "module is not defined") => ("module.exports", GIVES),
        ("ReferenceError", "exports is not defined") => ("exports", GIVES),
        ("SyntaxError", _) => {
            let text = CommentStyle::JavaScript.strip(&text(solution));
            let begins = |word: &str| {
                let mut lines = text.lines().map(str::trim_start);
                lines.any(|line| {
                    let rest = line.strip_prefix(word);
                    rest.is_some_and(|rest| rest.starts_with([' ', '{', '*', '"', '\'']))
                })
            };
            if begins("import") {
                ("import", TAKES)
            } else if begins("export") {
                ("export", GIVES)
            } else {
                return None;
            }
        }
        _ => return None,
    };
    Some(format!(
        "No modules are needed here: leave out `{word}`, {instead}"
    ))
}

/// Compares the results of a learner's tests on a subject with what they should be.
fn verdict(is_right: bool, tests: &[TestOutcome]) -> CaseOutcome {
    let failed: Vec<&TestOutcome> = tests.iter().filter(|test| test.error.is_some()).collect();
    // Without a test nothing fails, which must not pass for a right subject.
    if tests.is_empty() {
        let plain = "There is no test: write one with test(name, function)";
        return CaseOutcome::Wrong(WrongCase::error(plain, plain));
    }
    let number = |count: usize| render::counted(count, "test");
    match (is_right, failed.first()) {
        (true, None) | (false, Some(_)) => CaseOutcome::Right,
        (true, Some(first)) => {
            let error = first.error.as_deref().unwrap_or_default();
            let actual = format!(
                "{} of {} failed (\"{}\": {})",
                failed.len(),
                number(tests.len()),
                model::shown(&first.name, 100),
                model::shown(error, 300),
            );
            CaseOutcome::Wrong(WrongCase {
                plain: Some("A test failed, though the code is right"),
                clause: Some(format!("{actual}, though the code is right")),
                ..WrongCase::other("every test passes", actual)
            })
        }
        (false, None) => CaseOutcome::Wrong(WrongCase {
            plain: Some("Every test passed, though the code is wrong"),
            clause: Some("every test passes, though the code is wrong".to_owned()),
            ..WrongCase::other(
                "at least one test fails",
                format!("{} passed, and none noticed", number(tests.len())),
            )
        }),
    }
}
