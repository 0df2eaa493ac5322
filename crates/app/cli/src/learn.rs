//! Commands of learners, of reviewers, and of authors of learning paths.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::connect::Client;
use super::output::{Done, Exit, FAINT, Failed, GOOD, List, Output, WARN, counted, lower, time};
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
    /// The learner. [default: `default`]
    #[arg(long, global = true, env = "REPERTOIRE_LEARNER", value_name = "NAME")]
    learner: Option<String>,
    #[command(subcommand)]
    pub(super) action: Action,
}

impl Learn {
    /// It lists paths or exercises.
    pub(super) fn prints_rows(&self) -> bool {
        matches!(self.action, Action::List { .. } | Action::Show { .. })
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the learning paths.
    List {
        /// Only paths of this category.
        #[arg(long)]
        category: Option<String>,
    },
    /// Show a path with its exercises.
    Show {
        /// The path.
        path: String,
    },
    /// Begin the next exercise of a path, or an exercise: write its files into a folder.
    Start(exercise::Start),
    /// Hand in a solution. Exits with 1 where it does not pass.
    Submit(exercise::Submit),
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
        path: Option<String>,
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
        path: Option<String>,
    },
    /// Record your verdict on a solution.
    Review(teach::Review),
    /// Check learning paths: problems by rule, file and line. Needs no server.
    Check {
        /// Folders of learning paths, or of such folders.
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
}

const PATHS: List<v1::LearningPathSummary> = List::new(&[
    ("path", |path| path.id.clone()),
    ("name", |path| path.name.clone()),
    ("for", |path| lower(path.difficulty())),
    ("hours", |path| path.estimated_hours.to_string()),
    ("exercises", |path| {
        let done = path.progress.unwrap_or_default();
        format!("{}/{}", done.completed_exercises, path.exercise_count)
    }),
    ("progress", |path| {
        let done = path.progress.unwrap_or_default();
        format!("{} %", done.percent_complete)
    }),
]);

const EXERCISES: List<v1::ExerciseSummary> = List::new(&[
    ("exercise", |exercise| exercise.id.clone()),
    ("title", |exercise| exercise.title.clone()),
    ("type", |exercise| lower(exercise.r#type())),
    ("minutes", |exercise| exercise.estimated_minutes.to_string()),
    ("status", |exercise| {
        let status = match exercise.status() {
            v1::ExerciseStatus::Completed => "completed",
            v1::ExerciseStatus::InProgress => "begun",
            v1::ExerciseStatus::Locked => "locked",
            _ => "",
        };
        status.to_owned()
    }),
]);

/// The commands that talk to a server.
pub(super) async fn learn(client: &Client, options: Learn, output: &Output) -> Exit {
    let Learn { learner, action } = options;
    let learner = learner.unwrap_or_default();
    // A server has done this at its start.
    client.admit_paths().await;
    let done = match action {
        Action::List { category } => {
            list(client, learner, category.unwrap_or_default(), output).await
        }
        Action::Show { path } => show(client, learner, path, output).await,
        Action::Start(options) => exercise::start(client, learner, options, output).await,
        Action::Submit(options) => {
            let submitted = exercise::submit(client, learner, options, output).await;
            return submitted.map_err(reword);
        }
        Action::Hint { exercise, practice } => {
            let request = v1::RevealHintRequest {
                exercise_id: exercise,
                learner,
                number: 0,
                practice,
            };
            hint(client, request, output).await
        }
        Action::Progress { path, history } => {
            let request = v1::GetProgressRequest {
                path_id: path.unwrap_or_default(),
                include_history: history,
                learner,
                ..Default::default()
            };
            progress(client, request, output).await
        }
        Action::Reset { path, yes } => {
            let request = v1::ResetProgressRequest {
                path_id: path,
                confirm: yes,
                learner,
            };
            reset(client, request, output).await
        }
        Action::Watch => watch(client, learner, output).await,
        Action::Reviews { path } => teach::reviews(client, path.unwrap_or_default(), output).await,
        Action::Review(options) => teach::review(client, options, output).await,
        Action::Check { .. } => Err(Failed::fault("this command needs no server")),
    };
    done.map(|()| ExitCode::SUCCESS).map_err(reword)
}

/// Hints name a field of the request; a person sets it by a flag.
fn reword(failed: Failed) -> Failed {
    failed.reword("Set `practice`", "Add `--practice`")
}

/// A part of a whole, as a bar of 20.
fn chart(percent: u32) -> String {
    let full = percent.min(100) as usize / 5;
    let (full, empty) = ("█".repeat(full), "░".repeat(20 - full));
    format!("{GOOD}{full}{GOOD:#}{FAINT}{empty}{FAINT:#} {percent:>3} %")
}

async fn list(client: &Client, learner: String, category: String, output: &Output) -> Done {
    let request = v1::GetPathsRequest {
        category,
        learner,
        ..Default::default()
    };
    let answer = output.answer(client.learning().get_paths(request).await?)?;
    output.list(&PATHS, &answer.paths)?;
    output.hint("`repertoire learn start PATH` begins one");
    Ok(())
}

async fn show(client: &Client, learner: String, path_id: String, output: &Output) -> Done {
    let request = v1::GetPathRequest {
        path_id,
        learner,
        ..Default::default()
    };
    let answer = output.answer(client.learning().get_path(request).await?)?;
    let path = answer.path.unwrap_or_default();
    output.line(&format!("{} ({})", path.name, path.id))?;
    output.line(&path.description)?;
    if !path.introduction.is_empty() {
        output.lines(&format!("\n{}", path.introduction.trim_end()))?;
    }
    output.line("")?;
    output.list(&EXERCISES, &path.exercises)
}

async fn hint(client: &Client, request: v1::RevealHintRequest, output: &Output) -> Done {
    let hint = output.answer(client.learning().reveal_hint(request).await?)?;
    output.lines(&hint.hint)?;
    output.note(&format!(
        "{} left; the best score is {:.2} now",
        counted(hint.hints_remaining as usize, "hint"),
        hint.max_score
    ));
    Ok(())
}

async fn progress(client: &Client, request: v1::GetProgressRequest, output: &Output) -> Done {
    let progress = output.answer(client.learning().get_progress(request).await?)?;
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
    output.line("")?;
    output.line(&format!(
        "{} in a row, {} the longest; {:.1} hours",
        counted(streak.current_streak as usize, "day"),
        streak.longest_streak,
        overall.total_hours_spent
    ))?;
    if overall.reviews_due > 0 {
        let due = counted(overall.reviews_due as usize, "exercise");
        output.line(&format!("{WARN}{due}{WARN:#} to review"))?;
    }
    if !overall.skills_mastered.is_empty() {
        output.line(&format!("mastered: {}", overall.skills_mastered.join(", ")))?;
    }
    exercise::achievements(&progress.achievements, output)?;
    for entry in &progress.recent_activity {
        activity(entry, output)?;
    }
    Ok(())
}

fn activity(entry: &v1::ActivityEntry, output: &Output) -> Done {
    let score = entry.score.map(|score| format!(" ({score:.2})"));
    output.line(&format!(
        "{FAINT}{}{FAINT:#} {}{}",
        time(entry.timestamp),
        entry.details,
        score.unwrap_or_default()
    ))
}

async fn reset(client: &Client, request: v1::ResetProgressRequest, output: &Output) -> Done {
    let is_done = request.confirm;
    let reset = output.answer(client.learning().reset_progress(request).await?)?;
    let count = counted(reset.exercises_reset as usize, "exercise");
    let share = reset.previous_completion;
    if is_done {
        return output.line(&format!(
            "reset {count}, {share} % were completed; achievements stay"
        ));
    }
    output.line(&format!(
        "would reset {count}, {share} % are completed; achievements stay"
    ))?;
    output.hint("--yes does it");
    Ok(())
}

async fn watch(client: &Client, learner: String, output: &Output) -> Done {
    let request = v1::WatchProgressRequest {
        learner,
        from_now: true,
        ..Default::default()
    };
    let events = client.learning().watch_progress(request).await?;
    let mut events = events.into_inner();
    while let Some(event) = events.message().await? {
        output.event(&event)?;
        if let Some(entry) = &event.activity {
            activity(entry, output)?;
        }
    }
    Ok(())
}
