//! Whether skills go together: what each requires, and what it cannot stand.
//!
//! Pure. Both lists of rules count, in both directions, and everything that is
//! wrong is told.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::finding::{Finding, FindingCode};
use super::member::{Demand, because, rules_of};
use super::{Error, Member};
use executor::Stop;
use model::{Reference, SkillKey, VersionedReference};

/// Members by what rules call them.
pub(super) struct Names {
    ids: FxHashMap<SkillKey, usize>,
    short: FxHashMap<String, Vec<usize>>,
}

impl Names {
    pub(super) fn of(members: &[Member]) -> Self {
        let mut names = Self {
            ids: FxHashMap::default(),
            short: FxHashMap::default(),
        };
        for (at, member) in members.iter().enumerate() {
            names.ids.insert(member.id.key(), at);
            let slug = member.id.slug().to_lowercase();
            let name = member.version.skill.name.to_lowercase();
            if name != slug {
                names.short.entry(name).or_default().push(at);
            }
            names.short.entry(slug).or_default().push(at);
        }
        names
    }

    /// The members that a reference means.
    pub(super) fn meant(&self, reference: &Reference) -> Vec<usize> {
        match reference {
            Reference::Id(id) => self.ids.get(&id.key()).copied().into_iter().collect(),
            Reference::Name(name) => {
                let found = self.short.get(&name.to_lowercase());
                found.cloned().unwrap_or_default()
            }
        }
    }
}

/// A requirement that no member meets.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    /// The member that requires it.
    pub(super) by: usize,
    /// As the rule writes it.
    pub(super) text: String,
    pub(super) target: VersionedReference,
    pub(super) reason: String,
}

/// What the rules of members come to.
#[derive(Debug, Clone, Default)]
pub(super) struct Verdict {
    /// Errors among the members.
    pub(super) findings: Vec<Finding>,
    /// What is not there at all, in the order of the members and their rules.
    pub(super) missing: Vec<Missing>,
    /// There may be more errors: they were no longer looked for.
    pub(super) is_cut: bool,
    /// The way to each member from those that were asked for.
    ways: Vec<Option<usize>>,
}

/// Errors that are told; a set with more is as wrong.
pub(super) const MAX_ERRORS: usize = 2_000;

/// Looks at all rules, until there are more errors than anybody reads. The first `asked`
/// members were asked for, the others were added.
///
/// # Errors
/// It is to stop.
pub(super) fn check(members: &[Member], asked: usize, stop: &Stop) -> Result<Verdict, Error> {
    check_up_to(MAX_ERRORS, members, asked, stop)
}

/// The same for another number of errors.
pub(super) fn check_up_to(
    errors: usize,
    members: &[Member],
    asked: usize,
    stop: &Stop,
) -> Result<Verdict, Error> {
    let names = Names::of(members);
    let ways = ways(members, &names, asked);
    let mut verdict = Verdict::default();
    'members: for (at, member) in members.iter().enumerate() {
        let mut known = BTreeSet::new();
        for rule in rules_of(&member.version) {
            stop.check()?;
            if verdict.findings.len() > errors {
                verdict.is_cut = true;
                break 'members;
            }
            if !known.insert((rule.demand, rule.text)) {
                continue;
            }
            let meant = names.meant(&rule.target.skill);
            if rule.demand == Demand::Requires {
                let met = |position: &usize| {
                    members
                        .get(*position)
                        .is_some_and(|member| member.meets(&rule.target.version))
                };
                if meant.iter().any(met) {
                    continue;
                }
                match meant.first().and_then(|position| members.get(*position)) {
                    Some(other) => {
                        let message = format!(
                            "'{}' requires '{}', but '{}' is here as {}{}",
                            member.name,
                            rule.text,
                            other.name,
                            other.version.semantic,
                            because(rule.reason)
                        );
                        let mut chain = chain(members, &ways, at);
                        chain.push(&other.name);
                        verdict.findings.push(
                            Finding::new(FindingCode::VersionUnsatisfied, message)
                                .about([&*member.name, &*other.name])
                                .through(&chain),
                        );
                    }
                    None => verdict.missing.push(Missing {
                        by: at,
                        text: rule.text.to_owned(),
                        target: rule.target.clone(),
                        reason: rule.reason.to_owned(),
                    }),
                }
                continue;
            }
            let (code, verb) = match rule.demand {
                Demand::Forbids => (
                    FindingCode::ForbiddenCombination,
                    "forbids to be composed with",
                ),
                _ => (FindingCode::IncompatibleSkills, "is incompatible with"),
            };
            // A skill that names itself means others of its name.
            for position in meant.into_iter().filter(|position| *position != at) {
                let Some(other) = members.get(position) else {
                    continue;
                };
                if !other.meets(&rule.target.version) {
                    continue;
                }
                let message = format!(
                    "'{}' {verb} '{}'{}",
                    member.name,
                    other.name,
                    because(rule.reason)
                );
                let mut chain = chain(members, &ways, at);
                chain.push(&other.name);
                verdict.findings.push(
                    Finding::new(code, message)
                        .about([&*member.name, &*other.name])
                        .through(&chain),
                );
            }
        }
    }
    verdict.ways = ways;
    Ok(verdict)
}

impl Verdict {
    /// Nothing was looked at, for this reason.
    pub(super) fn failed(finding: Finding) -> Self {
        Self {
            findings: vec![finding],
            ..Self::default()
        }
    }

    /// The skills from one that was asked for to a member.
    pub(super) fn chain<'a>(&self, members: &'a [Member], at: usize) -> Vec<&'a str> {
        chain(members, &self.ways, at)
    }
}

/// For each member the one before it on the shortest way from those that were
/// asked for; these have none.
fn ways(members: &[Member], names: &Names, asked: usize) -> Vec<Option<usize>> {
    let mut ways = vec![None; members.len()];
    if asked >= members.len() {
        return ways;
    }
    let mut seen: Vec<bool> = (0..members.len()).map(|at| at < asked).collect();
    let mut next: VecDeque<usize> = (0..asked).collect();
    while let Some(at) = next.pop_front() {
        let Some(member) = members.get(at) else {
            continue;
        };
        let required = rules_of(&member.version).filter(|rule| rule.demand == Demand::Requires);
        for position in required.flat_map(|rule| names.meant(&rule.target.skill)) {
            if let (Some(seen @ false), Some(way)) =
                (seen.get_mut(position), ways.get_mut(position))
            {
                *seen = true;
                *way = Some(at);
                next.push_back(position);
            }
        }
    }
    ways
}

fn chain<'a>(members: &'a [Member], ways: &[Option<usize>], at: usize) -> Vec<&'a str> {
    let mut chain = Vec::new();
    let mut at = Some(at);
    while let Some(position) = at.filter(|_| chain.len() <= members.len()) {
        chain.extend(members.get(position).map(|member| &*member.name));
        at = ways.get(position).copied().flatten();
    }
    chain.reverse();
    chain
}
