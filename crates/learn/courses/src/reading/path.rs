//! Reads `PATH.md` and the folders of exercises next to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use model::{Problem, Severity, shown};

use super::files::{Files, too_large};
use super::keys::{Keys, Source};
use super::{achievements, check_id, exercise};
use crate::{Difficulty, LearningPath, limits};

const PATH_MD: &str = "PATH.md";
const EXERCISE_MD: &str = "EXERCISE.md";
const EXERCISES: &str = "exercises/";
/// Problems of a path that are reported.
const MAX_PROBLEMS: usize = 500;

/// Reads a path from the name of its folder and the files in it. There is none where a
/// problem is an error.
#[must_use]
pub fn read(folder: &str, files: &BTreeMap<String, Bytes>) -> (Option<LearningPath>, Vec<Problem>) {
    let mut problems = Vec::new();
    let path = read_path(folder, files, &mut problems);
    problems.sort_by(|a, b| {
        (a.severity, &a.file, a.line, &a.rule).cmp(&(b.severity, &b.file, b.line, &b.rule))
    });
    // Errors are sorted to the front, so a path with one is refused even where the list is cut.
    problems.truncate(MAX_PROBLEMS);
    let is_refused = problems.iter().any(|p| p.severity == Severity::Error);
    (path.filter(|_| !is_refused), problems)
}

fn read_path(
    folder: &str,
    files: &BTreeMap<String, Bytes>,
    problems: &mut Vec<Problem>,
) -> Option<LearningPath> {
    if let Err(reason) = check_id(folder) {
        let folder = shown(folder, 80);
        let message = format!("The folder `{folder}` cannot name a path: {reason}");
        problems.push(Problem::error("path-id-invalid", "", 0, message));
    }
    let folders = folders(files, problems);
    let Some(content) = files.get(PATH_MD) else {
        let message = "There is no PATH.md, which says what the path is";
        problems.push(Problem::error("path-md-missing", "", 0, message));
        return None;
    };
    if let Some(message) = too_large(content) {
        problems.push(Problem::error("path-md-too-large", PATH_MD, 0, message));
        return None;
    }
    let (document, found) = skill_md::document(content, PATH_MD);
    problems.extend(found);
    let mut exercises = Vec::new();
    for (exercise_folder, files) in &folders {
        let files = Files::of(exercise_folder, files, problems);
        exercises.extend(exercise::read(folder, exercise_folder, &files, problems));
    }
    if folders.is_empty() {
        let message = "There is no exercise: a folder `exercises/01-some-id` with an EXERCISE.md";
        problems.push(Problem::error(
            "path-exercises-missing",
            PATH_MD,
            0,
            message,
        ));
    }
    let source = Source::new(PATH_MD.to_owned(), document?);
    let mut path = header(folder, &source.keys("path"));
    check_body(&source, "path-introduction");
    path.introduction.clone_from(&source.document.body);
    problems.extend(source.into_problems());
    path.exercises = exercises.into_iter().map(Arc::new).collect();
    Some(path)
}

/// Checks that there is a text below the front matter, and not too much of it.
pub(super) fn check_body(source: &Source, rule: &str) {
    let chars = source.document.body.chars().count();
    if chars == 0 {
        let rule = format!("{rule}-missing");
        source.error(&rule, "", "There is no text below the front matter");
    } else if chars > limits::MAX_BODY_CHARS {
        let message = format!(
            "The text has {chars} characters; at most {} are taken",
            limits::MAX_BODY_CHARS
        );
        source.error(&format!("{rule}-too-long"), "", message);
    }
}

fn header(folder: &str, keys: &Keys<'_>) -> LearningPath {
    let path = LearningPath {
        id: folder.to_owned(),
        name: keys.required_text("name", limits::MAX_NAME_CHARS),
        description: keys.required_text("description", limits::MAX_SENTENCE_CHARS),
        category: keys.required_text("category", super::MAX_ID_CHARS),
        difficulty: keys
            .required_choice(
                "difficulty",
                &[
                    ("beginner", Difficulty::Beginner),
                    ("intermediate", Difficulty::Intermediate),
                    ("advanced", Difficulty::Advanced),
                ],
            )
            .unwrap_or(Difficulty::Beginner),
        estimated_hours: keys.required_number("estimated_hours", 0.1, 500.0),
        skills_covered: keys.texts(
            "skills_covered",
            limits::MAX_LIST_ITEMS,
            limits::MAX_NAME_CHARS,
        ),
        prerequisites: keys.ids("prerequisites", limits::MAX_LIST_ITEMS),
        objectives: keys.texts(
            "objectives",
            limits::MAX_LIST_ITEMS,
            limits::MAX_SENTENCE_CHARS,
        ),
        related_paths: keys.ids("related_paths", limits::MAX_LIST_ITEMS),
        introduction: String::new(),
        achievements: achievements::read(keys),
        exercises: Vec::new(),
    };
    if let Err(reason) = check_id(&path.category)
        && !path.category.is_empty()
    {
        let message = format!("The category cannot be one: {reason}");
        keys.wrong("category", "invalid", message);
    }
    if path.objectives.is_empty() {
        keys.wrong(
            "objectives",
            "missing",
            "There is no objective: say what is learned",
        );
    }
    for (key, ids) in [
        ("prerequisites", &path.prerequisites),
        ("related_paths", &path.related_paths),
    ] {
        if ids.iter().any(|id| id == folder) {
            keys.wrong(key, "self", format!("The path is in its own `{key}`"));
        }
    }
    keys.end();
    path
}

/// An exercise's folder, and its files by their paths in it.
type Folder<'f> = (String, Vec<(&'f str, &'f Bytes)>);

/// The folders of exercises, in the order of their numbers.
fn folders<'f>(files: &'f BTreeMap<String, Bytes>, problems: &mut Vec<Problem>) -> Vec<Folder<'f>> {
    let mut folders: BTreeMap<&str, Vec<(&str, &Bytes)>> = BTreeMap::new();
    for (path, content) in files {
        match path.strip_prefix(EXERCISES).and_then(|p| p.split_once('/')) {
            Some((folder, inside)) => folders.entry(folder).or_default().push((inside, content)),
            None if path == PATH_MD => {}
            None => {
                let message = "Nothing uses this file";
                problems.push(Problem::warning("path-file-unused", path, 0, message));
            }
        }
    }
    if folders.len() > limits::MAX_EXERCISES {
        let message = format!(
            "The path has {} exercises; at most {} are taken",
            folders.len(),
            limits::MAX_EXERCISES
        );
        problems.push(Problem::error("path-exercises-too-many", "", 0, message));
        // None is read, as reading them all would have no bound.
        return Vec::new();
    }
    let mut numbered: Vec<(u32, Folder<'f>)> = Vec::new();
    for (name, files) in folders {
        let path = format!("{EXERCISES}{name}");
        let number = exercise::number_and_id(name).map(|(number, _)| number);
        match number {
            Err(reason) => {
                problems.push(Problem::error("exercise-folder-name", &path, 0, reason));
            }
            Ok(number) => {
                if let Some((_, (other, _))) = numbered.iter().find(|(n, _)| *n == number) {
                    let message = format!("`{other}` has the number {number} too");
                    let rule = "exercise-number-duplicate";
                    problems.push(Problem::error(rule, &path, 0, message));
                }
                numbered.push((number, (path, files)));
            }
        }
    }
    numbered.sort_by_key(|(number, _)| *number);
    let folders = numbered.into_iter().map(|(_, folder)| folder);
    folders
        .filter(|(path, files)| {
            let has = files.iter().any(|(name, _)| *name == EXERCISE_MD);
            if !has {
                let message = "There is no EXERCISE.md in the folder";
                problems.push(Problem::error("exercise-md-missing", path, 0, message));
            }
            has
        })
        .collect()
}
