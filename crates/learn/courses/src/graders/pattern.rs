//! Patterns that a text must, or must not, match.

use crate::comments::CommentStyle;
use crate::feedback::{CaseOutcome, WrongCase};
use crate::grading::{Case, Pattern};
use crate::{Solution, shell};

/// Searches all files of a solution for patterns.
pub(super) fn grade(
    comments: Option<CommentStyle>,
    cases: &[Case<Pattern>],
    solution: &Solution,
) -> Vec<CaseOutcome> {
    // A pattern must not find its text in a comment, or in a command that never runs: that would
    // pass without the work.
    let texts = solution.files.values().map(|text| match comments {
        Some(CommentStyle::Shell) => shell::commands(&CommentStyle::Shell.strip(text)),
        Some(style) => style.strip(text),
        None => text.clone(),
    });
    let text = texts.collect::<Vec<String>>().join("\n");
    let found = cases.iter().map(|case| {
        let Pattern {
            pattern,
            must_match,
        } = &case.check;
        match (pattern.is_match(&text), *must_match) {
            (true, true) | (false, false) => CaseOutcome::Right,
            (false, true) => wrong("It is not there"),
            (true, false) => wrong("It is there, and should not be"),
        }
    });
    found.collect()
}

fn wrong(plain: &'static str) -> CaseOutcome {
    // Without the pattern: a learner who knows it writes the pattern, and not the solution.
    CaseOutcome::Wrong(WrongCase {
        is_of_case: true,
        ..WrongCase::error(plain, plain)
    })
}
