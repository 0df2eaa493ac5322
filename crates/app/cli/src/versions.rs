//! Commands on the versions of a skill.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{
    self, BAD, Exit, FAINT, Failed, GOOD, Output, Style, Table, WARN, bytes, time,
};
use super::skill_args::{Diff, OfNamed, OfSkill, version};
use contract::v1;
use model::Code;

#[derive(Debug, Args)]
pub(super) struct Yank {
    #[command(flatten)]
    pub(super) of: OfNamed,
    /// Why, for those who used it.
    #[arg(long, default_value = "")]
    pub(super) reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Delete {
    /// The skill: its id or its short name.
    pub(super) skill: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

pub(super) async fn versions(client: &mut Client, options: OfSkill, output: &Output) -> Exit {
    let mut request = v1::ListVersionsRequest {
        skill_id: options.skill,
        page_size: 200,
        ..Default::default()
    };
    let mut all = client
        .registry()
        .list_versions(request.clone())
        .await?
        .into_inner();
    while !all.next_page_token.is_empty() {
        request.page_token = std::mem::take(&mut all.next_page_token);
        let page = client
            .registry()
            .list_versions(request.clone())
            .await?
            .into_inner();
        all.versions.extend(page.versions);
        all.next_page_token = page.next_page_token;
    }
    if output.is_json() {
        output.message("ListVersionsResponse", &all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&[
        "number",
        "version",
        "state",
        "published",
        "by",
        "size",
        "summary",
    ]);
    for version in &all.versions {
        let state = match (version.active, version.yanked, version.held) {
            (true, _, _) => "active".to_owned(),
            (_, true, _) if version.yank_reason.is_empty() => "withdrawn".to_owned(),
            (_, true, _) => format!("withdrawn: {}", version.yank_reason),
            (_, _, true) => format!("held: {}", version.hold_reason),
            _ => String::new(),
        };
        rows.add_row([
            version.version_number.to_string(),
            version.semantic_version.clone(),
            state,
            time(version.created_at),
            version.created_by.clone(),
            bytes(version.size_bytes),
            version.change_summary.clone(),
        ]);
    }
    output.line(&all.skill_id)?;
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn diff(client: &mut Client, options: Diff, output: &Output) -> Exit {
    let (from_version, from_semantic_version) = version(options.from);
    let (to_version, to_semantic_version) = version(options.to);
    let request = v1::DiffVersionsRequest {
        skill_id: options.skill,
        from_version,
        to_version,
        from_semantic_version,
        to_semantic_version,
    };
    let diff = client.registry().diff_versions(request).await?.into_inner();
    if output.is_json() {
        output.message("DiffVersionsResponse", &diff)?;
        return Ok(ExitCode::SUCCESS);
    }
    let label = |version: &Option<v1::VersionInfo>| {
        version
            .as_ref()
            .map(|v| format!("{} ({})", v.version_number, v.semantic_version))
            .unwrap_or_default()
    };
    output.line(&format!(
        "{} {} → {}",
        diff.skill_id,
        label(&diff.from),
        label(&diff.to)
    ))?;
    for field in &diff.fields {
        output.line(&format!(
            "{WARN}{:?}{WARN:#} {}",
            field.r#type(),
            field.field
        ))?;
    }
    for file in &diff.files {
        output.line(&format!("{WARN}{:?}{WARN:#} {}", file.r#type(), file.path))?;
        let why = match file.line_comparison() {
            v1::LineComparison::TooLarge => "too large to compare line by line",
            v1::LineComparison::OverBudget => {
                "not compared line by line: the files before it took what one answer compares"
            }
            _ => "",
        };
        if !why.is_empty() {
            output.line(&format!("{FAINT}{why}{FAINT:#}"))?;
        }
        for line in file.unified_diff.iter().flat_map(|text| text.lines()) {
            let style = match line.as_bytes().first() {
                Some(b'+') => GOOD,
                Some(b'-') => BAD,
                Some(b'@') => FAINT,
                _ => Style::Plain,
            };
            output.line(&format!("{style}{line}{style:#}"))?;
        }
    }
    if diff.fields.is_empty() && diff.files.is_empty() {
        output.line("no difference")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn activate(client: &mut Client, options: OfNamed, output: &Output) -> Exit {
    let (version_number, semantic_version) = version(Some(options.version));
    let request = v1::ActivateVersionRequest {
        skill_id: options.skill,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = client
        .registry()
        .activate_version(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("ActivateVersionResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = answer.version.unwrap_or_default();
    let before = match answer.previous_version {
        0 => String::new(),
        number if number == version.version_number => ", as it was".to_owned(),
        number => format!(", was {number}"),
    };
    output.line(&format!(
        "{GOOD}active{GOOD:#} {} version {} ({}){before}",
        answer.skill_id, version.version_number, version.semantic_version
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn active(number: u32) -> String {
    if number == 0 {
        "no version is active".to_owned()
    } else {
        format!("version {number} is active")
    }
}

pub(super) async fn yank(client: &mut Client, options: Yank, output: &Output) -> Exit {
    let Yank {
        of: OfNamed {
            skill,
            version: named,
        },
        reason,
    } = options;
    let (version_number, semantic_version) = version(Some(named));
    let request = v1::YankVersionRequest {
        skill_id: skill,
        version_number,
        semantic_version,
        reason,
        ..Default::default()
    };
    let answer = client.registry().yank_version(request).await?.into_inner();
    if output.is_json() {
        output.message("YankVersionResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let number = answer.version.unwrap_or_default().version_number;
    output.line(&format!(
        "withdrawn {} version {number}; {}",
        answer.skill_id,
        active(answer.active_version)
    ))?;
    without(&answer.dependents, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Skills that require what was taken away.
pub(super) fn without(dependents: &[String], output: &Output) -> Result<(), Failed> {
    if !dependents.is_empty() {
        let dependents = dependents.join(", ");
        output.line(&format!("{WARN}it is required by{WARN:#} {dependents}"))?;
    }
    Ok(())
}

pub(super) async fn unyank(client: &mut Client, options: OfNamed, output: &Output) -> Exit {
    let (version_number, semantic_version) = version(Some(options.version));
    let request = v1::UnyankVersionRequest {
        skill_id: options.skill,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = client
        .registry()
        .unyank_version(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("UnyankVersionResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let number = answer.version.unwrap_or_default().version_number;
    output.line(&format!(
        "put back {} version {number}; {}",
        answer.skill_id,
        active(answer.active_version)
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn delete(client: &mut Client, options: Delete, output: &Output) -> Exit {
    let Delete { skill, yes } = options;
    if !yes {
        if !std::io::stdin().is_terminal() {
            return Err(
                Failed::new(Code::NotConfirmed, "deleting a skill cannot be undone")
                    .hint("add --yes to delete it without being asked"),
            );
        }
        output::note(&format!(
            "Delete '{skill}' with all its versions? This cannot be undone. [y/N]"
        ));
        let read = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer).map(|_| answer)
        });
        let answer = read.await.map_err(Failed::fault)??;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(Failed::new(Code::NotConfirmed, "nothing was deleted"));
        }
    }
    let request = v1::DeleteSkillRequest {
        skill_id: skill,
        ..Default::default()
    };
    let answer = client.registry().delete_skill(request).await?.into_inner();
    if output.is_json() {
        output.message("DeleteSkillResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    output.line(&format!(
        "deleted {} with {}",
        answer.skill_id,
        output::counted(answer.versions_deleted as usize, "version")
    ))?;
    without(&answer.dependents, output)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn metrics(client: &mut Client, options: OfSkill, output: &Output) -> Exit {
    let answer = client
        .registry()
        .get_metrics(v1::GetMetricsRequest {
            skill_id: options.skill,
        })
        .await?
        .into_inner();
    if output.is_json() {
        output.message("GetMetricsResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&[
        "number",
        "version",
        "loads",
        "reads",
        "sessions",
        "last used",
    ]);
    for version in &answer.versions {
        rows.add_row([
            version.version_number.to_string(),
            version.semantic_version.clone(),
            version.loads.to_string(),
            version.reads.to_string(),
            version.distinct_sessions.to_string(),
            time(version.last_used_at),
        ]);
    }
    output.line(&answer.skill_id)?;
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}
