//! `scan`: finds what may be harmful in the skills of a folder, by the rules of `trust`.
//!
//! It reads every file, also what `import` leaves on the machine (`.gitignore`,
//! `.skillignore`, `node_modules`): an agent finds it in the folder all the same, and what
//! hides a file would hide it from the scan as well. Links are not followed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value as Json, json};

use super::folder;
use super::output::{BAD, Exit, FAINT, Failed, GOOD, Output, WARN};
use trust::{Finding, Severity, Verdict};

/// Exit codes where a skill must not be used, and where a person should review one. 2 is a
/// command line that is wrong.
const BLOCKED_EXIT_CODE: u8 = 3;
pub(super) const REVIEW_EXIT_CODE: u8 = 4;
const SCAN_HELP: &str = "\
Example:
  repertoire scan ~/.claude/skills

Exit codes:
  0  all skills pass
  1  something else went wrong, as with every command
  2  the command line is wrong
  3  a skill must not be used
  4  a skill needs review";

#[derive(Debug, Args)]
#[command(after_help = SCAN_HELP)]
pub(super) struct Scan {
    /// Folders to look for skills in.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Print the findings as SARIF 2.1.0, a log for each skill.
    #[arg(long)]
    sarif: bool,
}

fn lines(found: &Finding) -> [String; 2] {
    let style = match found.severity {
        Severity::Critical | Severity::High => BAD,
        Severity::Medium => WARN,
        Severity::Low | Severity::Info => FAINT,
    };
    let place = match (found.path.as_str(), found.line) {
        ("", _) => String::new(),
        (path, 0) => format!(" {path}"),
        (path, line) => format!(" {path}:{line}"),
    };
    [
        format!(
            "  {style}{}{style:#}{place} {} [{}]",
            found.severity.name(),
            found.title,
            found.rule
        ),
        format!("    {FAINT}{}{FAINT:#}", found.evidence),
    ]
}

pub(super) fn scan(options: &Scan, output: &Output) -> Exit {
    let (mut worst, mut items) = (Verdict::Passed, Vec::<Json>::new());
    let mut counts = BTreeMap::<&str, usize>::new();
    for root in &options.folders {
        for path in folder::outermost(root).map_err(Failed::file)? {
            let report = folder::scan(&path).map_err(Failed::file)?;
            worst = worst.max(report.verdict);
            *counts.entry(report.verdict.name()).or_default() += 1;
            if options.sarif {
                items.push(trust::sarif(
                    &report,
                    "repertoire",
                    env!("CARGO_PKG_VERSION"),
                ));
            } else if output.is_json() {
                items.push(json!({"path": path.display().to_string(), "report": report}));
            } else {
                let (style, word) = match report.verdict {
                    Verdict::Passed => (GOOD, "passed"),
                    Verdict::Warning => (WARN, "review"),
                    Verdict::Failed => (BAD, "blocked"),
                };
                output.line(&format!("{style}{word}{style:#} {}", path.display()))?;
                for line in report.findings.iter().flat_map(lines) {
                    output.line(&line)?;
                }
                if report.left_out > 0 {
                    output.line(&format!("  {FAINT}and {} more{FAINT:#}", report.left_out))?;
                }
            }
        }
    }
    if options.sarif || output.is_json() {
        output.json(&format!("{:#}", Json::Array(items)))?;
    } else {
        let of = |verdict: Verdict| counts.get(verdict.name()).copied().unwrap_or_default();
        output.line(&format!(
            "{} passed, {} to review, {} blocked",
            of(Verdict::Passed),
            of(Verdict::Warning),
            of(Verdict::Failed)
        ))?;
    }
    Ok(match worst {
        Verdict::Passed => ExitCode::SUCCESS,
        Verdict::Warning => ExitCode::from(REVIEW_EXIT_CODE),
        Verdict::Failed => ExitCode::from(BLOCKED_EXIT_CODE),
    })
}
