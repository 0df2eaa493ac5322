//! Several skills as one set of permissions.
//!
//! Pure: it sees definitions and nothing else. Sets do not depend on the order of
//! the skills; lists are written by first appearance.

use std::collections::BTreeMap;
use std::sync::Arc;

use executor::Stop;
use serde_json::{Map, Value};

use super::attributed::{Attributed, attribute};
use super::finding::{Finding, FindingCode, listed};
use super::pattern::{Answer, ToolPattern};
use super::pattern_index::{Entry, PatternIndex};
use super::proof::{Statement, ToolProof, ToolRule};
use super::{Member, ToolPolicy};
use model::Skill;

/// An output that members promise.
#[derive(Debug, Clone, PartialEq)]
pub struct Promised {
    /// Identifier of the output's type.
    pub kind: String,
    /// JSON Schema of the output.
    pub schema: Option<Map<String, Value>>,
    /// Who promises it.
    pub members: Vec<usize>,
}

/// Several skills as one.
#[derive(Debug, Clone)]
pub struct Composed {
    /// How tools were put together.
    pub policy: ToolPolicy,
    /// The skills, in the order of the request.
    pub members: Vec<Member>,
    /// The steps, by first appearance.
    pub execution_protocol: Vec<Attributed>,
    /// Conditions before the first step.
    pub preconditions: Vec<Attributed>,
    /// Conditions after the last step.
    pub postconditions: Vec<Attributed>,
    /// The promised outputs; more than one contradict each other.
    pub output_contracts: Vec<Promised>,
    /// Warnings about it.
    pub findings: Vec<Finding>,
    /// What skills allow, whether or not it is permitted, by first appearance.
    pub(super) allowed: Vec<ToolPattern>,
    /// What skills forbid, by first appearance.
    pub(super) forbidden: Vec<ToolPattern>,
    /// What became of each tool, by its text.
    pub(super) proofs: BTreeMap<Arc<str>, ToolProof>,
}

impl Composed {
    /// Tools that are permitted, by first appearance.
    pub fn allowed_tools(&self) -> impl Iterator<Item = &str> {
        let permitted = self.allowed.iter().filter(|tool| self.is_permitted(tool));
        permitted.map(ToolPattern::text)
    }

    /// Tools that are forbidden, by first appearance.
    pub fn forbidden_tools(&self) -> impl Iterator<Item = &str> {
        self.forbidden.iter().map(ToolPattern::text)
    }

    /// Every tool that a skill names, by name.
    #[must_use]
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &ToolProof> {
        self.proofs.values()
    }

    pub(super) fn proof(&self, pattern: &ToolPattern) -> Option<&ToolProof> {
        self.proofs.get(pattern.text())
    }

    /// What the pattern allows is permitted.
    pub(super) fn is_permitted(&self, pattern: &ToolPattern) -> bool {
        self.proof(pattern).is_some_and(|proof| proof.rule.allows())
    }
}

/// Composes skills, unless nobody waits for it any more. Whether they go together is another
/// question.
///
/// # Errors
/// The work is to stop.
pub fn compose_until(
    members: &[Member],
    policy: ToolPolicy,
    stop: &Stop,
) -> Result<Composed, executor::Error> {
    let ranks = ranks(members);
    let allowed = entries(members, &ranks, allowed_by);
    let forbidden = entries(members, &ranks, forbidden_by);
    let mut work = Composing {
        members,
        ranks: &ranks,
        policy,
        allowed: &PatternIndex::new(&allowed),
        forbidden: &PatternIndex::new(&forbidden),
        findings: Vec::new(),
    };
    let mut proofs: BTreeMap<Arc<str>, ToolProof> = BTreeMap::new();
    for entry in &allowed {
        // Before each, as a pattern is compared with all others.
        stop.check()?;
        proofs.insert(entry.pattern.shared_text(), work.prove(entry));
    }
    for entry in &forbidden {
        let text = entry.pattern.shared_text();
        proofs.entry(text).or_insert_with(|| only_forbidden(entry));
    }
    work.empty_toolsets(proofs.values().any(|proof| proof.rule.allows()));
    let output_contracts = work.outputs();
    let mut findings = work.findings;
    // By their text: the same skills in another order have the same findings.
    findings.sort_by(|a, b| (a.code, &a.message).cmp(&(b.code, &b.message)));
    let attributed = |texts: fn(&Skill) -> &[String]| {
        attribute(members, &ranks, |skill| {
            texts(skill).iter().map(String::as_str)
        })
    };
    let patterns = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.pattern).collect();
    Ok(Composed {
        policy,
        members: members.to_vec(),
        execution_protocol: attributed(|skill| &skill.execution_protocol),
        preconditions: attributed(|skill| &skill.preconditions),
        postconditions: attributed(|skill| &skill.postconditions),
        output_contracts,
        findings,
        allowed: patterns(allowed),
        forbidden: patterns(forbidden),
        proofs,
    })
}

/// The position of each member in the order of their ids.
fn ranks(members: &[Member]) -> Vec<usize> {
    let mut order: Vec<_> = (0..members.len()).collect();
    // Ids that differ in case alone are the same skill.
    let key = |member: &Member| member.id.as_str().to_ascii_lowercase();
    order.sort_by_cached_key(|at| members.get(*at).map(key));
    let mut ranks = vec![0; order.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if let Some(slot) = ranks.get_mut(at) {
            *slot = rank;
        }
    }
    ranks
}

/// The tools that a skill allows: those in its list, and those that it declares, which
/// loading it unlocks.
pub(super) fn allowed_by(skill: &Skill) -> impl Iterator<Item = &str> {
    let declared = skill.tool_configs.iter().map(|tool| tool.name.as_str());
    skill
        .allowed_tools
        .iter()
        .map(String::as_str)
        .chain(declared)
}

/// The tools that a skill forbids.
pub(super) fn forbidden_by(skill: &Skill) -> impl Iterator<Item = &str> {
    skill.forbidden_tools.iter().map(String::as_str)
}

/// The patterns of members, each once, by first appearance.
fn entries<'a, I: Iterator<Item = &'a str>>(
    members: &'a [Member],
    ranks: &[usize],
    tools: impl Fn(&'a Skill) -> I,
) -> Vec<Entry> {
    let texts = attribute(members, ranks, |skill| tools(skill).map(str::trim));
    texts.into_iter().map(Entry::from).collect()
}

/// What a composition is made from, while it is made.
struct Composing<'a> {
    members: &'a [Member],
    ranks: &'a [usize],
    policy: ToolPolicy,
    allowed: &'a PatternIndex<'a>,
    forbidden: &'a PatternIndex<'a>,
    findings: Vec<Finding>,
}

impl<'a> Composing<'a> {
    /// What became of a pattern that skills allow.
    fn prove(&mut self, entry: &'a Entry) -> ToolProof {
        let pattern = &entry.pattern;
        let is_intersection = self.policy == ToolPolicy::Intersection;
        let (mut granting, mut partial) = (Vec::new(), Vec::new());
        for other in self.allowed.candidates(entry) {
            if std::ptr::eq(other, entry) || other.pattern.is_disjoint(pattern) {
                continue;
            }
            if other.pattern.covers(pattern) {
                granting.push(other);
            } else if is_intersection && !pattern.covers(&other.pattern) {
                partial.push(other);
            }
        }
        let (mut denying, mut excepting) = (Vec::new(), Vec::new());
        for forbid in self.forbidden.candidates(entry) {
            if forbid.pattern.is_disjoint(pattern) {
                continue;
            }
            if forbid.pattern.covers(pattern) {
                denying.push(forbid);
                continue;
            }
            match forbid.pattern.overlaps(pattern) {
                Answer::No => {}
                Answer::Yes => excepting.push(forbid),
                Answer::Undecided => {
                    // Counts as an overlap: what may be forbidden is never granted without an
                    // exception.
                    self.undecided(entry, forbid);
                    excepting.push(forbid);
                }
            }
        }
        // By text, so that nothing depends on the order of the members.
        for entries in [&mut granting, &mut denying, &mut excepting] {
            entries.sort_by(|a, b| a.pattern.text().cmp(b.pattern.text()));
        }
        // A member's own pattern comes first: the proof names it, not a wider one.
        let grants = self.once_per_member(std::iter::once(entry).chain(granting));
        let denials = self.once_per_member(denying.into_iter());
        let exceptions: Vec<_> = excepting.into_iter().flat_map(statements).collect();
        if pattern.is_unreadable() {
            let text = pattern.text();
            let message = format!("`{text}` cannot be read as a tool; it permits nothing");
            let code = FindingCode::ToolPatternUndecided;
            self.find(code, message, members_of(&grants));
        }
        // What is forbidden comes first, whatever the policy: no skill grants what another one
        // rules out.
        let rule = if !denials.is_empty() {
            self.contradiction(pattern, &grants, &denials);
            ToolRule::Forbidden
        } else if is_intersection && grants.len() < self.members.len() {
            self.partly_shared(pattern, &grants, &partial);
            ToolRule::NotGrantedByAll
        } else if exceptions.is_empty() {
            ToolRule::Granted
        } else {
            ToolRule::GrantedExcept
        };
        ToolProof {
            tool: pattern.shared_text(),
            rule,
            grants,
            denials,
            exceptions,
        }
    }

    /// What members state by these patterns: each member once, by the first of its
    /// patterns, in the order of the members' ids.
    fn once_per_member(&self, entries: impl Iterator<Item = &'a Entry>) -> Vec<Statement> {
        let mut all: Vec<_> = entries.flat_map(statements).collect();
        all.sort_by_key(|statement| self.ranks.get(statement.member));
        all.dedup_by_key(|statement| statement.member);
        all
    }

    fn names(&self, members: impl Iterator<Item = usize>) -> Vec<&'a Arc<str>> {
        let members = members.filter_map(|at| self.members.get(at));
        members.map(|member| &member.name).collect()
    }

    fn find(&mut self, code: FindingCode, message: String, about: impl Iterator<Item = usize>) {
        let mut skills = self.names(about);
        skills.dedup();
        let finding = Finding::new(code, message).about(skills.into_iter().cloned());
        self.findings.push(finding);
    }

    fn contradiction(
        &mut self,
        pattern: &ToolPattern,
        grants: &[Statement],
        denials: &[Statement],
    ) {
        let message = format!(
            "`{}` is allowed by {} and forbidden by {}; it stays forbidden",
            pattern.text(),
            listed(&self.names(members_of(grants))),
            listed(&self.names(members_of(denials)))
        );
        let about = members_of(grants).chain(members_of(denials));
        self.find(FindingCode::ToolAllowedAndForbidden, message, about);
    }

    fn undecided(&mut self, allow: &Entry, forbid: &Entry) {
        let message = format!(
            "whether `{}`, which is forbidden, covers calls of `{}`, which is allowed, cannot be \
             told; calls that it may cover are not permitted",
            forbid.pattern.text(),
            allow.pattern.text()
        );
        let about = forbid.members.iter().chain(&allow.members).copied();
        self.find(FindingCode::ToolPatternUndecided, message, about);
    }

    /// Patterns of the intersection that share calls which neither of them names.
    fn partly_shared(&mut self, pattern: &ToolPattern, grants: &[Statement], partial: &[&Entry]) {
        for other in partial {
            let (text, others) = (pattern.text(), other.pattern.text());
            // Both of a pair come here: the lesser text reports it.
            if others < text || other.pattern.overlaps(pattern) == Answer::No {
                continue;
            }
            let message = format!(
                "`{text}` and `{others}` may share calls, but no pattern names those; none of them is permitted"
            );
            let about = members_of(grants).chain(other.members.iter().copied());
            self.find(FindingCode::ToolPatternUndecided, message, about);
        }
    }

    /// Reports skills that allow nothing.
    fn empty_toolsets(&mut self, is_any_allowed: bool) {
        let empty = |member: &&Member| allowed_by(&member.version.skill).next().is_none();
        let silent: Vec<_> = self.members.iter().filter(empty).collect();
        for member in &silent {
            let message = format!("'{}' allows no tool", member.name);
            let code = FindingCode::EmptyToolset;
            self.findings
                .push(Finding::new(code, message).about([&*member.name]));
        }
        if !is_any_allowed && silent.len() < self.members.len() {
            let message = "the skills together allow no tool";
            self.findings
                .push(Finding::new(FindingCode::EmptyToolset, message));
        }
    }

    /// The outputs that members promise, each once, by the first that promises it.
    fn outputs(&mut self) -> Vec<Promised> {
        let mut all: Vec<Promised> = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            let Some(contract) = &member.version.skill.output_contract else {
                continue;
            };
            let same = |known: &&mut Promised| {
                known.kind == contract.kind && known.schema == contract.schema
            };
            match all.iter_mut().find(same) {
                Some(known) => known.members.push(at),
                None => all.push(Promised {
                    kind: contract.kind.clone(),
                    schema: contract.schema.clone(),
                    members: vec![at],
                }),
            }
        }
        for promised in &mut all {
            promised.members.sort_by_key(|at| self.ranks.get(*at));
        }
        if all.len() > 1 {
            let mut kinds: Vec<_> = all.iter().map(|promised| promised.kind.as_str()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            let what = if kinds.len() > 1 {
                format!("outputs of the types {}", listed(&kinds))
            } else {
                format!("the output type {} with different schemas", listed(&kinds))
            };
            let members = all.iter().flat_map(|promised| &promised.members);
            let mut about: Vec<usize> = members.copied().collect();
            about.sort_by_key(|at| self.ranks.get(*at));
            let names = self.names(about.into_iter());
            let message = format!("{} promise {what}", listed(&names));
            let finding = Finding::new(FindingCode::OutputContractConflict, message);
            self.findings
                .push(finding.about(names.into_iter().cloned()));
        }
        all
    }
}

/// What members state by a pattern.
fn statements(entry: &Entry) -> impl Iterator<Item = Statement> {
    entry.members.iter().map(|member| Statement {
        member: *member,
        pattern: entry.pattern.shared_text(),
    })
}

fn members_of(statements: &[Statement]) -> impl Iterator<Item = usize> {
    statements.iter().map(|statement| statement.member)
}

/// The proof of a pattern that no skill allows.
fn only_forbidden(entry: &Entry) -> ToolProof {
    ToolProof {
        tool: entry.pattern.shared_text(),
        rule: ToolRule::Forbidden,
        grants: Vec::new(),
        denials: statements(entry).collect(),
        exceptions: Vec::new(),
    }
}
