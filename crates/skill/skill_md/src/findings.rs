//! Collects problems, and quotes an author's words in them.

use model::Problem;

/// A problem with a text: rule, line and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) rule: &'static str,
    pub(super) line: usize,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(rule: &'static str, line: usize, message: impl Into<String>) -> Self {
        Self {
            rule,
            line,
            message: message.into(),
        }
    }
}

/// The problems of one skill so far. Lines are those of its `SKILL.md`.
#[derive(Debug, Default)]
pub(super) struct Findings {
    file: String,
    problems: Vec<Problem>,
}

impl Findings {
    /// Reports further problems for this file.
    pub(super) fn turn_to(&mut self, file: &str) {
        file.clone_into(&mut self.file);
    }

    pub(super) fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        self.error(fault.rule, fault.line, fault.message);
    }

    pub(super) fn error(&mut self, rule: &str, line: usize, message: impl Into<String>) {
        self.push(Problem::error(rule, &self.file, line, message));
    }

    pub(super) fn warning(&mut self, rule: &str, line: usize, message: impl Into<String>) {
        self.push(Problem::warning(rule, &self.file, line, message));
    }

    pub(super) fn info(&mut self, rule: &str, line: usize, message: impl Into<String>) {
        self.push(Problem::info(rule, &self.file, line, message));
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// The most characters of an author's text in a message.
const MAX_SHOWN_CHARS: usize = 60;

/// Quotes an author's text in a message.
pub(super) fn shown(text: &str) -> String {
    model::shown(text, MAX_SHOWN_CHARS)
}

/// The most items of a list in one message.
const MAX_LISTED_ITEMS: usize = 30;

/// Writes a list in a message; items over the limit are counted.
pub(super) fn listing(things: impl ExactSizeIterator<Item = String>) -> String {
    let more = things.len().saturating_sub(MAX_LISTED_ITEMS);
    let mut list: Vec<String> = things.take(MAX_LISTED_ITEMS).collect();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    list.join(", ")
}
