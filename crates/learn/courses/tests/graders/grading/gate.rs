//! What an exercise and its path must be before anybody sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use repertoire_courses::{LearningPath, check_together, read};

use super::{ADD, SOLUTION, graders, path};

#[tokio::test]
async fn the_gate_wants_starters_that_fail_and_solutions_that_pass() {
    let rules = |validation: String, files: Vec<(&'static str, &'static str)>| async move {
        let path = path(&validation, &files);
        let problems = graders().check(&path).await;
        let rules = problems
            .iter()
            .map(|p| format!("{} {}:{}", p.rule, p.file, p.line));
        (rules.collect::<Vec<String>>(), format!("{problems:?}"))
    };
    let md = "exercises/01-abc/EXERCISE.md";
    let (told, _) = rules(
        ADD.to_owned(),
        vec![("starter.js", "//"), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(told, Vec::<String>::new());
    let (told, _) = rules(
        ADD.to_owned(),
        vec![("starter.js", SOLUTION), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(told, [format!("starter-passes {md}:9")]);
    let (told, words) = rules(
        ADD.to_owned(),
        vec![
            ("starter.js", "for(;;);"),
            ("solution.js", "let add = (...a) => a.join()"),
        ],
    )
    .await;
    assert_eq!(
        told,
        [
            format!("solution-fails {md}:13"),
            format!("starter-not-graded {md}:13")
        ]
    );
    assert!(!words.contains("777"), "{words}");
    let (told, _) = rules(
        ADD.replace("hidden: true, ", ""),
        vec![("starter.js", "//"), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(told, [format!("cases-not-hidden {md}:9")]);
    // What is expected cannot be computed.
    let (told, _) = rules(
        ADD.replace("expected: 778", "expected: nothing()"),
        vec![("starter.js", "//"), ("solution.js", SOLUTION)],
    )
    .await;
    assert_eq!(
        told,
        [
            format!("solution-not-graded {md}:0"),
            format!("starter-not-graded {md}:0")
        ]
    );
}

#[test]
fn paths_go_together() {
    let path = |id: &str, more: &str, exercises: &[(&str, &str)]| {
        let header = format!(
            "---\nname: A\ndescription: B\ncategory: abc\ndifficulty: beginner\n\
             estimated_hours: 1\nobjectives: [C]\n{more}---\nText\n"
        );
        let mut files = BTreeMap::from([("PATH.md".to_owned(), Bytes::from(header))]);
        for (at, (id, more)) in exercises.iter().enumerate() {
            let folder = format!("exercises/{at}-{id}");
            let exercise = format!(
                "---\ntitle: A\ntype: practice\ndifficulty: easy\nestimated_minutes: 1\n{more}\n\
                 hints: [a, b]\nvalidation: {{ type: manual, checklist: [a] }}\n---\nText\n"
            );
            files.insert(format!("{folder}/EXERCISE.md"), Bytes::from(exercise));
            files.insert(format!("{folder}/starter.md"), Bytes::from_static(b"x"));
            files.insert(format!("{folder}/solution.md"), Bytes::from_static(b"y"));
        }
        let (path, problems) = read(id, &files);
        assert_eq!(problems, Vec::new());
        Arc::new(path.expect("a path"))
    };
    let told = |paths: &[Arc<LearningPath>]| -> Vec<String> {
        let told = check_together(paths).into_iter();
        told.map(|(id, p)| {
            let file = p.file.replace("/EXERCISE.md", "");
            match p.line {
                0 => format!("{id} {} {file}", p.rule),
                line => format!("{id} {} {file}:{line}", p.rule),
            }
        })
        .collect()
    };
    let first = path(
        "first",
        "",
        &[
            ("one", "teaches: [aaa]"),
            ("two", "requires: [aaa]\nteaches: [bbb]"),
        ],
    );
    let second = path(
        "second",
        "prerequisites: [first]\nrelated_paths: [first]\n",
        &[
            ("three", "requires: [bbb, ccc]"),
            ("four", "teaches: [ccc]"),
        ],
    );
    assert_eq!(
        told(&[Arc::clone(&first), Arc::clone(&second)]),
        Vec::<String>::new()
    );
    let none = "achievements: [{ id: xyz, name: a, description: b, icon: c, when: { exercise_completed: zzz, path_completed: yyy, concept_learned: qqq } }]\nrelated_paths: [nowhere]\nprerequisites: [gone]\n";
    let third = path(
        "third",
        none,
        &[
            ("one", "teaches: [ddd]"),
            ("five", "requires: [aaa]"),
            ("six", "requires: [eee]\nteaches: [fff]"),
            ("seven", "requires: [fff]\nteaches: [eee]"),
        ],
    );
    assert_eq!(
        told(&[Arc::clone(&first), third]),
        [
            "third exercise-id-duplicate exercises/0-one",
            "third path-prerequisite-unknown PATH.md",
            "third path-related-unknown PATH.md",
            "third achievement-when-unknown PATH.md",
            "third achievement-when-unknown PATH.md",
            "third achievement-when-unknown PATH.md",
            "third concept-not-taught exercises/1-five:6",
            "third concept-cycle exercises/2-six:6",
            "third concept-cycle exercises/3-seven:6",
        ]
    );
    let circle = path("circle", "prerequisites: [second]\n", &[("eight", "")]);
    let begin = path(
        "first",
        "prerequisites: [circle]\n",
        &[("one", "teaches: [aaa, bbb]")],
    );
    assert_eq!(
        told(&[begin, second, circle]),
        [
            "first path-prerequisites-cycle PATH.md",
            "second path-prerequisites-cycle PATH.md",
            "circle path-prerequisites-cycle PATH.md",
        ]
    );
}
