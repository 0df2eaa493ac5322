//! The child's main.
//!
//! It confines itself before it parses the job: only the filter of system calls comes later,
//! once the job is read. Then it runs case after case, and writes a
//! line for each. Results are judged by the parent: nothing here says pass or fail.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::confinement::{Confinement, Confining};
use crate::deadline::{used, yield_processor};
use crate::job::{Job, Outcome, Program, Stopped};
use crate::{js, sql};

/// Bytes that a job may have: more than any exercise.
pub(crate) const MAX_JOB: u64 = 32 << 20;

/// The message of the parent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Run nothing unless every confinement holds.
    pub(crate) require_all: bool,
    /// None: only report how the process is confined.
    pub(crate) job: Option<Job>,
}

/// A line that the child answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    /// The first line: the confinements that hold now.
    Confined(Confinement),
    /// Instead of it: this process will run nothing.
    Refused(String),
    /// Of the next case.
    Outcome(Outcome),
}

/// Confines this process for good, reads a job from its standard input, runs it, and
/// writes what comes out. The main function of the hidden command that
/// [`Sandbox`](crate::Sandbox) starts: nothing may run in the process before it, and no
/// other thread.
#[must_use]
pub fn child() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refusal::Parent) => ExitCode::FAILURE,
        Err(Refusal::Because(reason)) => match write(&Line::Refused(reason)) {
            Ok(()) | Err(_) => ExitCode::FAILURE,
        },
    }
}

enum Refusal {
    /// Nobody listens.
    Parent,
    Because(String),
}

fn because(error: impl std::error::Error) -> Refusal {
    Refusal::Because(error.to_string())
}

fn run() -> Result<(), Refusal> {
    // The program was loaded.
    yield_processor();
    sql::prepare().map_err(because)?;
    // Before the job is read: what a stranger wrote is never in a process that could open a
    // file.
    let confining = Confining::begin().map_err(because)?;
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_JOB)
        .read_to_end(&mut text)
        .map_err(because)?;
    let order: Order = serde_json::from_slice(&text).map_err(because)?;
    // A job may be 32 MiB, and this memory would be missing from what the cases may use.
    drop(text);
    let limits = order.job.as_ref().map(|job| job.limits).unwrap_or_default();
    let confinement = confining.finish(&limits).map_err(because)?;
    yield_processor();
    if order.require_all && !confinement.is_whole() {
        let reason = format!("not every confinement holds: {confinement}");
        return Err(Refusal::Because(reason));
    }
    write(&Line::Confined(confinement)).map_err(|_| Refusal::Parent)?;
    let Some(job) = order.job else {
        return Ok(());
    };
    // The clock starts here: the time that a process takes to start is not the solution's.
    let until = used() + job.limits.time;
    let count = job.program.cases();
    for number in 0..count {
        let deadline = share(until, count - number);
        let outcome = match &job.program {
            Program::Sql {
                solution,
                may_write,
                cases,
            } => cases
                .get(number)
                .map(|case| sql::run(case, solution, *may_write, &job.limits, deadline)),
            _ => js::run(&job.program, number, &job.limits, deadline),
        };
        let outcome = outcome.unwrap_or(Outcome::Stopped(Stopped::Output));
        // The parent stops reading at this length, and the cases after this one would have no
        // outcome. So the child says which case was too long.
        let mut line = Line::Outcome(outcome);
        if serde_json::to_vec(&line).map_or(true, |text| text.len() >= job.limits.line_bytes()) {
            line = Line::Outcome(Outcome::Stopped(Stopped::Output));
        }
        write(&line).map_err(|_| Refusal::Parent)?;
    }
    Ok(())
}

/// Until when the next of `left` cases may run: the last one to the end, any other for
/// half of what is left, so that one which loops does not take the time of all that follow.
fn share(until: Duration, left: usize) -> Duration {
    let now = used();
    if left <= 1 {
        until
    } else {
        now + until.saturating_sub(now) / 2
    }
}

fn write(line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    // A later case may end the process: outcomes must have reached the parent by then.
    out.flush()
}
