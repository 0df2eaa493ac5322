//! Doing an exercise: its files go into a folder, and come back as a solution.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use root_folder::{Kind, RootFolder};

use super::connect::Client;
use super::export::plain;
use super::output::{
    BAD, Done, Exit, FAINT, Failed, GOOD, HINT, Output, Style, WARN, exit, verdict,
};
use contract::v1;
use model::{Code, FilePath, MAX_FILES, MAX_SKILL_BYTES};

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
    let files = files(&exercise)?;
    let dir = options.dir.unwrap_or(".".into());
    let (folder, keep) = write(&dir, &exercise, &files, options.force)?;
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
    let names = files.keys().map(ToString::to_string);
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

/// The files of an exercise, and its instructions. A server names them, and is not trusted.
fn files(exercise: &v1::ExerciseDetail) -> Result<BTreeMap<FilePath, String>, Failed> {
    let starter = exercise.starter_files.iter();
    let mut named: Vec<(&str, &str)> = starter
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    if !exercise.file_name.is_empty() {
        named.push((&exercise.file_name, &exercise.starter_code));
    }
    let files = named.into_iter().map(|(path, text)| {
        let path: Result<FilePath, _> = path.parse();
        let path =
            path.map_err(|error| Failed::file(format!("the server named a file: {error}")))?;
        Ok((path, text.to_owned()))
    });
    files.collect()
}

/// Writes the files of an exercise to a folder of its name, and returns the folder, and whether
/// files that were there are as they were.
fn write(
    dir: &Path,
    exercise: &v1::ExerciseDetail,
    files: &BTreeMap<FilePath, String>,
    force: bool,
) -> Result<(PathBuf, bool), Failed> {
    let id = &exercise.id;
    let name = plain(id).ok_or_else(|| {
        let message = format!("the server names the exercise {id:?}, which is no plain name");
        Failed::file(message).hint("use another server: this one names a folder of its choice")
    })?;
    let folder = dir.join(&name);
    let failed = |error: std::io::Error| Failed::file(format!("`{}`: {error}", folder.display()));
    let real = root_folder::resolved(dir).map_err(failed)?;
    let root = RootFolder::make(&real).and_then(|dir| dir.folder(&name, true));
    let root = root.map_err(failed)?;
    let is_there = |path: &str| root.kind(Path::new(path)).map(|kind| kind.is_some());
    let is_known = is_there(INSTRUCTIONS).map_err(failed)?;
    // What is in the folder is handed in later: it must not be one that the server picked.
    if !is_known && !force && !root.names().map_err(failed)?.is_empty() {
        let taken = format!(
            "`{}` has files that belong to no exercise",
            folder.display()
        );
        return Err(Failed::file(taken).hint("name another place with --dir"));
    }
    // A learner who asks again for the text must not lose the solution so far.
    let there: Result<Vec<bool>, _> = files.keys().map(|path| is_there(path.as_str())).collect();
    let keep = !force && there.map_err(failed)?.contains(&true);
    let about = instructions(exercise);
    let about = (INSTRUCTIONS, &about);
    let about = Some(about).filter(|_| force || !is_known);
    let files = files.iter().filter(|_| !keep);
    let files = files.map(|(path, text)| (path.as_str(), text));
    for (path, text) in about.into_iter().chain(files) {
        let (path, bytes) = (Path::new(path), text.as_bytes());
        let done = if force {
            root.replace(path, bytes)
        } else {
            root.write_new(path, bytes, false)
        };
        done.map_err(failed)?;
    }
    Ok((folder, keep))
}

/// Reads a solution from a file or folder: one text, or files. In a folder no link is followed.
fn solution(from: &Path) -> Result<(String, Vec<v1::SolutionFile>), Failed> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Failed::file(format!("`{}`: {error}", path.display()))
    };
    if !from.is_dir() {
        let text = std::fs::read_to_string(from);
        return Ok((text.map_err(|error| failed(from, &error))?, Vec::new()));
    }
    let open = || RootFolder::open(&root_folder::resolved(from)?);
    let folder = open().map_err(|error| failed(from, &error))?;
    let all = folder.files(MAX_FILES);
    let all = all.map_err(|error| failed(from, &error))?;
    let all = all.ok_or_else(|| failed(from, &format!("it has more than {MAX_FILES} files")))?;
    let mut files = Vec::new();
    for (path, kind) in all {
        if kind != Kind::File || path == Path::new(INSTRUCTIONS) {
            continue;
        }
        let bytes = folder.read(&path, MAX_SKILL_BYTES);
        let bytes = bytes.map_err(|why| failed(&from.join(&path), &std::io::Error::from(why)))?;
        let text = String::from_utf8(bytes).map_err(|error| failed(&from.join(&path), &error))?;
        files.push(v1::SolutionFile {
            path: path.display().to_string(),
            text,
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
