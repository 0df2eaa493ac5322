//! What became of folders that were imported, as a person or a program is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::output::{
    BAD, Done, FAINT, Failed, GOOD, HINT, List, Output, Style, WARN, counted, json_of,
};
use contract::v1;
use model::{Code, Problem, Severity};

/// Files that are shown of those that were left out.
const MAX_SHOWN_FILES: usize = 20;
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
    Refused(v1::Refusal),
}

/// A folder and what became of it. One that was refused has no id.
const IMPORTED: List<(PathBuf, Outcome)> = List::new(&[
    ("id", |(_, outcome)| match outcome {
        Outcome::Published(published) => published.skill_id.clone(),
        Outcome::Copy { id, .. } => id.clone(),
        Outcome::Refused(_) => String::new(),
    }),
    ("version", |(_, outcome)| match outcome {
        Outcome::Published(published) => version(published).semantic_version,
        _ => String::new(),
    }),
    ("outcome", |(_, outcome)| match outcome {
        Outcome::Published(published) => word(published).to_owned(),
        Outcome::Copy { .. } => "unchanged".to_owned(),
        Outcome::Refused(refusal) => refusal.code.clone(),
    }),
    ("path", |(path, _)| path.display().to_string()),
]);

const PUBLISHED: List<v1::PublishSkillResponse> = List::new(&[
    ("id", |published| published.skill_id.clone()),
    ("version", |published| version(published).semantic_version),
    ("outcome", |published| word(published).to_owned()),
]);

impl Outcome {
    /// The server said nothing of it.
    pub(super) fn unanswered() -> Self {
        Self::Refused(v1::Refusal {
            code: Code::ServerUnreachable.name().to_owned(),
            message: "The server ended the import before it answered for this folder".to_owned(),
            recovery_suggestions: vec![
                "import again: what is there already stays as it is".to_owned(),
            ],
            problems: Vec::new(),
        })
    }

    /// What this outcome means for a copy of its folder; none: nothing.
    pub(super) fn of_copy(&self, of: &Path) -> Option<Self> {
        let Self::Refused(refusal) = self else {
            return None;
        };
        Some(Self::Refused(v1::Refusal {
            message: format!("The same files as {}, which was refused", of.display()),
            problems: Vec::new(),
            ..refusal.clone()
        }))
    }

    pub(super) fn refused(problems: Vec<Problem>) -> Self {
        let errors = problems.iter().filter(|it| it.severity == Severity::Error);
        Self::Refused(v1::Refusal {
            code: "SKILL_INVALID".to_owned(),
            message: format!("{} to fix", counted(errors.count(), "problem")),
            recovery_suggestions: Vec::new(),
            problems: problems.into_iter().map(Into::into).collect(),
        })
    }

    /// Tells of one folder: a person in lines, a program in one.
    pub(super) fn report(&self, path: &Path, output: &Output) -> Done {
        let is_json = output.is_json();
        let (word, said) = match self {
            Self::Published(published) if is_json => ("published", json_of(&**published)?),
            Self::Published(published) => return report_published(published, output),
            Self::Refused(refusal) if !is_json => return report_refused(path, refusal, output),
            Self::Copy { id, of } => (
                "copy",
                json!({"skill_id": id, "same_as": of.display().to_string()}),
            ),
            Self::Refused(refusal) => ("refused", refusal_json(Map::new(), refusal)?),
        };
        output.json(&json!({"path": path.display().to_string(), word: said}).to_string())
    }
}

fn version(published: &v1::PublishSkillResponse) -> v1::VersionInfo {
    published.version.clone().unwrap_or_default()
}

fn word(published: &v1::PublishSkillResponse) -> &'static str {
    match published.outcome() {
        v1::PublishOutcome::Created => "created",
        v1::PublishOutcome::Updated => "updated",
        v1::PublishOutcome::Unchanged | v1::PublishOutcome::Unspecified => "unchanged",
    }
}

/// What became of all folders, each of which is of one kind of these.
struct Summary<'a> {
    published: Vec<(&'a Path, &'a v1::PublishSkillResponse)>,
    copies: Vec<(&'a Path, &'a str, &'a Path)>,
    refused: Vec<(&'a Path, &'a v1::Refusal)>,
}

impl<'a> Summary<'a> {
    fn new(outcomes: &'a [(PathBuf, Outcome)]) -> Self {
        let (mut published, mut copies, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for (path, outcome) in outcomes {
            match outcome {
                Outcome::Published(it) => published.push((path.as_path(), &**it)),
                Outcome::Copy { id, of } => copies.push((path.as_path(), id.as_str(), &**of)),
                Outcome::Refused(refusal) => refused.push((path.as_path(), refusal)),
            }
        }
        Self {
            published,
            copies,
            refused,
        }
    }

    /// How many were created, updated, and are as they were.
    fn counts(&self) -> [usize; 3] {
        let count = |what| {
            let found = self.published.iter().filter(|(_, it)| word(it) == what);
            found.count()
        };
        let unchanged = count("unchanged") + self.copies.len();
        [count("created"), count("updated"), unchanged]
    }

    fn warnings(&self) -> usize {
        let problems = self.published.iter().flat_map(|(_, it)| &it.problems);
        let warnings = problems.filter(|it| it.severity() == v1::Severity::Warning);
        warnings.count()
    }

    fn held(&self) -> impl Iterator<Item = (&Path, &str, v1::VersionInfo)> {
        let all = self.published.iter();
        let all = all.map(|(path, it)| (*path, it.skill_id.as_str(), version(it)));
        all.filter(|(.., version)| version.held)
    }

    fn json(&self, left_out: &LeftOut, dry_run: bool) -> Result<Value, Failed> {
        let [created, updated, unchanged] = self.counts();
        let shown = |path: &Path| path.display().to_string();
        let copies = self.copies.iter().map(
            |(path, id, of)| json!({"path": shown(path), "skill_id": id, "same_as": shown(of)}),
        );
        let held = self.held().map(|(path, id, version)| {
            json!({
                "path": shown(path),
                "skill_id": id,
                "version_number": version.version_number,
                "reason": version.hold_reason,
            })
        });
        let refused = self.refused.iter().map(|(path, refusal)| {
            let said = Map::from_iter([("path".to_owned(), shown(path).into())]);
            refusal_json(said, refusal)
        });
        let left_out = left_out.iter();
        let left_out = left_out.map(|(path, why)| json!({"path": shown(path), "reason": why}));
        let mut said = json!({
            "created": created,
            "updated": updated,
            "unchanged": unchanged,
            "warnings": self.warnings(),
            "copies": copies.collect::<Vec<_>>(),
            "held": held.collect::<Vec<_>>(),
            "refused": refused.collect::<Result<Vec<_>, _>>()?,
            "left_out": left_out.collect::<Vec<_>>(),
        });
        if let Some(said) = said.as_object_mut().filter(|_| dry_run) {
            let skills = self.published.iter().map(|(path, published)| {
                Ok(json!({"path": shown(path), "would_be": json_of(*published)?}))
            });
            said.insert("dry_run".to_owned(), true.into());
            said.insert("skills".to_owned(), skills.collect::<Result<_, Failed>>()?);
        }
        Ok(said)
    }
}

pub(super) fn summarize(
    outcomes: BTreeMap<PathBuf, Outcome>,
    left_out: &LeftOut,
    dry_run: bool,
    output: &Output,
) -> Done {
    let outcomes: Vec<_> = outcomes.into_iter().collect();
    output.rows(&IMPORTED, &outcomes)?;
    let all = Summary::new(&outcomes);
    if output.is_json() {
        return output.value(&all.json(left_out, dry_run)?);
    }
    if dry_run {
        report_dry_run(&all, output)?;
    }
    report_left_out(left_out, output)?;
    for (path, id, of) in &all.copies {
        output.line(&format!(
            "{FAINT}unchanged {}: same as {}, which is {id}{FAINT:#}",
            path.display(),
            of.display()
        ))?;
    }
    for (path, id, version) in all.held() {
        let (number, reason) = (version.version_number, &version.hold_reason);
        output.line(&format!(
            "{WARN}held{WARN:#} {} {id} version {number}: {reason}",
            path.display()
        ))?;
    }
    if all.held().next().is_some() {
        output.line(&format!("  {}", review_hint()))?;
    }
    for (path, refusal) in &all.refused {
        report_refused(path, refusal, output)?;
    }
    let refused = all.refused.len();
    let style = if refused == 0 { Style::Plain } else { BAD };
    let [created, updated, unchanged] = all.counts();
    output.line(&format!(
        "{GOOD}{created} created{GOOD:#}, {updated} updated, {unchanged} unchanged, {style}{refused} refused{style:#}",
    ))?;
    if all.warnings() > 0 {
        output.line(&format!(
            "{WARN}{}{WARN:#}; `repertoire validate FOLDER` shows them",
            counted(all.warnings(), "warning")
        ))?;
    }
    Ok(())
}

/// Tells a person of one skill that was looked at.
pub(super) fn report_checked(
    path: &Path,
    is_valid: bool,
    mended: &[v1::Problem],
    problems: &[v1::Problem],
    output: &Output,
) -> Done {
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

/// Tells a person what would become of each skill.
fn report_dry_run(all: &Summary<'_>, output: &Output) -> Done {
    for (path, published) in &all.published {
        let version = version(published);
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

/// Tells a person of one skill that was published.
pub(super) fn report_published(published: &v1::PublishSkillResponse, output: &Output) -> Done {
    output.rows(&PUBLISHED, [published])?;
    let version = version(published);
    output.line(&format!(
        "{GOOD}{}{GOOD:#} {} version {} ({}){}",
        word(published),
        published.skill_id,
        version.version_number,
        version.semantic_version,
        if version.active { ", active" } else { "" },
    ))?;
    if version.held {
        let reason = version.hold_reason;
        output.line(&format!("{WARN}held{WARN:#} for review: {reason}"))?;
        output.line(&format!("  {}", review_hint()))?;
    }
    for problem in &published.problems {
        output.line(&format!("  {}", problem_line(problem)))?;
    }
    Ok(())
}

fn report_refused(path: &Path, refusal: &v1::Refusal, output: &Output) -> Done {
    output.line(&format!(
        "{BAD}refused{BAD:#} {} {FAINT}[{}]{FAINT:#} {}",
        path.display(),
        refusal.code,
        refusal.message
    ))?;
    let problems = refusal.problems.iter();
    for problem in problems.filter(|problem| problem.severity() == v1::Severity::Error) {
        output.line(&format!("  {}", problem_line(problem)))?;
    }
    // Those of problems say no more than the problems do.
    let hints = refusal.recovery_suggestions.iter();
    for hint in hints.filter(|_| refusal.problems.is_empty()) {
        output.line(&format!("  {HINT}hint:{HINT:#} {hint}"))?;
    }
    Ok(())
}

/// What to do with a version that is held.
pub(super) fn review_hint() -> String {
    format!(
        "{HINT}hint:{HINT:#} `repertoire review show SKILL NUMBER` shows what was found; on the server's machine `repertoire review approve` hands it out"
    )
}

/// Says what stayed on the machine.
fn report_left_out(left_out: &LeftOut, output: &Output) -> Done {
    for (path, why) in left_out.iter().take(MAX_SHOWN_FILES) {
        output.line(&format!("{FAINT}{}: {why}{FAINT:#}", path.display()))?;
    }
    if left_out.len() > MAX_SHOWN_FILES {
        let more = left_out.len() - MAX_SHOWN_FILES;
        output.line(&format!(
            "{FAINT}and {more} more were left out; --json lists them{FAINT:#}"
        ))?;
    }
    Ok(())
}

fn refusal_json(mut said: Map<String, Value>, refusal: &v1::Refusal) -> Result<Value, Failed> {
    said.extend([
        ("code".to_owned(), json!(refusal.code)),
        ("message".to_owned(), json!(refusal.message)),
        (
            "recovery_suggestions".to_owned(),
            json!(refusal.recovery_suggestions),
        ),
        (
            "problems".to_owned(),
            problems_json(&refusal.problems)?.into(),
        ),
    ]);
    Ok(said.into())
}

pub(super) fn problems_json(problems: &[v1::Problem]) -> Result<Vec<Value>, Failed> {
    problems.iter().map(json_of).collect()
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
