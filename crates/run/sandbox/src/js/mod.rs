//! JavaScript: a realm for each case, and what a program of each kind does in it.

mod console;
mod realm;
mod show;
mod suite;
mod value;

use std::rc::Rc;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::job::{Limits, Outcome, Program, Stopped};
use realm::{Halt, Realm, Rejections};

/// The file that lines of errors are of.
const SOLUTION: &str = "solution.js";

/// Runs one case of a program in JavaScript. None: it is no such program, or has no such case.
pub(crate) fn run(
    program: &Program,
    number: usize,
    limits: &Limits,
    until: Duration,
) -> Option<Outcome> {
    let deadline = Deadline::new(until);
    let case = match program {
        Program::Expressions { cases, .. }
        | Program::Script { cases, .. }
        | Program::Tests { cases, .. } => cases.get(number)?,
        Program::Sql { .. } => return None,
    };
    let outcome = realm::enter(limits, &deadline, |context, rejections| {
        let realm = Rc::new(Realm::new(context, limits, &deadline)?);
        match body(&realm, rejections, program, case) {
            Ok(outcome) => Ok(outcome),
            Err(halt) => Ok(realm.outcome(&halt)),
        }
    });
    Some(match (deadline.stopped(), outcome) {
        // Whatever it made of being ended.
        (Some(stopped), _) => Outcome::Stopped(stopped),
        (None, Some(outcome)) => outcome,
        // Not even an empty realm fits.
        (None, None) => Outcome::Stopped(Stopped::Memory),
    })
}

fn body(
    realm: &Rc<Realm<'_>>,
    rejections: &Rejections,
    program: &Program,
    case: &str,
) -> Result<Outcome, Halt> {
    let context = &realm.context;
    match program {
        Program::Expressions {
            setup, solution, ..
        } => {
            console::silent(context)?;
            realm.script("setup.js", setup)?;
            realm.script(SOLUTION, solution)?;
            let result = realm.expression(case)?;
            Ok(Outcome::Value(realm.take(&result)?))
        }
        Program::Script {
            setup, solution, ..
        } => {
            let written = console::recorded(realm)?;
            context.globals().set("input", case)?;
            realm.script("setup.js", setup)?;
            realm.script(SOLUTION, solution)?;
            realm.idle(rejections)?;
            Ok(Outcome::Output(written.take()))
        }
        Program::Tests {
            setup, solution, ..
        } => {
            console::silent(context)?;
            let tests = suite::Tests::new(realm)?;
            realm.script("setup.js", setup)?;
            realm.script("subject.js", case)?;
            Ok(Outcome::Tests(tests.run(solution)?))
        }
        Program::Sql { .. } => Err(Halt::Stopped(Stopped::Output)),
    }
}
