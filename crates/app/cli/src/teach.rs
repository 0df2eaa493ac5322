//! Reviewing solutions.

use std::process::ExitCode;

use super::connect::Client;
use super::learn::Review;
use super::output::{Exit, FAINT, GOOD, Output, counted, note, time};
use contract::v1;

pub(super) async fn reviews(client: &mut Client, path_id: String, output: &Output) -> Exit {
    let request = v1::ListSubmissionsRequest {
        path_id,
        page_size: 100,
        ..Default::default()
    };
    let page = client
        .learning()
        .list_submissions(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("ListSubmissionsResponse", &page)?;
        return Ok(ExitCode::SUCCESS);
    }
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
    note(&format!(
        "{} waiting",
        counted(page.submissions.len(), "solution")
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn review(client: &mut Client, options: Review, output: &Output) -> Exit {
    let Review {
        submission,
        reviewer,
        pass,
        fail: _,
        score,
        comment,
    } = options;
    let request = v1::ReviewSubmissionRequest {
        submission_id: submission,
        reviewer,
        passed: pass,
        comment,
        score,
    };
    let answer = client
        .learning()
        .review_submission(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("ReviewSubmissionResponse", &answer)?;
    } else {
        let verdict = format!("{:?}", answer.verdict()).to_lowercase();
        output.line(&format!("recorded: {verdict}, score {:.2}", answer.score))?;
    }
    Ok(ExitCode::SUCCESS)
}
