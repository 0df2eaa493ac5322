//! Several skills as one set of permissions.
//!
//! Pure: it sees definitions and nothing else. Sets do not depend on the order of
//! the skills; lists are written by first appearance.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::finding::{Finding, FindingCode, listed};
use super::pattern::{Answer, Shape, ToolPattern};
use super::proof::{Proof, Proven, ToolProof, ToolRule};
use super::spoken::Patterns;
use super::texts::{Buffer, Place, Sayings, Span, Texts, Word, place};
use super::{Member, ToolPolicy};

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
    pub execution_protocol: Sayings,
    /// What must hold before.
    pub preconditions: Sayings,
    /// What holds afterwards.
    pub postconditions: Sayings,
    /// What is handed back; more than one contradict each other.
    pub output_contracts: Vec<Promised>,
    /// What is odd.
    pub findings: Vec<Finding>,
    /// What became of the tools.
    pub(super) proof: Proof,
}

impl Composed {
    /// Tools that are permitted, by first appearance.
    pub fn allowed_tools(&self) -> impl Iterator<Item = &str> {
        self.proof.allowed_tools()
    }

    /// Tools that are forbidden, by first appearance.
    pub fn forbidden_tools(&self) -> impl Iterator<Item = &str> {
        self.proof.forbidden_tools()
    }

    /// Every tool that a skill names, by name.
    #[must_use]
    pub fn tools(&self) -> impl ExactSizeIterator<Item = ToolProof<'_>> {
        self.proof.tools()
    }
}

/// Composes skills. Never fails: whether they go together is another question.
#[must_use]
pub fn compose(members: &[Member], policy: ToolPolicy) -> Composed {
    let order = order(members);
    let ranks = ranks(&order);
    let mut words = Vec::new();
    let allowed = Texts::gather(members, &order, (&mut words, 0), |member| {
        member
            .version
            .skill
            .allowed_tools
            .iter()
            .map(|t| trimmed(t))
    });
    let behind = place(allowed.all.len());
    let forbidden = Texts::gather(members, &order, (&mut words, behind), |member| {
        member
            .version
            .skill
            .forbidden_tools
            .iter()
            .map(|t| trimmed(t))
    });
    let texts = allowed.texts().chain(forbidden.texts());
    let buffer = Buffer::of(texts.clone());
    let mut shapes = Vec::with_capacity(buffer.len());
    shapes.extend(texts.map(Shape::of));
    let named = by_name(&allowed, &forbidden);
    let (of_allowed, of_forbidden) = shapes.split_at(allowed.all.len());
    let mut work = Work {
        members,
        ranks: &ranks,
        policy,
        allowed: Patterns::of(allowed, of_allowed),
        forbidden: Patterns::of(forbidden, of_forbidden),
        words,
        findings: Vec::new(),
    };
    let (proven, places) = work.prove(&named);
    work.empty(proven.iter().any(|proven| proven.rule.allows()));
    let output_contracts = work.outputs();
    let (mut findings, words) = (work.findings, work.words);
    findings.sort_by(|a, b| (a.code, &a.message).cmp(&(b.code, &b.message)));
    let said = |texts: fn(&Member) -> &[String]| Sayings::gather(members, &order, texts);
    Composed {
        policy,
        execution_protocol: said(|member| &member.version.skill.execution_protocol),
        preconditions: said(|member| &member.version.skill.preconditions),
        postconditions: said(|member| &member.version.skill.postconditions),
        output_contracts,
        findings,
        proof: Proof {
            texts: buffer,
            allowed: behind as usize,
            shapes,
            places,
            proven,
            words,
        },
        members: members.to_vec(),
    }
}

/// A text without the space around it. Most have none, which two letters tell.
fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

/// What is to be proven, by name: places among the allowed texts, and behind those
/// among the forbidden ones.
fn by_name(allowed: &Texts, forbidden: &Texts) -> Vec<Place> {
    const PLACE: u128 = u32::MAX as u128;
    let behind = place(allowed.all.len());
    let others = (behind..).zip(&forbidden.all);
    let others = others.filter(|(_, heard)| allowed.place(heard.text, heard.begin).is_none());
    // What each begins with, and its place in place of the end of that: one number
    // is sorted faster than two.
    let mut named = Vec::with_capacity(allowed.all.len() + forbidden.all.len());
    let all = (0..).zip(&allowed.all).chain(others);
    named.extend(all.map(|(at, heard)| heard.begin & !PLACE | u128::from(at)));
    named.sort_unstable();
    let at = |number: &u128| place((number & PLACE) as usize);
    let text = |number: &u128| {
        let heard = match at(number).checked_sub(behind) {
            None => allowed.all.get(at(number) as usize),
            Some(at) => forbidden.all.get(at as usize),
        };
        heard.map(|heard| heard.text)
    };
    // Texts that begin alike are told apart by all of them.
    for alike in named.chunk_by_mut(|a, b| a & !PLACE == b & !PLACE) {
        if alike.len() > 1 {
            alike.sort_unstable_by(|a, b| text(a).cmp(&text(b)));
        }
    }
    named.iter().map(at).collect()
}

/// Places of the members in the order of their ids.
fn order(members: &[Member]) -> Vec<usize> {
    let mut order: Vec<_> = (0..members.len()).collect();
    let key = |member: &Member| member.id.as_str().to_ascii_lowercase();
    order.sort_by_cached_key(|at| members.get(*at).map(key));
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

/// What a composition is made from, while it is made.
struct Work<'a> {
    members: &'a [Member],
    ranks: &'a [usize],
    policy: ToolPolicy,
    allowed: Patterns<'a>,
    forbidden: Patterns<'a>,
    /// What members say: first each text by itself, then what is put together.
    words: Vec<Word>,
    findings: Vec<Finding>,
}

/// A pattern of a list, with its place there.
type Placed<'a> = (usize, ToolPattern<'a>);

impl<'a> Work<'a> {
    /// The proofs of what is named, and where the proof of each pattern is: of the
    /// allowed ones, then of the others.
    fn prove(&mut self, named: &[Place]) -> (Vec<Proven>, Vec<Place>) {
        let behind = self.allowed.texts.all.len();
        let mut places = vec![0; behind + self.forbidden.texts.all.len()];
        let mut all = Vec::with_capacity(named.len());
        for pattern in named {
            let which = *pattern as usize;
            if let Some(slot) = places.get_mut(which) {
                *slot = place(all.len());
            }
            match which.checked_sub(behind) {
                None => all.extend(self.judge(which)),
                Some(which) => all.push(Proven {
                    pattern: *pattern,
                    rule: ToolRule::Forbidden,
                    grants: Span::default(),
                    denials: speakers(&self.forbidden, which),
                    exceptions: Span::default(),
                }),
            }
        }
        // What is both allowed and forbidden has its proof among the allowed ones.
        for (at, heard) in self.forbidden.texts.all.iter().enumerate() {
            if let Some(of) = self.allowed.texts.place(heard.text, heard.begin)
                && let Some(of) = places.get(of).copied()
                && let Some(slot) = places.get_mut(behind + at)
            {
                *slot = of;
            }
        }
        (all, places)
    }

    /// Puts what is said behind what there is: each member once, by the first of
    /// these.
    fn put(&mut self, spans: impl Iterator<Item = Span>) -> Span {
        let mut words = Vec::new();
        for span in spans {
            words.extend_from_slice(span.of(&self.words));
        }
        words.sort_by_key(|word| self.ranks.get(word.member as usize));
        words.dedup_by_key(|word| word.member);
        self.add(&words)
    }

    fn add(&mut self, words: &[Word]) -> Span {
        let begin = place(self.words.len());
        self.words.extend_from_slice(words);
        let end = place(self.words.len());
        Span { begin, end }
    }

    fn names(&self, said: &[Span]) -> Vec<&'a Arc<str>> {
        let mut names = Vec::with_capacity(said.iter().map(|span| span.len()).sum());
        for span in said {
            let words = span.of(&self.words).iter();
            let members = words.filter_map(|word| self.members.get(word.member as usize));
            names.extend(members.map(|member| &member.name));
        }
        names
    }

    fn judge(&mut self, which: usize) -> Option<Proven> {
        let seek = self.allowed.seek(which)?;
        let pattern = seek.pattern();
        let is_intersection = self.policy == ToolPolicy::Intersection;
        let mut granting = vec![];
        let mut beside = vec![];
        self.allowed.near(&seek, true, |at, other| {
            if at == which || other.is_apart(&pattern) {
            } else if other.covers(&pattern) {
                granting.push((at, other));
            } else if is_intersection && !pattern.covers(&other) {
                beside.push((at, other));
            }
        });
        let (mut denying, mut excepting, mut untold) = (vec![], vec![], vec![]);
        self.forbidden.near(&seek, false, |at, forbid| {
            if forbid.is_apart(&pattern) {
                return;
            }
            if forbid.covers(&pattern) {
                denying.push((at, forbid));
                return;
            }
            match forbid.overlaps(&pattern) {
                Answer::No => {}
                Answer::Yes => excepting.push((at, forbid)),
                Answer::Undecided => {
                    excepting.push((at, forbid));
                    untold.push((at, forbid));
                }
            }
        });
        let mut grants = speakers(&self.allowed, which);
        if !granting.is_empty() {
            // A member's own words come first, then the others in the order of
            // their texts, so that nothing depends on the order of the members.
            granting.sort_by(by_text);
            let others: Vec<_> = spans(&self.allowed, &granting).collect();
            grants = self.put(std::iter::once(grants).chain(others));
        }
        for forbid in untold {
            self.undecided((which, pattern), forbid);
        }
        denying.sort_by(by_text);
        excepting.sort_by(by_text);
        let denials = match denying.as_slice() {
            [] => Span::default(),
            [(at, _)] => speakers(&self.forbidden, *at),
            all => {
                let all: Vec<_> = spans(&self.forbidden, all).collect();
                self.put(all.into_iter())
            }
        };
        let exceptions = self.exceptions(&excepting);
        let text = pattern.text();
        if pattern.is_unreadable() {
            let message = format!("`{text}` cannot be read as a tool; it permits nothing");
            self.find(FindingCode::ToolPatternUndecided, message, [grants]);
        }
        let granted = !is_intersection || grants.len() == self.members.len();
        let rule = if !denials.is_empty() {
            let message = format!(
                "`{text}` is allowed by {} and forbidden by {}; it stays forbidden",
                listed(&self.names(&[grants])),
                listed(&self.names(&[denials]))
            );
            let code = FindingCode::ToolAllowedAndForbidden;
            self.find(code, message, [grants, denials]);
            ToolRule::Forbidden
        } else if !granted {
            self.beside(pattern, grants, &beside);
            ToolRule::NotGrantedByAll
        } else if exceptions.is_empty() {
            ToolRule::Granted
        } else {
            ToolRule::GrantedExcept
        };
        Some(Proven {
            pattern: place(which),
            rule,
            grants,
            denials,
            exceptions,
        })
    }

    /// What is forbidden of a tool: every pattern by all who say it.
    fn exceptions(&mut self, excepting: &[Placed<'a>]) -> Span {
        match excepting {
            [] => Span::default(),
            [(at, _)] => speakers(&self.forbidden, *at),
            all => {
                let spans = spans(&self.forbidden, all);
                let words = spans.flat_map(|span| span.of(&self.words)).copied();
                let words: Vec<_> = words.collect();
                self.add(&words)
            }
        }
    }

    fn find<const N: usize>(&mut self, code: FindingCode, message: String, about: [Span; N]) {
        let mut skills = self.names(&about);
        skills.dedup();
        let finding = Finding::new(code, message).about(skills.into_iter().cloned());
        self.findings.push(finding);
    }

    fn undecided(&mut self, allow: Placed<'a>, forbid: Placed<'a>) {
        let message = format!(
            "whether `{}`, which is forbidden, covers calls of `{}`, which is allowed, cannot be \
             told; calls that it may cover are not permitted",
            forbid.1.text(),
            allow.1.text()
        );
        let about = [
            speakers(&self.forbidden, forbid.0),
            speakers(&self.allowed, allow.0),
        ];
        self.find(FindingCode::ToolPatternUndecided, message, about);
    }

    /// Patterns of the intersection that share calls which neither of them names.
    fn beside(&mut self, pattern: ToolPattern<'a>, grants: Span, beside: &[Placed<'a>]) {
        for (at, other) in beside {
            if other.text() < pattern.text() || other.overlaps(&pattern) == Answer::No {
                continue;
            }
            let message = format!(
                "`{}` and `{}` may share calls, but no pattern names those; none of them is permitted",
                pattern.text(),
                other.text()
            );
            let about = [grants, speakers(&self.allowed, *at)];
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

/// Who says a pattern.
fn speakers(of: &Patterns, at: usize) -> Span {
    let heard = of.texts.all.get(at);
    heard.map_or(Span::default(), |heard| heard.speakers)
}

fn spans(of: &Patterns, patterns: &[Placed<'_>]) -> impl Iterator<Item = Span> {
    patterns.iter().map(|(at, _)| speakers(of, *at))
}

fn by_text(a: &Placed<'_>, b: &Placed<'_>) -> Ordering {
    a.1.text().cmp(b.1.text())
}
