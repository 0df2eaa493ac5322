//! Withdrawing what a source no longer has, and putting it back.

use super::Error;
use model::{SkillId, VersionNumber};
use registry::{Caller, Registry};

/// Withdraws every version of a skill that the caller published. Returns whether there was one.
pub(crate) async fn withdraw(
    registry: &Registry,
    skill: &SkillId,
    reason: &str,
    caller: &Caller,
) -> Result<bool, Error> {
    let Some(head) = registry.catalog().get(&skill.key()).cloned() else {
        return Ok(false);
    };
    let mut numbers = Vec::new();
    let mut token = String::new();
    loop {
        let page = registry.list_versions(skill, 200, &token)?;
        let own = page.versions.iter().filter(|described| {
            let version = &described.version;
            version.created_by == caller.principal && !head.is_withdrawn(version.number)
        });
        numbers.extend(own.map(|described| described.version.number));
        match page.next {
            Some(next) => token = next,
            None => break,
        }
    }
    // The active one last: withdrawn first, it would be replaced by an older one, which would be
    // handed out until that is withdrawn too.
    numbers.sort_by_key(|number| (head.active == Some(*number), *number));
    for number in &numbers {
        registry.yank(skill, *number, reason, caller).await?;
    }
    Ok(!numbers.is_empty())
}

/// Puts a version back if the caller withdrew it. Returns whether it did.
pub(crate) async fn put_back(
    registry: &Registry,
    skill: &SkillId,
    number: VersionNumber,
    caller: &Caller,
) -> Result<bool, Error> {
    let head = registry.head(skill)?;
    let yank = registry.yank_of(&head, number)?;
    // What a person withdrew stays withdrawn, whatever the source has.
    if yank.is_none_or(|yank| yank.actor != caller.principal) {
        return Ok(false);
    }
    registry.unyank(skill, number, caller).await?;
    Ok(true)
}
