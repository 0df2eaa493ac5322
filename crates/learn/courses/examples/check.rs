//! Says what is wrong with the learning paths in some folders, and grades the solutions in
//! `tests/learning/solutions` that belong to them.
//!
//! `cargo run -p repertoire-courses --example check -- skills/paths/*`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use repertoire_courses::{Feedback, Graders, LearningPath, Verdict, check_together, read};
use sandbox::{Sandbox, child};

#[path = "../tests/graders/support.rs"]
mod support;

const CHILD: &str = "sandbox-child";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == CHILD) {
        return child();
    }
    let is_long = arguments.iter().any(|argument| argument == "-v");
    let folders = arguments.iter().filter(|argument| *argument != "-v");
    let folders: Vec<PathBuf> = folders.map(PathBuf::from).collect();
    if folders.is_empty() {
        eprintln!("Name the folders of paths; -v shows the feedback of every solution");
        return ExitCode::FAILURE;
    }
    let program = std::env::current_exe().expect("this program");
    let graders = Graders::new(Sandbox::new(program, vec![CHILD.into()]));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let wrong = runtime.block_on(check(&graders, &folders, is_long));
    println!("{wrong} things are wrong");
    if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn check(graders: &Graders, folders: &[PathBuf], is_long: bool) -> usize {
    let mut wrong = 0;
    let mut paths: Vec<Arc<LearningPath>> = Vec::new();
    for folder in folders {
        let folder = folder.canonicalize().expect("a folder");
        let (path, mut problems) = read(&support::name(&folder), &support::files(&folder));
        println!("{}", folder.display());
        if let Some(path) = &path {
            problems.extend(graders.check(path).await);
        }
        for problem in &problems {
            wrong += 1;
            println!("  {problem}");
        }
        if let Some(path) = path {
            wrong += solutions(graders, &path, is_long).await;
            paths.push(Arc::new(path));
        }
    }
    // Those beside them, which they may point to.
    let beside = folders
        .first()
        .and_then(|folder| folder.canonicalize().ok());
    let beside = beside.as_deref().and_then(Path::parent);
    for folder in beside.map(support::folders).unwrap_or_default() {
        let name = support::name(&folder);
        if !paths.iter().any(|path| path.id == name) {
            paths.extend(read(&name, &support::files(&folder)).0.map(Arc::new));
        }
    }
    for (path, problem) in check_together(&paths) {
        wrong += 1;
        println!("{path}: {problem}");
    }
    wrong
}

async fn solutions(graders: &Graders, path: &LearningPath, is_long: bool) -> usize {
    let mut wrong = 0;
    for exercise in &path.exercises {
        println!("  {} ({:?})", exercise.id, exercise.validation);
        let known = support::known(exercise);
        if known.len() < 5 {
            println!("    only {} solutions in the corpus", known.len());
        }
        for known in known {
            let graded = graders.grade(exercise, &known.solution).await;
            let is_right = known.verdict == graded.verdict;
            wrong += usize::from(!is_right);
            let mark = if is_right { "ok   " } else { "WRONG" };
            let score = graded.score * 100.0;
            println!(
                "    {mark} {:50} {:?} {score:.0} %",
                known.name, graded.verdict
            );
            if is_long || !is_right {
                show(&graded.feedback, graded.verdict);
            }
        }
    }
    wrong
}

fn show(feedback: &Feedback, verdict: Verdict) {
    println!("          {verdict:?}: {}", feedback.summary);
    for result in feedback.results.iter().filter(|result| !result.passed) {
        println!("          - {}", result.name);
        let parts = [
            ("expected", &result.expected),
            ("actual", &result.actual),
            ("error", &result.error),
            ("look at", &result.look_at),
        ];
        for (name, text) in parts {
            if let Some(text) = text {
                println!(
                    "            {name}: {}",
                    text.replace('\n', "\n              ")
                );
            }
        }
    }
    for (name, texts) in [
        ("try", &feedback.suggestions),
        ("good", &feedback.exemplary_aspects),
        ("better", &feedback.improvement_areas),
    ] {
        for text in texts {
            println!("          {name}: {text}");
        }
    }
}
