//! Reviewing solutions.

use clap::Args;

use super::connect::Client;
use super::output::{Done, FAINT, GOOD, Output, counted, lower, time};
use contract::v1;

#[derive(Debug, Args)]
pub(super) struct Review {
    /// The submission, as `learn reviews` names it.
    submission: String,
    /// Who reviews it, where callers do not sign in; else the caller does. [default: the caller]
    #[arg(long, value_name = "NAME")]
    reviewer: Option<String>,
    /// It does what was asked.
    #[arg(long, conflicts_with = "fail", required_unless_present = "fail")]
    pass: bool,
    /// It does not.
    #[arg(long)]
    fail: bool,
    /// How much of it is right, 0 to 1. [default: 1 where it passes, else 0]
    #[arg(long)]
    score: Option<f64>,
    /// What the learner should know.
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

pub(super) async fn reviews(client: &Client, path_id: String, output: &Output) -> Done {
    let request = v1::ListSubmissionsRequest {
        path_id,
        page_size: 100,
        ..Default::default()
    };
    let page = output.answer(client.learning().list_submissions(request).await?)?;
    for submission in &page.submissions {
        let when = time(submission.create_time);
        output.line(&format!("{GOOD}{}{GOOD:#}", submission.id))?;
        output.line(&format!(
            "{} by {}, {FAINT}{when}{FAINT:#}",
            submission.exercise_id, submission.learner
        ))?;
        for file in &submission.files {
            output.lines(&format!(
                "{FAINT}{}{FAINT:#}\n{}",
                file.path,
                file.text.trim_end()
            ))?;
        }
        for item in &submission.checklist {
            output.line(&format!("  [ ] {item}"))?;
        }
    }
    let count = counted(page.submissions.len(), "solution");
    output.note(&format!("{count} waiting"));
    Ok(())
}

pub(super) async fn review(client: &Client, options: Review, output: &Output) -> Done {
    let request = v1::ReviewSubmissionRequest {
        submission_id: options.submission,
        reviewer: options.reviewer.unwrap_or_default(),
        passed: options.pass && !options.fail,
        comment: options.comment.unwrap_or_default(),
        score: options.score,
    };
    let answer = output.answer(client.learning().review_submission(request).await?)?;
    let verdict = lower(answer.verdict());
    output.line(&format!("recorded: {verdict}, score {:.2}", answer.score))
}
