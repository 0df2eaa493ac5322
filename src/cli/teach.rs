//! Reviewing solutions, and checking learning paths.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::connect::Client;
use super::fate::{problem_line, problems_json};
use super::learn::Review;
use super::output::{BAD, FAINT, Failed, GOOD, Output, counted, note, time};
use crate::contract::v1;
use crate::server::{self, Config};
use model::Code;

type Done = Result<ExitCode, Failed>;

pub(super) async fn reviews(client: &mut Client, path_id: String, output: &Output) -> Done {
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

pub(super) async fn review(client: &mut Client, options: Review, output: &Output) -> Done {
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

/// Says what is wrong with learning paths: reads them, and sends them through their gate.
pub(super) async fn check(folders: &[PathBuf], config: &Config, output: &Output) -> Done {
    let graders = server::graders(&config.learning)?;
    let mut found = Vec::new();
    for folder in folders {
        let read = server::read_paths(folder);
        found.extend(read.map_err(|error| Failed::new(Code::LocalFileFailed, error.to_string()))?);
    }
    server::check(&mut found, &graders).await;
    let mut items = Vec::new();
    let sound = found.iter().filter(|it| it.is_sound()).count();
    let refused = found.len() - sound;
    for it in found {
        let (is_sound, folder) = (it.is_sound(), it.folder.display().to_string());
        let problems: Vec<v1::Problem> = it.problems.into_iter().map(Into::into).collect();
        if output.is_json() {
            items.push(json!({
                "path": folder,
                "valid": is_sound,
                "problems": problems_json(&problems)?,
            }));
            continue;
        }
        let (style, word) = if is_sound {
            (GOOD, "valid")
        } else {
            (BAD, "refused")
        };
        output.line(&format!("{style}{word}{style:#} {folder}"))?;
        for problem in &problems {
            output.line(&format!("  {}", problem_line(problem)))?;
        }
    }
    if output.is_json() {
        output.value(&json!({"valid": sound, "refused": refused, "paths": items}))?;
    } else {
        output.line(&format!("{sound} valid, {refused} refused"))?;
    }
    Ok(if refused == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
