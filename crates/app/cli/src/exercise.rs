//! Doing an exercise: its files go into a folder, and come back as a solution.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::connect::Client;
use super::output::{
    BAD, Done, Exit, FAINT, Failed, GOOD, HINT, Output, Style, WARN, exit, verdict,
};
use contract::v1;
use model::Code;

/// File with the instructions, in the folder of an exercise.
const INSTRUCTIONS: &str = "EXERCISE.md";

#[derive(Debug, Args)]
pub(super) struct Start {
    /// A path, or an exercise.
    id: String,
    /// Folder in which the exercise gets its own. [default: here]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Open an exercise whether or not what it builds on was learned.
    #[arg(long)]
    practice: bool,
    /// Overwrite files that are there.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Submit {
    /// The solution: a file, or the folder that `learn start` made.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The exercise. [default: the name of the folder]
    #[arg(long, value_name = "ID")]
    exercise: Option<String>,
    /// Hand it in whether or not what the exercise builds on was learned.
    #[arg(long)]
    practice: bool,
}

pub(super) async fn start(
    client: &Client,
    learner: String,
    options: Start,
    output: &Output,
) -> Done {
    let (id, practice) = (options.id, options.practice);
    let next = v1::NextExerciseRequest {
        path_id: id.clone(),
        learner: learner.clone(),
    };
    let (exercise, why) = match client.learning().next_exercise(next).await {
        Ok(next) => {
            let next = next.into_inner();
            (next.exercise.unwrap_or_default(), next.why)
        }
        Err(refused) if Failed::from(refused.clone()).is(Code::PathNotFound) => {
            let request = v1::GetExerciseRequest {
                exercise_id: id,
                learner,
                practice,
            };
            let answer = client.learning().get_exercise(request).await?;
            let exercise = answer.into_inner().exercise;
            (exercise.unwrap_or_default(), String::new())
        }
        Err(refused) => return Err(refused.into()),
    };
    let folder = options.dir.unwrap_or(".".into()).join(&exercise.id);
    let mut files: BTreeMap<PathBuf, String> = exercise
        .starter_files
        .iter()
        .map(|file| (PathBuf::from(&file.path), file.text.clone()))
        .collect();
    if !exercise.file_name.is_empty() {
        let name = PathBuf::from(&exercise.file_name);
        files.insert(name, exercise.starter_code.clone());
    }
    let is_there = files.keys().any(|path| folder.join(path).exists());
    // A learner who asks again for the text must not lose the solution so far.
    let keep = is_there && !options.force;
    if !keep {
        write(&folder, &files)?;
    }
    let instructions = instructions(&exercise);
    let about = BTreeMap::from([(PathBuf::from(INSTRUCTIONS), instructions)]);
    write(&folder, &about)?;
    output.message(&exercise)?;
    output.line(&format!("{} ({})", exercise.title, exercise.id))?;
    if !why.is_empty() {
        output.line(&format!("{FAINT}{why}{FAINT:#}"))?;
    }
    output.lines(&format!("\n{}\n", exercise.instructions.trim_end()))?;
    for case in &exercise.test_cases {
        let (input, expected) = (&case.input, &case.expected);
        output.line(&format!("  {}: {input} → {expected}", case.description))?;
    }
    for item in &exercise.checklist {
        output.line(&format!("  [ ] {item}"))?;
    }
    if let Some(review) = &exercise.last_review {
        let word = verdict(review.passed, "passes", "does not pass yet");
        output.line(&format!("{}: {word}", review.reviewer))?;
        if !review.comment.is_empty() {
            output.lines(&review.comment)?;
        }
    }
    for hint in &exercise.hints {
        output.line(&format!("{HINT}hint:{HINT:#} {hint}"))?;
    }
    let verb = if keep { "kept as they are" } else { "written" };
    let names = files.keys().map(|path| path.display().to_string());
    let (names, folder) = (names.collect::<Vec<_>>().join(", "), folder.display());
    output.note(&format!("{verb}: {names} in {folder}"));
    output.hint(&format!("`repertoire learn submit {folder}` grades it"));
    Ok(())
}

/// Returns the text of the instructions, with the reviewer's checklist.
fn instructions(exercise: &v1::ExerciseDetail) -> String {
    let items = exercise.checklist.iter();
    let items: Vec<String> = items.map(|item| format!("- [ ] {item}\n")).collect();
    let checklist = match items.concat() {
        items if items.is_empty() => items,
        items => format!("\n## The reviewer's criteria\n\n{items}"),
    };
    let (title, text) = (&exercise.title, exercise.instructions.trim());
    format!("# {title}\n\n{text}\n{checklist}")
}

/// Writes files below a folder. A server names them, and is not trusted: a path that leads out
/// of the folder could overwrite anything.
fn write(folder: &Path, files: &BTreeMap<PathBuf, String>) -> Done {
    for (path, text) in files {
        let is_inside = path
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_inside {
            let message = format!(
                "the server named a file `{}`, which is none",
                path.display()
            );
            return Err(Failed::file(message));
        }
        let to = folder.join(path);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&to, text)?;
    }
    Ok(())
}

/// Reads a solution from a file or folder: one text, or files.
fn solution(from: &Path) -> Result<(String, Vec<v1::SolutionFile>), Failed> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Failed::file(format!("`{}`: {error}", path.display()))
    };
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| failed(path, &error));
    if !from.is_dir() {
        return Ok((read(from)?, Vec::new()));
    }
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(from).max_depth(8).sort_by_file_name() {
        let entry = entry.map_err(|error| failed(from, &error))?;
        let inside = entry.path().strip_prefix(from).unwrap_or(entry.path());
        if !entry.file_type().is_file() || inside == Path::new(INSTRUCTIONS) {
            continue;
        }
        files.push(v1::SolutionFile {
            path: inside.display().to_string(),
            text: read(entry.path())?,
        });
    }
    match files.as_mut_slice() {
        [] => Err(failed(from, &"no file of a solution is in it")),
        [only] => Ok((std::mem::take(&mut only.text), Vec::new())),
        _ => Ok((String::new(), files)),
    }
}

pub(super) async fn submit(
    client: &Client,
    learner: String,
    options: Submit,
    output: &Output,
) -> Exit {
    let Submit {
        file,
        exercise,
        practice,
    } = options;
    let (solution, files) = solution(&file)?;
    let named = || {
        let absolute = file.canonicalize().ok()?;
        let folder = if absolute.is_dir() {
            absolute.as_path()
        } else {
            absolute.parent()?
        };
        Some(folder.file_name()?.to_str()?.to_owned())
    };
    let guessed = exercise.is_none().then(named).flatten();
    let request = v1::SubmitSolutionRequest {
        exercise_id: exercise.or(guessed.clone()).unwrap_or_default(),
        solution,
        files,
        learner,
        time_zone: jiff::tz::TimeZone::system()
            .iana_name()
            .unwrap_or_default()
            .to_owned(),
        practice,
        ..Default::default()
    };
    let answer = client.learning().submit_solution(request).await;
    let answer = answer.map_err(|refused| {
        let failed = Failed::from(refused);
        match guessed.filter(|_| failed.is(Code::ExerciseNotFound)) {
            Some(folder) => failed.hint(format!(
                "Say which exercise it solves: `--exercise ID`. Without it, it is the name of the folder, here `{folder}`"
            )),
            None => failed,
        }
    });
    let answer = output.answer(answer?)?;
    let (style, word) = match answer.verdict() {
        v1::Verdict::Pass => (GOOD, "passed"),
        v1::Verdict::Pending => (WARN, "waits for a reviewer"),
        v1::Verdict::Error => (WARN, "could not be graded, which costs you nothing"),
        _ => (BAD, "not yet"),
    };
    output.line(&format!(
        "{style}{word}{style:#}  score {:.2}",
        answer.score
    ))?;
    if let Some(feedback) = &answer.feedback {
        print_feedback(feedback, output)?;
    }
    achievements(&answer.achievements_earned, output)?;
    if let Some(next) = &answer.next_exercise {
        output.note(&format!(
            "{HINT}next:{HINT:#} {} (`repertoire learn start {}`)",
            next.title, next.id
        ));
    }
    let passes = [v1::Verdict::Pass, v1::Verdict::Pending].contains(&answer.verdict());
    Ok(exit(passes, 1))
}

pub(super) fn achievements(earned: &[v1::Achievement], output: &Output) -> Done {
    for v1::Achievement {
        name, description, ..
    } in earned
    {
        output.line(&format!("{GOOD}★ {name}{GOOD:#} {description}"))?;
    }
    Ok(())
}

/// Prints the feedback on a solution.
fn print_feedback(feedback: &v1::SolutionFeedback, output: &Output) -> Done {
    output.lines(&feedback.summary)?;
    for result in feedback.test_results.iter().flat_map(|it| &it.details) {
        let mark = verdict(result.passed, "✓", "✗");
        output.line(&format!("  {mark} {}", result.test_name))?;
        let parts = [
            ("expected", &result.expected, GOOD),
            ("actual", &result.actual, BAD),
            ("error", &result.error, BAD),
            ("look at", &result.look_at, Style::Plain),
        ];
        for (name, text, style) in parts {
            let Some(text) = text else { continue };
            let mut lines = text.lines();
            let first = lines.next().unwrap_or_default();
            output.line(&format!(
                "      {FAINT}{name}:{FAINT:#} {style}{first}{style:#}"
            ))?;
            for line in lines {
                output.line(&format!("      {style}{line}{style:#}"))?;
            }
        }
    }
    // What was printed with its case is not printed again.
    let results = feedback.test_results.as_ref();
    let results = results.map(|it| it.details.as_slice()).unwrap_or_default();
    let is_said = |text: &str| results.iter().any(|it| it.look_at.as_deref() == Some(text));
    let lists = [
        (GOOD, "+", &feedback.exemplary_aspects),
        (WARN, "-", &feedback.improvement_areas),
        (HINT, "→", &feedback.suggestions),
    ];
    for (style, mark, texts) in lists {
        for text in texts.iter().filter(|text| !is_said(text)) {
            output.line(&format!("  {style}{mark}{style:#} {text}"))?;
        }
    }
    Ok(())
}
