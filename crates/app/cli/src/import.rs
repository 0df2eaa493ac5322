//! Commands on folders of skills: `import`, `publish`, `validate`.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::Status;

use super::connect::Client;
use super::folder;
use super::folder::{Claim, Draft, Ids};
use super::outcome::{Checked, LeftOut, Outcome, report_published, summarize, summarize_checked};
use super::output::{self, Exit, FAINT, Failed, Output, exit, json_of, note};
use super::scan::REVIEW_EXIT_CODE;
use super::skill_args::Home;
use contract::v1;
use contract::v1::publish_skills_response::Result as Item;
use model::{Code, Problem, SkillId};
use registry::Bundle;

/// Skills that are read ahead of the server: each may have 16 MiB.
const READ_AHEAD_CONCURRENCY: usize = 8;

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Folders to look for skills in.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    home: Home,
    /// What changed, kept with each version.
    #[arg(long, value_name = "TEXT", default_value = "")]
    summary: String,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    strict: bool,
    /// Store nothing, and say of each skill what would become of it.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Publish {
    /// Folder of the skill.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Id to publish it as, SOURCE/AUTHOR/NAME. [default: by --location and its name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    home: Home,
    /// What changed, kept with the version.
    #[arg(long, value_name = "TEXT", default_value = "")]
    summary: String,
    /// Publish the version without making it the active one.
    #[arg(long)]
    no_activate: bool,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    strict: bool,
    /// Store nothing, and say what would become of the skill.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Validate {
    /// Folders to look for skills in.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Fix what can be fixed automatically in each SKILL.md first.
    #[arg(long)]
    fix: bool,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    strict: bool,
}

pub(super) fn request(
    id: String,
    bundle: Bundle,
    summary: &str,
    activate: Option<bool>,
) -> v1::PublishSkillRequest {
    let files = bundle.files.into_iter().map(|(path, content)| v1::File {
        path: path.to_string(),
        content,
    });
    v1::PublishSkillRequest {
        skill_id: id,
        files: files.collect(),
        folder: bundle.folder,
        change_summary: summary.to_owned(),
        strict: bundle.strict,
        activate,
        ..Default::default()
    }
}

/// The folders of skills below one.
fn found_below(root: &Path) -> Result<folder::SkillFolders, Failed> {
    folder::find(root).map_err(Failed::file)
}

/// Returns the files that were left out of a folder.
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
    /// The folders whose answers are still to come.
    sent: Arc<Mutex<VecDeque<PathBuf>>>,
}

impl FolderReader {
    /// Returns the outcomes of folders that were not sent.
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
                    // Before it is sent, since its answer may come before the next line runs;
                    // answers come in this order, and name no folder.
                    sent.push_back(path);
                    drop(sent);
                    let item = v1::PublishSkillsRequest { skill: Some(skill) };
                    if items.blocking_send(item).is_err() {
                        break; // The stream ended; its error is reported below.
                    }
                }
            }
        }
        // The files of a skill inside a skill are read with both.
        self.left.sort();
        self.left.dedup_by(|a, b| a.0 == b.0);
        settled
    }
}

/// Receives the outcomes of the folders that were sent, in the order of the answers, and the
/// error that ended the stream.
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
            Some(Item::Refused(refusal)) => Outcome::Refused(refusal),
            None => Outcome::unanswered(),
        };
        outcomes.insert(path, outcome);
    }
    (outcomes, None)
}

pub(super) async fn import(client: &Client, options: Import, output: &Output) -> Exit {
    let dry_run = options.dry_run;
    let (mut paths, mut left) = (Vec::new(), LeftOut::new());
    for root in &options.folders {
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
    let (items, stream) = mpsc::channel(READ_AHEAD_CONCURRENCY);
    let sent = Arc::new(Mutex::new(VecDeque::new()));
    let mut reader = FolderReader {
        ids: Ids::new(options.home.named()),
        summary: options.summary,
        strict: options.strict,
        dry_run,
        left,
        sent: Arc::clone(&sent),
    };
    let all = paths.clone();
    let reader = tokio::task::spawn_blocking(move || (reader.read(paths, &items), reader.left));
    let stream = ReceiverStream::new(stream);
    let answers = client.registry().publish_skills(stream).await?;
    let answers = answers.into_inner();
    let (mut outcomes, ended) = receive(answers, &sent, || bar.inc(1)).await;
    bar.finish_and_clear();
    let (settled, left) = reader.await.map_err(Failed::fault)?;
    outcomes.extend(settled);
    let outcomes = completed(outcomes, all);
    let code = exit_code(&outcomes);
    summarize(outcomes, &left, dry_run, output)?;
    match ended {
        None => Ok(code),
        Some(status) => {
            let hint = "import again: what is there already stays as it is";
            Err(Failed::from(status).hint(hint))
        }
    }
}

/// Completes the outcomes of all folders: an answer that did not come is no success, nor is a copy
/// of what was refused.
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

fn exit_code(outcomes: &BTreeMap<PathBuf, Outcome>) -> ExitCode {
    let mut outcomes = outcomes.values();
    exit(!outcomes.any(|it| matches!(it, Outcome::Refused(_))), 1)
}

pub(super) async fn publish(client: &Client, options: Publish, output: &Output) -> Exit {
    let (folder, id, strict) = (options.folder, options.id, options.strict);
    let (dry_run, mut ids) = (options.dry_run, Ids::new(options.home.named()));
    let path = folder.clone();
    let read = tokio::task::spawn_blocking(move || {
        // A short name is the slug of a stored skill. The folder is checked under some id with
        // that slug; the name itself is sent, and the server resolves it.
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
            summarize(outcomes, &LeftOut::new(), dry_run, output)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    for (path, why) in left {
        note(&format!("{FAINT}{}: {why}{FAINT:#}", path.display()));
    }
    let activate = Some(!options.no_activate);
    let mut request = request(id, bundle, &options.summary, activate);
    request.dry_run = dry_run;
    let published = client.registry().publish_skill(request).await?.into_inner();
    if output.is_json() {
        let mut json = json_of(&published)?;
        if let Some(json) = json.as_object_mut().filter(|_| dry_run) {
            json.insert("dry_run".to_owned(), true.into());
        }
        output.value(&json)?;
    }
    report_published(&published, output)?;
    if dry_run {
        output.line("this is what a publish would come to now; nothing is stored")?;
    }
    let is_held = published.version.as_ref().is_some_and(|v| v.held);
    Ok(exit(!is_held, REVIEW_EXIT_CODE))
}

pub(super) fn validate(options: &Validate, output: &Output) -> Exit {
    let mut checked = Vec::new();
    for root in &options.folders {
        let mut found = found_below(root)?.folders;
        // Its draft reports that there is no SKILL.md.
        if found.is_empty() {
            found.push(root.clone());
        }
        for path in found {
            // Before it is read: the problems that are reported are those that are left.
            let fixed = options
                .fix
                .then(|| folder::fix(&path).map_err(Failed::file));
            let fixed = fixed.transpose()?;
            let draft = Draft::read(&path, None, options.strict);
            let mut one = Checked::new(path, draft.is_valid, draft.candidate.problems);
            if let Some(fixed) = fixed {
                one = one.with_fixed(fixed);
            }
            one.report(output)?;
            checked.push(one);
        }
    }
    summarize_checked(&checked, "skills", output)
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
                Outcome::Refused(refusal) => &refusal.code,
            })
            .collect();
        let no_answer = Code::ServerUnreachable.name();
        assert_eq!(codes, ["", no_answer, no_answer, no_answer]);
        assert_eq!(exit_code(&outcomes), ExitCode::FAILURE);
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
        let Some(Outcome::Refused(refusal)) = outcomes.get(&copy) else {
            panic!("not refused");
        };
        let told = (refusal.code.as_str(), refusal.message.as_str());
        assert_eq!(
            told,
            ("SKILL_INVALID", "The same files as a, which was refused")
        );
    }
}
