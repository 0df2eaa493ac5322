//! Commands on the blocklist.

use clap::{Args, Subcommand};

use super::connect::{Client, pages};
use super::output::{BAD, Done, FAINT, GOOD, List, Output, WARN, time};
use super::skill_args::OfId;
use super::versions::without;
use contract::v1;

const EXAMPLES: &str = "\
Examples:
  repertoire block                      what is blocked, and why
  repertoire block add github/acme/refunds --reason 'It sends keys away'
  repertoire block remove github/acme/refunds";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Block {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    /// The skill, where `block add` is called by its name of before.
    #[arg(hide = true, requires = "reason")]
    pub(super) skill: Option<String>,
    /// The reason of that.
    #[arg(long, hide = true, requires = "skill")]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the skills that are blocked, and why.
    List(ListBlocked),
    /// Block a skill: it can no longer be found or loaded, nor its tools called.
    Add(Add),
    /// Remove a skill from the blocklist.
    Remove(OfId),
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The skill: its full id.
    pub(super) skill: String,
    /// Why, for those who use it.
    #[arg(long)]
    pub(super) reason: String,
}

#[derive(Debug, Default, Args)]
pub(super) struct ListBlocked {
    /// Read the operator's feed first (`trust.blocklist_feed`).
    #[arg(long)]
    refresh: bool,
}

/// The similarity from which one text is a copy of the other.
const COPY_MIN_SIMILARITY: f64 = 0.9;

const BLOCKED: List<v1::BlockedSkill> = List::new(&[
    ("skill", |entry| entry.skill_id.clone()),
    ("since", |entry| time(entry.blocked_at)),
    ("by", |entry| {
        let by = if entry.from_feed {
            "the feed"
        } else {
            &entry.blocked_by
        };
        by.to_owned()
    }),
    ("reason", |entry| entry.reason.clone()),
]);

fn many(size: u32) -> String {
    match size {
        0 => "nothing is blocked".to_owned(),
        1 => "1 skill is blocked".to_owned(),
        size => format!("{size} skills are blocked"),
    }
}

pub(super) async fn block(client: &Client, options: Block, output: &Output) -> Done {
    match options.action {
        None => list(client, ListBlocked::default(), output).await,
        Some(Action::List(options)) => list(client, options, output).await,
        Some(Action::Add(options)) => add(client, options, output).await,
        Some(Action::Remove(options)) => remove(client, options, output).await,
    }
}

async fn update(
    client: &Client,
    action: v1::BlocklistAction,
    skill_id: String,
    reason: String,
) -> Result<tonic::Response<v1::UpdateBlocklistResponse>, tonic::Status> {
    let request = v1::UpdateBlocklistRequest {
        action: action.into(),
        skill_id,
        reason,
        refresh_from_community: None,
    };
    client.registry().update_blocklist(request).await
}

async fn add(client: &Client, options: Add, output: &Output) -> Done {
    let Add { skill, reason } = options;
    let answer = update(client, v1::BlocklistAction::Add, skill, reason).await?;
    let answer = output.answer(answer)?;
    if output.is_json() {
        return Ok(());
    }
    let (id, size) = (answer.skill_id.unwrap_or_default(), answer.blocklist_size);
    output.line(&format!("{BAD}blocked{BAD:#} {id}; {}", many(size)))?;
    for installed in &answer.affected_installed_skills {
        output.line(&format!(
            "{WARN}it is installed:{WARN:#} repertoire uninstall {installed}"
        ))?;
    }
    without(&answer.dependents, output)?;
    copies(client, &id, output).await
}

/// Warns of skills with nearly the same text: a copy under another name is not blocked.
async fn copies(client: &Client, id: &str, output: &Output) -> Done {
    client.index().await;
    let request = v1::ListSimilarSkillsRequest {
        skill_id: id.to_owned(),
        min_similarity: Some(COPY_MIN_SIMILARITY),
        limit: None,
    };
    // The skill is blocked already: without an index of copies this is still no failure.
    let Ok(found) = client.lookup().list_similar_skills(request).await else {
        return Ok(());
    };
    let found = found.into_inner().skills.into_iter();
    let copies: Vec<_> = found.filter_map(|one| Some(one.skill?.id)).collect();
    if !copies.is_empty() {
        let copies = copies.join(", ");
        output.line(&format!("{WARN}copies are not blocked:{WARN:#} {copies}"))?;
    }
    Ok(())
}

async fn remove(client: &Client, options: OfId, output: &Output) -> Done {
    let remove = v1::BlocklistAction::Remove;
    let answer = update(client, remove, options.skill, String::new()).await?;
    let answer = output.answer(answer)?;
    let (id, size) = (answer.skill_id.unwrap_or_default(), answer.blocklist_size);
    output.line(&format!("{GOOD}unblocked{GOOD:#} {id}; {}", many(size)))
}

async fn list(client: &Client, options: ListBlocked, output: &Output) -> Done {
    if options.refresh {
        let refresh = v1::BlocklistAction::Refresh;
        update(client, refresh, String::new(), String::new()).await?;
    }
    let mut all = v1::ListBlockedResponse::default();
    pages(async |page_token| {
        let request = v1::ListBlockedRequest {
            page_size: 500,
            page_token,
        };
        let page = client.registry().list_blocked(request).await?.into_inner();
        all.blocked.extend(page.blocked);
        all.blocklist_size = page.blocklist_size;
        Ok(page.next_page_token)
    })
    .await?;
    output.message(&all)?;
    if all.blocked.is_empty() {
        return output.line(&format!("{FAINT}{}{FAINT:#}", many(0)));
    }
    output.list(&BLOCKED, &all.blocked)
}
