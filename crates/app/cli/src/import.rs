//! Skills from folders: `import`, `publish`, `validate`.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::Status;

use super::connect::Client;
use super::folder;
use super::folder::{Claim, Draft, Ids};
use super::outcome::{
    LeftOut, Outcome, problems_json, report_checked, report_published, summarize,
};
use super::output::{self, FAINT, Failed, Output, Table, json_of, note};
use super::scan::LOOK;
use super::skill_args::{Import, Publish, Validate};
use contract::v1;
use contract::v1::publish_skills_response::Result as Item;
use model::{Code, Problem, SkillId};
use registry::Bundle;

/// Skills read ahead of the server.
const AHEAD: usize = 8;

pub(super) fn request(
    id: String,
    bundle: Bundle,
    summary: &str,
    activate: Option<bool>,
) -> v1::PublishSkillRequest {
    let Bundle {
        id: _,
        files,
        folder,
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
        folder,
        change_summary: summary.to_owned(),
        strict,
        activate,
        ..Default::default()
    }
}

/// The folders of skills below one.
fn found_below(root: &Path) -> Result<folder::SkillFolders, Failed> {
    folder::find(root).map_err(|error| Failed::new(Code::LocalFileFailed, error))
}

/// What was left out of a folder.
fn left_out(folder: &Path, problems: &[Problem]) -> LeftOut {
    let rules = [folder::LEFT_OUT, "file-not-regular", "file-lfs-pointer"];
    let left_out = problems
        .iter()
        .filter(|problem| rules.contains(&problem.rule.as_str()));
    left_out
        .map(|problem| (folder.join(&problem.file), problem.message.clone()))
        .collect()
}

/// Reads folders and sends them, while the server takes them.
struct FolderReader {
    ids: Ids,
    summary: String,
    strict: bool,
    dry_run: bool,
    left: LeftOut,
    /// Those whose answers are to come.
    sent: Arc<Mutex<VecDeque<PathBuf>>>,
}

impl FolderReader {
    /// What became of those that were not sent.
    fn read(
        &mut self,
        paths: Vec<PathBuf>,
        items: &mpsc::Sender<v1::PublishSkillsRequest>,
    ) -> BTreeMap<PathBuf, Outcome> {
        let mut settled = BTreeMap::new();
        for path in paths {
            let read = Draft::read(&path, None, self.strict).valid();
            let claimed = read.and_then(|(bundle, candidate)| {
                self.left.extend(left_out(&path, &candidate.problems));
                Ok((self.ids.claim(&bundle, &candidate, &path)?, bundle))
            });
            match claimed {
                Err(problems) => {
                    settled.insert(path, Outcome::refused(problems));
                }
                Ok((Claim::Copy { id, of }, _)) => {
                    let id = id.to_string();
                    settled.insert(path, Outcome::Copy { id, of });
                }
                Ok((Claim::Own(id), bundle)) => {
                    let mut skill = request(id.to_string(), bundle, &self.summary, None);
                    skill.dry_run = self.dry_run;
                    let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
                    // Before it is sent: its answer may be there before the next line is
                    // reached, and answers come in this order.
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
        settled
    }
}

/// What became of the folders that were sent, in the order of the answers, and why there
/// are no more of them.
pub(super) async fn receive(
    mut answers: impl Stream<Item = Result<v1::PublishSkillsResponse, Status>> + Unpin,
    sent: &Mutex<VecDeque<PathBuf>>,
    each: impl Fn(),
) -> (BTreeMap<PathBuf, Outcome>, Option<Status>) {
    let mut outcomes = BTreeMap::new();
    while let Some(answer) = answers.next().await {
        let answer = match answer {
            Ok(answer) => answer,
            Err(status) => return (outcomes, Some(status)),
        };
        each();
        let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = sent.pop_front() else {
            continue;
        };
        let outcome = match answer.result {
            Some(Item::Published(published)) => Outcome::Published(Box::new(published)),
            Some(Item::Refused(v1::Refusal {
                code,
                message,
                recovery_suggestions: hints,
                problems,
            })) => Outcome::Refused {
                code,
                message,
                hints,
                problems,
            },
            None => Outcome::unanswered(),
        };
        outcomes.insert(path, outcome);
    }
    (outcomes, None)
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
        dry_run,
    } = options;
    let (mut paths, mut left) = (Vec::new(), LeftOut::new());
    for root in &folders {
        let folder::SkillFolders {
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
    let mut reader = FolderReader {
        ids: Ids::new(home.named()),
        summary,
        strict,
        dry_run,
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
    let (mut outcomes, ended) = receive(answers, &sent, || bar.inc(1)).await;
    bar.finish_and_clear();
    let (settled, left) = reader.await.map_err(Failed::fault)?;
    outcomes.extend(settled);
    let outcomes = completed(outcomes, all);
    summarize(&outcomes, &left, dry_run, output)?;
    if let Some(status) = ended {
        return Err(Failed::from(status).hint("import again: what is there already stays as it is"));
    }
    Ok(exit(&outcomes))
}

/// What became of all folders: an answer that did not come is no success, nor is a copy of
/// what was refused.
fn completed(
    mut outcomes: BTreeMap<PathBuf, Outcome>,
    all: Vec<PathBuf>,
) -> BTreeMap<PathBuf, Outcome> {
    for path in all {
        outcomes.entry(path).or_insert_with(Outcome::unanswered);
    }
    let copies: Vec<(PathBuf, Outcome)> = outcomes
        .iter()
        .filter_map(|(path, outcome)| match outcome {
            Outcome::Copy { of, .. } => Some((path.clone(), outcomes.get(of)?.of_copy(of)?)),
            _ => None,
        })
        .collect();
    outcomes.extend(copies);
    outcomes
}

fn exit(outcomes: &BTreeMap<PathBuf, Outcome>) -> ExitCode {
    let mut outcomes = outcomes.values();
    if outcomes.any(|outcome| matches!(outcome, Outcome::Refused { .. })) {
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
        dry_run,
    } = options;
    let mut ids = Ids::new(home.named());
    let path = folder.clone();
    let read = tokio::task::spawn_blocking(move || {
        // A short name is the slug of a skill that is there.
        let known = id.as_ref().and_then(|id| {
            let short = || SkillId::new(SkillId::LOCAL, "global", id).ok();
            id.parse().ok().or_else(short)
        });
        let (bundle, candidate) = Draft::read(&path, known, strict).valid()?;
        let left = left_out(&path, &candidate.problems);
        let id = match id {
            Some(id) => id,
            None => match ids.claim(&bundle, &candidate, &path)? {
                Claim::Own(id) | Claim::Copy { id, .. } => id.to_string(),
            },
        };
        Ok::<_, Vec<Problem>>((id, bundle, left))
    });
    let (id, bundle, left) = match read.await.map_err(Failed::fault)? {
        Ok(read) => read,
        Err(problems) => {
            let outcomes = BTreeMap::from([(folder, Outcome::refused(problems))]);
            summarize(&outcomes, &LeftOut::new(), dry_run, output)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    for (path, why) in left {
        note(&format!("{FAINT}{}: {why}{FAINT:#}", path.display()));
    }
    let mut request = request(id, bundle, &summary, Some(!no_activate));
    request.dry_run = dry_run;
    let published = client.registry().publish_skill(request).await?.into_inner();
    let exit = if published.version.as_ref().is_some_and(|v| v.held) {
        ExitCode::from(LOOK)
    } else {
        ExitCode::SUCCESS
    };
    if output.is_json() {
        let mut said = json_of("PublishSkillResponse", &published)?;
        if dry_run && let Some(said) = said.as_object_mut() {
            said.insert("dry_run".to_owned(), true.into());
        }
        output.value(&said)?;
        return Ok(exit);
    }
    report_published(&published, output)?;
    if dry_run && !output.is_rows() {
        output.line("this is what a publish would come to now; nothing is stored")?;
    }
    Ok(exit)
}

fn mended(folder: &Path) -> Result<Vec<Problem>, Failed> {
    let failed = |error: folder::FixError| Failed::new(Code::LocalFileFailed, error.to_string());
    folder::fix(folder).map_err(failed)
}

pub(super) fn validate(options: &Validate, output: &Output) -> Result<ExitCode, Failed> {
    let Validate {
        folders,
        fix: mend,
        strict,
    } = options;
    let (mut valid, mut invalid, mut items) = (0, 0, Vec::new());
    let mut rows = Table::new(&["path", "state", "problems"]);
    for root in folders {
        let found = found_below(root)?.folders;
        let found = if found.is_empty() {
            vec![root.clone()]
        } else {
            found
        };
        for path in found {
            let mended = if *mend { mended(&path)? } else { Vec::new() };
            let mended: Vec<v1::Problem> = mended.into_iter().map(Into::into).collect();
            let draft = Draft::read(&path, None, *strict);
            let (accepted, problems) = (draft.is_valid, draft.candidate.problems);
            if accepted {
                valid += 1;
            } else {
                invalid += 1;
            }
            let problems: Vec<v1::Problem> = problems.into_iter().map(Into::into).collect();
            if output.is_rows() {
                let state = if accepted { "valid" } else { "refused" };
                let shown = path.display().to_string();
                rows.add_row([&shown, state, &problems.len().to_string()]);
            }
            if output.is_json() {
                let mut item = json!({
                    "path": path.display().to_string(),
                    "valid": accepted,
                    "problems": problems_json(&problems)?,
                });
                if let Some(item) = item.as_object_mut().filter(|_| *mend) {
                    item.insert("fixed".to_owned(), json!(problems_json(&mended)?));
                }
                items.push(item);
                continue;
            }
            report_checked(&path, accepted, &mended, &problems, output)?;
        }
    }
    if output.is_json() {
        output.value(&json!({"valid": valid, "refused": invalid, "skills": items}))?;
    } else if output.is_rows() {
        output.table(&rows)?;
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
        let (outcomes, ended) = receive(answers, &sent, || ()).await;
        assert!(ended.is_none());
        let outcomes = completed(outcomes, paths.to_vec());
        let codes: Vec<_> = outcomes
            .values()
            .map(|outcome| match outcome {
                Outcome::Published(_) | Outcome::Copy { .. } => "",
                Outcome::Refused { code, .. } => code,
            })
            .collect();
        let no_answer = Code::ServerUnreachable.name();
        assert_eq!(codes, ["", no_answer, no_answer, no_answer]);
        assert_eq!(exit(&outcomes), ExitCode::FAILURE);
    }

    #[test]
    fn a_copy_has_the_outcome_of_what_it_is_a_copy_of() {
        let [first, second, copy, other] = ["a", "b", "c", "d"].map(PathBuf::from);
        let copy_of = |of: &PathBuf| Outcome::Copy {
            id: "local/global/x".to_owned(),
            of: of.clone(),
        };
        let outcomes = BTreeMap::from([
            (first.clone(), Outcome::refused(Vec::new())),
            (second.clone(), Outcome::Published(Box::default())),
            (copy.clone(), copy_of(&first)),
            (other.clone(), copy_of(&second)),
        ]);
        let outcomes = completed(outcomes, Vec::new());
        assert!(matches!(outcomes.get(&other), Some(Outcome::Copy { .. })));
        let Some(Outcome::Refused { code, message, .. }) = outcomes.get(&copy) else {
            panic!("not refused");
        };
        let told = (code.as_str(), message.as_str());
        assert_eq!(
            told,
            ("SKILL_INVALID", "The same files as a, which was refused")
        );
    }
}
