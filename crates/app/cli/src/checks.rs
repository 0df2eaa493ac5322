//! Commands on conflicts, budgets, and whether skills are used.

use std::io::Read as _;
use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{BAD, Exit, FAINT, Failed, List, Output, Style, WARN, counted, exit, verdict};
use ::checks::called_by;
use contract::v1;

/// Exit code where skills conflict, exceed the budget, or fail an audit.
const FAILED_CHECK_EXIT_CODE: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct Conflicts {
    /// The skill: its id or its short name, perhaps with a version.
    skill: String,
    /// Skills to compare it with, with commas between them.
    #[arg(long, value_name = "SKILLS", value_delimiter = ',')]
    with: Vec<String>,
    /// Do not compare it with what is installed on the server's machine.
    #[arg(long, requires = "with")]
    not_installed: bool,
}

#[derive(Debug, Args)]
pub(super) struct Budget {
    /// The skills, by id or short name, perhaps with a version.
    #[arg(required = true, value_name = "SKILL")]
    skills: Vec<String>,
    /// Leave out what is installed on the server's machine.
    #[arg(long)]
    alone: bool,
}

#[derive(Debug, Args)]
pub(super) struct Activation {
    /// The skill: its id or its short name. [default: all that are installed]
    skill: Option<String>,
    /// Print what Claude Code can run so that it thinks of these skills, for its settings.json.
    #[arg(long)]
    hooks: bool,
    /// Read a message as Claude Code hands it to hooks, and name the installed skills that it
    /// calls up.
    #[arg(long, conflicts_with_all = ["skill", "hooks"])]
    hook: bool,
}

/// Bytes of a message that are read: more than any prompt has.
const MESSAGE_BYTES: u64 = 1024 * 1024;

fn severity_word(severity: v1::ConflictSeverity) -> (Style, &'static str) {
    match severity {
        v1::ConflictSeverity::Blocking => (BAD, "blocking"),
        v1::ConflictSeverity::Warning => (WARN, "warning"),
        v1::ConflictSeverity::Info | v1::ConflictSeverity::Unspecified => (FAINT, "info"),
    }
}

const COSTS: List<v1::SkillCost> = List::new(&[
    ("skill", |cost| cost.skill_id.clone()),
    ("characters", |cost| cost.estimated_size.to_string()),
    ("tokens", |cost| cost.estimated_tokens.to_string()),
    ("always", |cost| cost.listed_characters.to_string()),
    ("installed", |cost| {
        let installed = if cost.installed { "yes" } else { "" };
        installed.to_owned()
    }),
]);

pub(super) async fn conflicts(client: &Client, options: Conflicts, output: &Output) -> Exit {
    let request = v1::CheckConflictsRequest {
        skill_id: options.skill,
        against_installed: Some(!options.not_installed),
        against_skills: options.with,
    };
    let answer = output.answer(client.composition().check_conflicts(request).await?)?;
    for conflict in &answer.conflicts {
        let (style, word) = severity_word(conflict.severity());
        output.line(&format!(
            "{style}{word}{style:#} {}: {}",
            conflict.skill_id, conflict.description
        ))?;
        if let Some(overlap) = &conflict.overlap_details {
            output.line(&format!(
                "  {FAINT}{}% of the triggers: {}{FAINT:#}",
                overlap.overlap_percentage,
                overlap.shared_triggers.join(", ")
            ))?;
        }
        output.line(&format!(
            "  {FAINT}{}{FAINT:#}",
            conflict.resolution_options.join("; ")
        ))?;
    }
    for sentence in &answer.recommendations {
        output.line(sentence)?;
    }
    output.line(&format!(
        "{}, compared with {}",
        counted(answer.conflicts.len(), "conflict"),
        counted(answer.skills_compared as usize, "skill")
    ))?;
    let blocking = v1::ConflictSeverity::Blocking;
    let mut conflicts = answer.conflicts.iter();
    let is_free = conflicts.all(|conflict| conflict.severity() != blocking);
    Ok(exit(is_free, FAILED_CHECK_EXIT_CODE))
}

pub(super) async fn budget(client: &Client, options: Budget, output: &Output) -> Exit {
    let request = v1::EstimateBudgetRequest {
        skill_ids: options.skills,
        include_current: Some(!options.alone),
    };
    let answer = output.answer(client.composition().estimate_budget(request).await?)?;
    output.list(&COSTS, &answer.breakdown)?;
    output.line(&format!(
        "{} {} + {} = {} of {} characters ({}%)",
        verdict(answer.fits_budget, "fits", "too much"),
        answer.current_usage,
        answer.estimated_addition,
        answer.projected_total,
        answer.budget_limit,
        answer.utilization_percent
    ))?;
    for sentence in &answer.recommendations {
        output.line(sentence)?;
    }
    Ok(exit(answer.fits_budget, FAILED_CHECK_EXIT_CODE))
}

/// The message of a hook: `prompt` of its JSON, else the text as it is.
fn message(text: &str) -> String {
    let json = serde_json::from_str::<serde_json::Value>(text).ok();
    let prompt = json.as_ref().and_then(|json| json.get("prompt")?.as_str());
    prompt.unwrap_or(text).to_owned()
}

/// Prints the installed skills that a message calls up, in plain words for the agent that is
/// about to read it. Where there are none it prints nothing: each word would cost tokens.
async fn called(client: &Client) -> Exit {
    // Hooks have no format to choose.
    let output = Output::new(None);
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(MESSAGE_BYTES).read_to_end(&mut bytes);
        read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
    });
    let text = read.await.map_err(Failed::fault)??;
    let request = v1::GetPrioritiesRequest::default();
    let answer = client.composition().get_priorities(request).await?;
    let skills = answer.into_inner().priorities;
    let skills = skills.iter().map(|skill| {
        let slug = skill.skill_id.rsplit('/').next().unwrap_or_default();
        (slug, skill.effective_triggers.as_slice())
    });
    let message = message(&text);
    let called = called_by(&message, skills);
    if !called.is_empty() {
        output.line(
            "Installed skills that this message calls up; load what fits before you begin:",
        )?;
    }
    for (slug, phrase) in called {
        let phrase = model::beginning(phrase, 80);
        output.line(&format!("- {slug} ({phrase})"))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn activation(client: &Client, options: Activation, output: &Output) -> Exit {
    if options.hook {
        return called(client).await;
    }
    let request = v1::AuditActivationRequest {
        skill_id: options.skill.unwrap_or_default(),
        generate_hooks: options.hooks,
        include_recommendations: Some(true),
    };
    let answer = output.answer(client.composition().audit_activation(request).await?)?;
    let error = v1::AuditSeverity::Error;
    for issue in &answer.issues {
        let style = if issue.severity() == error { BAD } else { WARN };
        output.line(&format!(
            "{style}{}{style:#} {}: {}",
            issue.title, issue.skill_id, issue.description
        ))?;
    }
    for warning in &answer.warnings {
        output.line(&format!(
            "{FAINT}{}: {}{FAINT:#}",
            warning.skill_id, warning.message
        ))?;
    }
    for sentence in &answer.recommendations {
        output.line(sentence)?;
    }
    if let Some(settings) = answer.claude_code_settings.filter(|_| !output.is_json()) {
        let settings = serde_json::Value::Object(contract::json::from_struct(settings));
        output.json(&format!("{settings:#}"))?;
    }
    let summary = answer.summary.unwrap_or_default();
    let report = answer.budget_report.unwrap_or_default();
    output.line(&format!(
        "{} audited, {} healthy; {} of {} characters ({}%)",
        counted(summary.skills_audited as usize, "skill"),
        summary.healthy,
        report.used_budget,
        report.total_budget,
        report.utilization_percent
    ))?;
    let is_sound = answer.issues.iter().all(|issue| issue.severity() != error);
    Ok(exit(is_sound, FAILED_CHECK_EXIT_CODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_reads_the_prompt_of_its_json_and_any_other_text_as_it_is() {
        let json = r#"{"session_id": "x", "prompt": "write a \"test\"", "cwd": "/tmp"}"#;
        assert_eq!(message(json), "write a \"test\"");
        assert_eq!(message("write a test"), "write a test");
        assert_eq!(message(r#"{"prompt": 3}"#), r#"{"prompt": 3}"#);
    }
}
