//! Commands for authors: `new` and `dev`.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use serde_json::json;

use super::connect::Client;
use super::folder;
use super::folder::{Claim, Draft, Ids, NewError, ReportedProblems};
use super::import::{receive, request};
use super::outcome::{Checked, Outcome};
use super::output::{Done, FAINT, Failed, GOOD, Output, note};
use super::skill_args::Home;
use contract::v1;
use local::FolderWatcher;
use model::Code;

const DEV_HELP: &str = "\
Examples:
  repertoire dev skills/refund-desk                      validate on each save
  repertoire dev skills --publish --location user        publish on each save

With --publish leave `version` out of the front matter while you work: each save is then a
version of its own. With --json each skill that was saved is a line of JSON.";

#[derive(Debug, Args)]
pub(super) struct New {
    /// Name of the skill and of its folder: a-z, 0-9 and single hyphens between.
    name: String,
    /// Folder to make it in. [default: the current one]
    #[arg(
        long = "in",
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    parent: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = DEV_HELP)]
pub(super) struct Dev {
    /// Folder of the skill, or of several.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Publish what was saved, without making it the active version.
    #[arg(long)]
    pub(super) publish: bool,
    /// Activate what is published.
    #[arg(long, requires = "publish")]
    activate: bool,
    #[command(flatten)]
    home: Home,
    /// Refuse what the Agent Skills standard does not allow, instead of reporting it.
    #[arg(long)]
    strict: bool,
}

pub(super) fn new(options: &New, output: &Output) -> Done {
    let New { name, parent } = options;
    let new = folder::new_skill(parent, name).map_err(|error| match error {
        NewError::Name(problems) => {
            let messages: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
            let failed = Failed::new(Code::InvalidParameter, messages.join("; "));
            match model::slugify(name).map(|slug| slug.replace('_', "-")) {
                Some(slug) if model::is_standard_name(&slug) => {
                    failed.hint(format!("`repertoire new {slug}`"))
                }
                _ => failed.hint("a name is like `refund-desk`: a-z, 0-9 and single hyphens"),
            }
        }
        NewError::Exists(_) => {
            Failed::file(error).hint("choose another name, or another folder with --in")
        }
        NewError::Failed { .. } => Failed::file(error),
    })?;
    let shown = |path: &Path| path.display().to_string();
    let files: Vec<String> = new.files.iter().map(|path| shown(path)).collect();
    let folder = shown(&new.folder);
    output.value(&json!({"path": folder, "files": files}))?;
    for file in files {
        output.line(&format!("{GOOD}made{GOOD:#} {file}"))?;
    }
    output.line(&format!(
        "{FAINT}each explains its parts; `repertoire dev {folder}` checks it on save{FAINT:#}"
    ))
}

/// Checks a folder on each save; with a client, publishes what is new in it.
pub(super) async fn dev(client: Option<&Client>, options: Dev, output: &Output) -> Done {
    let Dev {
        folder,
        publish: _,
        activate,
        home,
        strict,
    } = options;
    let mut saves = FolderWatcher::new(&folder);
    let mut reported = ReportedProblems::default();
    note(&format!(
        "{FAINT}{} is looked at whenever it is saved; Ctrl-C ends it{FAINT:#}",
        folder.display()
    ));
    let mut is_first = true;
    loop {
        let (root, home) = (folder.clone(), home.clone());
        let read = move || folder::drafts(&root, Ids::new(home.clone().named()), strict);
        let found = tokio::select! {
            found = saves.next(read) => found,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let done = match found.map_err(Failed::file) {
            Err(failed) if is_first => return Err(failed),
            // An editor may replace the folder while it saves: it may come back.
            Err(failed) => Err(failed),
            Ok(mut found) => {
                // A save leaves most skills as they were: only those that changed are reported.
                reported.news(&mut found);
                match client {
                    None => checked(found, output),
                    Some(client) => publish(client, found, activate, output).await,
                }
            }
        };
        is_first = false;
        if let Err(failed) = done {
            // What may not have arrived is tried again with the next save.
            output.failed(&failed);
            reported.forget();
        }
    }
}

type Drafts = BTreeMap<PathBuf, (Draft, Option<Claim>)>;

fn checked(found: Drafts, output: &Output) -> Done {
    for (path, (draft, _)) in found {
        let checked = Checked::new(path, draft.is_valid, draft.candidate.problems);
        if output.is_json() {
            output.json(&checked.json()?.to_string())?;
        }
        checked.report(output)?;
    }
    Ok(())
}

async fn publish(client: &Client, found: Drafts, activate: bool, output: &Output) -> Done {
    let (mut outcomes, mut sent, mut items) = (BTreeMap::new(), VecDeque::new(), Vec::new());
    for (path, (draft, claim)) in found {
        match claim {
            Some(Claim::Own(id)) => {
                let skill = Some(request(id.to_string(), draft.bundle, "", Some(activate)));
                items.push(v1::PublishSkillsRequest { skill });
                sent.push_back(path);
            }
            Some(Claim::Copy { id, of }) => {
                let id = id.to_string();
                outcomes.insert(path, Outcome::Copy { id, of });
            }
            None => _ = outcomes.insert(path, Outcome::refused(draft.candidate.problems)),
        }
    }
    let mut ended = None;
    if !items.is_empty() {
        let items = tokio_stream::iter(items);
        let answers = client.registry().publish_skills(items).await?.into_inner();
        let (answered, status) = receive(answers, &Mutex::new(sent), || ()).await;
        outcomes.extend(answered);
        ended = status;
    }
    for (path, outcome) in &outcomes {
        outcome.report(path, output)?;
    }
    ended.map_or(Ok(()), |status| Err(status.into()))
}
