//! What is said of a solution: computed from what came of its cases.
//!
//! This is the one place where what is hidden is left out: a hidden case gives its
//! description, what to look at, and a sentence of ours. Not what was thrown in it either,
//! since that is the solution's words and they may repeat what it was given.

use crate::comments::CommentStyle;
use crate::grading::{AdviceKind, Case};
use crate::{CaseResult, Exercise, Feedback, Graded, Solution, Verdict};

/// Things to look at that are told at once.
const MAX_SUGGESTIONS: usize = 5;

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CaseOutcome {
    /// What was expected.
    Right,
    /// Something else.
    Wrong(WrongCase),
    /// Nothing: it was ended, for want of time or memory.
    Stopped(Halt),
}

/// What can be told of a wrong case, if it may be.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WrongCase {
    pub(crate) expected: Option<String>,
    pub(crate) actual: Option<String>,
    /// What went wrong, or what helps to see it.
    pub(crate) error: Option<String>,
    /// The same in words that give nothing away; else what the expected value is not.
    pub(crate) plain: Option<&'static str>,
    /// It says something of its case and of no other, though others may have the same.
    pub(crate) is_of_case: bool,
    /// How the summary says it, where expected and actual do not read well.
    pub(crate) said: Option<String>,
}

impl WrongCase {
    /// Nothing came but an error.
    pub(crate) fn error(error: impl Into<String>, plain: &'static str) -> Self {
        Self {
            error: Some(error.into()),
            plain: Some(plain),
            ..Self::default()
        }
    }

    /// Something else came.
    pub(crate) fn other(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self {
            expected: Some(expected.into()),
            actual: Some(actual.into()),
            ..Self::default()
        }
    }
}

/// For want of what a case was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Time,
    Memory,
    Forbidden,
}

impl Halt {
    fn words(self) -> &'static str {
        match self {
            Self::Time => "It did not come to an end in time",
            Self::Memory => "It wanted more memory than there is",
            Self::Forbidden => "It asked the system for something that it may not have",
        }
    }

    fn look_at(self) -> &'static str {
        match self {
            Self::Time => {
                "Look for a loop that never ends: does what it waits for come true each time?"
            }
            Self::Memory => "Look for a list or a text that never stops growing",
            Self::Forbidden => "Remove what does not belong to the exercise",
        }
    }
}

/// Why a solution could not be graded: a sentence for the learner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck(pub(crate) String);

/// The verdict and all that is said, of cases and what came of each.
pub(crate) fn of<T>(
    exercise: &Exercise,
    solution: &Solution,
    cases: &[Case<T>],
    found: &[CaseOutcome],
) -> Graded {
    if found.len() != cases.len() || cases.is_empty() {
        return stuck(&Stuck("Not every test could be run".to_owned()));
    }
    let halts = found.iter().filter_map(|found| match found {
        CaseOutcome::Stopped(halt) => Some(*halt),
        _ => None,
    });
    let halts: Vec<Halt> = halts.collect();
    let passes = found.iter().all(|found| *found == CaseOutcome::Right);
    let verdict = if passes {
        Verdict::Pass
    } else if halts.len() == found.len() || halts.contains(&Halt::Forbidden) {
        Verdict::Error
    } else {
        Verdict::Fail
    };
    let pairs = || cases.iter().zip(found);
    let weight = |of: &dyn Fn(&CaseOutcome) -> bool| -> f64 {
        let pairs = pairs().filter(|(_, found)| of(found));
        pairs.fold(0.0, |sum, (case, _)| sum + case.weight)
    };
    let score = match verdict {
        Verdict::Pass => 1.0,
        Verdict::Fail => weight(&|found| *found == CaseOutcome::Right) / weight(&|_| true),
        Verdict::Error | Verdict::Pending => 0.0,
    };
    let mut feedback = advised(exercise, solution, verdict);
    feedback.results = pairs().map(|(case, found)| result(case, found)).collect();
    feedback.summary = match verdict {
        Verdict::Pass => passed(cases),
        Verdict::Fail => failed(cases, found),
        Verdict::Error | Verdict::Pending => {
            let halt = if halts.contains(&Halt::Forbidden) {
                Halt::Forbidden
            } else {
                halts.first().copied().unwrap_or(Halt::Time)
            };
            format!(
                "It could not be graded: {}. This costs you nothing.",
                lower(halt.words())
            )
        }
    };
    let mut suggestions: Vec<String> = Vec::new();
    suggestions.extend(halts.iter().map(|halt| halt.look_at().to_owned()));
    let wrong: Vec<_> = pairs().filter(|(_, f)| **f != CaseOutcome::Right).collect();
    if only_error(cases, &wrong).is_some() {
        let seen = cases.iter().position(|case| !case.hidden);
        once(&mut feedback, seen);
    } else {
        suggestions.extend(wrong.iter().filter_map(|(case, _)| case.look_at.clone()));
        suggestions.append(&mut feedback.suggestions);
    }
    feedback.suggestions = first_ones(suggestions);
    Graded {
        verdict,
        score,
        feedback,
    }
}

/// Where everything ends with one error, that is what to look at: it is said once, and
/// nothing else is.
fn once(feedback: &mut Feedback, seen: Option<usize>) {
    for (at, result) in feedback.results.iter_mut().enumerate() {
        result.look_at = None;
        result.expected = None;
        if Some(at) != seen {
            result.error = None;
        }
    }
    feedback.improvement_areas.clear();
}

/// Each once, and not too many.
fn first_ones(texts: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if kept.len() < MAX_SUGGESTIONS && !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}

fn result<T>(case: &Case<T>, found: &CaseOutcome) -> CaseResult {
    let passed = *found == CaseOutcome::Right;
    let mut result = CaseResult {
        name: case.description.clone(),
        passed,
        expected: None,
        actual: None,
        error: None,
        look_at: case.look_at.clone().filter(|_| !passed),
    };
    match found {
        CaseOutcome::Right => {}
        CaseOutcome::Stopped(halt) => result.error = Some(halt.words().to_owned()),
        CaseOutcome::Wrong(told) if case.hidden => {
            result.error = told.plain.map(str::to_owned);
        }
        CaseOutcome::Wrong(told) => {
            result.expected.clone_from(&told.expected);
            result.actual.clone_from(&told.actual);
            result.error.clone_from(&told.error);
        }
    }
    result
}

fn passed<T>(cases: &[Case<T>]) -> String {
    let hidden = cases.iter().filter(|case| case.hidden).count();
    match (cases.len(), hidden) {
        (1, _) => "It does what was asked.".to_owned(),
        (all, 0) => format!("All {all} tests pass."),
        (all, 1) => format!("All {all} tests pass, the hidden one too."),
        (all, hidden) if hidden == all => format!("All {all} tests pass, though you saw none."),
        (all, hidden) => format!("All {all} tests pass, the {hidden} hidden ones too."),
    }
}

fn failed<T>(cases: &[Case<T>], found: &[CaseOutcome]) -> String {
    let right = found
        .iter()
        .filter(|found| **found == CaseOutcome::Right)
        .count();
    let counted = match (right, cases.len()) {
        (0, 1) => String::new(),
        (0, all) => format!("None of {all} tests passes yet. "),
        (1, all) => format!("1 of {all} tests passes. "),
        (right, all) => format!("{right} of {all} tests pass. "),
    };
    // What may be seen helps more than what may not.
    let wrong = cases.iter().zip(found);
    let wrong: Vec<_> = wrong
        .filter(|(_, found)| **found != CaseOutcome::Right)
        .collect();
    if let Some(error) = only_error(cases, &wrong) {
        return format!("{counted}All end with the same error: {error}.");
    }
    let seen = wrong.iter().find(|(case, _)| !case.hidden);
    let Some((case, found)) = seen.or(wrong.first()) else {
        return counted;
    };
    let first = if wrong.len() == 1 { "" } else { "first " };
    let what = match found {
        CaseOutcome::Stopped(halt) => format!(": {}", lower(halt.words())),
        CaseOutcome::Wrong(_) if case.hidden && cases.iter().all(|case| case.hidden) => {
            return format!("{counted}That is not it yet.");
        }
        CaseOutcome::Wrong(_) if case.hidden => {
            ", which is hidden: what you saw works, and something that you did not see does not"
                .to_owned()
        }
        CaseOutcome::Wrong(WrongCase {
            said: Some(said), ..
        }) => format!(": {said}"),
        CaseOutcome::Wrong(told) => match (&told.expected, &told.actual, &told.error) {
            (Some(expected), Some(actual), _) if is_short(expected) && is_short(actual) => {
                format!(": it gave {actual}, and {expected} was expected")
            }
            (_, None, Some(error)) if is_short(error) => format!(": {error}"),
            _ => String::new(),
        },
        CaseOutcome::Right => String::new(),
    };
    format!("{counted}Look {first}at \"{}\"{what}.", case.description)
}

/// The error that every case ends with that may be seen, where nothing is right.
fn only_error<'a, T>(cases: &[Case<T>], wrong: &[(&Case<T>, &'a CaseOutcome)]) -> Option<&'a str> {
    if wrong.len() < 2 || wrong.len() < cases.len() {
        return None;
    }
    let seen = wrong.iter().filter(|(case, _)| !case.hidden);
    let mut errors = seen.map(|(_, found)| match found {
        CaseOutcome::Wrong(told) if told.actual.is_none() && !told.is_of_case => {
            told.error.as_deref()
        }
        _ => None,
    });
    let first = errors.next()??;
    errors.all(|error| error == Some(first)).then_some(first)
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= 100 && !text.contains('\n')
}

fn lower(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// What a good colleague would notice, which has nothing to do with cases.
fn advised(exercise: &Exercise, solution: &Solution, verdict: Verdict) -> Feedback {
    let mut feedback = Feedback::default();
    if exercise.grading.advice.is_empty() {
        return feedback;
    }
    let text = stripped(exercise, solution);
    for advice in &exercise.grading.advice {
        let is_for = match verdict {
            Verdict::Pass => advice.on_pass != Some(false),
            Verdict::Fail => advice.on_pass != Some(true),
            Verdict::Error | Verdict::Pending => advice.on_pass.is_none(),
        };
        if is_for && advice.pattern.is_match(&text) == advice.when_present {
            let list = match advice.kind {
                AdviceKind::Exemplary => &mut feedback.exemplary_aspects,
                AdviceKind::Improvement => &mut feedback.improvement_areas,
                AdviceKind::Suggestion => &mut feedback.suggestions,
            };
            list.push(advice.text.clone());
        }
    }
    feedback
}

/// All of a solution without its comments, in the way of the exercise's language.
fn stripped(exercise: &Exercise, solution: &Solution) -> String {
    let style = CommentStyle::of(&exercise.language);
    let texts = solution.files.values().map(|text| match style {
        Some(style) => style.strip(text),
        None => text.clone(),
    });
    texts.collect::<Vec<String>>().join("\n")
}

/// What is said where nothing could be found out.
pub(crate) fn stuck(stuck: &Stuck) -> Graded {
    Graded {
        verdict: Verdict::Error,
        score: 0.0,
        feedback: Feedback {
            summary: format!(
                "It could not be graded: {}. This costs you nothing.",
                lower(&stuck.0)
            ),
            ..Feedback::default()
        },
    }
}

/// What is said of what is no solution at all.
pub(crate) fn refused(summary: impl Into<String>) -> Graded {
    Graded {
        verdict: Verdict::Fail,
        score: 0.0,
        feedback: Feedback {
            summary: summary.into(),
            ..Feedback::default()
        },
    }
}

/// What is said until a person looked at it.
pub(crate) fn pending(exercise: &Exercise, solution: &Solution) -> Graded {
    let mut feedback = advised(exercise, solution, Verdict::Pending);
    let points = exercise.checklist.join("; ");
    feedback.summary = format!("A reviewer will grade it, mainly by this: {points}");
    Graded {
        verdict: Verdict::Pending,
        score: 0.0,
        feedback,
    }
}

#[cfg(test)]
mod tests;
