//! What a text must and must not hold.

use crate::comments::CommentStyle;
use crate::feedback::{CaseOutcome, WrongCase};
use crate::grading::{Case, Pattern};
use crate::{Solution, shell};

/// Looks for patterns in all files of a solution. What was looked for is not told: whoever
/// knows the pattern writes the pattern, and not the solution.
pub(super) fn grade(
    comments: Option<CommentStyle>,
    cases: &[Case<Pattern>],
    solution: &Solution,
) -> Vec<CaseOutcome> {
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
            (false, true) => told("It is not there"),
            (true, false) => told("It is there, and should not be"),
        }
    });
    found.collect()
}

fn told(plain: &'static str) -> CaseOutcome {
    CaseOutcome::Wrong(WrongCase {
        is_of_case: true,
        ..WrongCase::error(plain, plain)
    })
}
