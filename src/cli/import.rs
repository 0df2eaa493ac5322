//! Skills from folders: `import`, `publish`, `validate`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::args::{Home, Import, Publish, Validate};
use super::connect::Client;
use super::folder;
use super::output::{self, BAD, FAINT, Failed, GOOD, Output, WARN, json_of};
use crate::contract::v1;
use crate::contract::v1::publish_skills_response::Result as Item;
use crate::model::{Code, Problem, Severity, SkillId, SkillKey};
use crate::registry::{Bundle, Candidate};

/// Skills read ahead of the server.
const AHEAD: usize = 8;

/// What became of one folder.
enum Fate {
    Published(Box<v1::PublishSkillResponse>),
    Refused {
        code: String,
        message: String,
        problems: Vec<v1::Problem>,
    },
}

impl Fate {
    fn refused(problems: Vec<Problem>) -> Self {
        let errors = problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count();
        Self::Refused {
            code: "SKILL_INVALID".to_owned(),
            message: format!(
                "{errors} {} to mend",
                if errors == 1 { "problem" } else { "problems" }
            ),
            problems: problems.into_iter().map(Into::into).collect(),
        }
    }
}

/// Reads a folder and what it would come to.
fn read(path: &Path, strict: bool) -> Result<(Bundle, Candidate), Vec<Problem>> {
    let folder::Read { files, problems } = folder::read(path).map_err(|problem| vec![problem])?;
    let bundle = Bundle {
        id: None,
        files,
        folder: folder::name(path),
        strict,
    };
    let mut candidate = bundle.read();
    candidate.problems.extend(problems);
    if candidate.skill.is_none() || candidate.id.is_none() {
        return Err(candidate.problems);
    }
    Ok((bundle, candidate))
}

fn request(
    id: String,
    bundle: Bundle,
    summary: &str,
    activate: Option<bool>,
) -> v1::PublishSkillRequest {
    let Bundle {
        id: _,
        files,
        folder: _,
        strict,
    } = bundle;
    v1::PublishSkillRequest {
        skill_id: id,
        files: files
            .into_iter()
            .map(|(path, content)| v1::File {
                path: path.to_string(),
                content,
            })
            .collect(),
        change_summary: summary.to_owned(),
        strict,
        activate,
        ..Default::default()
    }
}

/// Where a skill states its name.
fn name_line(bundle: &Bundle) -> (String, usize) {
    let entry = bundle
        .files
        .iter()
        .find(|(path, _)| path.as_str().eq_ignore_ascii_case("skill.md"));
    let Some((path, content)) = entry else {
        return (String::new(), 0);
    };
    let named = |line: &[u8]| {
        line.get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"name:"))
    };
    let line = content
        .split(|byte| *byte == b'\n')
        .position(named)
        .map_or(1, |at| at + 1);
    (path.to_string(), line)
}

/// Decides ids, and keeps one folder from taking another's.
struct Ids {
    source: String,
    author: String,
    taken: HashMap<SkillKey, PathBuf>,
}

impl Ids {
    fn new(home: &Home) -> Self {
        let (source, author) = home.segments();
        Self {
            source: source.to_owned(),
            author: author.to_owned(),
            taken: HashMap::new(),
        }
    }

    /// The id of a folder: the first folder that claims it has the shortest path.
    fn claim(
        &mut self,
        bundle: &Bundle,
        candidate: &Candidate,
        path: &Path,
    ) -> Result<SkillId, Vec<Problem>> {
        let slug = candidate.id.as_ref().map_or("", SkillId::slug);
        let id = SkillId::new(&self.source, &self.author, slug)
            .map_err(|error| vec![Problem::error("id-invalid", "", 0, error.to_string())])?;
        if let Some(first) = self.taken.get(&id.key()) {
            let (entry, line) = name_line(bundle);
            let message = format!(
                "'{id}' is taken by {}, whose path is shorter; rename the skill, or publish it with `repertoire publish DIR --id ID`",
                first.display()
            );
            return Err(vec![Problem::error("id-taken", &entry, line, message)]);
        }
        self.taken.insert(id.key(), path.to_owned());
        Ok(id)
    }
}

/// The folders of skills below one.
fn found_below(root: &Path) -> Result<Vec<PathBuf>, Failed> {
    folder::find(root).map_err(|error| Failed::new(Code::LocalFileFailed, error))
}

pub(super) async fn import(
    client: &mut Client,
    options: Import,
    output: &Output,
) -> Result<ExitCode, Failed> {
    let Import {
        folders,
        home,
        summary,
        strict,
    } = options;
    let mut ids = Ids::new(&home);
    let mut paths = Vec::new();
    for root in &folders {
        let found = found_below(root)?;
        if found.is_empty() {
            let none = format!("no SKILL.md below {}", root.display());
            return Err(Failed::new(Code::InvalidParameter, none)
                .hint("a skill is a folder with a SKILL.md in it"));
        }
        paths.extend(found);
    }
    let bar = output::bar(paths.len() as u64, "importing");
    let (items, stream) = mpsc::channel(AHEAD);
    let sent = Arc::new(Mutex::new(VecDeque::new()));
    let reader = tokio::task::spawn_blocking({
        let sent = Arc::clone(&sent);
        move || {
            let mut refused = BTreeMap::new();
            for path in paths {
                let claimed = read(&path, strict).and_then(|(bundle, candidate)| {
                    Ok((ids.claim(&bundle, &candidate, &path)?, bundle))
                });
                match claimed {
                    Err(problems) => {
                        refused.insert(path, Fate::refused(problems));
                    }
                    Ok((id, bundle)) => {
                        let skill = request(id.to_string(), bundle, &summary, None);
                        sent.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push_back(path);
                        let item = v1::PublishSkillsRequest { skill: Some(skill) };
                        if items.blocking_send(item).is_err() {
                            break; // The stream ended; its error is reported below.
                        }
                    }
                }
            }
            refused
        }
    });
    let mut fates = BTreeMap::new();
    let mut answers = client
        .registry
        .publish_skills(ReceiverStream::new(stream))
        .await?
        .into_inner();
    let ended = loop {
        match answers.message().await {
            Ok(None) => break None,
            Err(status) => break Some(status),
            Ok(Some(answer)) => {
                bar.inc(1);
                let path = sent
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front();
                let fate = match answer.result {
                    Some(Item::Published(published)) => Fate::Published(Box::new(published)),
                    Some(Item::Refused(v1::Refusal {
                        code,
                        message,
                        recovery_suggestions: _,
                        problems,
                    })) => Fate::Refused {
                        code,
                        message,
                        problems,
                    },
                    None => continue,
                };
                fates.insert(path.unwrap_or_default(), fate);
            }
        }
    };
    drop(answers);
    bar.finish_and_clear();
    let refused = reader.await.map_err(Failed::fault)?;
    fates.extend(refused);
    summarize(&fates, output)?;
    if let Some(status) = ended {
        return Err(Failed::from(status).hint("import again: what is there already stays as it is"));
    }
    let refused = fates
        .values()
        .any(|fate| matches!(fate, Fate::Refused { .. }));
    Ok(if refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn summarize(fates: &BTreeMap<PathBuf, Fate>, output: &Output) -> Result<(), Failed> {
    let (mut created, mut updated, mut unchanged, mut warnings) = (0, 0, 0, 0);
    let mut refused = Vec::new();
    for (path, fate) in fates {
        match fate {
            Fate::Published(published) => {
                match published.outcome() {
                    v1::PublishOutcome::Created => created += 1,
                    v1::PublishOutcome::Updated => updated += 1,
                    v1::PublishOutcome::Unchanged | v1::PublishOutcome::Unspecified => {
                        unchanged += 1;
                    }
                }
                warnings += published
                    .problems
                    .iter()
                    .filter(|p| p.severity() == v1::Severity::Warning)
                    .count();
            }
            Fate::Refused {
                code,
                message,
                problems,
            } => refused.push((path, code, message, problems)),
        }
    }
    if output.is_json() {
        let mut items = Vec::new();
        for (path, code, message, problems) in refused {
            items.push(json!({
                "path": path.display().to_string(),
                "code": code,
                "message": message,
                "problems": problems_json(problems)?,
            }));
        }
        return output.value(&json!({
            "created": created,
            "updated": updated,
            "unchanged": unchanged,
            "warnings": warnings,
            "refused": items,
        }));
    }
    for (path, code, message, problems) in &refused {
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
    }
    output.line(&format!(
        "{GOOD}{created} created{GOOD:#}, {updated} updated, {unchanged} unchanged, {}{} refused{}",
        if refused.is_empty() {
            String::new()
        } else {
            BAD.render().to_string()
        },
        refused.len(),
        if refused.is_empty() {
            String::new()
        } else {
            BAD.render_reset().to_string()
        },
    ))?;
    if warnings > 0 {
        output.line(&format!(
            "{WARN}{warnings} warnings{WARN:#}; `repertoire validate` shows them"
        ))?;
    }
    Ok(())
}

fn problems_json(problems: &[v1::Problem]) -> Result<Vec<Value>, Failed> {
    problems
        .iter()
        .map(|problem| json_of("Problem", problem))
        .collect()
}

fn problem_line(problem: &v1::Problem) -> String {
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

pub(super) async fn publish(
    client: &mut Client,
    options: Publish,
    output: &Output,
) -> Result<ExitCode, Failed> {
    let Publish {
        folder,
        id,
        home,
        summary,
        no_activate,
        strict,
    } = options;
    let mut ids = Ids::new(&home);
    let path = folder.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (bundle, candidate) = read(&path, strict)?;
        Ok::<_, Vec<Problem>>((ids.claim(&bundle, &candidate, &path)?, bundle))
    });
    let (claimed, bundle) = match read.await.map_err(Failed::fault)? {
        Ok(read) => read,
        Err(problems) => {
            let fates = BTreeMap::from([(folder, Fate::refused(problems))]);
            summarize(&fates, output)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let id = id.unwrap_or_else(|| claimed.to_string());
    let request = request(id, bundle, &summary, Some(!no_activate));
    let published = client.registry.publish_skill(request).await?.into_inner();
    if output.is_json() {
        output.message("PublishSkillResponse", &published)?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = published.version.clone().unwrap_or_default();
    let word = match published.outcome() {
        v1::PublishOutcome::Created => "created",
        v1::PublishOutcome::Updated => "updated",
        v1::PublishOutcome::Unchanged | v1::PublishOutcome::Unspecified => "unchanged",
    };
    output.line(&format!(
        "{GOOD}{word}{GOOD:#} {} version {} ({}){}",
        published.skill_id,
        version.version_number,
        version.semantic_version,
        if version.active { ", active" } else { "" },
    ))?;
    for problem in &published.problems {
        output.line(&format!("  {}", problem_line(problem)))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn validate(options: &Validate, output: &Output) -> Result<ExitCode, Failed> {
    let Validate { folders, strict } = options;
    let (mut valid, mut invalid, mut items) = (0, 0, Vec::new());
    for root in folders {
        let found = found_below(root)?;
        let found = if found.is_empty() {
            vec![root.clone()]
        } else {
            found
        };
        for path in found {
            let (accepted, problems) = match read(&path, *strict) {
                Ok((_, candidate)) => (true, candidate.problems),
                Err(problems) => (false, problems),
            };
            if accepted {
                valid += 1;
            } else {
                invalid += 1;
            }
            let problems: Vec<v1::Problem> = problems.into_iter().map(Into::into).collect();
            if output.is_json() {
                items.push(json!({
                    "path": path.display().to_string(),
                    "valid": accepted,
                    "problems": problems_json(&problems)?,
                }));
                continue;
            }
            let (style, word) = if accepted {
                (GOOD, "valid")
            } else {
                (BAD, "refused")
            };
            output.line(&format!("{style}{word}{style:#} {}", path.display()))?;
            for problem in &problems {
                output.line(&format!("  {}", problem_line(problem)))?;
            }
        }
    }
    if output.is_json() {
        output.value(&json!({"valid": valid, "refused": invalid, "skills": items}))?;
    } else {
        output.line(&format!("{valid} valid, {invalid} refused"))?;
    }
    Ok(if invalid == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
