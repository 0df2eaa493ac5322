//! Several skills as one set of permissions.
//!
//! Pure: it sees definitions and nothing else. Sets do not depend on the order of
//! the skills; lists are written by first appearance.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::finding::{Finding, FindingCode, listed};
use super::pattern::{Answer, ToolPattern};
use super::proof::{Statement, Statements, ToolProof, ToolRule};
use super::spoken::{Patterns, Seek, Spoken};
use super::{Member, ToolPolicy, ToolText};

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
    pub allowed_tools: Vec<ToolText>,
    /// Tools that are forbidden, by first appearance.
    pub forbidden_tools: Vec<ToolText>,
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
    let order = order(members);
    let ranks = ranks(&order);
    let allowed = Patterns::gather(members, &order, |m| &m.version.skill.allowed_tools);
    let forbidden = Patterns::gather(members, &order, |m| &m.version.skill.forbidden_tools);
    let mut work = Work {
        members,
        ranks: &ranks,
        policy,
        allowed: &allowed,
        forbidden: &forbidden,
        findings: Vec::new(),
    };
    // Names are put in order before there are proofs that had to be moved.
    let named = by_name(&allowed, &forbidden);
    let mut tools = Vec::with_capacity(named.len());
    // Where the proof of each has gone: of the allowed ones, then of the others.
    let mut places = vec![0; allowed.all.len() + forbidden.all.len()];
    for (_, which) in named {
        if let Some(place) = places.get_mut(which) {
            *place = tools.len();
        }
        if let Some(spoken) = allowed.all.get(which) {
            tools.push(work.judge(spoken));
        } else if let Some(spoken) = forbidden.all.get(which - allowed.all.len()) {
            tools.push(ToolProof {
                tool: spoken.pattern.text().clone(),
                rule: ToolRule::Forbidden,
                grants: Statements::none(),
                denials: work.statements(&forbidden, &[spoken]),
                exceptions: Statements::none(),
            });
        }
    }
    work.empty(tools.iter().any(|proof| proof.rule.allows()));
    let outputs = work.outputs();
    let mut findings = work.findings;
    findings.sort_by(|a, b| (a.code, &a.message).cmp(&(b.code, &b.message)));
    let mut forbidden_tools = Vec::with_capacity(forbidden.all.len());
    let mut forbidding = Vec::with_capacity(forbidden.all.len());
    for (which, spoken) in (allowed.all.len()..).zip(forbidden.all) {
        let text = spoken.pattern.text();
        let which = allowed.place(text).unwrap_or(which);
        forbidden_tools.push(text.clone());
        if let Some(place) = places.get(which) {
            forbidding.push((spoken.pattern, *place));
        }
    }
    let permitted = tools.iter().filter(|proof| proof.rule.allows()).count();
    let mut allowed_tools = Vec::with_capacity(permitted);
    let mut allowing = Vec::with_capacity(permitted);
    for (spoken, place) in allowed.all.into_iter().zip(places) {
        if tools.get(place).is_some_and(|proof| proof.rule.allows()) {
            allowed_tools.push(spoken.pattern.text().clone());
            allowing.push((spoken.pattern, place));
        }
    }
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

/// What is to be proven, by name, with what each name begins with: places among
/// the allowed patterns, and behind those among the forbidden ones.
fn by_name(allowed: &Patterns, forbidden: &Patterns) -> Vec<(u128, usize)> {
    let others = (allowed.all.len()..).zip(&forbidden.all);
    let others = others.filter(|(_, spoken)| allowed.place(spoken.pattern.text()).is_none());
    let mut named = Vec::with_capacity(allowed.all.len() + forbidden.all.len());
    let all = (0..).zip(&allowed.all).chain(others);
    named.extend(all.map(|(which, spoken)| (spoken.begin(), which)));
    let text = |which: usize| {
        let spoken = match which.checked_sub(allowed.all.len()) {
            None => allowed.all.get(which),
            Some(place) => forbidden.all.get(place),
        };
        spoken.map(|spoken| &**spoken.pattern.text())
    };
    // Most names differ in what they begin with, so few are compared in full.
    named.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then_with(|| text(*x).cmp(&text(*y))));
    named
}

/// Places of the members in the order of their ids.
fn order(members: &[Member]) -> Vec<usize> {
    let mut order: Vec<_> = (0..members.len()).collect();
    order.sort_by_cached_key(|at| members.get(*at).map(|member| member.id.key()));
    order
}

/// Which place each member has in that order.
fn ranks(order: &[usize]) -> Vec<usize> {
    let mut ranks = vec![0; order.len()];
    for (rank, at) in order.iter().enumerate() {
        if let Some(slot) = ranks.get_mut(*at) {
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
    allowed: &'a Patterns<'a>,
    forbidden: &'a Patterns<'a>,
    findings: Vec<Finding>,
}

impl Work<'_> {
    /// Who says these patterns: each member once, by the first of them.
    fn statements(&self, of: &Patterns, patterns: &[&Spoken]) -> Statements {
        let statement = |pattern: &Spoken, member: usize| Statement {
            member,
            pattern: pattern.pattern.text().clone(),
        };
        if let [spoken] = patterns
            && let [member] = of.speakers(spoken)
        {
            return Statements::one(statement(spoken, *member));
        }
        let most = patterns.iter().map(|spoken| of.speakers(spoken).len());
        let mut statements = Vec::with_capacity(most.sum());
        for spoken in patterns {
            let members = of.speakers(spoken).iter();
            statements.extend(members.map(|member| statement(spoken, *member)));
        }
        if patterns.len() > 1 {
            statements.sort_by_key(|statement| self.ranks.get(statement.member));
            statements.dedup_by_key(|statement| statement.member);
        }
        statements.into()
    }

    fn names<'s>(&self, statements: impl IntoIterator<Item = &'s Statement>) -> Vec<&str> {
        let statements = statements.into_iter();
        let members = statements.filter_map(|s| self.members.get(s.member));
        members.map(|member| &*member.name).collect()
    }

    fn judge(&mut self, spoken: &Spoken) -> ToolProof {
        let (allowed, forbidden) = (self.allowed, self.forbidden);
        let pattern = &spoken.pattern;
        let text = pattern.text();
        let seek = Seek::of(spoken);
        let mut granting = vec![];
        let mut beside = vec![];
        allowed.near(&seek, true, |other| {
            if std::ptr::eq(other, spoken) || other.pattern.is_apart(pattern) {
            } else if other.pattern.covers(pattern) {
                granting.push(other);
            } else if self.policy == ToolPolicy::Intersection && !pattern.covers(&other.pattern) {
                beside.push(other);
            }
        });
        let grants = if granting.is_empty() {
            self.statements(allowed, &[spoken])
        } else {
            // A member's own words come first, then the others in the order of
            // their texts, so that nothing depends on the order of the members.
            granting.sort_by(|a, b| a.pattern.text().cmp(b.pattern.text()));
            granting.insert(0, spoken);
            self.statements(allowed, &granting)
        };
        let (mut denying, mut excepting, mut untold) = (vec![], vec![], vec![]);
        forbidden.near(&seek, false, |forbid| {
            if forbid.pattern.is_apart(pattern) {
                return;
            }
            if forbid.pattern.covers(pattern) {
                denying.push(forbid);
                return;
            }
            match forbid.pattern.overlaps(pattern) {
                Answer::No => {}
                Answer::Yes => excepting.push(forbid),
                Answer::Undecided => {
                    excepting.push(forbid);
                    untold.push(forbid);
                }
            }
        });
        for forbid in untold {
            self.undecided(spoken, forbid);
        }
        for found in [&mut denying, &mut excepting] {
            found.sort_by(|a, b| a.pattern.text().cmp(b.pattern.text()));
        }
        let denials = self.statements(forbidden, &denying);
        let exceptions = self.exceptions(&excepting);
        if pattern.is_unreadable() {
            let message = format!("`{text}` cannot be read as a tool; it permits nothing");
            self.find(FindingCode::ToolPatternUndecided, message, [&grants]);
        }
        let granted = self.policy == ToolPolicy::Union || grants.len() == self.members.len();
        let rule = if !denials.is_empty() {
            let message = format!(
                "`{text}` is allowed by {} and forbidden by {}; it stays forbidden",
                listed(&self.names(&grants)),
                listed(&self.names(&denials))
            );
            let code = FindingCode::ToolAllowedAndForbidden;
            self.find(code, message, [&grants, &denials]);
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
            tool: text.clone(),
            rule,
            grants,
            denials,
            exceptions,
        }
    }

    /// What is forbidden of a tool: every pattern by all who say it.
    fn exceptions(&self, excepting: &[&Spoken]) -> Statements {
        match excepting {
            [] => Statements::none(),
            [forbid] => self.statements(self.forbidden, &[forbid]),
            all => {
                let mut exceptions = Vec::new();
                for forbid in all {
                    let statements = self.statements(self.forbidden, &[forbid]);
                    exceptions.extend(statements.iter().cloned());
                }
                exceptions.into()
            }
        }
    }

    fn find<const N: usize>(
        &mut self,
        code: FindingCode,
        message: String,
        about: [&Statements; N],
    ) {
        let mut skills = self.names(about.into_iter().flatten());
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
        let about = [
            &self.statements(self.forbidden, &[forbid]),
            &self.statements(self.allowed, &[allow]),
        ];
        self.find(FindingCode::ToolPatternUndecided, message, about);
    }

    /// Patterns of the intersection that share calls which neither of them names.
    fn beside(&mut self, pattern: &ToolPattern, grants: &Statements, beside: &[&Spoken]) {
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
            let about = [grants, &self.statements(self.allowed, &[*other])];
            self.find(FindingCode::ToolPatternUndecided, message, about);
        }
    }

    /// What allows nothing.
    fn empty(&mut self, is_any_allowed: bool) {
        let empty = |member: &&Member| member.version.skill.allowed_tools.is_empty();
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
