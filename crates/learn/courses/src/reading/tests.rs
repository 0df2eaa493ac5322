//! Each rule, broken once.

mod fuzz;
mod refusals;
mod validation;

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Problem;

use super::read;
use crate::{ExerciseKind, LearningPath, ValidationKind};

const PATH: &str = "\
---
name: Numbers
description: Learn to add
category: numbers
difficulty: beginner
estimated_hours: 1.5
skills_covered: [adding]
prerequisites: []
objectives: [Add]
related_paths: [other-numbers]
achievements:
  - id: adder
    name: Adder
    description: Add something
    icon: plus
    when: { exercise_completed: add-two, streak_days: 2 }
---

What numbers are.
";

const EXERCISE: &str = "\
---
title: Add two numbers
type: practice
difficulty: easy
estimated_minutes: 5
teaches: [adding]
requires: [counting]
skills_practiced: [adding]
related_docs: [https://example.org/add, docs/learn.md]
free_hints: 1
hints: [Think, Use a sign, The sign is a plus]
validation:
  type: test
  language: javascript
  setup: setup.js
  cases:
    - description: adds
      input: add(1, 2)
      expected: 3
      look_at: The sign
    - description: refuses texts
      input: add('a', 1)
      throws: { name: TypeError, message: number }
      hidden: true
      weight: 2
advice:
  - { when: present, pattern: '\\+', kind: exemplary, text: A plus, on: pass }
---

Write `add`.
";

type Files = BTreeMap<String, Bytes>;

fn files(exercise: &str) -> Files {
    let files = [
        ("PATH.md", PATH),
        ("exercises/01-add-two/EXERCISE.md", exercise),
        ("exercises/01-add-two/setup.js", "let base = 10;"),
        ("exercises/01-add-two/starter.js", "// begin here"),
        (
            "exercises/01-add-two/solution.js",
            "const add = (a, b) => a + b;",
        ),
    ];
    let files = files.into_iter();
    files
        .map(|(path, text)| (path.to_owned(), Bytes::from(text.to_owned())))
        .collect()
}

/// An exercise with another validation, its files beside.
fn validated(validation: &str, more: &[(&str, &str)]) -> Files {
    let start = EXERCISE.find("validation:\n").expect("a validation");
    let end = EXERCISE.find("advice:\n").expect("advice");
    let exercise = [&EXERCISE[..start], validation, &EXERCISE[end..]].concat();
    let mut files = files(&exercise);
    files.remove("exercises/01-add-two/setup.js");
    for (path, text) in more {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        if path.starts_with("starter") && ending != "js" {
            files.remove("exercises/01-add-two/starter.js");
        }
        if path.starts_with("solution") && ending != "js" {
            files.remove("exercises/01-add-two/solution.js");
        }
        let path = format!("exercises/01-add-two/{path}");
        files.insert(path, Bytes::from((*text).to_owned()));
    }
    files
}

/// An exercise that says so in its front matter.
pub(crate) fn exercise(advice: &str) -> crate::Exercise {
    let start = EXERCISE.find("advice:\n").expect("advice");
    let end = EXERCISE.rfind("---\n").expect("an end");
    let text = [&EXERCISE[..start], advice, &EXERCISE[end..]].concat();
    path(&files(&text)).exercises[0].as_ref().clone()
}

fn rules(problems: &[Problem]) -> Vec<String> {
    let told = problems.iter();
    let file = |p: &Problem| p.file.replace("exercises/01-add-two/", "");
    told.map(|p| format!("{} {}:{}", p.rule, file(p), p.line))
        .collect()
}

fn path(files: &Files) -> LearningPath {
    let (path, problems) = read("numbers", files);
    assert_eq!(problems, Vec::new());
    path.expect("a path")
}

#[test]
fn a_path_is_read_with_all_that_it_says() {
    let path = path(&files(EXERCISE));
    assert_eq!(
        (path.id.as_str(), path.category.as_str()),
        ("numbers", "numbers")
    );
    assert_eq!(path.introduction, "What numbers are.");
    assert_eq!(path.achievements[0].when.streak_days, Some(2));
    let exercise = &path.exercises[0];
    assert_eq!(
        (exercise.id.as_str(), exercise.kind),
        ("add-two", ExerciseKind::Practice)
    );
    assert_eq!(exercise.validation, ValidationKind::Test);
    assert_eq!(exercise.language, "javascript");
    assert_eq!((exercise.hints.free, exercise.hints.all.len()), (1, 3));
    assert_eq!(exercise.file_name.as_deref(), Some("solution.js"));
    assert_eq!(exercise.starter, exercise.one_text("// begin here"));
    assert_eq!(exercise.instructions, "Write `add`.");
    // What is hidden is not among what is shown.
    assert_eq!(exercise.shown_cases.len(), 1);
    assert_eq!(exercise.shown_cases[0].expected, "3");
    let mut changed = files(EXERCISE);
    let setup = changed
        .get_mut("exercises/01-add-two/setup.js")
        .expect("a file");
    *setup = Bytes::from("let base = 11;");
    assert_ne!(self::path(&changed).exercises[0].digest, exercise.digest);
}

#[test]
fn what_prints_an_exercise_tells_nothing_of_how_it_is_graded() {
    let path = path(&files(EXERCISE));
    let printed = format!("{path:?}");
    for secret in ["a + b", "TypeError", "Use a sign", "'a', 1"] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}
