//! Commands on the blocklist.

use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{BAD, Exit, FAINT, Failed, GOOD, Output, Table, WARN, time};
use super::versions::without;
use contract::v1;

#[derive(Debug, Args)]
pub(super) struct Block {
    /// The skill: its id or its short name.
    pub(super) skill: String,
    /// Why, for those who use it.
    #[arg(long)]
    pub(super) reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Blocklist {
    /// Take the operator's feed in first (`trust.blocklist_feed`).
    #[arg(long)]
    pub(super) refresh: bool,
}

/// How similar texts are of which one is a copy of the other.
const COPY: f64 = 0.9;

fn many(size: u32) -> String {
    match size {
        0 => "nothing is blocked".to_owned(),
        1 => "1 skill is blocked".to_owned(),
        size => format!("{size} skills are blocked"),
    }
}

async fn update(
    client: &mut Client,
    action: v1::BlocklistAction,
    skill_id: String,
    reason: String,
) -> Result<v1::UpdateBlocklistResponse, tonic::Status> {
    let request = v1::UpdateBlocklistRequest {
        action: action.into(),
        skill_id,
        reason,
        refresh_from_community: None,
    };
    let answer = client.registry().update_blocklist(request).await?;
    Ok(answer.into_inner())
}

pub(super) async fn block(client: &mut Client, options: Block, output: &Output) -> Exit {
    let Block { skill, reason } = options;
    let answer = update(client, v1::BlocklistAction::Add, skill, reason).await?;
    if output.is_json() {
        output.message("UpdateBlocklistResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (id, size) = (answer.skill_id.unwrap_or_default(), answer.blocklist_size);
    output.line(&format!("{BAD}blocked{BAD:#} {id}; {}", many(size)))?;
    for installed in &answer.affected_installed_skills {
        output.line(&format!(
            "{WARN}it is installed:{WARN:#} repertoire uninstall {installed}"
        ))?;
    }
    without(&answer.dependents, output)?;
    copies(client, &id, output).await?;
    Ok(ExitCode::SUCCESS)
}

/// Skills with nearly the same text, which somebody may use in its place.
async fn copies(client: &mut Client, id: &str, output: &Output) -> Result<(), Failed> {
    client.index().await;
    let request = v1::ListSimilarSkillsRequest {
        skill_id: id.to_owned(),
        min_similarity: Some(COPY),
        limit: None,
    };
    // Blocked it is; what lists copies may not be there yet.
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

pub(super) async fn unblock(
    client: &mut Client,
    options: super::skill_args::OfSkill,
    output: &Output,
) -> Exit {
    let remove = v1::BlocklistAction::Remove;
    let answer = update(client, remove, options.skill, String::new()).await?;
    if output.is_json() {
        output.message("UpdateBlocklistResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (id, size) = (answer.skill_id.unwrap_or_default(), answer.blocklist_size);
    output.line(&format!("{GOOD}unblocked{GOOD:#} {id}; {}", many(size)))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn blocklist(client: &mut Client, options: Blocklist, output: &Output) -> Exit {
    if options.refresh {
        let refresh = v1::BlocklistAction::Refresh;
        update(client, refresh, String::new(), String::new()).await?;
    }
    let mut request = v1::ListBlockedRequest {
        page_size: 500,
        page_token: String::new(),
    };
    let mut all = v1::ListBlockedResponse::default();
    loop {
        let page = client.registry().list_blocked(request.clone()).await?;
        let page = page.into_inner();
        all.blocked.extend(page.blocked);
        all.blocklist_size = page.blocklist_size;
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    if output.is_json() {
        output.message("ListBlockedResponse", &all)?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.blocked.is_empty() {
        output.line(&format!("{FAINT}{}{FAINT:#}", many(0)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&["skill", "since", "by", "reason"]);
    for entry in all.blocked {
        let by = if entry.from_feed {
            "the feed".to_owned()
        } else {
            entry.blocked_by
        };
        rows.add_row([entry.skill_id, time(entry.blocked_at), by, entry.reason]);
    }
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}
