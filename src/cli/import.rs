//! Skills from folders: `import`, `publish`, `validate`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::Status;

use super::args::{Home, Import, Publish, Validate};
use super::connect::Client;
use super::fate::{Fate, LeftOut, problem_line, problems_json, summarize};
use super::folder;
use super::output::{self, BAD, FAINT, Failed, GOOD, Output, note};
use crate::contract::v1;
use crate::contract::v1::publish_skills_response::Result as Item;
use model::{Code, Problem, SkillId, SkillKey};
use registry::{Bundle, Candidate};

/// Skills read ahead of the server.
const AHEAD: usize = 8;

/// Reads a folder and what it would come to.
fn read(path: &Path, strict: bool) -> Result<(Bundle, Candidate), Vec<Problem>> {
    let read = folder::read(path);
    let is_refused = read.is_refused();
    let folder::Read { files, problems } = read;
    let bundle = Bundle {
        id: None,
        files,
        folder: folder::name(path),
        strict,
    };
    let mut candidate = bundle.read();
    candidate.problems.extend(problems);
    if is_refused || candidate.skill.is_none() || candidate.id.is_none() {
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
fn found_below(root: &Path) -> Result<folder::Found, Failed> {
    folder::find(root).map_err(|error| Failed::new(Code::LocalFileFailed, error))
}

/// What was left out of a folder.
fn left_out(folder: &Path, problems: &[Problem]) -> LeftOut {
    let rules = [folder::LEFT_OUT, "file-not-regular"];
    let left_out = problems
        .iter()
        .filter(|problem| rules.contains(&problem.rule.as_str()));
    left_out
        .map(|problem| (folder.join(&problem.file), problem.message.clone()))
        .collect()
}

/// Reads folders and sends them, while the server takes them.
struct Reader {
    ids: Ids,
    summary: String,
    strict: bool,
    left: LeftOut,
    /// Those whose answers are to come.
    sent: Arc<Mutex<VecDeque<PathBuf>>>,
}

impl Reader {
    /// Those that were not sent, and why.
    fn read(
        &mut self,
        paths: Vec<PathBuf>,
        items: &mpsc::Sender<v1::PublishSkillsRequest>,
    ) -> BTreeMap<PathBuf, Fate> {
        let mut refused = BTreeMap::new();
        for path in paths {
            let claimed = read(&path, self.strict).and_then(|(bundle, candidate)| {
                self.left.extend(left_out(&path, &candidate.problems));
                Ok((self.ids.claim(&bundle, &candidate, &path)?, bundle))
            });
            match claimed {
                Err(problems) => {
                    refused.insert(path, Fate::refused(problems));
                }
                Ok((id, bundle)) => {
                    let skill = request(id.to_string(), bundle, &self.summary, None);
                    let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
                    sent.push_back(path);
                    drop(sent);
                    let item = v1::PublishSkillsRequest { skill: Some(skill) };
                    if items.blocking_send(item).is_err() {
                        break; // The stream ended; its error is reported below.
                    }
                }
            }
        }
        // A skill inside a skill is read with both.
        self.left.sort();
        self.left.dedup_by(|a, b| a.0 == b.0);
        refused
    }
}

/// What became of the folders that were sent, in the order of the answers, and why there
/// are no more of them.
async fn told(
    mut answers: impl Stream<Item = Result<v1::PublishSkillsResponse, Status>> + Unpin,
    sent: &Mutex<VecDeque<PathBuf>>,
    each: impl Fn(),
) -> (BTreeMap<PathBuf, Fate>, Option<Status>) {
    let mut fates = BTreeMap::new();
    while let Some(answer) = answers.next().await {
        let answer = match answer {
            Ok(answer) => answer,
            Err(status) => return (fates, Some(status)),
        };
        each();
        let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = sent.pop_front() else {
            continue;
        };
        let fate = match answer.result {
            Some(Item::Published(published)) => Fate::Published(Box::new(published)),
            Some(Item::Refused(v1::Refusal {
                code,
                message,
                recovery_suggestions: hints,
                problems,
            })) => Fate::Refused {
                code,
                message,
                hints,
                problems,
            },
            None => Fate::unanswered(),
        };
        fates.insert(path, fate);
    }
    (fates, None)
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
    let (mut paths, mut left) = (Vec::new(), LeftOut::new());
    for root in &folders {
        let folder::Found {
            folders: found,
            left_out,
        } = found_below(root)?;
        left.extend(left_out);
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
    let mut reader = Reader {
        ids: Ids::new(&home),
        summary,
        strict,
        left,
        sent: Arc::clone(&sent),
    };
    let all = paths.clone();
    let reader = tokio::task::spawn_blocking(move || (reader.read(paths, &items), reader.left));
    let answers = client
        .registry()
        .publish_skills(ReceiverStream::new(stream))
        .await?
        .into_inner();
    let (mut fates, ended) = told(answers, &sent, || bar.inc(1)).await;
    bar.finish_and_clear();
    let (refused, left) = reader.await.map_err(Failed::fault)?;
    fates.extend(refused);
    let fates = completed(fates, all);
    summarize(&fates, &left, output)?;
    if let Some(status) = ended {
        return Err(Failed::from(status).hint("import again: what is there already stays as it is"));
    }
    Ok(exit(&fates))
}

/// What became of all folders: an answer that did not come is no success.
fn completed(mut fates: BTreeMap<PathBuf, Fate>, all: Vec<PathBuf>) -> BTreeMap<PathBuf, Fate> {
    for path in all {
        fates.entry(path).or_insert_with(Fate::unanswered);
    }
    fates
}

fn exit(fates: &BTreeMap<PathBuf, Fate>) -> ExitCode {
    let mut fates = fates.values();
    if fates.any(|fate| matches!(fate, Fate::Refused { .. })) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
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
        let left = left_out(&path, &candidate.problems);
        Ok::<_, Vec<Problem>>((ids.claim(&bundle, &candidate, &path)?, bundle, left))
    });
    let (claimed, bundle, left) = match read.await.map_err(Failed::fault)? {
        Ok(read) => read,
        Err(problems) => {
            let fates = BTreeMap::from([(folder, Fate::refused(problems))]);
            summarize(&fates, &LeftOut::new(), output)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    for (path, why) in left {
        note(&format!("{FAINT}{}: {why}{FAINT:#}", path.display()));
    }
    let id = id.unwrap_or_else(|| claimed.to_string());
    let request = request(id, bundle, &summary, Some(!no_activate));
    let published = client.registry().publish_skill(request).await?.into_inner();
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
        let found = found_below(root)?.folders;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_without_an_answer_is_refused() {
        let paths = ["a", "b", "c", "d"].map(PathBuf::from);
        let sent = Mutex::new(VecDeque::from(paths.clone()));
        let answer = |result| v1::PublishSkillsResponse {
            result,
            ..Default::default()
        };
        let published = Item::Published(v1::PublishSkillResponse::default());
        let answers = [Ok(answer(Some(published))), Ok(answer(None))];
        let answers = tokio_stream::iter(answers);
        let (fates, ended) = told(answers, &sent, || ()).await;
        assert!(ended.is_none());
        let fates = completed(fates, paths.to_vec());
        let codes: Vec<_> = fates
            .values()
            .map(|fate| match fate {
                Fate::Published(_) => "",
                Fate::Refused { code, .. } => code,
            })
            .collect();
        let no_answer = Code::ServerUnreachable.name();
        assert_eq!(codes, ["", no_answer, no_answer, no_answer]);
        assert_eq!(exit(&fates), ExitCode::FAILURE);
    }
}
