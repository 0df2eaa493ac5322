//! The blocklist rpcs.

use tonic::Response;

use super::registry::RegistryService;
use super::{DEFAULT_BLOCKED_SKILLS, FEED, convert, missing, page_size};
use ::registry::{Blocked, Caller, Registry};
use contract::handlers::Answer;
use contract::v1;
use model::Block;

pub(super) async fn update(
    service: &RegistryService,
    request: v1::UpdateBlocklistRequest,
    caller: &Caller,
) -> Answer<v1::UpdateBlocklistResponse> {
    let RegistryService {
        registry,
        stored,
        feed,
        installer,
        ..
    } = service;
    let v1::UpdateBlocklistRequest {
        action,
        skill_id,
        reason,
        refresh_from_community,
    } = request;
    let of = v1::BlocklistAction::try_from(action).unwrap_or_default();
    let is_missing = |text: &str| text.trim().is_empty();
    // Checked by hand: which fields are required depends on the action, and the rules of the
    // contract see one field at a time.
    let changed = match of {
        v1::BlocklistAction::Unspecified => return Err(missing("action")),
        v1::BlocklistAction::Add | v1::BlocklistAction::Remove if is_missing(&skill_id) => {
            return Err(missing("skill_id"));
        }
        v1::BlocklistAction::Add if is_missing(&reason) => {
            return Err(missing("reason"));
        }
        v1::BlocklistAction::Add => {
            // Through `stored`, so that a folder around the caller cannot stand in for the skill.
            let add = async |id| registry.block(&id, &reason, caller).await;
            let added = stored.write(&skill_id, add).await;
            Some(added?)
        }
        v1::BlocklistAction::Remove => {
            let remove = async |id| registry.unblock(&id, caller).await;
            let removed = stored.write(&skill_id, remove).await;
            Some(removed?)
        }
        v1::BlocklistAction::Refresh if refresh_from_community.unwrap_or(FEED) => {
            feed.take_in(registry, caller).await?;
            None
        }
        v1::BlocklistAction::Refresh => None,
    };
    let only = changed.as_ref().map(|Blocked { id, .. }| id.clone());
    // A refresh names no skill: all that are installed are compared with the whole list.
    let affected = installer.blocked(only.clone()).await?;
    let dependents = changed.map(|changed| changed.dependents);
    Ok(Response::new(v1::UpdateBlocklistResponse {
        action,
        blocklist_size: convert::count(registry.catalog().blocked()),
        skill_id: only.map(|id| id.to_string()),
        last_community_refresh: feed.taken_in().map(convert::time),
        affected_installed_skills: affected.iter().map(ToString::to_string).collect(),
        dependents: convert::ids(dependents.unwrap_or_default()),
    }))
}

/// Returns an entry of the blocklist.
pub(super) fn entry(block: &Block) -> v1::BlockedSkill {
    v1::BlockedSkill {
        skill_id: block.skill.to_string(),
        reason: block.reason.clone(),
        blocked_at: Some(convert::time(block.time)),
        blocked_by: block.actor.to_string(),
        from_feed: block.from_feed,
    }
}

pub(super) fn list(
    registry: &Registry,
    request: v1::ListBlockedRequest,
) -> Answer<v1::ListBlockedResponse> {
    let v1::ListBlockedRequest {
        page_size: size,
        page_token,
    } = request;
    let page = registry.blocklist(page_size(size, DEFAULT_BLOCKED_SKILLS), &page_token);
    let page = page?;
    let blocked = page.blocks.iter().map(|block| entry(block));
    Ok(Response::new(v1::ListBlockedResponse {
        blocked: blocked.collect(),
        blocklist_size: convert::count(page.size),
        next_page_token: page.next.unwrap_or_default(),
    }))
}
