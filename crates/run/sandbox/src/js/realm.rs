//! A realm: an engine of its own for one case, what was taken of it before a stranger came,
//! and the loop that runs what waits in it.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::This;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Function, Object, Persistent, Runtime, Value};

use super::SOLUTION;
use super::value::Taking;
use crate::deadline::{Deadline, yield_processor};
use crate::job::{Limits, Outcome, Stopped, Value as Taken};

/// The time at which a case begins: 2025-01-15, noon.
const START_MILLIS: f64 = 1_736_942_400_000.0;

/// All that the language has, but for clocks.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// Characters of a message.
const MAX_MESSAGE: usize = 2000;

/// Why a case goes no further.
#[derive(Debug)]
pub(super) enum Halt {
    /// An exception waits in the engine.
    Thrown,
    /// A limit.
    Stopped(Stopped),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::Exception => Self::Thrown,
            // The engine does not always report that it is out of memory as such.
            Error::Allocation | Error::Unknown => Self::Stopped(Stopped::Memory),
            // A value that is not of the kind it says, such as a proxy of a list whose length
            // is a text: nothing that could be given back.
            _ => Self::Stopped(Stopped::Output),
        }
    }
}

/// Makes an engine, and does something in it. None: it does not fit into the limits.
pub(super) fn enter<T>(
    limits: &Limits,
    deadline: &Deadline,
    body: impl for<'js> FnOnce(&Ctx<'js>, &Rejections) -> Result<T, Halt>,
) -> Option<T> {
    let runtime = Runtime::new().ok()?;
    runtime.set_memory_limit(limits.memory_bytes);
    runtime.set_max_stack_size(limits.stack_bytes);
    let asked = deadline.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || asked.stopped().is_some())));
    let rejections = Rejections::default();
    let tracked = rejections.clone();
    runtime.set_host_promise_rejection_tracker(Some(Box::new(
        move |context, promise, reason, handled| tracked.note(&context, promise, reason, handled),
    )));
    let context = Context::custom::<Intrinsics>(&runtime).ok()?;
    yield_processor();
    let result = context.with(|context| body(&context, &rejections)).ok();
    // These hold values of the engine, and must be dropped before it.
    rejections.0.take();
    result
}

/// Promises that were rejected while nobody waited for them, and why. No more than a few:
/// one is enough.
#[derive(Clone, Default)]
pub(super) struct Rejections(Rc<RefCell<Vec<Rejection>>>);

type Rejection = (Persistent<Value<'static>>, Persistent<Value<'static>>);

const MAX_REJECTIONS: usize = 16;

impl Rejections {
    fn note<'js>(
        &self,
        context: &Ctx<'js>,
        promise: Value<'js>,
        reason: Value<'js>,
        handled: bool,
    ) {
        let Ok(mut rejections) = self.0.try_borrow_mut() else {
            return;
        };
        if !handled && rejections.len() < MAX_REJECTIONS {
            let reason = Persistent::save(context, reason);
            rejections.push((Persistent::save(context, promise), reason));
        } else if handled {
            rejections.retain(|(other, _)| {
                let other = other.clone().restore(context);
                other.is_ok_and(|other| other != promise)
            });
        }
    }

    /// Throws the reason of the first rejection that nobody handled.
    fn throw(&self, context: &Ctx<'_>) -> Result<(), Halt> {
        let first = self.0.borrow_mut().drain(..).next();
        match first {
            Some((_, reason)) => Err(context.throw(reason.restore(context)?).into()),
            None => Ok(()),
        }
    }
}

/// A realm, and what was taken of it before anything ran.
pub(super) struct Realm<'js> {
    pub(super) context: Ctx<'js>,
    pub(super) deadline: Deadline,
    pub(super) limits: Limits,
    /// Functions of the prelude.
    pub(super) kind: Function<'js>,
    pub(super) get_time: Function<'js>,
    pub(super) map_for_each: Function<'js>,
    pub(super) set_for_each: Function<'js>,
    pub(super) timers: Object<'js>,
    well_formed: Function<'js>,
    digits: Function<'js>,
    reads: Function<'js>,
    step: Function<'js>,
}

impl<'js> Realm<'js> {
    pub(super) fn new(
        context: &Ctx<'js>,
        limits: &Limits,
        deadline: &Deadline,
    ) -> Result<Self, Halt> {
        let prelude: Function = context.eval(include_str!("prelude.js"))?;
        yield_processor();
        let taken: Object = prelude.call((START_MILLIS,))?;
        Ok(Self {
            context: context.clone(),
            deadline: deadline.clone(),
            limits: *limits,
            kind: taken.get("kind")?,
            get_time: taken.get("getTime")?,
            map_for_each: taken.get("mapForEach")?,
            set_for_each: taken.get("setForEach")?,
            timers: taken.get("timers")?,
            well_formed: taken.get("wellFormed")?,
            digits: taken.get("digits")?,
            reads: taken.get("reads")?,
            step: taken.get("step")?,
        })
    }

    fn eval(&self, name: &str, source: &str, promise: bool) -> rquickjs::Result<Value<'js>> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.promise = promise;
        options.filename = Some(name.to_owned());
        // A NUL would end the text for the engine: the language allows it only
        // in strings, where it can be written as an escape.
        let source = source.replace('\0', "\u{FFFD}");
        self.context.eval_with_options(source, options)
    }

    /// Runs a script: what it declares is there for the next one.
    pub(super) fn script(&self, name: &str, source: &str) -> Result<(), Halt> {
        self.eval(name, source, false)?;
        self.check()
    }

    /// The value of an expression, or of statements the last one's; of a promise what it
    /// settles to.
    pub(super) fn expression(&self, source: &str) -> Result<Value<'js>, Halt> {
        // In brackets `{a: 1}` is an object and not a block. The brackets are on lines of their
        // own, so that a comment at the end of the source does not swallow the closing one.
        let alone = format!("(\n{source}\n)");
        let reads = |text: &str, waits: bool| self.reads.call::<_, bool>((text, waits));
        // Evaluation with `await` wraps the result in a promise, so it is used only if needed.
        let (text, waits) = if reads(&alone, false)? {
            (alone.as_str(), false)
        } else if reads(&alone, true)? {
            (alone.as_str(), true)
        } else {
            (source, !reads(source, false)? && reads(source, true)?)
        };
        let result = self.eval("case.js", text, waits)?;
        if !waits {
            return self.settle(result);
        }
        let result = self.settle(result)?;
        let value = match result.as_object() {
            Some(object) => object.get("value")?,
            None => result,
        };
        self.settle(value)
    }

    /// The value, of a promise what it settles to.
    pub(super) fn settle(&self, value: Value<'js>) -> Result<Value<'js>, Halt> {
        let Some(promise) = value.as_promise() else {
            return Ok(value);
        };
        while promise.state() == PromiseState::Pending {
            if !self.turn()? {
                return Err(Halt::Stopped(Stopped::Unsettled));
            }
        }
        match promise.result::<Value>() {
            Some(result) => Ok(result?),
            None => Err(Halt::Stopped(Stopped::Unsettled)),
        }
    }

    /// Runs until nothing waits any more. A promise that was rejected then, and that nobody
    /// waits for, is an error.
    pub(super) fn idle(&self, rejections: &Rejections) -> Result<(), Halt> {
        while self.turn()? {}
        rejections.throw(&self.context)
    }

    /// Runs what waits next: a job, or if there is none the next timer. False: nothing waits.
    fn turn(&self) -> Result<bool, Halt> {
        self.check()?;
        let ran = self.context.execute_pending_job() || self.step.call::<_, bool>(())?;
        self.check()?;
        Ok(ran)
    }

    /// Fails once a limit has ended the case.
    pub(super) fn check(&self) -> Result<(), Halt> {
        match self.deadline.stopped() {
            Some(stopped) => Err(Halt::Stopped(stopped)),
            None => Ok(()),
        }
    }

    /// Calls a function that a stranger wrote.
    pub(super) fn call(&self, function: &Function<'js>) -> Result<Value<'js>, Halt> {
        let value = function.call::<_, Value>(());
        self.check()?;
        // The check comes first: a case that hit a limit has ended, whatever the function
        // returned.
        Ok(value?)
    }

    /// Takes a value apart, within the output that a case may have.
    pub(super) fn take(&self, value: &Value<'js>) -> Result<Taken, Halt> {
        let taken = Taking::new(self, self.limits.output_bytes).take(value, 0);
        self.check()?;
        taken
    }

    /// A text, lone surrogates replaced.
    pub(super) fn text(&self, value: &Value<'js>) -> Result<String, Halt> {
        let Some(text) = value.as_string() else {
            return Ok(String::new());
        };
        match text.to_string() {
            Ok(text) => Ok(text),
            Err(Error::Utf8(_)) => {
                let text: rquickjs::String = self.well_formed.call((This(value.clone()),))?;
                Ok(text.to_string()?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The digits of a bigint.
    pub(super) fn digits(&self, value: &Value<'js>) -> Result<String, Halt> {
        let digits: rquickjs::String = self.digits.call((This(value.clone()),))?;
        Ok(digits.to_string()?)
    }

    /// The outcome of a case that was halted.
    pub(super) fn outcome(&self, halt: &Halt) -> Outcome {
        match halt {
            Halt::Stopped(stopped) => Outcome::Stopped(*stopped),
            Halt::Thrown => self.thrown(&self.context.catch()),
        }
    }

    /// The outcome of a case that threw this.
    pub(super) fn thrown(&self, error: &Value<'js>) -> Outcome {
        if error.is_null() {
            // The engine throws it when it has no memory left for an error.
            return Outcome::Stopped(Stopped::Memory);
        }
        let thrown = match self.error(error) {
            Ok(thrown) => thrown,
            Err(Halt::Stopped(stopped)) => return Outcome::Stopped(stopped),
            Err(Halt::Thrown) => {
                drop(self.context.catch());
                Thrown::default()
            }
        };
        match (thrown.name.as_str(), thrown.message.as_str()) {
            // The engine has no codes, only these words. A solution that throws them itself gets
            // the verdict that it asks for.
            ("RangeError", "Maximum call stack size exceeded") => Outcome::Stopped(Stopped::Stack),
            ("InternalError", "out of memory" | "out of memory in regexp execution") => {
                Outcome::Stopped(Stopped::Memory)
            }
            _ => Outcome::Thrown {
                name: thrown.name,
                message: thrown.message,
                line: thrown.line,
            },
        }
    }

    /// Takes an error apart. Its properties may be a stranger's code.
    pub(super) fn error(&self, error: &Value<'js>) -> Result<Thrown, Halt> {
        let Some(object) = error.as_object() else {
            let message = match error.as_string() {
                Some(_) => self.text(error)?,
                None => super::show::show(&self.take(error)?),
            };
            return Ok(Thrown {
                message: short(message),
                ..Thrown::default()
            });
        };
        let name: Value = object.get("name")?;
        let message: Value = object.get("message")?;
        let stack: Value = object.get("stack")?;
        self.check()?;
        let mut thrown = Thrown {
            name: short(self.text(&name)?),
            message: short(self.text(&message)?),
            line: line(&self.text(&stack)?),
        };
        if thrown.name.is_empty() && thrown.message.is_empty() {
            thrown.message = short(super::show::show(&self.take(error)?));
        }
        Ok(thrown)
    }
}

/// An error that was thrown.
#[derive(Debug, Default)]
pub(super) struct Thrown {
    pub(super) name: String,
    pub(super) message: String,
    /// In the solution.
    pub(super) line: Option<u32>,
}

/// The first line of a stack that is in the solution.
fn line(stack: &str) -> Option<u32> {
    let (_, after) = stack.split_once(&format!("{SOLUTION}:"))?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn short(text: String) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
