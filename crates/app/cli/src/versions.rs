//! Commands on the versions of a skill.

use std::io::IsTerminal as _;

use clap::Args;

use super::connect::{Client, pages};
use super::output::{
    BAD, Done, FAINT, Failed, GOOD, List, Output, Style, WARN, bytes, counted, note, time,
};
use super::skill_args::{OfNamed, OfSkill, version};
use contract::v1;
use model::Code;

#[derive(Debug, Args)]
pub(super) struct Yank {
    #[command(flatten)]
    of: OfNamed,
    /// Why, for those who used it.
    #[arg(long, default_value = "")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Delete {
    /// The skill: its full id.
    skill: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The skill: its id or its short name.
    skill: String,
    /// The older version: its number, or its semantic version. [default: the one before the newer]
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// The newer version: its number, or its semantic version. [default: the active one]
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
}

const VERSIONS: List<v1::VersionInfo> = List::new(&[
    ("number", |version| version.version_number.to_string()),
    ("version", |version| version.semantic_version.clone()),
    ("state", state),
    ("published", |version| time(version.created_at)),
    ("by", |version| version.created_by.clone()),
    ("size", |version| bytes(version.size_bytes.unsigned_abs())),
    ("summary", |version| version.change_summary.clone()),
]);

const METRICS: List<v1::VersionMetrics> = List::new(&[
    ("number", |version| version.version_number.to_string()),
    ("version", |version| version.semantic_version.clone()),
    ("loads", |version| version.loads.to_string()),
    ("reads", |version| version.reads.to_string()),
    ("sessions", |version| version.distinct_sessions.to_string()),
    ("last used", |version| time(version.last_used_at)),
]);

fn state(version: &v1::VersionInfo) -> String {
    match (version.active, version.yanked, version.held) {
        (true, _, _) => "active".to_owned(),
        (_, true, _) if version.yank_reason.is_empty() => "withdrawn".to_owned(),
        (_, true, _) => format!("withdrawn: {}", version.yank_reason),
        (_, _, true) => format!("held: {}", version.hold_reason),
        _ => String::new(),
    }
}

pub(super) async fn versions(client: &Client, options: OfSkill, output: &Output) -> Done {
    let mut all = v1::ListVersionsResponse::default();
    pages(async |page_token| {
        let request = v1::ListVersionsRequest {
            skill_id: options.skill.clone(),
            page_size: 200,
            page_token,
        };
        let page = client.registry().list_versions(request).await?;
        let mut page = page.into_inner();
        // All pages as one answer, which has the other fields of the first.
        let next = std::mem::take(&mut page.next_page_token);
        if all.versions.is_empty() {
            all = page;
        } else {
            all.versions.extend(page.versions);
        }
        Ok(next)
    })
    .await?;
    output.message(&all)?;
    output.line(&all.skill_id)?;
    if let Some(block) = &all.blocked {
        let (by, why) = (&block.blocked_by, &block.reason);
        output.line(&format!("{BAD}blocked{BAD:#} by {by}: {why}"))?;
    }
    output.list(&VERSIONS, &all.versions)
}

pub(super) async fn diff(client: &Client, options: Diff, output: &Output) -> Done {
    let (from_version, from_semantic_version) = version(options.from);
    let (to_version, to_semantic_version) = version(options.to);
    let request = v1::DiffVersionsRequest {
        skill_id: options.skill,
        from_version,
        to_version,
        from_semantic_version,
        to_semantic_version,
    };
    let diff = client.registry().diff_versions(request).await?;
    print_diff(diff.get_ref(), output)
}

pub(super) fn print_diff(diff: &v1::DiffVersionsResponse, output: &Output) -> Done {
    output.message(diff)?;
    let label = |version: &Option<v1::VersionInfo>| {
        let version = version.as_ref();
        let label = version.map(|v| format!("{} ({})", v.version_number, v.semantic_version));
        label.unwrap_or_default()
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
    Ok(())
}

pub(super) async fn activate(client: &Client, options: OfNamed, output: &Output) -> Done {
    let (version_number, semantic_version) = version(Some(options.version));
    let request = v1::ActivateVersionRequest {
        skill_id: options.skill,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = output.answer(client.registry().activate_version(request).await?)?;
    let version = answer.version.unwrap_or_default();
    let before = match answer.previous_version {
        0 => String::new(),
        number if number == version.version_number => ", as it was".to_owned(),
        number => format!(", was {number}"),
    };
    output.line(&format!(
        "{GOOD}active{GOOD:#} {} version {} ({}){before}",
        answer.skill_id, version.version_number, version.semantic_version
    ))
}

fn active(number: u32) -> String {
    if number == 0 {
        "no version is active".to_owned()
    } else {
        format!("version {number} is active")
    }
}

pub(super) async fn yank(client: &Client, options: Yank, output: &Output) -> Done {
    let (version_number, semantic_version) = version(Some(options.of.version));
    let request = v1::YankVersionRequest {
        skill_id: options.of.skill,
        version_number,
        semantic_version,
        reason: options.reason,
        ..Default::default()
    };
    let answer = output.answer(client.registry().yank_version(request).await?)?;
    let number = answer.version.unwrap_or_default().version_number;
    output.line(&format!(
        "withdrawn {} version {number}; {}",
        answer.skill_id,
        active(answer.active_version)
    ))?;
    without(&answer.dependents, output)
}

/// Warns of skills that require what was taken away.
pub(super) fn without(dependents: &[String], output: &Output) -> Done {
    if !dependents.is_empty() {
        let dependents = dependents.join(", ");
        output.line(&format!("{WARN}it is required by{WARN:#} {dependents}"))?;
    }
    Ok(())
}

pub(super) async fn unyank(client: &Client, options: OfNamed, output: &Output) -> Done {
    let (version_number, semantic_version) = version(Some(options.version));
    let request = v1::UnyankVersionRequest {
        skill_id: options.skill,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = output.answer(client.registry().unyank_version(request).await?)?;
    let number = answer.version.unwrap_or_default().version_number;
    output.line(&format!(
        "put back {} version {number}; {}",
        answer.skill_id,
        active(answer.active_version)
    ))
}

pub(super) async fn delete(client: &Client, options: Delete, output: &Output) -> Done {
    let Delete { skill, yes } = options;
    if !yes {
        // A script cannot answer, and what its stdin holds is meant for something else.
        if !std::io::stdin().is_terminal() {
            return Err(
                Failed::new(Code::NotConfirmed, "deleting a skill cannot be undone")
                    .hint("add --yes to delete it without being asked"),
            );
        }
        note(&format!(
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
    let answer = output.answer(client.registry().delete_skill(request).await?)?;
    output.line(&format!(
        "deleted {} with {}",
        answer.skill_id,
        counted(answer.versions_deleted as usize, "version")
    ))?;
    without(&answer.dependents, output)
}

pub(super) async fn metrics(client: &Client, options: OfSkill, output: &Output) -> Done {
    let request = v1::GetMetricsRequest {
        skill_id: options.skill,
    };
    let answer = output.answer(client.registry().get_metrics(request).await?)?;
    output.line(&answer.skill_id)?;
    output.list(&METRICS, &answer.versions)
}
