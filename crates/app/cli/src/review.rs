//! Commands on versions that are held for review.

use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{BAD, Exit, FAINT, Failed, GOOD, Output, Style, Table, WARN, time};
use super::skill_args::{OfNamed, version};
use contract::v1;

#[derive(Debug, Args)]
pub(super) struct Held {
    /// Show one of them with all that the scan found: its id or its short name.
    pub(super) skill: Option<String>,
    /// Its number, or its semantic version. [default: the active version, else the highest]
    #[arg(requires = "skill")]
    pub(super) version: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Review {
    #[command(flatten)]
    pub(super) of: OfNamed,
    /// Why, for its publisher and for those who look later.
    #[arg(long)]
    pub(super) reason: String,
}

/// The style of a finding by how much harm it does.
fn style(severity: v1::SecuritySeverity) -> Style {
    match severity {
        v1::SecuritySeverity::Critical | v1::SecuritySeverity::High => BAD,
        v1::SecuritySeverity::Medium => WARN,
        _ => FAINT,
    }
}

fn severity(severity: v1::SecuritySeverity) -> &'static str {
    match severity {
        v1::SecuritySeverity::Critical => "critical",
        v1::SecuritySeverity::High => "high",
        v1::SecuritySeverity::Medium => "medium",
        v1::SecuritySeverity::Low => "low",
        v1::SecuritySeverity::Info | v1::SecuritySeverity::Unspecified => "info",
    }
}

pub(super) fn status(status: v1::ScanStatus) -> &'static str {
    match status {
        v1::ScanStatus::Passed => "passed",
        v1::ScanStatus::Warning => "warning",
        v1::ScanStatus::Failed => "failed",
        v1::ScanStatus::Pending | v1::ScanStatus::Unspecified => "pending",
    }
}

/// What was found, two lines each.
pub(super) fn findings(found: &[v1::SecurityFinding], output: &Output) -> Result<(), Failed> {
    for finding in found {
        let style = style(finding.severity());
        let word = severity(finding.severity());
        let place = match (&finding.file_path, finding.line_number) {
            (None, _) => String::new(),
            (Some(path), None) => format!(" {path}"),
            (Some(path), Some(line)) => format!(" {path}:{line}"),
        };
        output.line(&format!(
            "  {style}{word}{style:#}{place} {} [{}]",
            finding.title, finding.rule
        ))?;
        if !finding.evidence.is_empty() {
            output.line(&format!("    {FAINT}{}{FAINT:#}", finding.evidence))?;
        }
    }
    Ok(())
}

pub(super) async fn held(client: &mut Client, options: Held, output: &Output) -> Exit {
    if let Some(skill) = options.skill {
        return show(client, skill, options.version, output).await;
    }
    let mut request = v1::ListHeldRequest {
        page_size: 500,
        page_token: String::new(),
    };
    let mut all = v1::ListHeldResponse::default();
    loop {
        let page = client.registry().list_held(request.clone()).await?;
        let page = page.into_inner();
        all.held.extend(page.held);
        all.held_size = page.held_size;
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    if output.is_json() {
        output.message("ListHeldResponse", &all)?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.held.is_empty() {
        output.line(&format!("{FAINT}nothing is held{FAINT:#}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&["skill", "number", "since", "by", "scan", "why"]);
    for entry in &all.held {
        let version = entry.version.clone().unwrap_or_default();
        let hold = entry.hold.clone().unwrap_or_default();
        let why = if hold.rejected_by.is_empty() {
            hold.reason
        } else {
            format!(
                "rejected by {}: {}",
                hold.rejected_by, hold.rejected_because
            )
        };
        rows.add_row([
            entry.skill_id.clone(),
            version.version_number.to_string(),
            time(hold.held_at),
            version.created_by,
            status(entry.security_scan_status()).to_owned(),
            why,
        ]);
    }
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}

async fn show(client: &mut Client, skill_id: String, of: Option<String>, output: &Output) -> Exit {
    let (version_number, semantic_version) = version(of);
    let request = v1::ScanSkillRequest {
        skill_id,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = client.registry().scan_skill(request).await?.into_inner();
    if output.is_json() {
        output.message("ScanSkillResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = answer.report.clone().unwrap_or_default();
    let (id, number) = (&answer.skill_id, answer.version_number);
    let state = status(report.status());
    output.line(&format!("{id} version {number}: the scan says {state}"))?;
    if let Some(hold) = &answer.hold {
        output.line(&format!("{BAD}held{BAD:#}: {}", hold.reason))?;
        if !hold.rejected_by.is_empty() {
            let (by, why) = (&hold.rejected_by, &hold.rejected_because);
            output.line(&format!("{BAD}rejected{BAD:#} by {by}: {why}"))?;
        }
    }
    if let Some(approval) = &answer.approval {
        let (by, why) = (&approval.approved_by, &approval.reason);
        output.line(&format!("{GOOD}approved{GOOD:#} by {by}: {why}"))?;
    }
    findings(&report.findings, output)?;
    if report.findings_left_out > 0 {
        let more = report.findings_left_out;
        output.line(&format!("  {FAINT}and {more} more{FAINT:#}"))?;
    }
    let told = |what: &str, items: &[String]| match items {
        [] => Ok(()),
        items => output.line(&format!("{what}: {}", items.join(", "))),
    };
    told("powers", &report.capabilities)?;
    told("hosts", &report.hosts)?;
    if let Some(new) = &answer.changes {
        let since = new.since_version;
        told(&format!("hosts since version {since}"), &new.hosts)?;
        told(&format!("powers since version {since}"), &new.capabilities)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn approve(client: &mut Client, options: Review, output: &Output) -> Exit {
    let (version_number, semantic_version) = version(Some(options.of.version));
    let request = v1::ApproveVersionRequest {
        skill_id: options.of.skill,
        version_number,
        semantic_version,
        reason: options.reason,
        ..Default::default()
    };
    let answer = client.registry().approve_version(request).await?;
    let answer = answer.into_inner();
    if output.is_json() {
        output.message("ApproveVersionResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = answer.version.unwrap_or_default();
    let active = match answer.active_version {
        number if number == version.version_number => "it is active now".to_owned(),
        0 => "no version is active".to_owned(),
        number => format!("version {number} stays active"),
    };
    output.line(&format!(
        "{GOOD}approved{GOOD:#} {} version {}; {active}",
        answer.skill_id, version.version_number
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn reject(client: &mut Client, options: Review, output: &Output) -> Exit {
    let (version_number, semantic_version) = version(Some(options.of.version));
    let request = v1::RejectVersionRequest {
        skill_id: options.of.skill,
        version_number,
        semantic_version,
        reason: options.reason,
        ..Default::default()
    };
    let answer = client.registry().reject_version(request).await?;
    let answer = answer.into_inner();
    if output.is_json() {
        output.message("RejectVersionResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let number = answer.version.unwrap_or_default().version_number;
    output.line(&format!(
        "{BAD}rejected{BAD:#} {} version {number}; it stays held",
        answer.skill_id
    ))?;
    Ok(ExitCode::SUCCESS)
}
