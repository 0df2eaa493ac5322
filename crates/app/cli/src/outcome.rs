//! The outcomes of folders that were imported or checked, for people and for programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::output::{
    BAD, Done, Exit, FAINT, Failed, GOOD, HINT, List, Output, Style, WARN, counted, exit, json_of,
    verdict,
};
use contract::v1;
use model::{Code, Problem, Severity};

/// The most files that are listed of those that were left out.
const MAX_SHOWN_FILES: usize = 20;
/// Files that stayed on the machine, each with the reason.
pub(super) type LeftOut = Vec<(PathBuf, String)>;

/// The outcome of one folder.
pub(super) enum Outcome {
    Published(Box<v1::PublishSkillResponse>),
    /// It has the same files as another folder, which has this id.
    Copy {
        id: String,
        of: PathBuf,
    },
    Refused(v1::Refusal),
}

/// A folder and its outcome. One that was refused has no id.
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
    /// The server did not answer for it.
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

    /// Returns the outcome of a copy of its folder, where this one decides it.
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

    /// Reports one folder: to a person in lines, to a program in one.
    pub(super) fn report(&self, path: &Path, output: &Output) -> Done {
        let is_json = output.is_json();
        let (word, json) = match self {
            Self::Published(published) if is_json => ("published", json_of(&**published)?),
            Self::Published(published) => return report_published(published, output),
            Self::Refused(refusal) if !is_json => return report_refused(path, refusal, output),
            Self::Copy { id, of } => (
                "copy",
                json!({"skill_id": id, "same_as": of.display().to_string()}),
            ),
            Self::Refused(refusal) => ("refused", refusal_json(Map::new(), refusal)?),
        };
        output.json(&json!({"path": path.display().to_string(), word: json}).to_string())
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

/// The outcomes of all folders, by kind.
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

    /// The numbers of created, updated and unchanged skills.
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
            let path = Map::from_iter([("path".to_owned(), shown(path).into())]);
            refusal_json(path, refusal)
        });
        let left_out = left_out
            .iter()
            .map(|(path, why)| json!({"path": shown(path), "reason": why}));
        let mut json = json!({
            "created": created,
            "updated": updated,
            "unchanged": unchanged,
            "warnings": self.warnings(),
            "copies": copies.collect::<Vec<_>>(),
            "held": held.collect::<Vec<_>>(),
            "refused": refused.collect::<Result<Vec<_>, _>>()?,
            "left_out": left_out.collect::<Vec<_>>(),
        });
        if let Some(json) = json.as_object_mut().filter(|_| dry_run) {
            let skills = self.published.iter().map(|(path, published)| {
                Ok(json!({"path": shown(path), "would_be": json_of(*published)?}))
            });
            json.insert("dry_run".to_owned(), true.into());
            json.insert("skills".to_owned(), skills.collect::<Result<_, Failed>>()?);
        }
        Ok(json)
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
    for (path, published) in &all.published {
        if !published.scan_warning.is_empty() {
            let (id, path) = (&published.skill_id, path.display());
            output.line(&format!(
                "{} {FAINT}{path} {id}{FAINT:#}",
                scan_warning(published)
            ))?;
        }
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

/// A folder of a skill or a learning path that was checked.
pub(super) struct Checked {
    path: PathBuf,
    is_valid: bool,
    problems: Vec<v1::Problem>,
    /// The problems that were fixed before, where that was asked for.
    fixed: Option<Vec<v1::Problem>>,
}

const CHECKED: List<Checked> = List::new(&[
    ("path", |it| it.path.display().to_string()),
    ("state", |it| {
        let state = if it.is_valid { "valid" } else { "refused" };
        state.to_owned()
    }),
    ("problems", |it| it.problems.len().to_string()),
]);

impl Checked {
    pub(super) fn new(path: PathBuf, is_valid: bool, problems: Vec<Problem>) -> Self {
        Self {
            path,
            is_valid,
            problems: problems.into_iter().map(Into::into).collect(),
            fixed: None,
        }
    }

    pub(super) fn with_fixed(mut self, fixed: Vec<Problem>) -> Self {
        self.fixed = Some(fixed.into_iter().map(Into::into).collect());
        self
    }

    pub(super) fn json(&self) -> Result<Value, Failed> {
        let path = self.path.display().to_string();
        let problems = problems_json(&self.problems)?;
        let mut json = json!({"path": path, "valid": self.is_valid, "problems": problems});
        if let (Some(fixed), Some(json)) = (&self.fixed, json.as_object_mut()) {
            json.insert("fixed".to_owned(), problems_json(fixed)?.into());
        }
        Ok(json)
    }

    /// Reports it to a person.
    pub(super) fn report(&self, output: &Output) -> Done {
        let word = verdict(self.is_valid, "valid", "refused");
        output.line(&format!("{word} {}", self.path.display()))?;
        for problem in self.fixed.iter().flatten() {
            output.line(&format!("  {GOOD}fixed{GOOD:#} {}", problem_line(problem)))?;
        }
        for problem in &self.problems {
            output.line(&format!("  {}", problem_line(problem)))?;
        }
        Ok(())
    }
}

/// Ends a command that checked folders; `list` is their name in JSON.
pub(super) fn summarize_checked(all: &[Checked], list: &str, output: &Output) -> Exit {
    let valid = all.iter().filter(|it| it.is_valid).count();
    let refused = all.len() - valid;
    if output.is_json() {
        let items: Result<Vec<_>, _> = all.iter().map(Checked::json).collect();
        output.value(&json!({"valid": valid, "refused": refused, list: items?}))?;
    }
    output.rows(&CHECKED, all)?;
    output.line(&format!("{valid} valid, {refused} refused"))?;
    Ok(exit(refused == 0, 1))
}

/// Reports the outcome of each skill in a dry run.
fn report_dry_run(all: &Summary<'_>, output: &Output) -> Done {
    for (path, published) in &all.published {
        let (line, path) = (published_line(published), path.display());
        output.line(&format!("{line} {FAINT}{path}{FAINT:#}"))?;
    }
    output.line("this is what an import would come to now; nothing is stored")
}

fn published_line(published: &v1::PublishSkillResponse) -> String {
    let (word, id, version) = (word(published), &published.skill_id, version(published));
    let (number, semantic) = (version.version_number, version.semantic_version);
    format!("{GOOD}{word}{GOOD:#} {id} version {number} ({semantic})")
}

/// Reports one skill that was published.
pub(super) fn report_published(published: &v1::PublishSkillResponse, output: &Output) -> Done {
    output.rows(&PUBLISHED, [published])?;
    let version = version(published);
    let active = if version.active { ", active" } else { "" };
    output.line(&format!("{}{active}", published_line(published)))?;
    if version.held {
        let reason = version.hold_reason;
        output.line(&format!("{WARN}held{WARN:#} for review: {reason}"))?;
        output.line(&format!("  {}", review_hint()))?;
    }
    if !published.scan_warning.is_empty() {
        output.line(&scan_warning(published))?;
    }
    for problem in &published.problems {
        output.line(&format!("  {}", problem_line(problem)))?;
    }
    Ok(())
}

/// Says what the scan found in a version that is served.
fn scan_warning(published: &v1::PublishSkillResponse) -> String {
    format!("{WARN}warning{WARN:#} {}", published.scan_warning)
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
    // Suggestions for problems only repeat the problems.
    let hints = refusal.recovery_suggestions.iter();
    for hint in hints.filter(|_| refusal.problems.is_empty()) {
        output.line(&format!("  {HINT}hint:{HINT:#} {hint}"))?;
    }
    Ok(())
}

/// Suggests what to do with a version that is held.
fn review_hint() -> String {
    format!(
        "{HINT}hint:{HINT:#} `repertoire review show SKILL NUMBER` shows what was found, with --diff what it changes; a reviewer lets it out with `repertoire review approve`"
    )
}

/// Reports the files that stayed on the machine.
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

fn refusal_json(mut json: Map<String, Value>, refusal: &v1::Refusal) -> Result<Value, Failed> {
    let fields = [
        ("code", json!(refusal.code)),
        ("message", json!(refusal.message)),
        ("recovery_suggestions", json!(refusal.recovery_suggestions)),
        ("problems", problems_json(&refusal.problems)?.into()),
    ];
    json.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Ok(json.into())
}

fn problems_json(problems: &[v1::Problem]) -> Result<Vec<Value>, Failed> {
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
