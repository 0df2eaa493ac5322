//! The part of an exercise that grades solutions, once it is read.

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
    /// The author's solution.
    pub(crate) reference: Solution,
    /// How it is graded.
    pub(crate) validation: Validation,
    /// What is searched for besides it.
    pub(crate) advice: Vec<Advice>,
    /// What cases expect, as far as that is computed; see [`Expected`].
    pub(crate) expected: OnceCell<Arc<Expected>>,
}

impl Grading {
    /// The path of the `EXERCISE.md` in its path's folder.
    pub(crate) fn file(&self) -> String {
        format!("{}/EXERCISE.md", self.folder)
    }
}

/// Lines that problems of an exercise point at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) requires: usize,
    pub(crate) validation: usize,
}

impl fmt::Debug for Grading {
    /// Prints nothing of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Exercises are printed in logs and in failed tests. A hidden case that is in a log is
        // hidden no more.
        f.debug_struct("Grading").finish_non_exhaustive()
    }
}

/// Values that the sandbox computed without any learner's solution.
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
    /// JavaScript: the values of expressions after the solution.
    Expressions {
        setup: String,
        cases: Vec<Case<Expectation>>,
    },
    /// JavaScript: the results of the learner's tests on subjects.
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
    /// A skill, as the server reads and composes it.
    Skill {
        fixtures: Arc<Fixtures>,
        cases: Vec<Case<Question>>,
    },
    /// A config of the server, as the server reads it.
    Config { cases: Vec<Case<Question>> },
    /// Anything else: the results of a worker.
    Worker {
        language: String,
        grader: Grader,
        cases: Vec<Case<Comparison>>,
    },
    /// The output.
    Output {
        source: OutputSource,
        comparator: Comparator,
        cases: Vec<Case<Output>>,
    },
    /// Patterns that the text must, or must not, match.
    Pattern {
        comments: Option<CommentStyle>,
        cases: Vec<Case<Pattern>>,
    },
    /// A person reviews it.
    Manual { checklist: Vec<String> },
}

impl Validation {
    /// The cases, without what each language checks.
    pub(crate) fn cases(&self) -> Vec<&CaseInfo> {
        fn all<T>(cases: &[Case<T>]) -> Vec<&CaseInfo> {
            cases.iter().map(|case| &case.info).collect()
        }
        match self {
            Self::Expressions { cases, .. } => all(cases),
            Self::Tests { cases, .. } => all(cases),
            Self::Sql { cases, .. } => all(cases),
            Self::Skill { cases, .. } | Self::Config { cases } => all(cases),
            Self::Worker { cases, .. } => all(cases),
            Self::Output { cases, .. } => all(cases),
            Self::Pattern { cases, .. } => all(cases),
            Self::Manual { .. } => Vec::new(),
        }
    }
}

/// A question to a solution.
#[derive(Debug, Clone)]
pub(crate) struct Case<T> {
    pub(crate) info: CaseInfo,
    pub(crate) check: T,
}

/// The part of a case that is the same for every language.
#[derive(Debug, Clone)]
pub(crate) struct CaseInfo {
    pub(crate) description: String,
    pub(crate) hidden: bool,
    pub(crate) weight: f64,
    pub(crate) look_at: Option<String>,
    /// The texts for learners, where it is not hidden.
    pub(crate) input: Option<String>,
    pub(crate) expected: Option<String>,
    /// Line in `EXERCISE.md`.
    pub(crate) line: usize,
}

/// The result that is expected of an expression.
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

/// The part of a document that a question is about.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// The value at a JSON pointer.
    Pointer(String),
    /// Rules that are broken, of this severity or a worse one.
    Problems(model::Severity),
    /// Whether a call of a tool is permitted.
    CheckTool {
        tool: String,
        arguments: Map<String, Value>,
        /// Together with these.
        fixtures: Vec<String>,
        policy: composition::ToolPolicy,
    },
    /// Its composition with fixtures.
    Compose {
        fixtures: Vec<String>,
        policy: composition::ToolPolicy,
    },
    /// Its rank among the fixtures in a search for this.
    FoundFor(String),
    /// Lines of its body.
    Lines,
}

/// The answer that is expected.
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

/// The input of a case for a worker, and the value that should come back.
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

/// The output that is expected.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) input: String,
    pub(crate) expected: String,
    /// Only this part of the JSON that is expected.
    pub(crate) part: Option<Part>,
}

/// A part of an object of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The value at a JSON pointer.
    At(String),
    /// Which keys there are, inside of objects too.
    Keys,
}

/// The JSON pointer of a key of the object at a pointer.
pub(crate) fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A pattern that a text must, or must not, match.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) pattern: Regex,
    pub(crate) must_match: bool,
}

/// A remark that a good colleague would make on a solution.
#[derive(Debug, Clone)]
pub(crate) struct Advice {
    /// Given where the pattern is found; else where it is not.
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
