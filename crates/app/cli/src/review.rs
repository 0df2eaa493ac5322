//! Commands on versions that are held for review.

use clap::{Args, Subcommand};

use super::connect::{Client, pages};
use super::output::{BAD, Done, FAINT, GOOD, List, Output, Style, WARN, bytes, time, word};
use super::skill_args::{OfNamed, version};
use super::versions;
use contract::v1;

const EXAMPLES: &str = "\
Examples:
  repertoire review                                    what waits
  repertoire review show refunds 3                     all that was found in version 3
  repertoire review show github/acme/refunds 3 --diff  what it changes
  repertoire review show github/acme/refunds 3 --files its files
  repertoire review show github/acme/refunds 3 --read run.sh
                                                       one of them
  repertoire review approve github/acme/refunds 3 --reason 'Read it; the address is our own'
  repertoire review reject github/acme/refunds 3 --reason 'It sends ~/.ssh to another host'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Review {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the versions that are held.
    List,
    /// Show a version with all that the scan found in it, or read it. Only those who may review it
    /// read what is held or blocked, and the audit trail records it.
    Show(Held),
    /// Hand out a version that is held.
    Approve(Decision),
    /// Keep a version held, and tell its publisher why.
    Reject(Decision),
}

#[derive(Debug, Args)]
pub(super) struct Held {
    /// The skill: its id or its short name.
    pub(super) skill: String,
    /// Its number, or its semantic version. [default: the active version, else the highest]
    pub(super) version: Option<String>,
    #[command(flatten)]
    pub(super) reading: Reading,
}

/// What to read of a version that is held, or of a blocked skill.
#[derive(Debug, Args)]
pub(super) struct Reading {
    /// Compare it with the active version, or else with the one before it.
    #[arg(long)]
    diff: bool,
    /// Compare it with this version: its number, or its semantic version.
    #[arg(long, value_name = "VERSION", requires = "diff")]
    from: Option<String>,
    /// List its files.
    #[arg(long, conflicts_with = "diff")]
    files: bool,
    /// Print this file of it.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["diff", "files"])]
    read: Option<String>,
}

impl Review {
    pub(super) fn prints_rows(&self) -> bool {
        match &self.action {
            None | Some(Action::List) => true,
            Some(Action::Show(held)) => held.reading.files,
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Decision {
    #[command(flatten)]
    of: OfNamed,
    /// Why, for its publisher and for those who look later.
    #[arg(long)]
    reason: String,
}

const HELD: List<v1::HeldVersion> = List::new(&[
    ("skill", |entry| entry.skill_id.clone()),
    ("number", |entry| {
        let version = entry.version.as_ref();
        version.map_or(0, |it| it.version_number).to_string()
    }),
    ("since", |entry| {
        time(entry.hold.as_ref().and_then(|it| it.held_at))
    }),
    ("by", |entry| {
        let version = entry.version.clone();
        version.unwrap_or_default().created_by
    }),
    ("scan", |entry| {
        status(entry.security_scan_status()).to_owned()
    }),
    ("why", |entry| {
        let hold = entry.hold.clone().unwrap_or_default();
        if hold.rejected_by.is_empty() {
            return hold.reason;
        }
        format!(
            "rejected by {}: {}",
            hold.rejected_by, hold.rejected_because
        )
    }),
]);

const FILES: List<v1::FileEntry> = List::new(&[
    ("path", |file| file.path.clone()),
    ("size", |file| bytes(file.size_bytes.unsigned_abs())),
    ("digest", |file| file.digest.clone()),
]);

/// The style of a finding by its severity.
fn style(severity: v1::SecuritySeverity) -> Style {
    match severity {
        v1::SecuritySeverity::Critical | v1::SecuritySeverity::High => BAD,
        v1::SecuritySeverity::Medium => WARN,
        _ => FAINT,
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

/// Prints findings, two lines each.
fn findings(found: &[v1::SecurityFinding], output: &Output) -> Done {
    for finding in found {
        let style = style(finding.severity());
        let word = match finding.severity() {
            v1::SecuritySeverity::Unspecified => "info".to_owned(),
            severity => word("SECURITY_SEVERITY_", severity.as_str_name()),
        };
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

pub(super) async fn review(client: &Client, options: Review, output: &Output) -> Done {
    match options.action {
        None | Some(Action::List) => list(client, output).await,
        Some(Action::Show(options)) => show(client, options, output).await,
        Some(Action::Approve(options)) => approve(client, options, output).await,
        Some(Action::Reject(options)) => reject(client, options, output).await,
    }
}

async fn list(client: &Client, output: &Output) -> Done {
    let mut all = v1::ListHeldResponse::default();
    pages(async |page_token| {
        let request = v1::ListHeldRequest {
            page_size: 500,
            page_token,
        };
        let page = client.registry().list_held(request).await?.into_inner();
        all.held.extend(page.held);
        all.held_size = page.held_size;
        Ok(page.next_page_token)
    })
    .await?;
    output.message(&all)?;
    if all.held.is_empty() {
        return output.line(&format!("{FAINT}nothing is held{FAINT:#}"));
    }
    output.list(&HELD, &all.held)
}

async fn show(client: &Client, options: Held, output: &Output) -> Done {
    let (version_number, semantic_version) = version(options.version);
    let Reading {
        diff,
        from,
        files,
        read,
    } = options.reading;
    if diff {
        let (from_version, from_semantic_version) = version(from);
        let request = v1::DiffForReviewRequest {
            skill_id: options.skill,
            version_number,
            semantic_version,
            from_version,
            from_semantic_version,
        };
        let answer = client.registry().diff_for_review(request).await?;
        let diff = answer.into_inner().diff.unwrap_or_default();
        return versions::print_diff(&diff, output);
    }
    if files || read.is_some() {
        let request = v1::ReadForReviewRequest {
            skill_id: options.skill,
            version_number,
            semantic_version,
            path: read.clone().unwrap_or_default(),
        };
        let answer = client.registry().read_for_review(request).await?;
        let answer = answer.into_inner();
        if read.is_some() {
            return output.file(&answer.content, false);
        }
        output.message(&answer)?;
        return output.list(&FILES, &answer.files);
    }
    let request = v1::ScanSkillRequest {
        skill_id: options.skill,
        version_number,
        semantic_version,
        ..Default::default()
    };
    let answer = output.answer(client.registry().scan_skill(request).await?)?;
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
    let list = |what: &str, items: &[String]| match items {
        [] => Ok(()),
        items => output.line(&format!("{what}: {}", items.join(", "))),
    };
    list("powers", &report.capabilities)?;
    list("hosts", &report.hosts)?;
    if let Some(new) = &answer.changes {
        let since = new.since_version;
        list(&format!("hosts since version {since}"), &new.hosts)?;
        list(&format!("powers since version {since}"), &new.capabilities)?;
    }
    Ok(())
}

async fn approve(client: &Client, options: Decision, output: &Output) -> Done {
    let (version_number, semantic_version) = version(Some(options.of.version));
    let request = v1::ApproveVersionRequest {
        skill_id: options.of.skill,
        version_number,
        semantic_version,
        reason: options.reason,
        ..Default::default()
    };
    let answer = output.answer(client.registry().approve_version(request).await?)?;
    let version = answer.version.unwrap_or_default();
    let active = match answer.active_version {
        number if number == version.version_number => "it is active now".to_owned(),
        0 => "no version is active".to_owned(),
        number => format!("version {number} stays active"),
    };
    output.line(&format!(
        "{GOOD}approved{GOOD:#} {} version {}; {active}",
        answer.skill_id, version.version_number
    ))
}

async fn reject(client: &Client, options: Decision, output: &Output) -> Done {
    let (version_number, semantic_version) = version(Some(options.of.version));
    let request = v1::RejectVersionRequest {
        skill_id: options.of.skill,
        version_number,
        semantic_version,
        reason: options.reason,
        ..Default::default()
    };
    let answer = output.answer(client.registry().reject_version(request).await?)?;
    let number = answer.version.unwrap_or_default().version_number;
    output.line(&format!(
        "{BAD}rejected{BAD:#} {} version {number}; it stays held",
        answer.skill_id
    ))
}
