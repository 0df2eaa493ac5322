//! Commands of a learner, of whoever reviews, and of whoever writes learning paths.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::connect::Client;
use super::output::{
    self, Exit, FAINT, Failed, GOOD, HINT, Output, Table, WARN, counted, note, time,
};
use super::{exercise, teach};
use contract::v1;

const EXAMPLES: &str = "\
Examples:
  repertoire learn list                            the paths, and how far you are
  repertoire learn start testing-fundamentals      the next exercise, its files in a folder
  repertoire learn submit test-first-unit-test     grade what is in that folder
  repertoire learn hint test-first-unit-test       a hint, for 0.05 of the score
  repertoire learn progress                        a chart, your streak, what you earned
  repertoire learn check ./my-paths                what is wrong with paths of your own";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Learn {
    /// Whose progress it is. [default: the learner `default`]
    #[arg(
        long,
        global = true,
        env = "REPERTOIRE_LEARNER",
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    learner: String,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the learning paths.
    List {
        /// Only paths of this category.
        #[arg(long, default_value = "", hide_default_value = true)]
        category: String,
    },
    /// Show a path with its exercises.
    Show {
        /// The path.
        path: String,
    },
    /// Begin the next exercise of a path, or an exercise: write its files into a folder.
    Start(Start),
    /// Hand in a solution. Exits with 1 where it does not pass.
    Submit(Submit),
    /// Reveal the next hint of an exercise. Each takes 0.05 off the score.
    Hint {
        /// The exercise.
        exercise: String,
        /// Reveal it whether or not what the exercise builds on was learned.
        #[arg(long)]
        practice: bool,
    },
    /// Show how far you are.
    Progress {
        /// Only this path.
        #[arg(default_value = "", hide_default_value = true)]
        path: String,
        /// Show what you did last, too.
        #[arg(long)]
        history: bool,
    },
    /// Set a path back to its beginning. Achievements stay.
    Reset {
        /// The path.
        path: String,
        /// Do it. Without it, say what would be reset.
        #[arg(long)]
        yes: bool,
    },
    /// Follow what a learner achieves, a line an event.
    Watch,
    /// List the solutions that wait for a reviewer.
    Reviews {
        /// Only of this path.
        #[arg(default_value = "", hide_default_value = true)]
        path: String,
    },
    /// Say what you think of a solution.
    Review(Review),
    /// Say what is wrong with learning paths, by rule, file and line. Needs no server.
    Check {
        /// Folders of learning paths, or of such folders.
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(super) struct Start {
    /// A path, or an exercise.
    pub(super) id: String,
    /// Folder in which the exercise gets its own. [default: here]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    pub(super) dir: PathBuf,
    /// Open an exercise whether or not what it builds on was learned.
    #[arg(long)]
    pub(super) practice: bool,
    /// Overwrite files that are there.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Submit {
    /// The solution: a file, or the folder that `learn start` made.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The exercise. [default: the name of the folder]
    #[arg(long, value_name = "ID")]
    pub(super) exercise: Option<String>,
    /// Hand it in whether or not what the exercise builds on was learned.
    #[arg(long)]
    pub(super) practice: bool,
}

#[derive(Debug, Args)]
pub(super) struct Review {
    /// The submission, as `learn reviews` names it.
    pub(super) submission: String,
    /// Who reviews it.
    #[arg(long, value_name = "NAME")]
    pub(super) reviewer: String,
    /// It does what was asked.
    #[arg(long, conflicts_with = "fail", required_unless_present = "fail")]
    pub(super) pass: bool,
    /// It does not.
    #[arg(long)]
    pub(super) fail: bool,
    /// How much of it is right, 0 to 1. [default: 1 where it passes, else 0]
    #[arg(long)]
    pub(super) score: Option<f64>,
    /// What the learner should know.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) comment: String,
}

/// The commands that talk to a server.
pub(super) async fn learn(client: &mut Client, options: Learn, output: &Output) -> Exit {
    let Learn { learner, action } = options;
    client.admit_paths().await;
    let done = match action {
        Action::List { category } => list(client, learner, category, output).await,
        Action::Show { path } => show(client, learner, path, output).await,
        Action::Start(options) => exercise::start(client, learner, options, output).await,
        Action::Submit(options) => exercise::submit(client, learner, options, output).await,
        Action::Hint { exercise, practice } => {
            hint(client, learner, exercise, practice, output).await
        }
        Action::Progress { path, history } => {
            progress(client, learner, path, history, output).await
        }
        Action::Reset { path, yes } => reset(client, learner, path, yes, output).await,
        Action::Watch => watch(client, learner, output).await,
        Action::Reviews { path } => teach::reviews(client, path, output).await,
        Action::Review(options) => teach::review(client, options, output).await,
        Action::Check { .. } => Err(Failed::fault("this command needs no server")),
    };
    done.map_err(|failed| failed.reword("Set `practice`", "Add `--practice`"))
}

/// A part of a whole, as a bar of 20.
fn chart(percent: u32) -> String {
    let full = usize::try_from(percent.min(100) / 5).unwrap_or(0);
    let (full, empty) = ("█".repeat(full), "░".repeat(20 - full));
    format!("{GOOD}{full}{GOOD:#}{FAINT}{empty}{FAINT:#} {percent:>3} %")
}

async fn list(client: &mut Client, learner: String, category: String, output: &Output) -> Exit {
    let request = v1::GetPathsRequest {
        category,
        learner,
        ..Default::default()
    };
    let paths = client.learning().get_paths(request).await?.into_inner();
    if output.is_json() {
        output.message("GetPathsResponse", &paths)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&["path", "name", "for", "hours", "exercises", "progress"]);
    for path in &paths.paths {
        let done = path.progress.unwrap_or_default();
        rows.add_row([
            path.id.clone(),
            path.name.clone(),
            format!("{:?}", path.difficulty()).to_lowercase(),
            path.estimated_hours.to_string(),
            format!("{}/{}", done.completed_exercises, path.exercise_count),
            format!("{} %", done.percent_complete),
        ]);
    }
    output.table(&rows)?;
    note(&format!(
        "{HINT}hint:{HINT:#} `repertoire learn start PATH` begins one"
    ));
    Ok(ExitCode::SUCCESS)
}

async fn show(client: &mut Client, learner: String, path_id: String, output: &Output) -> Exit {
    let request = v1::GetPathRequest {
        path_id,
        learner,
        ..Default::default()
    };
    let answer = client.learning().get_path(request).await?.into_inner();
    if output.is_json() {
        output.message("GetPathResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = answer.path.unwrap_or_default();
    output.line(&format!("{} ({})", path.name, path.id))?;
    output.line(&path.description)?;
    if !path.introduction.is_empty() {
        output.lines(&format!("\n{}", path.introduction.trim_end()))?;
    }
    let mut rows = Table::new(&["exercise", "title", "type", "minutes", "status"]);
    for exercise in &path.exercises {
        let status = match exercise.status() {
            v1::ExerciseStatus::Completed => "completed",
            v1::ExerciseStatus::InProgress => "begun",
            v1::ExerciseStatus::Locked => "locked",
            _ => "",
        };
        rows.add_row([
            exercise.id.clone(),
            exercise.title.clone(),
            format!("{:?}", exercise.r#type()).to_lowercase(),
            exercise.estimated_minutes.to_string(),
            status.to_owned(),
        ]);
    }
    output.line("")?;
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}

async fn hint(
    client: &mut Client,
    learner: String,
    exercise: String,
    practice: bool,
    output: &Output,
) -> Exit {
    let request = v1::RevealHintRequest {
        exercise_id: exercise,
        learner,
        number: 0,
        practice,
    };
    let hint = client.learning().reveal_hint(request).await?.into_inner();
    if output.is_json() {
        output.message("RevealHintResponse", &hint)?;
        return Ok(ExitCode::SUCCESS);
    }
    output.lines(&hint.hint)?;
    note(&format!(
        "{} left; the best score is {:.2} now",
        counted(usize::try_from(hint.hints_remaining).unwrap_or(0), "hint"),
        hint.max_score
    ));
    Ok(ExitCode::SUCCESS)
}

async fn progress(
    client: &mut Client,
    learner: String,
    path_id: String,
    history: bool,
    output: &Output,
) -> Exit {
    let request = v1::GetProgressRequest {
        path_id,
        include_history: history,
        learner,
        ..Default::default()
    };
    let progress = client.learning().get_progress(request).await?.into_inner();
    if output.is_json() {
        output.message("GetProgressResponse", &progress)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = |path: &v1::PathProgress| path.path_name.chars().count();
    let width = progress.paths.iter().map(name).max().unwrap_or(0);
    for path in &progress.paths {
        output.line(&format!(
            "{:width$}  {}  {}/{}",
            path.path_name,
            chart(path.percent_complete),
            path.completed_exercises,
            path.total_exercises
        ))?;
    }
    let overall = progress.overall.unwrap_or_default();
    let streak = progress.streak.unwrap_or_default();
    let days = usize::try_from(streak.current_streak).unwrap_or(0);
    output.line("")?;
    output.line(&format!(
        "{} in a row, {} the longest; {:.1} hours",
        counted(days, "day"),
        streak.longest_streak,
        overall.total_hours_spent
    ))?;
    if overall.reviews_due > 0 {
        let due = usize::try_from(overall.reviews_due).unwrap_or(0);
        output.line(&format!(
            "{WARN}{}{WARN:#} to review",
            counted(due, "exercise")
        ))?;
    }
    if !overall.skills_mastered.is_empty() {
        output.line(&format!("mastered: {}", overall.skills_mastered.join(", ")))?;
    }
    for earned in &progress.achievements {
        output.line(&format!(
            "{GOOD}★ {}{GOOD:#} {}",
            earned.name, earned.description
        ))?;
    }
    for entry in &progress.recent_activity {
        activity(entry, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn activity(entry: &v1::ActivityEntry, output: &Output) -> Result<(), Failed> {
    let score = entry.score.map(|score| format!(" ({score:.2})"));
    output.line(&format!(
        "{FAINT}{}{FAINT:#} {}{}",
        time(entry.timestamp),
        entry.details,
        score.unwrap_or_default()
    ))
}

async fn reset(
    client: &mut Client,
    learner: String,
    path_id: String,
    yes: bool,
    output: &Output,
) -> Exit {
    let request = v1::ResetProgressRequest {
        path_id,
        confirm: yes,
        learner,
    };
    let reset = client
        .learning()
        .reset_progress(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("ResetProgressResponse", &reset)?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = counted(
        usize::try_from(reset.exercises_reset).unwrap_or(0),
        "exercise",
    );
    let share = reset.previous_completion;
    if yes {
        output.line(&format!(
            "reset {count}, {share} % were completed; achievements stay"
        ))?;
    } else {
        output.line(&format!(
            "would reset {count}, {share} % are completed; achievements stay"
        ))?;
        note(&format!("{HINT}hint:{HINT:#} --yes does it"));
    }
    Ok(ExitCode::SUCCESS)
}

async fn watch(client: &mut Client, learner: String, output: &Output) -> Exit {
    let request = v1::WatchProgressRequest {
        learner,
        from_now: true,
        ..Default::default()
    };
    let mut events = client
        .learning()
        .watch_progress(request)
        .await?
        .into_inner();
    while let Some(event) = events.message().await? {
        if output.is_json() {
            let json = output::json_of("WatchProgressResponse", &event)?;
            output.json(&json.to_string())?;
        } else if let Some(entry) = &event.activity {
            activity(entry, output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
