//! Grades solutions.
//!
//! What runs a solution says what came out; whether that is right is found out here. A
//! thrown error or a wrong value is a failure; what could not be run is an error, which
//! costs the learner nothing.

mod config;
mod grading_queues;
mod javascript;
mod output;
mod pattern;
mod question;
mod ranking;
mod skill;
mod sql;
mod worker;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use self::grading_queues::GradingQueues;
use crate::feedback::{self, CaseOutcome, Halt, Stuck, WrongCase};
use crate::grading::Validation;
use crate::{Exercise, Graded, Solution, limits, render};
use executor::{Executor, Kind, Stop};
use model::Problem;
use sandbox::{Job, Limits, Outcome, Program, Sandbox, Stopped};
use serde_json::Value;

pub use grading_queues::{Busy, Turn};
pub use worker::Worker;

/// Reads configs of the server, for exercises that are about them.
pub trait Documents: Send + Sync + fmt::Debug {
    /// What a config says, as it is written, and what is wrong with it.
    fn read(&self, text: &str) -> (Value, Vec<Problem>);
}

/// All that grades. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Graders {
    /// Runs JavaScript and SQL.
    pub sandbox: Sandbox,
    /// Grades other languages; none: such exercises end with an error.
    pub worker: Option<Arc<dyn Worker>>,
    /// Reads configs; none: such exercises end with an error.
    pub documents: Option<Arc<dyn Documents>>,
    /// Where solutions are judged that nothing is run for.
    pub executor: Executor,
    /// Who is graded now, and who waits.
    turns: GradingQueues,
}

impl Graders {
    /// Graders that know the sandbox and nothing else.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            sandbox,
            worker: None,
            documents: None,
            executor: Executor::new(processors),
            turns: GradingQueues::new(processors),
        }
    }

    /// What a solution is worth, where it is no learner's. The same solution gives the
    /// same.
    pub async fn grade(&self, exercise: &Arc<Exercise>, solution: &Solution) -> Graded {
        let _processor = self.turns.any().await;
        self.graded(exercise, solution).await
    }

    /// A learner's turn, for one solution of an exercise.
    ///
    /// # Errors
    /// Too much waits, of the learner or of all.
    pub async fn turn(&self, learner: &str, exercise: &Exercise) -> Result<Turn, Busy> {
        // Nothing is computed here for the others.
        let is_computed = !matches!(
            exercise.grading.validation,
            Validation::Manual { .. } | Validation::Worker { .. }
        );
        self.turns.of(learner, is_computed).await
    }

    /// What a learner's solution is worth.
    pub async fn grade_in(
        &self,
        // Not used, but shown: who grades has a turn, and keeps it until the end.
        _turn: &Turn,
        exercise: &Arc<Exercise>,
        solution: &Solution,
    ) -> Graded {
        self.graded(exercise, solution).await
    }

    async fn graded(&self, exercise: &Arc<Exercise>, solution: &Solution) -> Graded {
        let solution = &with_plain_ends(exercise, solution);
        // Before anything runs: what cannot be a solution costs no process.
        if let Some(refused) = refused(exercise, solution) {
            return refused;
        }
        let graded = match &exercise.grading.validation {
            Validation::Manual { .. } => Ok(feedback::pending(exercise, solution)),
            Validation::Expressions { setup, cases } => {
                let found = self.expressions(exercise, setup, cases, solution).await;
                found.map(|found| feedback::of(exercise, solution, cases, &found))
            }
            Validation::Tests { setup, cases } => {
                let found = self.tests(setup, cases, solution).await;
                found.map(|found| feedback::of(exercise, solution, cases, &found))
            }
            Validation::Sql { cases, .. } => {
                let found = self.sql(exercise, solution).await;
                found.map(|found| feedback::of(exercise, solution, cases, &found))
            }
            Validation::Output {
                source,
                comparator,
                cases,
            } => {
                let found = self.output(*source, *comparator, cases, solution).await;
                found.map(|found| feedback::of(exercise, solution, cases, &found))
            }
            Validation::Pattern { .. } | Validation::Skill { .. } | Validation::Config { .. } => {
                self.read(exercise, solution).await
            }
            Validation::Worker {
                language,
                grader,
                cases,
            } => {
                let found = self.work(language, grader, cases, solution).await;
                found.map(|found| feedback::of(exercise, solution, cases, &found))
            }
        };
        graded.unwrap_or_else(|stuck| feedback::stuck(&stuck))
    }

    /// Judges a solution by reading it, off the async threads.
    async fn read(&self, exercise: &Arc<Exercise>, solution: &Solution) -> Result<Graded, Stuck> {
        let (exercise, solution) = (Arc::clone(exercise), solution.clone());
        let documents = self.documents.clone();
        let work = move |stop: &Stop| judge(&exercise, &solution, documents.as_deref(), stop);
        let judged = self.executor.run(Kind::Grade, work).await;
        judged.unwrap_or_else(|error| {
            tracing::warn!(%error, "a solution could not be read");
            Err(Stuck("The server has too much to do".to_owned()))
        })
    }

    /// Runs a program for its cases; one outcome for each.
    async fn run(&self, program: Program, cases: usize) -> Result<Vec<Outcome>, Stuck> {
        let job = Job {
            program,
            limits: Limits::default(),
        };
        match self.sandbox.run(&job).await {
            Ok(outcomes) if outcomes.len() == cases => Ok(outcomes),
            Ok(_) => Err(Stuck("The sandbox did not run every test".to_owned())),
            Err(error) => {
                tracing::warn!(%error, "the sandbox could not run a solution");
                Err(Stuck("The sandbox cannot run now".to_owned()))
            }
        }
    }
}

/// What a solution is worth that nothing is run for.
fn judge(
    exercise: &Exercise,
    solution: &Solution,
    documents: Option<&dyn Documents>,
    stop: &Stop,
) -> Result<Graded, Stuck> {
    match &exercise.grading.validation {
        Validation::Pattern { comments, cases } => {
            let found = pattern::grade(*comments, cases, solution);
            Ok(feedback::of(exercise, solution, cases, &found))
        }
        Validation::Skill { fixtures, cases } => {
            let found = skill::grade(fixtures, cases, solution, stop)?;
            Ok(feedback::of(exercise, solution, cases, &found))
        }
        Validation::Config { cases } => {
            let found = config::grade(documents, cases, solution)?;
            Ok(feedback::of(exercise, solution, cases, &found))
        }
        _ => Err(Stuck("The exercise is run and not read".to_owned())),
    }
}

/// A solution whose lines end as those of exercises do, whatever the editor writes. A
/// worker gets what was handed in.
fn with_plain_ends<'a>(exercise: &Exercise, solution: &'a Solution) -> Cow<'a, Solution> {
    let is_plain = |text: &String| !text.contains("\r\n");
    let is_worker = matches!(exercise.grading.validation, Validation::Worker { .. });
    if is_worker || solution.files.values().all(is_plain) {
        return Cow::Borrowed(solution);
    }
    let files = solution.files.iter();
    let files = files.map(|(path, text)| (path.clone(), text.replace("\r\n", "\n")));
    Cow::Owned(Solution {
        files: files.collect(),
    })
}

/// What is no solution of the exercise, whatever it says.
fn refused(exercise: &Exercise, solution: &Solution) -> Option<Graded> {
    let is_empty = solution.files.values().all(|text| text.trim().is_empty());
    if is_empty {
        return Some(feedback::refused("The solution is empty."));
    }
    let bytes = solution.bytes();
    if solution.files.len() > limits::MAX_FILES || bytes > limits::SOLUTION_BYTES {
        return Some(feedback::refused(format!(
            "The solution has {} and {bytes} bytes; at most {} files and {} bytes are taken.",
            render::counted(solution.files.len(), "file"),
            limits::MAX_FILES,
            limits::SOLUTION_BYTES,
        )));
    }
    let takes_a_folder = match exercise.grading.validation {
        Validation::Skill { .. }
        | Validation::Pattern { .. }
        | Validation::Manual { .. }
        | Validation::Worker { .. } => true,
        _ => exercise.file_name.is_none(),
    };
    if !takes_a_folder && solution.files.len() > 1 {
        let files = solution.files.len();
        return Some(feedback::refused(format!(
            "The exercise takes one text, and {files} files were handed in."
        )));
    }
    None
}

/// The text of a solution that is one; of several files all, which were looked at before.
fn text(solution: &Solution) -> String {
    let texts: Vec<&str> = solution.files.values().map(String::as_str).collect();
    texts.join("\n")
}

/// What came out where it is neither a value nor rows nor text.
fn without_result(outcome: &Outcome, solution: &Solution) -> CaseOutcome {
    match outcome {
        Outcome::Thrown {
            name,
            message,
            line,
        } => {
            let error = thrown(name, message, *line, solution);
            CaseOutcome::Wrong(WrongCase::error(error, "It ended with an error"))
        }
        Outcome::Stopped(stopped) => halted(*stopped),
        Outcome::Value(_) | Outcome::Output(_) | Outcome::Tests(_) | Outcome::Rows { .. } => {
            let plain = "Something else came than what was asked for";
            CaseOutcome::Wrong(WrongCase::error(plain, plain))
        }
    }
}

/// What was thrown, or what a colleague would say of it.
fn thrown(name: &str, message: &str, line: Option<u32>, solution: &Solution) -> String {
    let modules = javascript::modules(name, message, solution);
    modules.unwrap_or_else(|| render::thrown(name, message, line))
}

fn halted(stopped: Stopped) -> CaseOutcome {
    let plain = match stopped {
        Stopped::Time => return CaseOutcome::Stopped(Halt::Time),
        Stopped::Memory => return CaseOutcome::Stopped(Halt::Memory),
        Stopped::Forbidden => return CaseOutcome::Stopped(Halt::Forbidden),
        Stopped::Stack => "It called itself too deep: something must end the recursion",
        Stopped::Output => "It gave back more than can be looked at",
        Stopped::Unsettled => "It waits for a promise that nothing settles",
    };
    CaseOutcome::Wrong(WrongCase::error(plain, plain))
}
