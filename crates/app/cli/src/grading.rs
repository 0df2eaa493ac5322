//! The graders of solutions: how well they are confined, and the gate of learning paths.

use std::path::PathBuf;

use super::doctor::{CheckStatus, Finding};
use super::outcome::{Checked, summarize_checked};
use super::output::{Exit, Failed, Output};
use server::{Config, learning};

/// Checks learning paths: reads them, and sends them through their gate.
pub(super) async fn check(folders: &[PathBuf], config: &Config, output: &Output) -> Exit {
    let graders = learning::graders(&config.learning)?;
    let mut found = Vec::new();
    for folder in folders {
        found.extend(learning::read_paths(folder).map_err(Failed::file)?);
    }
    learning::check(&mut found, &graders).await;
    let checked = found.into_iter().map(|it| {
        let checked = Checked::new(it.folder.clone(), it.is_sound(), it.problems);
        checked.report(output)?;
        Ok::<_, Failed>(checked)
    });
    let checked: Vec<_> = checked.collect::<Result<_, _>>()?;
    summarize_checked(&checked, "paths", output)
}

fn status(holds: bool, otherwise: CheckStatus) -> CheckStatus {
    if holds { CheckStatus::Ok } else { otherwise }
}

/// Returns which confinements the process that runs learners' solutions has.
pub(super) async fn confinement(config: &Config) -> Result<Vec<Finding>, Failed> {
    let sandbox = learning::sandbox(&config.learning)?;
    let demanded = if config.learning.require_confinement {
        CheckStatus::Failed
    } else {
        CheckStatus::Warning
    };
    let held = match sandbox.confinement().await {
        Ok(held) => held,
        Err(error) => {
            return Ok(vec![Finding {
                check: "sandbox",
                status: CheckStatus::Failed,
                found: error.to_string(),
                next: "solutions that run cannot be graded here; the log of the server says more",
            }]);
        }
    };
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    Ok(vec![
        Finding {
            check: "sandbox.rlimits",
            status: status(held.rlimits, CheckStatus::Failed),
            found: yes(held.rlimits),
            next: "limits on processor time and memory could not be set",
        },
        Finding {
            check: "sandbox.landlock",
            status: status(held.landlock.is_some(), demanded),
            found: held
                .landlock
                .map_or_else(|| "no".to_owned(), |version| format!("version {version}")),
            next: "needs Linux 5.13 with Landlock; without it seccomp alone keeps solutions from files",
        },
        Finding {
            check: "sandbox.seccomp",
            status: status(held.seccomp, demanded),
            found: yes(held.seccomp),
            next: "needs Linux with seccomp filters; without it solutions could open sockets",
        },
    ])
}
