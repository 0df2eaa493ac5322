//! Skills that are required and missing, and those that they require in turn: each
//! with the shortest way to it from a skill that was asked for.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::finding::{Finding, FindingCode};
use super::member::{Demand, because, rules_of};
use super::resolve::Library;
use super::rules::{Missing, Names, Verdict};
use super::{Error, Member};
use executor::Stop;
use model::{VersionSelector, VersionWish};
use registry::Release;

/// Requirements that are reported and followed; of the rest only that there are some.
const MAX_REQUIREMENTS: usize = 2_000;

/// A skill that is not there, or a member, on the way to one that is not there.
struct Step {
    name: String,
    /// The step before it; the first ones come from members.
    from: Option<usize>,
}

/// A requirement that no member meets, and the step that has it.
struct Open {
    from: Option<usize>,
    by: String,
    missing: Missing,
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
            by: members
                .get(missing.by)
                .map_or_else(String::new, |member| member.name.to_string()),
            missing: missing.clone(),
        })
        .collect();
    while let Some(Open { from, by, missing }) = open.pop_front() {
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
        // Each member that lacks a skill is named. For what is only reached on the way the first
        // way, the shortest, is enough; this also ends cycles.
        if !is_new && from.is_some() {
            continue;
        }
        let mut chain = verdict.chain(members, missing.by);
        let mut way = Vec::new();
        let mut before = from;
        while let Some(step) = before.and_then(|at| steps.get(at)) {
            way.push(step.name.as_str());
            before = step.from;
        }
        chain.extend(way.into_iter().rev());
        chain.push(&name);
        let there = if found.is_some() {
            "is not in the set"
        } else {
            "does not exist"
        };
        let message = format!(
            "'{by}' requires '{}', which {there}{}",
            missing.text,
            because(&missing.reason)
        );
        findings.push(
            Finding::new(FindingCode::MissingRequiredSkill, message)
                .about([by.as_str(), name.as_str()])
                .through(&chain),
        );
        let Some((id, _)) = found.filter(|_| is_new) else {
            continue;
        };
        let position = steps.len();
        steps.push(Step {
            name: name.clone(),
            from,
        });
        let Some(number) = likely(library, &id, &missing.target.version)? else {
            continue;
        };
        let version = library.version(&id, number)?;
        for rule in rules_of(&version).filter(|rule| rule.demand == Demand::Requires) {
            if names.meant(&rule.target.skill).is_empty() {
                let missing = Missing::of(missing.by, rule);
                open.push_back(Open {
                    from: Some(position),
                    by: name.clone(),
                    missing,
                });
            }
        }
    }
    Ok(findings)
}

/// The version that a resolution would mostly take for a requirement.
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
