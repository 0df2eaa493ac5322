//! Grades solutions.
//!
//! The process that runs a solution reports results; whether they are right is decided
//! here. A thrown error or a wrong value is a failure; what could not be run is an error,
//! which costs the learner nothing.

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
use crate::grading::{CaseInfo, Validation};
use crate::{Exercise, Graded, Solution, limits, render};
use executor::{Executor, Kind, Stop};
use model::Problem;
use sandbox::{Job, Limits, Outcome, Program, Sandbox, Stopped};
use serde_json::Value;

pub use grading_queues::{Busy, Turn};
pub use worker::Worker;

/// Reads configs of the server, for exercises that are about them.
pub trait Documents: Send + Sync + fmt::Debug {
    /// The value of a config, as it is written, and its problems.
    fn read(&self, text: &str) -> (Value, Vec<Problem>);
}

/// Grades solutions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Graders {
    /// Runs JavaScript and SQL.
    pub sandbox: Sandbox,
    /// Grades other languages; none: such exercises end with an error.
    pub worker: Option<Arc<dyn Worker>>,
    /// Reads configs; none: such exercises end with an error.
    pub documents: Option<Arc<dyn Documents>>,
    /// Judges solutions that are read and not run.
    pub executor: Executor,
    /// The solutions that are graded now, and those that wait.
    turns: GradingQueues,
}

impl Graders {
    /// Graders with a sandbox and nothing else.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        // A solution may keep a processor busy until its time is up, so no more run at once than
        // there are processors.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            sandbox,
            worker: None,
            documents: None,
            executor: Executor::new(processors),
            turns: GradingQueues::new(processors),
        }
    }

    /// Grades a solution that is no learner's. The same solution gets the same.
    pub async fn grade(&self, exercise: &Arc<Exercise>, solution: &Solution) -> Graded {
        let _processor = self.turns.any().await;
        self.graded(exercise, solution).await
    }

    /// Waits for the turn of a caller's learner, for one solution of an exercise. `caller` is the
    /// principal, or the address of one that did not sign in: not what a request says.
    ///
    /// # Errors
    /// Too many solutions wait, of the learner, of the caller or of all.
    pub async fn turn(
        &self,
        caller: &str,
        learner: &str,
        exercise: &Exercise,
    ) -> Result<Turn, Busy> {
        // A person or a worker grades the others, which takes no processor of the server.
        let is_computed = !matches!(
            exercise.grading.validation,
            Validation::Manual { .. } | Validation::Worker { .. }
        );
        self.turns.of(caller, learner, is_computed).await
    }

    /// Grades a learner's solution.
    pub async fn grade_in(
        &self,
        // Grading takes a turn, and holds it until the end.
        turn: &Turn,
        exercise: &Arc<Exercise>,
        solution: &Solution,
    ) -> Graded {
        let graded = self.graded(exercise, solution).await;
        if graded.ran_out {
            turn.strike();
        }
        graded
    }

    async fn graded(&self, exercise: &Arc<Exercise>, solution: &Solution) -> Graded {
        let solution = &with_plain_ends(exercise, solution);
        // Before anything runs: what cannot be a solution costs no process.
        if let Some(refused) = refused(exercise, solution) {
            return refused;
        }
        let found = match &exercise.grading.validation {
            Validation::Manual { .. } => return feedback::pending(exercise, solution),
            Validation::Pattern { .. } | Validation::Skill { .. } | Validation::Config { .. } => {
                return self.read(exercise, solution).await;
            }
            Validation::Expressions { setup, cases } => {
                self.expressions(exercise, setup, cases, solution).await
            }
            Validation::Tests { setup, cases } => self.tests(setup, cases, solution).await,
            Validation::Sql { .. } => self.sql(exercise, solution).await,
            Validation::Output {
                source,
                comparator,
                cases,
            } => self.output(*source, *comparator, cases, solution).await,
            Validation::Worker {
                language,
                grader,
                cases,
            } => self.work(language, grader, cases, solution).await,
        };
        finish(exercise, solution, found)
    }

    /// Judges a solution by reading it, off the async threads.
    async fn read(&self, exercise: &Arc<Exercise>, solution: &Solution) -> Graded {
        let (exercise, solution) = (Arc::clone(exercise), solution.clone());
        let documents = self.documents.clone();
        let work = move |stop: &Stop| {
            let found = judge(&exercise, &solution, documents.as_deref(), stop);
            finish(&exercise, &solution, found)
        };
        let judged = self.executor.run(Kind::Grade, work).await;
        judged.unwrap_or_else(|error| {
            tracing::warn!(%error, "a solution could not be read");
            feedback::stuck(&Stuck("The server has too much to do".to_owned()))
        })
    }

    /// Runs a program for its cases; one outcome for each.
    async fn run(&self, program: Program, cases: usize) -> Result<Vec<Outcome>, Stuck> {
        let job = Job {
            program,
            limits: Limits::default(),
        };
        match self.sandbox.run(&job).await {
            // The child has run a stranger's code, so what it sends is not trusted to be whole.
            Ok(outcomes) if outcomes.len() == cases => Ok(outcomes),
            Ok(_) => Err(Stuck("The sandbox did not run every test".to_owned())),
            Err(error) => {
                tracing::warn!(%error, "the sandbox could not run a solution");
                Err(Stuck("The sandbox cannot run now".to_owned()))
            }
        }
    }
}

/// The feedback on the outcomes of a solution, or on why there are none.
fn finish(
    exercise: &Exercise,
    solution: &Solution,
    found: Result<Vec<CaseOutcome>, Stuck>,
) -> Graded {
    match found {
        Ok(found) => {
            let cases = exercise.grading.validation.cases();
            feedback::of(exercise, solution, &cases, &found)
        }
        Err(stuck) => feedback::stuck(&stuck),
    }
}

/// The outcomes of a solution that is read and not run.
fn judge(
    exercise: &Exercise,
    solution: &Solution,
    documents: Option<&dyn Documents>,
    stop: &Stop,
) -> Result<Vec<CaseOutcome>, Stuck> {
    match &exercise.grading.validation {
        Validation::Pattern { comments, cases } => Ok(pattern::grade(*comments, cases, solution)),
        Validation::Skill { fixtures, cases } => skill::grade(fixtures, cases, solution, stop),
        Validation::Config { cases } => config::grade(documents, cases, solution),
        _ => Err(Stuck("The exercise is run and not read".to_owned())),
    }
}

/// Why what a case expects is not there.
fn not_computed(case: &CaseInfo) -> Stuck {
    Stuck(format!(
        "What \"{}\" expects cannot be computed; the exercise's author must fix it",
        case.description
    ))
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

/// The refusal of something that is no solution of the exercise, whatever it says.
fn refused(exercise: &Exercise, solution: &Solution) -> Option<Graded> {
    let is_empty = solution.files.values().all(|text| text.trim().is_empty());
    if is_empty {
        return Some(feedback::refused("The solution is empty."));
    }
    let bytes = solution.bytes();
    if solution.files.len() > limits::MAX_FILES || bytes > limits::MAX_SOLUTION_BYTES {
        return Some(feedback::refused(format!(
            "The solution has {} and {bytes} bytes; at most {} files and {} bytes are taken.",
            render::counted(solution.files.len(), "file"),
            limits::MAX_FILES,
            limits::MAX_SOLUTION_BYTES,
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

/// The text of a solution. `refused` has let only one file through, where one is wanted.
fn text(solution: &Solution) -> String {
    let texts: Vec<&str> = solution.files.values().map(String::as_str).collect();
    texts.join("\n")
}

/// The outcome of a case where there is no result to compare.
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

/// What was thrown; where modules are the cause, a hint instead.
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
