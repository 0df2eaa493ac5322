//! Reads an `EXERCISE.md` and the files next to it.

use model::{Problem, shown};
use tokio::sync::OnceCell;

use super::files::Files;
use super::keys::{Keys, Source};
use super::{check_id, path, pattern, validation};
use crate::grading::{Advice, AdviceKind, Lines};
use crate::render::counted;
use crate::{Exercise, ExerciseDifficulty, ExerciseKind, Grading, Hints, ValidationKind, limits};

/// The number and the id of `03-some-exercise`.
pub(super) fn number_and_id(folder: &str) -> Result<(u32, &str), String> {
    let wrong = || {
        let folder = shown(folder, 80);
        format!("The folder is called `{folder}`; call it like 03-some-id")
    };
    let (number, id) = folder.split_once('-').ok_or_else(wrong)?;
    let is_number = (1..=4).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let number = number.parse().ok().filter(|_| is_number);
    check_id(id).map_err(|reason| {
        let id = shown(id, 80);
        format!("`{id}` cannot be the id of an exercise: {reason}")
    })?;
    Ok((number.ok_or_else(wrong)?, id))
}

/// Reads an exercise; none where its front matter cannot be read at all.
pub(super) fn read(
    path_id: &str,
    folder: &str,
    files: &Files,
    problems: &mut Vec<Problem>,
) -> Option<Exercise> {
    let file = format!("{folder}/EXERCISE.md");
    let (document, found) = skill_md::document(files.content("EXERCISE.md")?, &file);
    problems.extend(found);
    let source = Source::new(file, document?);
    let exercise = exercise(path_id, folder, files, &source);
    path::check_body(&source, "exercise-instructions");
    // After a refusal not every file was asked for, so they would be reported for nothing.
    if !source.is_refused() {
        problems.extend(files.unused());
    }
    problems.extend(source.into_problems());
    exercise
}

fn exercise(path_id: &str, folder: &str, files: &Files, source: &Source) -> Option<Exercise> {
    let keys = source.keys("exercise");
    let name = folder.rsplit('/').next().unwrap_or_default();
    let (_, id) = number_and_id(name).ok()?;
    let title = keys.required_text("title", limits::MAX_NAME_CHARS);
    let kind = keys.required_choice(
        "type",
        &[
            ("tutorial", ExerciseKind::Tutorial),
            ("practice", ExerciseKind::Practice),
            ("challenge", ExerciseKind::Challenge),
            ("project", ExerciseKind::Project),
        ],
    );
    let difficulty = keys.required_choice(
        "difficulty",
        &[
            ("easy", ExerciseDifficulty::Easy),
            ("medium", ExerciseDifficulty::Medium),
            ("hard", ExerciseDifficulty::Hard),
        ],
    );
    let estimated_minutes = keys.required_whole("estimated_minutes", 1, 10_000);
    let teaches = keys.ids("teaches", limits::MAX_LIST_ITEMS);
    let requires = keys.ids("requires", limits::MAX_LIST_ITEMS);
    for concept in teaches.iter().filter(|concept| requires.contains(concept)) {
        let message = format!("The exercise requires `{concept}`, which it teaches itself");
        keys.wrong("requires", "self", message);
    }
    let skills_practiced = keys.texts(
        "skills_practiced",
        limits::MAX_LIST_ITEMS,
        limits::MAX_NAME_CHARS,
    );
    let related_docs = related_docs(&keys);
    let hints = hints(&keys);
    let read = validation::read(&keys, files);
    let advice = advice(&keys);
    keys.end();
    let read = read?;
    Some(Exercise {
        id: id.to_owned(),
        path_id: path_id.to_owned(),
        title,
        kind: kind?,
        difficulty: difficulty?,
        estimated_minutes: u32::try_from(estimated_minutes).ok()?,
        teaches,
        requires,
        skills_practiced,
        related_docs,
        instructions: source.document.body.clone(),
        starter: read.starter,
        hints,
        validation: read.kind,
        language: read.language,
        file_name: read.file_name,
        checklist: read.checklist,
        expected_output: read.expected_output,
        shown_cases: read.shown_cases,
        digest: files.digest(),
        grading: Grading {
            folder: folder.to_owned(),
            lines: Lines {
                requires: source.document.line("/requires"),
                validation: source.document.line("/validation"),
            },
            reference: read.reference,
            validation: read.validation,
            advice,
            expected: OnceCell::new(),
        },
    })
}

fn related_docs(keys: &Keys<'_>) -> Vec<String> {
    let docs = keys.texts(
        "related_docs",
        limits::MAX_LIST_ITEMS,
        limits::MAX_SENTENCE_CHARS,
    );
    // Neither another scheme, such as `javascript:`, nor a path that leaves the documentation.
    for address in &docs {
        let is_page = address.starts_with("docs/") && !address.contains("..");
        let is_plain = !address.contains(|c: char| c.is_whitespace() || c.is_control());
        if !(is_plain && (is_page || address.starts_with("https://"))) {
            let message = format!(
                "`{}` is neither an https address nor a page of docs/",
                shown(address, 100)
            );
            keys.wrong("related_docs", "invalid", message);
        }
    }
    docs
}

fn hints(keys: &Keys<'_>) -> Hints {
    let all = keys.texts("hints", limits::MAX_HINTS, limits::MAX_PARAGRAPH_CHARS);
    let free = keys
        .whole("free_hints", 0, limits::MAX_HINTS as u64)
        .unwrap_or(0);
    let free = usize::try_from(free).unwrap_or(0).min(all.len());
    // Hints that could not be read were reported, so they still count here: one mistake, one
    // problem.
    let given = match keys.value("hints") {
        Some(value) => value.as_array().map_or(limits::MAX_HINTS, Vec::len),
        None => 0,
    };
    let more = given.saturating_sub(free);
    if more < limits::MIN_HINTS {
        let message = format!(
            "{} {} in addition to the free ones; give at least {}",
            if more == 1 { "There is" } else { "There are" },
            counted(more, "hint"),
            limits::MIN_HINTS
        );
        keys.wrong("hints", "few", message);
    }
    Hints { free, all }
}

fn advice(keys: &Keys<'_>) -> Vec<Advice> {
    let list = keys.list("advice", "advice", limits::MAX_ADVICE);
    let advice = list.iter().map(|keys| {
        let when_present = keys.required_choice("when", &[("present", true), ("absent", false)]);
        let text = keys.required_text("pattern", limits::MAX_PATTERN_CHARS);
        let kind = keys.required_choice(
            "kind",
            &[
                ("exemplary", AdviceKind::Exemplary),
                ("improvement", AdviceKind::Improvement),
                ("suggestion", AdviceKind::Suggestion),
            ],
        );
        let on_pass = keys.choice(
            "on",
            &[("pass", Some(true)), ("fail", Some(false)), ("any", None)],
        );
        let remark = keys.required_text("text", limits::MAX_SENTENCE_CHARS);
        keys.end();
        let pattern = pattern(&text);
        if let Err(reason) = &pattern {
            let message = format!("The pattern is wrong: {reason}");
            keys.wrong("pattern", "invalid", message);
        }
        Some(Advice {
            when_present: when_present?,
            pattern: pattern.ok()?,
            kind: kind?,
            on_pass: on_pass.flatten(),
            text: remark,
        })
    });
    advice.flatten().collect()
}

/// The `validation` of an exercise, with the files that go with it.
pub(super) struct ReadValidation {
    pub(super) kind: ValidationKind,
    pub(super) language: String,
    pub(super) file_name: Option<String>,
    pub(super) starter: crate::Solution,
    pub(super) reference: crate::Solution,
    pub(super) validation: crate::grading::Validation,
    pub(super) shown_cases: Vec<crate::ShownCase>,
    pub(super) expected_output: Option<String>,
    pub(super) checklist: Vec<String>,
}
