//! What a text must and must not hold.

use crate::comments::CommentStyle;
use crate::feedback::{Found, Told};
use crate::grading::{Case, Pattern};
use crate::{Solution, shell};

/// Looks for patterns in all files of a solution. What was looked for is not told: whoever
/// knows the pattern writes the pattern, and not the solution.
pub(super) fn grade(
    comments: Option<CommentStyle>,
    cases: &[Case<Pattern>],
    solution: &Solution,
) -> Vec<Found> {
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
            (true, true) | (false, false) => Found::Right,
            (false, true) => told("It is not there"),
            (true, false) => told("It is there, and should not be"),
        }
    });
    found.collect()
}

fn told(plain: &'static str) -> Found {
    Found::Wrong(Told {
        is_of_case: true,
        ..Told::error(plain, plain)
    })
}
