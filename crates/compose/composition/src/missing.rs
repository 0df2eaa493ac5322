//! What is required and not there, and what that would require in turn: each
//! with the shortest way to it from a skill that was asked for.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::finding::{Finding, FindingCode};
use super::member::{Demand, because, rules_of};
use super::resolve::Library;
use super::rules::{Names, Verdict};
use super::{Error, Member};
use executor::Stop;
use model::{VersionSelector, VersionWish, VersionedReference};
use registry::Release;

/// Requirements that are told and followed; of more, that there are.
const MAX_REQUIREMENTS: usize = 2_000;

/// A skill that is not there, or a member, on the way to one that is not there.
struct Step {
    name: String,
    /// The step before it; the first ones come from members.
    from: Option<usize>,
    member: usize,
}

/// A requirement that nobody meets, and the step at which it stands.
struct Open {
    from: Option<usize>,
    member: usize,
    by: String,
    text: String,
    target: VersionedReference,
    reason: String,
}

/// Explains what is missing, nearest first.
pub(super) fn explain(
    library: &impl Library,
    members: &[Member],
    verdict: &Verdict,
    stop: &Stop,
) -> Result<Vec<Finding>, Error> {
    let names = Names::of(members);
    let mut findings = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut seen = FxHashSet::default();
    let mut open: VecDeque<Open> = verdict
        .missing
        .iter()
        .map(|missing| Open {
            from: None,
            member: missing.by,
            by: members
                .get(missing.by)
                .map(|member| member.name.to_string())
                .unwrap_or_default(),
            text: missing.text.clone(),
            target: missing.target.clone(),
            reason: missing.reason.clone(),
        })
        .collect();
    while let Some(missing) = open.pop_front() {
        stop.check()?;
        let found = library.find(&missing.target.skill);
        if findings.len() >= MAX_REQUIREMENTS {
            let message = format!(
                "more than {MAX_REQUIREMENTS} requirements are missing; no more were looked for"
            );
            findings.push(Finding::new(FindingCode::TooManySkills, message));
            break;
        }
        let (name, known) = if let Some((id, name)) = &found {
            (name.to_string(), id.key().as_str().to_owned())
        } else {
            let name = missing.target.skill.to_string();
            (name.clone(), name.to_lowercase())
        };
        let is_new = seen.insert(known);
        // Whoever else requires it is told too, where it was asked for.
        if !is_new && missing.from.is_some() {
            continue;
        }
        let mut chain = verdict.chain(members, missing.member);
        let mut way = Vec::new();
        let mut from = missing.from;
        while let Some(step) = from.and_then(|at| steps.get(at)) {
            way.push(step.name.as_str());
            from = step.from;
        }
        chain.extend(way.into_iter().rev());
        chain.push(&name);
        let there = if found.is_some() {
            "is not in the set"
        } else {
            "does not exist"
        };
        let message = format!(
            "'{}' requires '{}', which {there}{}",
            missing.by,
            missing.text,
            because(&missing.reason)
        );
        findings.push(
            Finding::new(FindingCode::MissingRequiredSkill, message)
                .about([missing.by.as_str(), name.as_str()])
                .through(&chain),
        );
        let Some((id, _)) = found.filter(|_| is_new) else {
            continue;
        };
        let position = steps.len();
        steps.push(Step {
            name: name.clone(),
            from: missing.from,
            member: missing.member,
        });
        let Some(number) = likely(library, &id, &missing.target.version)? else {
            continue;
        };
        let version = library.version(&id, number)?;
        for rule in rules_of(&version).filter(|rule| rule.demand == Demand::Requires) {
            if names.meant(&rule.target.skill).is_empty() {
                open.push_back(Open {
                    from: Some(position),
                    member: steps.get(position).map_or(0, |step| step.member),
                    by: name.clone(),
                    text: rule.text.to_owned(),
                    target: rule.target.clone(),
                    reason: rule.reason.to_owned(),
                });
            }
        }
    }
    Ok(findings)
}

/// The version that would be taken to meet a requirement.
fn likely(
    library: &impl Library,
    id: &model::SkillId,
    wish: &VersionWish,
) -> Result<Option<model::VersionNumber>, Error> {
    if let VersionWish::Is(VersionSelector::Active) = wish {
        return Ok(library.active(id));
    }
    let fits = |release: &&Release| match wish {
        VersionWish::Is(VersionSelector::Number(number)) => release.number == *number,
        VersionWish::Is(VersionSelector::Semantic(version)) => release.semantic == *version,
        VersionWish::Is(VersionSelector::Active) => true,
        VersionWish::Within(range) => !release.is_yanked && range.matches(&release.semantic),
        VersionWish::Holds(digest) => release.digest == *digest,
    };
    let releases = library.releases(id)?;
    Ok(releases
        .iter()
        .rev()
        .find(fits)
        .map(|release| release.number))
}
