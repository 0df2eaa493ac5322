//! Reads the `validation` of an exercise: how it is graded.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::cases;
use super::exercise::ReadValidation;
use super::files::{Files, Given};
use super::keys::Keys;
use super::skills::{self, About};
use crate::comments::CommentStyle;
use crate::compare::Comparator;
use crate::grading::{
    Case, CaseInfo, Fixtures, Grader, Output, OutputSource, Part, Validation, below,
};
use crate::{ShownCase, Solution, ValidationKind, limits};

/// A validation, while it is read.
struct Draft {
    validation: Validation,
    shown_cases: Vec<ShownCase>,
    expected_output: Option<String>,
    shape: Shape,
}

/// The form of a solution.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// One text with this ending.
    One(&'static str),
    /// One text with any ending.
    OneOfAny,
    /// One text with this name and ending, or a folder.
    Named(&'static str, &'static str),
    /// One text, or a folder.
    Any,
}

pub(super) fn read(exercise: &Keys<'_>, files: &Files) -> Option<ReadValidation> {
    let Some(keys) = exercise.keys("validation", "validation") else {
        if !exercise.has("validation") {
            let message = "There is no `validation`, by which a solution is graded";
            exercise.wrong("validation", "missing", message);
        }
        return None;
    };
    let kind = keys.required_choice(
        "type",
        &[
            ("test", ValidationKind::Test),
            ("output", ValidationKind::Output),
            ("pattern", ValidationKind::Pattern),
            ("manual", ValidationKind::Manual),
        ],
    )?;
    let draft = match kind {
        ValidationKind::Test => test(&keys, files),
        ValidationKind::Output => output(&keys),
        ValidationKind::Pattern => Some(pattern(&keys)),
        ValidationKind::Manual => Some(manual(&keys)),
    };
    // After a refusal not every key was asked for, so `end` would report keys that are right.
    if draft.is_some() {
        keys.end();
    }
    let starter = given(exercise, files, "starter");
    let reference = given(exercise, files, "solution");
    let (draft, starter, reference) = (draft?, starter?, reference?);
    check_shape(exercise, draft.shape, "starter", &starter);
    check_shape(exercise, draft.shape, "solution", &reference);
    if starter.ending != reference.ending {
        let message = "The starter and the solution are not of one kind";
        exercise.source.error("exercise-starter-shape", "", message);
    }
    let name = match (draft.shape, reference.ending) {
        (_, None) => None,
        (Shape::Named(name, _), _) => Some(name.to_owned()),
        (_, Some(ending)) => Some(format!("solution.{ending}")),
    };
    let solution =
        |given: Given| -> Solution { given.solution(name.as_deref().unwrap_or_default()) };
    let checklist = match &draft.validation {
        Validation::Manual { checklist } => checklist.clone(),
        _ => Vec::new(),
    };
    let language = match &draft.validation {
        Validation::Worker { language, .. } => language.clone(),
        _ => language(reference.ending, draft.shape).to_owned(),
    };
    Some(ReadValidation {
        kind,
        language,
        starter: solution(starter),
        reference: solution(reference),
        file_name: name.clone(),
        validation: draft.validation,
        shown_cases: draft.shown_cases,
        expected_output: draft.expected_output,
        checklist,
    })
}

fn language(ending: Option<&str>, shape: Shape) -> &'static str {
    match (ending, shape) {
        (_, Shape::Named(..)) => "markdown",
        (Some("js"), _) => "javascript",
        (Some("sql"), _) => "sql",
        (Some("yaml"), _) => "yaml",
        (Some("json"), _) => "json",
        (Some("sh"), _) => "shell",
        (Some("py"), _) => "python",
        _ => "",
    }
}

fn given(exercise: &Keys<'_>, files: &Files, name: &str) -> Option<Given> {
    let given = files.given(name);
    let wrong = |(how, message): (&str, String)| {
        let rule = format!("exercise-{name}-{how}");
        exercise.source.error(&rule, "", message);
    };
    let given = given.map_err(wrong).ok()?;
    if given.files.values().all(|text| text.trim().is_empty()) {
        let message = format!("The {name} is empty; a learner cannot begin from nothing");
        let rule = format!("exercise-{name}-empty");
        exercise.source.error(&rule, "", message);
    }
    Some(given)
}

fn check_shape(exercise: &Keys<'_>, shape: Shape, name: &str, given: &Given) {
    let wanted = match shape {
        Shape::One(ending) | Shape::Named(_, ending) => Some(ending),
        Shape::OneOfAny | Shape::Any => None,
    };
    match (given.ending, shape) {
        (None, Shape::One(_) | Shape::OneOfAny) => {
            let rule = format!("exercise-{name}-not-one-text");
            let message = format!("The {name} is a folder; solutions of this kind are one text");
            exercise.source.error(&rule, "", message);
        }
        (Some(ending), _) if wanted.is_some_and(|wanted| wanted != ending) => {
            let rule = format!("exercise-{name}-ending");
            let wanted = wanted.unwrap_or_default();
            let message = format!("The {name} ends with .{ending}, not with .{wanted}");
            exercise.source.error(&rule, "", message);
        }
        _ => {}
    }
}

impl Draft {
    fn new(shape: Shape, validation: Validation) -> Self {
        Self {
            shown_cases: cases::shown(&validation.cases()),
            validation,
            expected_output: None,
            shape,
        }
    }
}

fn test(keys: &Keys<'_>, files: &Files) -> Option<Draft> {
    let language = keys.required_text("language", limits::MAX_NAME_CHARS);
    if keys.has("grader") {
        return worker(keys, language);
    }
    Some(match language.as_str() {
        "javascript" => {
            let setup = cases::file(keys, "setup", files).unwrap_or_default();
            let cases = cases::all(keys, cases::expectation);
            Draft::new(Shape::One("js"), Validation::Expressions { setup, cases })
        }
        "javascript-tests" => {
            let setup = cases::file(keys, "setup", files).unwrap_or_default();
            let cases = cases::all(keys, |case| cases::subject(case, files));
            Draft::new(Shape::One("js"), Validation::Tests { setup, cases })
        }
        "sql" => {
            let ordered = keys.flag("ordered").unwrap_or(false);
            let column_names = keys.flag("column_names").unwrap_or(false);
            let may_write = keys.flag("may_write").unwrap_or(false);
            let cases = cases::all(keys, |case| cases::database(case, files, may_write));
            let validation = Validation::Sql {
                ordered,
                column_names,
                may_write,
                cases,
            };
            Draft::new(Shape::One("sql"), validation)
        }
        "skill" => {
            let folder = keys.text("fixtures", 200);
            let fixtures = folder.map(|folder| files.fixtures(&folder));
            if fixtures.as_ref().is_some_and(Fixtures::is_empty) {
                keys.wrong(
                    "fixtures",
                    "missing",
                    "There are no folders of skills in it",
                );
            }
            let fixtures = Arc::new(fixtures.unwrap_or_default());
            let cases = cases::all(keys, |case| skills::question(case, About::Skill, &fixtures));
            let shape = Shape::Named("SKILL.md", "md");
            Draft::new(shape, Validation::Skill { fixtures, cases })
        }
        "config" => {
            let none = Fixtures::new();
            let cases = cases::all(keys, |case| skills::question(case, About::Config, &none));
            Draft::new(Shape::One("yaml"), Validation::Config { cases })
        }
        "" => return None,
        other => {
            let message = format!(
                "`{}` cannot be run here: javascript, javascript-tests, sql, skill and config can; \
                 any other takes a `grader`",
                model::shown(other, 40)
            );
            keys.wrong("language", "invalid", message);
            return None;
        }
    })
}

fn worker(keys: &Keys<'_>, language: String) -> Option<Draft> {
    let grader = keys.keys("grader", "grader")?;
    let skill = grader.required_text("skill", 200);
    let method = grader.required_text("method", limits::MAX_NAME_CHARS);
    grader.end();
    let cases = cases::all(keys, cases::comparison);
    let validation = Validation::Worker {
        language,
        grader: Grader { skill, method },
        cases,
    };
    Some(Draft::new(Shape::Any, validation))
}

fn comparator(keys: &Keys<'_>) -> Comparator {
    if let Some(map) = keys.value("comparator").filter(|value| value.is_object()) {
        let known = map.as_object().is_some_and(|map| map.keys().eq(["float"]));
        let tolerance = map.get("float").and_then(Value::as_f64);
        let tolerance = tolerance.filter(|t| known && t.is_finite() && *t >= 0.0);
        if tolerance.is_none() {
            let message = "`comparator` takes {float: 0.01}: by how much numbers may be off";
            keys.wrong("comparator", "invalid", message);
        }
        return Comparator::Float(tolerance.unwrap_or_default());
    }
    let choices = [
        ("exact", Comparator::Exact),
        ("trimmed", Comparator::Trimmed),
        ("whitespace", Comparator::Whitespace),
        ("json", Comparator::Json),
        ("unordered_lines", Comparator::UnorderedLines),
    ];
    keys.required_choice("comparator", &choices)
        .unwrap_or(Comparator::Trimmed)
}

/// The parts of an object of JSON that are compared one by one: each value, in objects each of
/// theirs, and that there is nothing else.
fn parts(comparator: Comparator, expected: &str) -> Vec<(String, Part)> {
    fn values(object: &Map<String, Value>, name: &str, at: &str, parts: &mut Vec<(String, Part)>) {
        for (key, value) in object {
            let name = format!("{name}{key}");
            let at = below(at, key);
            match value {
                Value::Object(inner) if !inner.is_empty() => {
                    values(inner, &format!("{name}."), &at, parts);
                }
                _ => parts.push((format!("`{name}` is right"), Part::At(at))),
            }
        }
    }
    let mut parts = Vec::new();
    if comparator == Comparator::Json
        && let Ok(Value::Object(object)) = serde_json::from_str(expected)
    {
        values(&object, "", "", &mut parts);
        parts.push(("Nothing else is in it".to_owned(), Part::Keys));
    }
    // An output of which most is right scores more than nothing. Below three the parts would be no
    // finer than the whole: one value, and that there is nothing else.
    if (3..=limits::MAX_CASES).contains(&parts.len()) {
        parts
    } else {
        Vec::new()
    }
}

fn output(keys: &Keys<'_>) -> Option<Draft> {
    let sources = [
        ("text", OutputSource::Text),
        ("javascript", OutputSource::JavaScript),
    ];
    let source = keys.required_choice("language", &sources);
    let comparator = comparator(keys);
    let single = keys.exact_text("expected_output", limits::MAX_PARAGRAPH_CHARS);
    let show = keys.flag("show_expected");
    let shape = match source? {
        OutputSource::Text => Shape::OneOfAny,
        OutputSource::JavaScript => Shape::One("js"),
    };
    let cases = match (single, keys.has("cases")) {
        (Some(expected), false) => {
            let case = |description: String, part| Case {
                info: CaseInfo {
                    description,
                    hidden: !show.unwrap_or(true),
                    weight: 1.0,
                    look_at: None,
                    input: None,
                    expected: Some(expected.clone()),
                    line: keys.line(),
                },
                check: Output {
                    input: String::new(),
                    expected: expected.clone(),
                    part,
                },
            };
            let parts = parts(comparator, &expected).into_iter();
            let parts = parts.map(|(name, part)| case(name, Some(part)));
            let whole = "The output is what was asked for".to_owned();
            match parts.collect::<Vec<_>>() {
                parts if parts.is_empty() => vec![case(whole, None)],
                parts => parts,
            }
        }
        (Some(_), true) => {
            let message = "There are both `expected_output` and `cases`";
            keys.wrong("expected_output", "ambiguous", message);
            return None;
        }
        (None, _) if keys.has("expected_output") => return None,
        (None, false) => {
            let message = "There is neither `expected_output` nor `cases`";
            keys.wrong("expected_output", "missing", message);
            return None;
        }
        (None, true) => {
            if show.is_some() {
                let message = "`show_expected` goes with `expected_output`; here use `hidden`";
                keys.wrong("show_expected", "ambiguous", message);
            }
            let cases = cases::all(keys, cases::output);
            if source == Some(OutputSource::Text)
                && cases.iter().any(|case| case.info.input.is_some())
            {
                let message = "A text takes no `input`: it is the output itself";
                keys.wrong("cases", "input", message);
            }
            cases
        }
    };
    // Any part will do, as each has all of the output.
    let shown = keys.has("expected_output").then(|| cases.first()).flatten();
    let expected_output = shown.filter(|case| !case.info.hidden);
    let expected_output = expected_output.map(|case| case.check.expected.clone());
    let source = source?;
    let validation = Validation::Output {
        source,
        comparator,
        cases,
    };
    let mut draft = Draft::new(shape, validation);
    // The output is shown as a whole, so its parts would only repeat it.
    if keys.has("expected_output") {
        draft.shown_cases = Vec::new();
    }
    draft.expected_output = expected_output;
    Some(draft)
}

fn pattern(keys: &Keys<'_>) -> Draft {
    let styles = [
        ("javascript", CommentStyle::JavaScript),
        ("sql", CommentStyle::Sql),
        ("shell", CommentStyle::Shell),
        ("yaml", CommentStyle::Yaml),
    ];
    let comments = keys.choice("strip_comments", &styles);
    let cases = cases::all(keys, cases::pattern_case);
    Draft::new(Shape::Any, Validation::Pattern { comments, cases })
}

fn manual(keys: &Keys<'_>) -> Draft {
    let checklist = keys.texts(
        "checklist",
        limits::MAX_LIST_ITEMS,
        limits::MAX_SENTENCE_CHARS,
    );
    if checklist.is_empty() {
        let message = "There is no `checklist` of the reviewer's criteria";
        keys.wrong("checklist", "missing", message);
    }
    Draft::new(Shape::Any, Validation::Manual { checklist })
}
