//! Whether skills go together: what each requires, and what it rules out.
//!
//! Pure. Both lists of rules count, in both directions, and everything that is
//! wrong is reported.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::finding::{Finding, FindingCode};
use super::member::{Demand, RuleOf, because, rules_of};
use super::{Error, Member};
use executor::Stop;
use model::{Reference, SkillId, SkillKey, Version, VersionedReference};

/// Skills by what rules call them.
#[derive(Debug, Default)]
pub(super) struct Names {
    ids: FxHashMap<SkillKey, usize>,
    short: FxHashMap<String, Vec<usize>>,
}

impl Names {
    pub(super) fn of(members: &[Member]) -> Self {
        let mut names = Self::default();
        for (at, member) in members.iter().enumerate() {
            names.add(at, &member.id, [&member.version]);
        }
        names
    }

    /// Adds a skill by its id, its slug, and the names of these versions.
    pub(super) fn add<'v>(
        &mut self,
        at: usize,
        id: &SkillId,
        versions: impl IntoIterator<Item = &'v Arc<Version>>,
    ) {
        self.ids.insert(id.key(), at);
        let names = versions.into_iter().map(|version| &*version.skill.name);
        let names: FxHashSet<String> = names.chain([id.slug()]).map(str::to_lowercase).collect();
        for name in names {
            self.short.entry(name).or_default().push(at);
        }
    }

    pub(super) fn position(&self, id: &SkillId) -> Option<usize> {
        self.ids.get(&id.key()).copied()
    }

    /// The skills that a reference means.
    pub(super) fn meant(&self, reference: &Reference) -> Vec<usize> {
        match reference {
            Reference::Id(id) => self.position(id).into_iter().collect(),
            // All of a name, not the one that wins it: a rule that forbids `pdf` means each.
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
    /// The member that requires it, or that the way to it begins at.
    pub(super) by: usize,
    /// As the rule writes it.
    pub(super) text: String,
    pub(super) target: VersionedReference,
    pub(super) reason: String,
}

impl Missing {
    pub(super) fn of(by: usize, rule: RuleOf<'_>) -> Self {
        Self {
            by,
            text: rule.text.to_owned(),
            target: rule.target,
            reason: rule.reason.to_owned(),
        }
    }
}

/// The result of checking the rules of members.
#[derive(Debug, Clone, Default)]
pub(super) struct Verdict {
    /// Errors among the members.
    pub(super) findings: Vec<Finding>,
    /// Requirements that are not there at all, in the order of the members and their rules.
    pub(super) missing: Vec<Missing>,
    /// There may be more errors: the search for them ended.
    pub(super) is_cut: bool,
    /// The way to each member from those that were asked for.
    ways: Vec<Option<usize>>,
}

/// Errors that are reported; a set with more is no more wrong.
pub(super) const MAX_ERRORS: usize = 2_000;

/// Checks all rules, until there are more errors than anybody reads. The first `asked`
/// members were asked for, the others were added.
///
/// # Errors
/// It is to stop.
pub(super) fn check(members: &[Member], asked: usize, stop: &Stop) -> Result<Verdict, Error> {
    check_up_to(MAX_ERRORS, members, asked, stop)
}

/// Checks all rules up to another number of errors.
pub(super) fn check_up_to(
    errors: usize,
    members: &[Member],
    asked: usize,
    stop: &Stop,
) -> Result<Verdict, Error> {
    let names = Names::of(members);
    let ways = ways(members, &names, asked);
    let mut verdict = Verdict::default();
    let finding = |code, message: String, at: usize, member: &Member, other: &Member| {
        let mut chain = chain(members, &ways, at);
        chain.push(&other.name);
        let about = [&*member.name, &*other.name];
        Finding::new(code, message).about(about).through(&chain)
    };
    'members: for (at, member) in members.iter().enumerate() {
        // Authors may write one rule in both lists.
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
                        let code = FindingCode::VersionUnsatisfied;
                        let finding = finding(code, message, at, member, other);
                        verdict.findings.push(finding);
                    }
                    None => verdict.missing.push(Missing::of(at, rule)),
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
                let finding = finding(code, message, at, member, other);
                verdict.findings.push(finding);
            }
        }
    }
    verdict.ways = ways;
    Ok(verdict)
}

impl Verdict {
    /// The verdict where nothing was checked, for this reason.
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
    // The ways are a tree. The bound keeps a mistake there from going round for ever.
    while let Some(position) = at.filter(|_| chain.len() <= members.len()) {
        chain.extend(members.get(position).map(|member| &*member.name));
        at = ways.get(position).copied().flatten();
    }
    chain.reverse();
    chain
}
