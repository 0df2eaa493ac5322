//! What grades an exercise, once it is read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use model::FilePath;
use regex::Regex;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::Solution;
use crate::comments::CommentStyle;
use crate::compare::Comparator;

/// Cases, patterns and expected output; what is hidden is in here and nowhere else.
#[derive(Clone)]
pub(crate) struct Grading {
    /// The exercise's folder in its path's.
    pub(crate) folder: String,
    /// Lines in its `EXERCISE.md`.
    pub(crate) lines: Lines,
    /// The solution of whoever wrote the exercise.
    pub(crate) reference: Solution,
    /// How it is graded.
    pub(crate) validation: Validation,
    /// What is looked for beside it.
    pub(crate) advice: Vec<Advice>,
    /// What cases expect, as far as that is computed; see [`Expected`].
    pub(crate) expected: OnceCell<Arc<Expected>>,
}

/// Where an exercise says what others are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) requires: usize,
    pub(crate) validation: usize,
}

impl fmt::Debug for Grading {
    /// Nothing of it: whatever prints an exercise may end in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A hidden case that is in a log is hidden no more.
        f.debug_struct("Grading").finish_non_exhaustive()
    }
}

/// What the sandbox computed without any learner's solution.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Values of expressions; none where the case expects something thrown.
    Values(Vec<Option<sandbox::Value>>),
    /// Names of columns, and rows, of the reference solution.
    Tables(Vec<Table>),
}

/// Rows and the names of their columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<sandbox::Cell>>,
}

/// How solutions are graded, with the cases.
#[derive(Debug, Clone)]
pub(crate) enum Validation {
    /// JavaScript: what expressions come to after the solution.
    Expressions {
        setup: String,
        cases: Vec<Case<Expectation>>,
    },
    /// JavaScript: what the learner's tests say of subjects.
    Tests {
        setup: String,
        cases: Vec<Case<Subject>>,
    },
    /// SQL: which rows come out.
    Sql {
        ordered: bool,
        column_names: bool,
        may_write: bool,
        cases: Vec<Case<Database>>,
    },
    /// A skill: what the product makes of it.
    Skill {
        fixtures: Arc<Fixtures>,
        cases: Vec<Case<Question>>,
    },
    /// A config of the server: what the server makes of it.
    Config { cases: Vec<Case<Question>> },
    /// Anything else: what a worker says.
    Worker {
        language: String,
        grader: Grader,
        cases: Vec<Case<Comparison>>,
    },
    /// What is printed.
    Output {
        source: OutputSource,
        comparator: Comparator,
        cases: Vec<Case<Output>>,
    },
    /// What the text must and must not hold.
    Pattern {
        comments: Option<CommentStyle>,
        cases: Vec<Case<Pattern>>,
    },
    /// A person looks at it.
    Manual { checklist: Vec<String> },
}

/// Something that is asked of a solution.
#[derive(Debug, Clone)]
pub(crate) struct Case<T> {
    pub(crate) description: String,
    pub(crate) hidden: bool,
    pub(crate) weight: f64,
    pub(crate) look_at: Option<String>,
    /// What a learner sees of it, where it is not hidden.
    pub(crate) input: Option<String>,
    pub(crate) expected: Option<String>,
    /// Line in `EXERCISE.md`.
    pub(crate) line: usize,
    pub(crate) check: T,
}

/// What should come of an expression.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    pub(crate) input: String,
    pub(crate) result: ExpectedResult,
}

#[derive(Debug, Clone)]
pub(crate) enum ExpectedResult {
    /// The value of this expression.
    Value(String),
    /// An error of this name, with a message like this.
    Thrown {
        name: String,
        message: Option<Regex>,
    },
}

/// Code that the learner's tests run against.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) source: String,
    /// All tests should pass; else one at least should fail.
    pub(crate) is_right: bool,
}

/// A database that the learner's SQL runs on.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) data: String,
    pub(crate) query: Option<String>,
}

/// Other skills that are there: files by the name of their folder.
pub(crate) type Fixtures = BTreeMap<String, BTreeMap<FilePath, Bytes>>;

/// A question about a document, and what its answer should be.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) ask: Ask,
    /// Into the answer, as JSON pointer; empty: all of it.
    pub(crate) at: String,
    pub(crate) matcher: Matcher,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// What a JSON pointer leads to.
    Pointer(String),
    /// Rules that are broken, so severe or more.
    Problems(model::Severity),
    /// Whether a call of a tool is permitted.
    CheckTool {
        tool: String,
        arguments: Map<String, Value>,
        /// Together with these.
        fixtures: Vec<String>,
        policy: composition::ToolPolicy,
    },
    /// What it comes to together with fixtures.
    Compose {
        fixtures: Vec<String>,
        policy: composition::ToolPolicy,
    },
    /// Its place among the fixtures when this is searched for.
    FoundFor(String),
    /// Lines of its body.
    Lines,
}

/// What an answer should be.
#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    Expected(Value),
    Contains(Value),
    Matches(Regex),
    AtLeast(f64),
    AtMost(f64),
    Absent,
}

/// Which worker grades.
#[derive(Debug, Clone)]
pub(crate) struct Grader {
    pub(crate) skill: String,
    pub(crate) method: String,
}

/// What a worker is given for a case, and the value that should come back.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub(crate) input: Value,
    pub(crate) expected: Value,
}

/// Where output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputSource {
    /// The solution is the output.
    Text,
    /// A program in JavaScript prints it.
    JavaScript,
}

/// What should be printed.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) input: String,
    pub(crate) expected: String,
    /// Of what is expected as JSON only this.
    pub(crate) part: Option<Part>,
}

/// A part of an object of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// What a JSON pointer leads to.
    At(String),
    /// Which keys there are, inside of objects too.
    Keys,
}

/// What a text must or must not hold.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) pattern: Regex,
    pub(crate) must_match: bool,
}

/// Something that a good colleague would say of a solution.
#[derive(Debug, Clone)]
pub(crate) struct Advice {
    /// Said where the pattern is found; else where it is not.
    pub(crate) when_present: bool,
    pub(crate) pattern: Regex,
    pub(crate) kind: AdviceKind,
    /// Only where the solution passes, or does not.
    pub(crate) on_pass: Option<bool>,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdviceKind {
    Exemplary,
    Improvement,
    Suggestion,
}
