//! What a learner does on the command line.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{paths, text, walk};
use crate::support::command;

#[test]
fn a_learner_starts_an_exercise_hands_it_in_and_sees_how_far_they_are() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let work = directory.path().join("work");
    let run = |args: &[&str]| {
        command(&[&["learn"], args, &["--data", &data, "--learner", "ann"]].concat())
    };
    let started = run(&[
        "start",
        "testing-fundamentals",
        "--dir",
        &work.display().to_string(),
    ]);
    assert!(started.status.success(), "{}", text(&started));
    let folder = work.join("test-first-unit-test");
    let mut files: Vec<_> = walk(&folder);
    files.sort();
    assert_eq!(
        files,
        [folder.join("EXERCISE.md"), folder.join("solution.js")]
    );
    let place = folder.display().to_string();
    let failed = run(&["submit", &place]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
    let solution =
        paths().join("testing-fundamentals/exercises/01-test-first-unit-test/solution.js");
    std::fs::copy(&solution, folder.join("solution.js")).expect("a file");
    let passed = run(&["submit", &place]);
    assert!(passed.status.success(), "{}", text(&passed));
    let again = run(&[
        "start",
        "test-first-unit-test",
        "--dir",
        &work.display().to_string(),
    ]);
    assert!(again.status.success(), "{}", text(&again));
    let read = |path: &Path| std::fs::read(path).expect("a file");
    assert_eq!(
        read(&folder.join("solution.js")),
        read(&solution),
        "one's own work stays"
    );
    let progress = run(&["progress"]);
    let progress: Value = serde_json::from_slice(&progress.stdout).expect("JSON");
    assert_eq!(progress["overall"]["completed_exercises"], 1);
    let hint = run(&["hint", "test-first-unit-test"]);
    assert!(hint.status.success(), "{}", text(&hint));
    let unknown = run(&["start", "no-such"]);
    assert!(
        text(&unknown).contains("EXERCISE_NOT_FOUND"),
        "{}",
        text(&unknown)
    );
}

#[test]
fn an_exercise_gets_new_files_alone_in_a_folder_of_its_own() {
    let directory = TempDir::new().expect("a folder");
    let at = |inside: &str| directory.path().join(inside);
    let (data, work) = (
        at("data").display().to_string(),
        at("work").display().to_string(),
    );
    let start = |more: &[&str]| {
        let args = [
            "learn",
            "start",
            "test-first-unit-test",
            "--dir",
            &work,
            "--data",
            &data,
        ];
        let made = command(&[&args, more].concat());
        (made.status.success(), text(&made))
    };
    let folder = at("work/test-first-unit-test");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    // A folder that is there is no exercise because a server has one of its name.
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("mine.js"), "mine").expect("a file");
    let (done, said) = start(&[]);
    assert!(!done && said.contains("belong to no exercise"), "{said}");
    assert_eq!(walk(&folder), [folder.join("mine.js")]);
    // Neither is one that a link leads to.
    std::fs::rename(&folder, at("mine")).expect("renamed");
    std::os::unix::fs::symlink(at("mine"), &folder).expect("a link");
    let (done, said) = start(&["--force"]);
    assert!(!done && said.contains("is a link"), "{said}");
    assert_eq!(walk(&at("mine")), [at("mine/mine.js")]);
    std::fs::remove_file(&folder).expect("removed");
    let (done, said) = start(&[]);
    assert!(done, "{said}");
    let (about, solution) = (folder.join("EXERCISE.md"), folder.join("solution.js"));
    let first = read(&about);
    std::fs::write(&about, "my notes").expect("a file");
    std::fs::remove_file(&solution).expect("removed");
    std::os::unix::fs::symlink(at("mine/mine.js"), &solution).expect("a link");
    assert!(start(&[]).0);
    assert_eq!(read(&about), "my notes");
    assert!(solution.is_symlink());
    assert!(start(&["--force"]).0);
    assert_eq!(read(&about), first);
    assert!(!solution.is_symlink());
    assert_eq!(read(&at("mine/mine.js")), "mine");
}

#[test]
fn what_a_refusal_suggests_can_be_typed() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let run = |args: &[&str]| {
        let made = command(&[&["learn"], args, &["--data", &data]].concat());
        (made.status.success(), text(&made))
    };
    let (_, locked) = run(&["hint", "test-async-functions"]);
    assert!(locked.contains("Add `--practice` to open it"), "{locked}");
    let (revealed, hint) = run(&["hint", "test-async-functions", "--practice"]);
    assert!(revealed && hint.contains("\"number\": 3"), "{hint}");
    let solution = directory.path().join("other.sql");
    std::fs::write(&solution, "SELECT 1;").expect("a file");
    let (_, unknown) = run(&["submit", &solution.display().to_string()]);
    let folder = directory.path().file_name().expect("a name").display();
    let hint = format!(
        "Say which exercise it solves: `--exercise ID`. Without it, it is the name of the folder, here `{folder}`"
    );
    assert!(
        unknown.contains("EXERCISE_NOT_FOUND") && unknown.contains(&hint),
        "{unknown}"
    );
}

#[test]
fn a_learner_sees_what_a_reviewer_looks_at_and_what_they_said() {
    let directory = TempDir::new().expect("a folder");
    let data = directory.path().join("data").display().to_string();
    let run = |args: &[&str]| {
        let made = command(&[&["learn"], args, &["--data", &data]].concat());
        assert!(made.status.success(), "{}", text(&made));
        serde_json::from_slice::<Value>(&made.stdout).expect("JSON")
    };
    let folder = directory.path().display().to_string();
    let start = &["start", "review-a-skill", "--practice", "--dir", &folder];
    let opened = run(start);
    let checklist = opened["checklist"].as_array().expect("a list");
    assert!(checklist.len() > 1, "{opened:#}");
    let written = directory.path().join("review-a-skill");
    let about = std::fs::read_to_string(written.join("EXERCISE.md")).expect("text");
    for item in checklist {
        let item = item.as_str().expect("text");
        assert!(about.contains(&format!("- [ ] {item}")), "{about}");
    }
    let submit = &["submit", &written.display().to_string(), "--practice"];
    let sent = run(submit);
    let id = sent["submission_id"].as_str().expect("an id");
    let comment = "Say what is good, too.";
    run(&[
        "review",
        id,
        "--reviewer",
        "bob",
        "--fail",
        "--comment",
        comment,
    ]);
    let mut said = run(start)["last_review"].take();
    let time = said
        .as_object_mut()
        .and_then(|said| said.remove("create_time"));
    assert!(time.is_some());
    assert_eq!(
        said,
        json!({"reviewer": "bob", "passed": false, "comment": comment})
    );
    let progress = run(&["progress", "--history"]);
    let last = &progress["recent_activity"][0];
    assert_eq!(
        (&last["type"], &last["details"]),
        (
            &json!("submission_reviewed"),
            &json!(format!(
                "bob reviewed 'Review a Skill', which does not pass yet: {comment}"
            ))
        )
    );
}

#[test]
fn doctor_says_which_confinements_hold() {
    let looked = command(&["doctor"]);
    let answer: Value = serde_json::from_slice(&looked.stdout).expect("JSON");
    let checks = answer["checks"].as_array().expect("checks");
    let names: Vec<_> = checks
        .iter()
        .map(|check| check["check"].as_str().expect("text"))
        .collect();
    assert_eq!(
        names,
        [
            "features",
            "sandbox.rlimits",
            "sandbox.landlock",
            "sandbox.seccomp",
            "data.server"
        ]
    );
    assert_eq!(checks[1]["state"], "ok", "{answer:#}");
}
