//! Any other language: a worker runs the solution and returns the results.

use std::fmt;
use std::time::Duration;

use handler::Work;
use serde_json::{Map, Value, json};

use super::Graders;
use crate::compare::same_json;
use crate::feedback::{CaseOutcome, Stuck, WrongCase};
use crate::grading::{Case, Comparison, Grader};
use crate::{Solution, render};

/// How long a worker may take.
const WORKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs solutions in languages that the server does not know itself.
pub trait Worker: Send + Sync + fmt::Debug {
    /// Lets a method of a skill run a solution. The request has `language`, `files` (text by
    /// path) and `inputs`, one for each case; the answer has `cases`, and each of these a
    /// `value` or an `error`. What is expected is not in the request: values are compared
    /// here.
    ///
    /// # Errors
    /// No worker serves the skill, or it failed.
    fn grade<'a>(
        &'a self,
        skill: &'a str,
        method: &'a str,
        request: Map<String, Value>,
        deadline: Duration,
    ) -> Work<'a, Result<Value, String>>;
}

impl Graders {
    pub(super) async fn work(
        &self,
        language: &str,
        grader: &Grader,
        cases: &[Case<Comparison>],
        solution: &Solution,
    ) -> Result<Vec<CaseOutcome>, Stuck> {
        let missing = || Stuck(format!("No worker that grades {language} is attached"));
        let worker = self.worker.as_deref().ok_or_else(missing)?;
        let inputs: Vec<&Value> = cases.iter().map(|case| &case.check.input).collect();
        let request = Map::from_iter([
            ("language".to_owned(), json!(language)),
            ("files".to_owned(), json!(solution.files)),
            ("inputs".to_owned(), json!(inputs)),
        ]);
        let work = worker.grade(&grader.skill, &grader.method, request, WORKER_TIMEOUT);
        let answer = match tokio::time::timeout(WORKER_TIMEOUT, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                // Without its message, which may repeat what it was given: a solution, and inputs
                // of hidden cases.
                tracing::warn!(skill = grader.skill, "a worker could not grade");
                return Err(missing());
            }
            Err(_) => {
                return Err(Stuck(format!(
                    "The worker that grades {language} took too long"
                )));
            }
        };
        let answers = answer.get("cases").and_then(Value::as_array);
        let answers = answers.filter(|answers| answers.len() == cases.len());
        let Some(answers) = answers else {
            tracing::warn!(
                skill = grader.skill,
                "a worker did not answer for every case"
            );
            return Err(Stuck(format!(
                "The worker that grades {language} gave no answer"
            )));
        };
        let found = cases.iter().zip(answers);
        Ok(found
            .map(|(case, answer)| judge(&case.check, answer))
            .collect())
    }
}

fn judge(wanted: &Comparison, answer: &Value) -> CaseOutcome {
    match (answer.get("value"), answer.get("error")) {
        (_, Some(error)) if !error.is_null() => {
            let error = error
                .as_str()
                .map_or_else(|| error.to_string(), str::to_owned);
            let error = model::shown_lines(&error, 500);
            CaseOutcome::Wrong(WrongCase::error(error, "It ended with an error"))
        }
        (Some(value), _) if same_json(&wanted.expected, value) => CaseOutcome::Right,
        (value, _) => {
            let actual = value.map_or_else(|| "nothing".to_owned(), render::json);
            CaseOutcome::Wrong(WrongCase::other(render::json(&wanted.expected), actual))
        }
    }
}
