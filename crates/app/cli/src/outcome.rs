//! What became of folders that were imported, as a person or a program is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::output::{BAD, FAINT, Failed, GOOD, HINT, Output, Style, Table, WARN, counted, json_of};
use contract::v1;
use model::{Code, Problem, Severity};

/// Files that are shown of those that were left out.
const SHOWN: usize = 20;
/// What stayed on the machine, with the reason.
pub(super) type LeftOut = Vec<(PathBuf, String)>;

/// What became of one folder.
pub(super) enum Outcome {
    Published(Box<v1::PublishSkillResponse>),
    /// It has the same files as another folder, which has this id.
    Copy {
        id: String,
        of: PathBuf,
    },
    Refused {
        code: String,
        message: String,
        hints: Vec<String>,
        problems: Vec<v1::Problem>,
    },
}

impl Outcome {
    /// The server said nothing of it.
    pub(super) fn unanswered() -> Self {
        Self::Refused {
            code: Code::ServerUnreachable.name().to_owned(),
            message: "The server ended the import before it answered for this folder".to_owned(),
            hints: vec!["import again: what is there already stays as it is".to_owned()],
            problems: Vec::new(),
        }
    }

    /// What this outcome means for a copy of its folder; none: nothing.
    pub(super) fn of_copy(&self, of: &Path) -> Option<Self> {
        let Self::Refused { code, hints, .. } = self else {
            return None;
        };
        Some(Self::Refused {
            code: code.clone(),
            message: format!("The same files as {}, which was refused", of.display()),
            hints: hints.clone(),
            problems: Vec::new(),
        })
    }

    pub(super) fn refused(problems: Vec<Problem>) -> Self {
        let errors = problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count();
        Self::Refused {
            code: "SKILL_INVALID".to_owned(),
            message: format!("{} to mend", counted(errors, "problem")),
            hints: Vec::new(),
            problems: problems.into_iter().map(Into::into).collect(),
        }
    }
}

pub(super) fn summarize(
    outcomes: &BTreeMap<PathBuf, Outcome>,
    left_out: &LeftOut,
    dry_run: bool,
    output: &Output,
) -> Result<(), Failed> {
    if output.is_rows() {
        output.table(&rows(outcomes))
    } else {
        summarize_all(outcomes, left_out, dry_run, output)
    }
}

fn summarize_all(
    outcomes: &BTreeMap<PathBuf, Outcome>,
    left_out: &LeftOut,
    dry_run: bool,
    output: &Output,
) -> Result<(), Failed> {
    let (mut created, mut updated, mut unchanged, mut warnings) = (0, 0, 0, 0);
    let (mut refused, mut copies, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for (path, outcome) in outcomes {
        match outcome {
            Outcome::Published(published) => {
                match published.outcome() {
                    v1::PublishOutcome::Created => created += 1,
                    v1::PublishOutcome::Updated => updated += 1,
                    v1::PublishOutcome::Unchanged | v1::PublishOutcome::Unspecified => {
                        unchanged += 1;
                    }
                }
                if let Some(version) = published.version.as_ref().filter(|v| v.held) {
                    held.push((path, &published.skill_id, version));
                }
                warnings += published
                    .problems
                    .iter()
                    .filter(|p| p.severity() == v1::Severity::Warning)
                    .count();
            }
            Outcome::Copy { id, of } => {
                unchanged += 1;
                copies.push((path, id, of));
            }
            Outcome::Refused {
                code,
                message,
                hints,
                problems,
            } => refused.push((path, code, message, hints, problems)),
        }
    }
    if output.is_json() {
        let mut items = Vec::new();
        for (path, code, message, hints, problems) in refused {
            items.push(json!({
                "path": path.display().to_string(),
                "code": code,
                "message": message,
                "recovery_suggestions": hints,
                "problems": problems_json(problems)?,
            }));
        }
        let mut said = json!({
            "created": created,
            "updated": updated,
            "unchanged": unchanged,
            "warnings": warnings,
            "copies": copies
                .iter()
                .map(|(path, id, of)| json!({
                    "path": path.display().to_string(),
                    "skill_id": id,
                    "same_as": of.display().to_string(),
                }))
                .collect::<Vec<_>>(),
            "held": held
                .iter()
                .map(|(path, id, version)| json!({
                    "path": path.display().to_string(),
                    "skill_id": id,
                    "version_number": version.version_number,
                    "reason": version.hold_reason,
                }))
                .collect::<Vec<_>>(),
            "refused": items,
            "left_out": left_out
                .iter()
                .map(|(path, why)| json!({"path": path.display().to_string(), "reason": why}))
                .collect::<Vec<_>>(),
        });
        if let Some(said) = said.as_object_mut().filter(|_| dry_run) {
            add_dry_run(said, outcomes)?;
        }
        return output.value(&said);
    }
    if dry_run {
        report_dry_run(outcomes, output)?;
    }
    report_left_out(left_out, output)?;
    report_copies(&copies, output)?;
    report_held(&held, output)?;
    report_refused(&refused, output)?;
    let style = if refused.is_empty() {
        Style::Plain
    } else {
        BAD
    };
    output.line(&format!(
        "{GOOD}{created} created{GOOD:#}, {updated} updated, {unchanged} unchanged, {style}{} refused{style:#}",
        refused.len(),
    ))?;
    if warnings > 0 {
        output.line(&format!(
            "{WARN}{}{WARN:#}; `repertoire validate FOLDER` shows them",
            counted(warnings, "warning")
        ))?;
    }
    Ok(())
}

/// What became of each folder, in rows. One that was refused has no id.
fn rows(outcomes: &BTreeMap<PathBuf, Outcome>) -> Table {
    let mut rows = Table::new(&["id", "version", "outcome", "path"]);
    for (path, outcome) in outcomes {
        let path = path.display().to_string();
        match outcome {
            Outcome::Published(published) => rows.add_row(row(published, path)),
            Outcome::Copy { id, .. } => rows.add_row([id, "", "unchanged", &path]),
            Outcome::Refused { code, .. } => rows.add_row(["", "", code, &path]),
        }
    }
    rows
}

fn row(published: &v1::PublishSkillResponse, path: String) -> [String; 4] {
    let version = published.version.clone().unwrap_or_default();
    [
        published.skill_id.clone(),
        version.semantic_version,
        word(published).to_owned(),
        path,
    ]
}

/// Tells a person of one skill that was looked at.
pub(super) fn report_checked(
    path: &Path,
    is_valid: bool,
    mended: &[v1::Problem],
    problems: &[v1::Problem],
    output: &Output,
) -> Result<(), Failed> {
    let (style, word) = if is_valid {
        (GOOD, "valid")
    } else {
        (BAD, "refused")
    };
    output.line(&format!("{style}{word}{style:#} {}", path.display()))?;
    for problem in mended {
        output.line(&format!("  {GOOD}fixed{GOOD:#} {}", problem_line(problem)))?;
    }
    for problem in problems {
        output.line(&format!("  {}", problem_line(problem)))?;
    }
    Ok(())
}

fn all_published(
    outcomes: &BTreeMap<PathBuf, Outcome>,
) -> impl Iterator<Item = (&PathBuf, &v1::PublishSkillResponse)> {
    outcomes.iter().filter_map(|(path, outcome)| match outcome {
        Outcome::Published(published) => Some((path, &**published)),
        _ => None,
    })
}

/// Adds to what a program is told what would become of each skill.
fn add_dry_run(
    said: &mut serde_json::Map<String, Value>,
    outcomes: &BTreeMap<PathBuf, Outcome>,
) -> Result<(), Failed> {
    let skills = all_published(outcomes).map(|(path, published)| {
        Ok(json!({
            "path": path.display().to_string(),
            "would_be": json_of("PublishSkillResponse", published)?,
        }))
    });
    said.insert("dry_run".to_owned(), true.into());
    said.insert("skills".to_owned(), skills.collect::<Result<_, Failed>>()?);
    Ok(())
}

/// Tells a person what would become of each skill.
fn report_dry_run(outcomes: &BTreeMap<PathBuf, Outcome>, output: &Output) -> Result<(), Failed> {
    for (path, published) in all_published(outcomes) {
        let version = published.version.clone().unwrap_or_default();
        output.line(&format!(
            "{GOOD}{}{GOOD:#} {} version {} ({}) {FAINT}{}{FAINT:#}",
            word(published),
            published.skill_id,
            version.version_number,
            version.semantic_version,
            path.display()
        ))?;
    }
    output.line("this is what an import would come to now; nothing is stored")
}

fn word(published: &v1::PublishSkillResponse) -> &'static str {
    match published.outcome() {
        v1::PublishOutcome::Created => "created",
        v1::PublishOutcome::Updated => "updated",
        v1::PublishOutcome::Unchanged | v1::PublishOutcome::Unspecified => "unchanged",
    }
}

/// Tells a person of one skill that was published.
pub(super) fn report_published(
    published: &v1::PublishSkillResponse,
    output: &Output,
) -> Result<(), Failed> {
    if output.is_rows() {
        let mut rows = Table::new(&["id", "version", "outcome"]);
        let [id, version, outcome, _] = row(published, String::new());
        rows.add_row([id, version, outcome]);
        return output.table(&rows);
    }
    let version = published.version.clone().unwrap_or_default();
    output.line(&format!(
        "{GOOD}{}{GOOD:#} {} version {} ({}){}",
        word(published),
        published.skill_id,
        version.version_number,
        version.semantic_version,
        if version.active { ", active" } else { "" },
    ))?;
    if version.held {
        output.line(&format!(
            "{WARN}held{WARN:#} for review: {}",
            version.hold_reason
        ))?;
        output.line(&format!("  {}", review_hint()))?;
    }
    for problem in &published.problems {
        output.line(&format!("  {}", problem_line(problem)))?;
    }
    Ok(())
}

impl Outcome {
    /// Tells of one folder: a person in lines, a program in one.
    pub(super) fn report(&self, path: &PathBuf, output: &Output) -> Result<(), Failed> {
        let json = output.is_json();
        let (word, said) = match self {
            Self::Published(published) if json => {
                ("published", json_of("PublishSkillResponse", &**published)?)
            }
            Self::Published(published) => return report_published(published, output),
            Self::Copy { id, of } => (
                "copy",
                json!({"skill_id": id, "same_as": of.display().to_string()}),
            ),
            Self::Refused {
                code,
                message,
                hints,
                problems,
            } => {
                if !json {
                    return report_refused(&[(path, code, message, hints, problems)], output);
                }
                let problems = problems_json(problems)?;
                let said = json!({"code": code, "message": message, "recovery_suggestions": hints, "problems": problems});
                ("refused", said)
            }
        };
        output.json(&json!({"path": path.display().to_string(), word: said}).to_string())
    }
}

type Held<'a> = (&'a PathBuf, &'a String, &'a v1::VersionInfo);
type Refused<'a> = (
    &'a PathBuf,
    &'a String,
    &'a String,
    &'a Vec<String>,
    &'a Vec<v1::Problem>,
);

fn report_copies(copies: &[(&PathBuf, &String, &PathBuf)], output: &Output) -> Result<(), Failed> {
    for (path, id, of) in copies {
        output.line(&format!(
            "{FAINT}unchanged {}: same as {}, which is {id}{FAINT:#}",
            path.display(),
            of.display()
        ))?;
    }
    Ok(())
}

fn report_held(held: &[Held<'_>], output: &Output) -> Result<(), Failed> {
    for (path, id, version) in held {
        let (number, reason) = (version.version_number, &version.hold_reason);
        output.line(&format!(
            "{WARN}held{WARN:#} {} {id} version {number}: {reason}",
            path.display()
        ))?;
    }
    if !held.is_empty() {
        output.line(&format!("  {}", review_hint()))?;
    }
    Ok(())
}

fn report_refused(refused: &[Refused<'_>], output: &Output) -> Result<(), Failed> {
    for (path, code, message, hints, problems) in refused {
        output.line(&format!(
            "{BAD}refused{BAD:#} {} {FAINT}[{code}]{FAINT:#} {message}",
            path.display()
        ))?;
        for problem in problems
            .iter()
            .filter(|problem| problem.severity() == v1::Severity::Error)
        {
            output.line(&format!("  {}", problem_line(problem)))?;
        }
        // Those of problems say no more than the problems do.
        for hint in hints.iter().filter(|_| problems.is_empty()) {
            output.line(&format!("  {HINT}hint:{HINT:#} {hint}"))?;
        }
    }
    Ok(())
}

/// What to do with a version that is held.
pub(super) fn review_hint() -> String {
    format!(
        "{HINT}hint:{HINT:#} `repertoire held SKILL NUMBER` shows what was found; on the server's machine `repertoire approve` hands it out"
    )
}

/// Says what stayed on the machine.
fn report_left_out(left_out: &LeftOut, output: &Output) -> Result<(), Failed> {
    for (path, why) in left_out.iter().take(SHOWN) {
        output.line(&format!("{FAINT}{}: {why}{FAINT:#}", path.display()))?;
    }
    if left_out.len() > SHOWN {
        let more = left_out.len() - SHOWN;
        output.line(&format!(
            "{FAINT}and {more} more were left out; --json lists them{FAINT:#}"
        ))?;
    }
    Ok(())
}

pub(super) fn problems_json(problems: &[v1::Problem]) -> Result<Vec<Value>, Failed> {
    problems
        .iter()
        .map(|problem| json_of("Problem", problem))
        .collect()
}

pub(super) fn problem_line(problem: &v1::Problem) -> String {
    let (style, word) = match problem.severity() {
        v1::Severity::Error => (BAD, "error"),
        v1::Severity::Warning => (WARN, "warning"),
        v1::Severity::Info | v1::Severity::Unspecified => (FAINT, "info"),
    };
    let place = match (problem.file.as_str(), problem.line) {
        ("", _) => String::new(),
        (file, 0) => format!("{file}: "),
        (file, line) => format!("{file}:{line}: "),
    };
    format!(
        "{style}{word}{style:#} {place}{} {FAINT}[{}]{FAINT:#}",
        problem.message, problem.rule
    )
}
