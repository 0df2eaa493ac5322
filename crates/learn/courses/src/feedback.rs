//! The feedback on a solution, computed from the outcomes of its cases.
//!
//! Only here is what is hidden left out: a hidden case gives its description, what to look
//! at, and a sentence of ours. Not what was thrown in it either, since these are the
//! solution's words, and they may repeat what it was given.

use std::collections::HashSet;

use crate::comments::CommentStyle;
use crate::grading::{AdviceKind, CaseInfo};
use crate::{CaseResult, Exercise, Feedback, Graded, Solution, Verdict};

/// Suggestions of one answer.
// A learner who has to read more reads none.
const MAX_SUGGESTIONS: usize = 5;

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CaseOutcome {
    /// What was expected.
    Right,
    /// Something else.
    Wrong(WrongCase),
    /// Nothing: it was stopped.
    Stopped(Halt),
}

/// The facts about a wrong case that can be shown, unless it is hidden.
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
    /// The clause of the summary, where expected and actual do not read well.
    pub(crate) clause: Option<String>,
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

/// Why a case was stopped.
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

/// The verdict and the feedback, from cases and the outcome of each.
pub(crate) fn of(
    exercise: &Exercise,
    solution: &Solution,
    cases: &[&CaseInfo],
    found: &[CaseOutcome],
) -> Graded {
    // Without a case nothing is wrong, and without its outcome nobody knows: neither may pass.
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
            not_graded(halt.words())
        }
    };
    // A case that was stopped hides what else may be wrong, so its suggestion comes first.
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
        ran_out: halts.contains(&Halt::Time),
    }
}

/// Where everything ends with one error, shows it once, and nothing else.
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
    let mut known = HashSet::new();
    let texts = texts.into_iter();
    let new = texts.filter(|text| known.insert(text.clone()));
    new.take(MAX_SUGGESTIONS).collect()
}

fn result(case: &CaseInfo, found: &CaseOutcome) -> CaseResult {
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
        CaseOutcome::Wrong(wrong) if case.hidden => {
            result.error = wrong.plain.map(str::to_owned);
        }
        CaseOutcome::Wrong(wrong) => {
            result.expected.clone_from(&wrong.expected);
            result.actual.clone_from(&wrong.actual);
            result.error.clone_from(&wrong.error);
        }
    }
    result
}

fn passed(cases: &[&CaseInfo]) -> String {
    let hidden = cases.iter().filter(|case| case.hidden).count();
    match (cases.len(), hidden) {
        (1, _) => "It does what was asked.".to_owned(),
        (all, 0) => format!("All {all} tests pass."),
        (all, 1) => format!("All {all} tests pass, the hidden one too."),
        (all, hidden) if hidden == all => format!("All {all} tests pass, though you saw none."),
        (all, hidden) => format!("All {all} tests pass, the {hidden} hidden ones too."),
    }
}

fn failed(cases: &[&CaseInfo], found: &[CaseOutcome]) -> String {
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
    let wrong = cases.iter().zip(found);
    let wrong: Vec<_> = wrong
        .filter(|(_, found)| **found != CaseOutcome::Right)
        .collect();
    if let Some(error) = only_error(cases, &wrong) {
        return format!("{counted}All end with the same error: {error}.");
    }
    // A case that the learner can see helps more than a hidden one before it.
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
            clause: Some(clause),
            ..
        }) => format!(": {clause}"),
        CaseOutcome::Wrong(wrong) => match (&wrong.expected, &wrong.actual, &wrong.error) {
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
fn only_error<'a>(cases: &[&CaseInfo], wrong: &[(&&CaseInfo, &'a CaseOutcome)]) -> Option<&'a str> {
    if wrong.len() < 2 || wrong.len() < cases.len() {
        return None;
    }
    let seen = wrong.iter().filter(|(case, _)| !case.hidden);
    let mut errors = seen.map(|(_, found)| match found {
        CaseOutcome::Wrong(wrong) if wrong.actual.is_none() && !wrong.is_of_case => {
            wrong.error.as_deref()
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

/// The remarks of a good colleague, which have nothing to do with cases.
fn advised(exercise: &Exercise, solution: &Solution, verdict: Verdict) -> Feedback {
    let mut feedback = Feedback::default();
    if exercise.grading.advice.is_empty() {
        return feedback;
    }
    // Without comments, where a learner may well write about what is searched for.
    let text = stripped(exercise, solution);
    for advice in &exercise.grading.advice {
        let is_for = match verdict {
            Verdict::Pass => advice.on_pass != Some(false),
            Verdict::Fail => advice.on_pass != Some(true),
            // Nobody knows whether it would pass, so only advice for both goes with it.
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

/// The feedback where the solution could not be graded.
pub(crate) fn stuck(Stuck(why): &Stuck) -> Graded {
    unscored(Verdict::Error, not_graded(why))
}

/// The feedback on something that is no solution at all.
pub(crate) fn refused(summary: impl Into<String>) -> Graded {
    unscored(Verdict::Fail, summary.into())
}

/// The feedback until a person has reviewed it.
pub(crate) fn pending(exercise: &Exercise, solution: &Solution) -> Graded {
    let points = exercise.checklist.join("; ");
    Graded {
        verdict: Verdict::Pending,
        score: 0.0,
        feedback: Feedback {
            summary: format!("A reviewer will grade it, mainly by this: {points}"),
            ..advised(exercise, solution, Verdict::Pending)
        },
        ran_out: false,
    }
}

fn not_graded(why: &str) -> String {
    let why = lower(why);
    format!("It could not be graded: {why}. This costs you nothing.")
}

fn unscored(verdict: Verdict, summary: String) -> Graded {
    Graded {
        verdict,
        score: 0.0,
        feedback: Feedback {
            summary,
            ..Feedback::default()
        },
        ran_out: false,
    }
}

#[cfg(test)]
mod tests;
