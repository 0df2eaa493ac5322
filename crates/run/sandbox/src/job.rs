//! The input of the child, and its output.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A program to run, within limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The program, by its language.
    pub program: Program,
    /// Its limits.
    pub limits: Limits,
}

/// Source text, and the cases that it runs for. Each case starts from nothing: none sees
/// what another did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Program {
    /// Evaluates an expression for each case, after the setup and the solution:
    /// [`Outcome::Value`], of a promise what it settles to.
    Expressions {
        /// Code of the exercise, run first.
        setup: String,
        /// Code of the stranger.
        solution: String,
        /// Expressions in JavaScript; of several statements the last one counts.
        cases: Vec<String>,
    },
    /// Runs a program that writes by `console.log`, its text in `input`:
    /// [`Outcome::Output`].
    Script {
        /// Code of the exercise, run first.
        setup: String,
        /// Code of the stranger.
        solution: String,
        /// Values of the global `input`.
        cases: Vec<String>,
    },
    /// Runs the stranger's tests against each subject: [`Outcome::Tests`].
    Tests {
        /// Code of the exercise, run first.
        setup: String,
        /// The tests, which call `test(name, function)` and `expect`.
        solution: String,
        /// Source of each subject, which the tests cannot read.
        cases: Vec<String>,
    },
    /// Runs SQL on a scratch `SQLite` for each case: [`Outcome::Rows`].
    Sql {
        /// Code of the stranger.
        solution: String,
        /// The solution may change tables too, not only read them.
        may_write: bool,
        /// The databases.
        cases: Vec<SqlCase>,
    },
}

impl Program {
    /// How many cases it runs for.
    pub(crate) fn cases(&self) -> usize {
        match self {
            Self::Expressions { cases, .. }
            | Self::Script { cases, .. }
            | Self::Tests { cases, .. } => cases.len(),
            Self::Sql { cases, .. } => cases.len(),
        }
    }
}

/// A database to run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlCase {
    /// SQL that makes its tables and rows.
    pub data: String,
    /// A query that runs after the solution; none: the rows are those of the solution's last
    /// statement.
    pub query: Option<String>,
}

/// Limits of a job. Beyond them the child is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processor time for all cases together, so that a busy machine ends nothing sooner
    /// than an idle one.
    pub time: Duration,
    /// Time by the clock after which the child is ended, whatever it reports. By default five
    /// times its processor time and a start: enough for one that has a fifth of a processor.
    pub wall_time: Duration,
    /// Memory of a case.
    pub memory_bytes: usize,
    /// Stack of a case.
    pub stack_bytes: usize,
    /// Output of a case.
    pub output_bytes: usize,
}

impl Limits {
    /// Bytes of the line of an outcome, with its line feed: more than the longest JSON of `output_bytes`.
    pub(crate) fn line_bytes(&self) -> usize {
        // 16 is well above the worst ratios of JSON to counted bytes: some 36 for a number, which
        // counts 4, and 6 for a control character (`\u0000`), which counts 1.
        self.output_bytes.saturating_mul(16).saturating_add(4096)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(2),
            wall_time: Duration::from_millis(10_500),
            memory_bytes: 64 * 1024 * 1024,
            stack_bytes: 512 * 1024,
            output_bytes: 64 * 1024,
        }
    }
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// Of an expression.
    Value(Value),
    /// Of a script: what it wrote.
    Output(String),
    /// Of a file of tests, in the order in which they ran.
    Tests(Vec<TestOutcome>),
    /// Of SQL.
    Rows {
        /// Names of the columns.
        columns: Vec<String>,
        /// The rows, in order.
        rows: Vec<Vec<Cell>>,
    },
    /// It threw: `RangeError`, and its message. In SQL: the database's error.
    Thrown {
        /// Name of the error; empty where it has none.
        name: String,
        /// Its message.
        message: String,
        /// Line of the solution from 1, where it is known.
        line: Option<u32>,
    },
    /// It was ended before it came to an end.
    Stopped(Stopped),
}

/// A test that a stranger wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestOutcome {
    /// Its name, with those of what it is in.
    pub name: String,
    /// The error that it threw. None: it passed.
    pub error: Option<String>,
}

/// Why a case was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stopped {
    /// Its time was over.
    Time,
    /// It wanted more memory.
    Memory,
    /// It called itself too deep.
    Stack,
    /// It gave back too much.
    Output,
    /// A promise is not settled, and nothing is left that could settle it.
    Unsettled,
    /// It asked the system for something that it may not have.
    Forbidden,
}

/// A value of JavaScript, taken apart by the sandbox itself and not by text that is made
/// inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number; -0 and 0 differ.
    Number(f64),
    /// `NaN`, `Infinity`, `-Infinity`.
    NotFinite(String),
    /// A `bigint`, in decimal.
    BigInt(String),
    /// Text, lone surrogates as `\u{FFFD}`.
    Text(String),
    /// An array; a hole is `Undefined`.
    Array(Vec<Value>),
    /// An object's own enumerable properties, in order.
    Object(Vec<(String, Value)>),
    /// A `Map`.
    Map(Vec<(Value, Value)>),
    /// A `Set`.
    Set(Vec<Value>),
    /// A `Date`, as milliseconds since 1970; none: it is invalid.
    Date(Option<f64>),
    /// An `Error`: its name, its message.
    Error(String, String),
    /// A function, by its name.
    Function(String),
    /// A symbol, by its description.
    Symbol(String),
    /// The same object as one that it is in.
    Cycle,
}

/// A cell of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// `NULL`.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes, as hexadecimal digits.
    Blob(String),
}
