//! Several skills as one set of permissions.
//!
//! Pure: it sees definitions and nothing else. Sets do not depend on the order of
//! the skills; lists are written by first appearance.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::finding::{Finding, FindingCode, listed};
use super::pattern::{Answer, ToolPattern};
use super::spoken::{Patterns, Spoken};
use super::{Member, ToolPolicy};

/// Why a tool is allowed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolRule {
    /// The policy grants it, and nothing forbids it.
    Granted,
    /// The policy grants it, except for what narrower patterns forbid.
    GrantedExcept,
    /// A skill forbids it.
    Forbidden,
    /// Not every skill allows it, as the intersection demands.
    NotGrantedByAll,
    /// No skill allows it.
    NotGranted,
    /// Whether a pattern covers it cannot be told.
    Undecided,
}

impl ToolRule {
    /// It is permitted.
    #[must_use]
    pub fn allows(self) -> bool {
        matches!(self, Self::Granted | Self::GrantedExcept)
    }
}

/// A member says something of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Which one of the members.
    pub member: usize,
    /// The pattern by which it says so.
    pub pattern: Arc<str>,
}

/// What became of a tool, and by whom. Statements are in the order of the
/// members' ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProof {
    /// The tool, as it is written.
    pub tool: Arc<str>,
    /// What became of it.
    pub rule: ToolRule,
    /// Who allows it.
    pub grants: Vec<Statement>,
    /// Who forbids it.
    pub denials: Vec<Statement>,
    /// What stays forbidden of it.
    pub exceptions: Vec<Statement>,
}

/// A text that members say, each once. The members are in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The text.
    pub text: Arc<str>,
    /// Who says it.
    pub members: Vec<usize>,
}

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
    /// Tools that are permitted, by first appearance.
    pub allowed_tools: Vec<Arc<str>>,
    /// Tools that are forbidden, by first appearance.
    pub forbidden_tools: Vec<Arc<str>>,
    /// The steps, by first appearance.
    pub execution_protocol: Vec<Said>,
    /// What must hold before.
    pub preconditions: Vec<Said>,
    /// What holds afterwards.
    pub postconditions: Vec<Said>,
    /// What is handed back; more than one contradict each other.
    pub output_contracts: Vec<Promised>,
    /// Every tool that a skill names, by name.
    pub tools: Vec<ToolProof>,
    /// What is odd.
    pub findings: Vec<Finding>,
    /// What permits calls, each with its place in `tools`.
    pub(super) allowing: Vec<(ToolPattern, usize)>,
    /// What forbids calls, each with its place in `tools`.
    pub(super) forbidding: Vec<(ToolPattern, usize)>,
}

/// Composes skills. Never fails: whether they go together is another question.
#[must_use]
pub fn compose(members: &[Member], policy: ToolPolicy) -> Composed {
    let ranks = ranks(members);
    let allowed = Patterns::gather(members, |member| &member.version.skill.allowed_tools);
    let forbidden = Patterns::gather(members, |member| &member.version.skill.forbidden_tools);
    let mut work = Work {
        members,
        ranks: &ranks,
        policy,
        findings: Vec::new(),
    };
    let mut tools: Vec<ToolProof> = allowed
        .all
        .iter()
        .map(|spoken| work.judge(spoken, &allowed, &forbidden))
        .collect();
    let allowed_tools: Vec<_> = tools
        .iter()
        .filter(|proof| proof.rule.allows())
        .map(|proof| Arc::clone(&proof.tool))
        .collect();
    // Where the proof of each forbidden pattern is.
    let mut proofs_of = Vec::with_capacity(forbidden.all.len());
    for spoken in &forbidden.all {
        let text = spoken.pattern.text();
        proofs_of.push(allowed.place(text).unwrap_or(tools.len()));
        if allowed.place(text).is_none() {
            tools.push(ToolProof {
                tool: Arc::clone(text),
                rule: ToolRule::Forbidden,
                grants: Vec::new(),
                denials: work.statements([spoken]),
                exceptions: Vec::new(),
            });
        }
    }
    work.empty(&allowed_tools);
    let outputs = work.outputs();
    let forbidden_tools = forbidden.all.iter();
    let forbidden_tools = forbidden_tools.map(|spoken| Arc::clone(spoken.pattern.text()));
    let forbidden_tools = forbidden_tools.collect();
    let mut findings = work.findings;
    findings.sort_by(|a, b| (a.code, &a.message).cmp(&(b.code, &b.message)));
    let (tools, places) = by_name(tools);
    let compiled = |patterns: Vec<Spoken>, proofs: &[usize], is: fn(&ToolProof) -> bool| {
        let places = proofs
            .iter()
            .filter_map(|proof| places.get(*proof).copied());
        let patterns = patterns.into_iter().map(|spoken| spoken.pattern);
        patterns
            .zip(places)
            .filter(|(_, at)| tools.get(*at).is_some_and(is))
            .collect()
    };
    let first: Vec<_> = (0..allowed.all.len()).collect();
    let (allowing, forbidding) = (
        compiled(allowed.all, &first, |proof| proof.rule.allows()),
        compiled(forbidden.all, &proofs_of, |_| true),
    );
    let said = |texts: fn(&Member) -> &[String]| said(members, &ranks, texts);
    Composed {
        policy,
        allowed_tools,
        forbidden_tools,
        execution_protocol: said(|member| &member.version.skill.execution_protocol),
        preconditions: said(|member| &member.version.skill.preconditions),
        postconditions: said(|member| &member.version.skill.postconditions),
        output_contracts: outputs,
        allowing,
        forbidding,
        tools,
        findings,
        members: members.to_vec(),
    }
}

/// Proofs by the names of their tools, and where each has gone.
fn by_name(proofs: Vec<ToolProof>) -> (Vec<ToolProof>, Vec<usize>) {
    // Most names differ within these bytes, so few are compared in full.
    let key = |tool: &str| {
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(tool.bytes()) {
            *to = from;
        }
        u128::from_be_bytes(key)
    };
    let mut proofs: Vec<_> = proofs
        .into_iter()
        .map(|proof| (key(&proof.tool), Some(proof)))
        .collect();
    let mut order: Vec<_> = (0..proofs.len()).collect();
    order.sort_unstable_by(|a, b| match (proofs.get(*a), proofs.get(*b)) {
        (Some((a, x)), Some((b, y))) => a.cmp(b).then_with(|| {
            let name = |proof: &Option<ToolProof>| proof.as_ref().map(|p| Arc::clone(&p.tool));
            name(x).cmp(&name(y))
        }),
        _ => a.cmp(b),
    });
    let mut places = vec![0; order.len()];
    let mut sorted = Vec::with_capacity(order.len());
    for from in order {
        if let (Some((_, proof)), Some(place)) = (proofs.get_mut(from), places.get_mut(from)) {
            *place = sorted.len();
            sorted.extend(proof.take());
        }
    }
    (sorted, places)
}

/// Places of the members in the order of their ids.
fn ranks(members: &[Member]) -> Vec<usize> {
    let mut order: Vec<_> = members.iter().enumerate().collect();
    order.sort_by_cached_key(|(_, member)| member.id.key());
    let mut ranks = vec![0; members.len()];
    for (rank, (at, _)) in order.into_iter().enumerate() {
        if let Some(slot) = ranks.get_mut(at) {
            *slot = rank;
        }
    }
    ranks
}

fn said<'a>(
    members: &'a [Member],
    ranks: &[usize],
    texts: fn(&'a Member) -> &'a [String],
) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    let mut seen: FxHashMap<&'a str, usize> = FxHashMap::default();
    for (at, member) in members.iter().enumerate() {
        for text in texts(member) {
            let place = *seen.entry(text).or_insert_with(|| {
                all.push(Said {
                    text: text.as_str().into(),
                    members: Vec::new(),
                });
                all.len() - 1
            });
            if let Some(said) = all.get_mut(place)
                && said.members.last() != Some(&at)
            {
                said.members.push(at);
            }
        }
    }
    for said in &mut all {
        said.members.sort_by_key(|at| ranks.get(*at));
    }
    all
}

/// What a composition is made from, while it is made.
struct Work<'a> {
    members: &'a [Member],
    ranks: &'a [usize],
    policy: ToolPolicy,
    findings: Vec<Finding>,
}

impl Work<'_> {
    /// Who says these patterns: each member once, by the first of them.
    fn statements<'a>(&self, patterns: impl IntoIterator<Item = &'a Spoken>) -> Vec<Statement> {
        let mut statements: Vec<Statement> = Vec::new();
        for spoken in patterns {
            statements.extend(spoken.members.iter().map(|member| Statement {
                member: *member,
                pattern: Arc::clone(spoken.pattern.text()),
            }));
        }
        if statements.len() > 1 {
            statements.sort_by_key(|statement| self.ranks.get(statement.member));
            statements.dedup_by_key(|statement| statement.member);
        }
        statements
    }

    fn names(&self, statements: &[Statement]) -> Vec<&str> {
        let members = statements.iter().filter_map(|s| self.members.get(s.member));
        members.map(|member| &*member.name).collect()
    }

    fn judge(&mut self, spoken: &Spoken, allowed: &Patterns, forbidden: &Patterns) -> ToolProof {
        let pattern = &spoken.pattern;
        let text = pattern.text();
        let mut granting = Vec::new();
        let mut beside = Vec::new();
        for other in allowed.near(pattern) {
            if other.pattern.text() == text {
                continue;
            }
            if other.pattern.covers(pattern) {
                granting.push(other);
            } else if self.policy == ToolPolicy::Intersection && !pattern.covers(&other.pattern) {
                beside.push(other);
            }
        }
        // A member's own words come first, then the others in the order of their
        // texts, so that nothing depends on the order of the members.
        granting.sort_by(|a: &&Spoken, b| a.pattern.text().cmp(b.pattern.text()));
        let grants = self.statements(std::iter::once(spoken).chain(granting));
        let (mut denying, mut excepting) = (Vec::new(), Vec::new());
        for forbid in forbidden.near(pattern) {
            if forbid.pattern.covers(pattern) {
                denying.push(forbid);
                continue;
            }
            match forbid.pattern.overlaps(pattern) {
                Answer::No => {}
                Answer::Yes => excepting.push(forbid),
                Answer::Undecided => {
                    excepting.push(forbid);
                    self.undecided(spoken, forbid);
                }
            }
        }
        for found in [&mut denying, &mut excepting] {
            found.sort_by(|a, b| a.pattern.text().cmp(b.pattern.text()));
        }
        let denials = self.statements(denying);
        let mut exceptions = Vec::new();
        for forbid in excepting {
            exceptions.extend(self.statements([forbid]));
        }
        if pattern.is_unreadable() {
            let message = format!("`{text}` cannot be read as a tool; it permits nothing");
            self.find(FindingCode::ToolPatternUndecided, message, &grants);
        }
        let granted = self.policy == ToolPolicy::Union || grants.len() == self.members.len();
        let rule = if !denials.is_empty() {
            let message = format!(
                "`{text}` is allowed by {} and forbidden by {}; it stays forbidden",
                listed(&self.names(&grants)),
                listed(&self.names(&denials))
            );
            let both = [grants.as_slice(), denials.as_slice()].concat();
            self.find(FindingCode::ToolAllowedAndForbidden, message, &both);
            ToolRule::Forbidden
        } else if !granted {
            self.beside(pattern, &grants, &beside);
            ToolRule::NotGrantedByAll
        } else if exceptions.is_empty() {
            ToolRule::Granted
        } else {
            ToolRule::GrantedExcept
        };
        ToolProof {
            tool: Arc::clone(text),
            rule,
            grants,
            denials,
            exceptions,
        }
    }

    fn find(&mut self, code: FindingCode, message: String, about: &[Statement]) {
        let mut skills = self.names(about);
        skills.dedup();
        let finding = Finding::new(code, message).about(skills);
        self.findings.push(finding);
    }

    fn undecided(&mut self, allow: &Spoken, forbid: &Spoken) {
        let message = format!(
            "whether `{}`, which is forbidden, covers calls of `{}`, which is allowed, cannot be \
             told; calls that it may cover are not permitted",
            forbid.pattern.text(),
            allow.pattern.text()
        );
        let about = [self.statements([forbid]), self.statements([allow])].concat();
        self.find(FindingCode::ToolPatternUndecided, message, &about);
    }

    /// Patterns of the intersection that share calls which neither of them names.
    fn beside(&mut self, pattern: &ToolPattern, grants: &[Statement], beside: &[&Spoken]) {
        for other in beside {
            if other.pattern.overlaps(pattern) == Answer::No
                || other.pattern.text() < pattern.text()
            {
                continue;
            }
            let message = format!(
                "`{}` and `{}` may share calls, but no pattern names those; none of them is permitted",
                pattern.text(),
                other.pattern.text()
            );
            let about = [grants, &self.statements([*other])].concat();
            self.find(FindingCode::ToolPatternUndecided, message, &about);
        }
    }

    /// What allows nothing.
    fn empty(&mut self, allowed: &[Arc<str>]) {
        let empty = |member: &&Member| member.version.skill.allowed_tools.is_empty();
        let silent: Vec<_> = self.members.iter().filter(empty).collect();
        for member in &silent {
            let message = format!("'{}' allows no tool", member.name);
            let code = FindingCode::EmptyToolset;
            self.findings
                .push(Finding::new(code, message).about([&*member.name]));
        }
        if allowed.is_empty() && silent.len() < self.members.len() {
            let message = "the skills together allow no tool";
            self.findings
                .push(Finding::new(FindingCode::EmptyToolset, message));
        }
    }

    /// What the members promise, each promise once, by the first that makes it.
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
            let mut about: Vec<_> = all.iter().flat_map(|promised| &promised.members).collect();
            about.sort_by_key(|at| self.ranks.get(**at));
            let names: Vec<_> = about
                .into_iter()
                .filter_map(|at| self.members.get(*at))
                .map(|member| &*member.name)
                .collect();
            let message = format!("{} promise {what}", listed(&names));
            let finding = Finding::new(FindingCode::OutputContractConflict, message);
            self.findings.push(finding.about(names));
        }
        all
    }
}
