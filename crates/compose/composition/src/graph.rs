//! What can be reached from skills by their requirements: every version that may
//! be chosen, and what each demands.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgrub::Ranges;
use rustc_hash::FxHashMap;

use super::finding::{Finding, FindingCode};
use super::member::{Demand, because, meets, rules_of};
use super::resolve::{Library, Package, RequestedSkill};
use super::rules::Names;
use super::{Error, Member};
use executor::Stop;
use model::{Reference, SkillId, Version, VersionNumber, VersionWish};

/// Versions of all skills together that are read.
const MAX_VERSIONS: usize = 20_000;
/// Skills that a set may come to.
pub(super) const MAX_SKILLS: usize = 4_096;

/// A skill that may be chosen.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: SkillId,
    pub(super) name: Arc<str>,
    /// The version to take where it will do.
    pub(super) preferred: Option<u32>,
    /// Its versions, lowest first.
    pub(super) choices: Vec<Arc<Version>>,
    demands: Vec<Demands>,
}

/// The demands of a version.
#[derive(Debug)]
pub(super) enum Demands {
    /// Of each of these packages one of these versions.
    Of(BTreeMap<Package, Ranges<u32>>),
    /// What cannot be had.
    Impossible(String),
}

/// Two skills that rule each other out.
#[derive(Debug)]
pub(super) struct Conflict {
    /// The skill that has the rule.
    pub(super) by: usize,
    /// The skill that the rule names.
    with: usize,
}

/// All skills that can be reached.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    names: Names,
    pub(super) conflicts: Vec<Conflict>,
    pub(super) root: Demands,
    /// What was asked for, by position.
    pub(super) asked: BTreeMap<usize, String>,
}

impl Node {
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.choices.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn demands(&self, version: u32) -> Option<&Demands> {
        self.demands.get(usize::try_from(version).ok()?)
    }

    pub(super) fn choice(&self, version: u32) -> Option<&Arc<Version>> {
        self.choices.get(usize::try_from(version).ok()?)
    }

    /// The versions that a rule takes.
    fn meeting(&self, wish: &VersionWish) -> Ranges<u32> {
        range(&self.choices, |version| meets(version, wish))
    }
}

/// The positions of those that fit, in as few pieces as they make.
fn range(choices: &[Arc<Version>], fits: impl Fn(&Arc<Version>) -> bool) -> Ranges<u32> {
    let mut ranges = Ranges::empty();
    let mut begin = None;
    // The `None` behind the last version ends the last piece.
    let positions = (0_u32..).zip(choices.iter().map(Some).chain([None]));
    for (at, version) in positions {
        match (begin, version.is_some_and(&fits)) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                ranges = ranges.union(&Ranges::between(from, at));
                begin = None;
            }
            _ => {}
        }
    }
    ranges
}

impl Graph {
    /// Reads what can be reached. Refuses, by a finding, what is too much.
    pub(super) fn read(
        library: &impl Library,
        asked: &[RequestedSkill],
        comparisons: usize,
        stop: &Stop,
    ) -> Result<Result<Self, Box<Finding>>, Error> {
        let mut graph = Self {
            nodes: Vec::new(),
            names: Names::default(),
            conflicts: Vec::new(),
            root: Demands::Of(BTreeMap::new()),
            asked: BTreeMap::new(),
        };
        // In the order of the ids, so that the order of the request cannot matter.
        let mut order: Vec<_> = asked.iter().collect();
        order.sort_by_cached_key(|skill| skill.id.key());
        let mut versions = 0;
        for skill in &order {
            versions += graph.add(library, &skill.id, &skill.name, &skill.numbers, stop)?;
        }
        let mut found: FxHashMap<String, Option<usize>> = FxHashMap::default();
        let mut next = 0;
        // Every version that may be chosen, not only the one that will be: the solver goes
        // back over its choices, and then needs what the others require.
        while let Some(node) = graph.nodes.get(next) {
            let mut wanted = Vec::new();
            for version in &node.choices {
                let rules = rules_of(version).filter(|rule| rule.demand == Demand::Requires);
                wanted.extend(rules.map(|rule| rule.target.skill));
            }
            for reference in wanted {
                stop.check()?;
                let text = reference.to_string().to_lowercase();
                if found.contains_key(&text) {
                    continue;
                }
                let mut position = graph.meant(&reference).first().copied();
                if position.is_none()
                    && let Some((id, name)) = library.find(&reference)
                {
                    if graph.position(&id).is_none() {
                        versions += graph.add(library, &id, &name, &[], stop)?;
                    }
                    position = graph.position(&id);
                }
                found.insert(text, position);
                // Checked while it grows: a set that reaches everything is refused before all of
                // it is read.
                if versions > MAX_VERSIONS || graph.nodes.len() > MAX_SKILLS {
                    return Ok(Err(Box::new(too_many(asked))));
                }
            }
            next += 1;
        }
        if !graph.demand(&order, &found, comparisons, stop)? {
            let message = format!(
                "the rules of these skills are held against versions more than {comparisons} times; \
                 name versions, or fewer skills"
            );
            return Ok(Err(Box::new(about_first(asked, message))));
        }
        Ok(Ok(graph))
    }

    /// Adds a skill with its versions; those of `exact` even where they were
    /// withdrawn.
    fn add(
        &mut self,
        library: &impl Library,
        id: &SkillId,
        name: &Arc<str>,
        exact: &[VersionNumber],
        stop: &Stop,
    ) -> Result<usize, Error> {
        let active = library.active(id);
        let mut choices = Vec::new();
        let mut preferred = None;
        for release in library.releases(id)? {
            stop.check()?;
            // Of what was asked for nothing else can be chosen, and the solver takes the highest
            // where no version is preferred.
            let (is_choice, is_preferred) = if exact.is_empty() {
                (!release.is_yanked, active == Some(release.number))
            } else {
                (exact.contains(&release.number), false)
            };
            if !is_choice {
                continue;
            }
            if is_preferred {
                preferred = u32::try_from(choices.len()).ok();
            }
            choices.push(library.version(id, release.number)?);
            if choices.len() > MAX_VERSIONS {
                break;
            }
        }
        let count = choices.len();
        let position = self.nodes.len();
        // By the names of all its versions: which one will be chosen is not known yet.
        self.names.add(position, id, &choices);
        self.nodes.push(Node {
            id: id.clone(),
            name: Arc::clone(name),
            preferred,
            choices,
            demands: Vec::new(),
        });
        Ok(count.max(1))
    }

    pub(super) fn position(&self, id: &SkillId) -> Option<usize> {
        self.names.position(id)
    }

    pub(super) fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    pub(super) fn member(&self, at: usize, version: u32) -> Option<Member> {
        let node = self.nodes.get(at)?;
        Some(Member {
            name: Arc::clone(&node.name),
            id: node.id.clone(),
            version: Arc::clone(node.choice(version)?),
        })
    }

    /// The skills of the graph that a reference means.
    pub(super) fn meant(&self, reference: &Reference) -> Vec<usize> {
        self.names.meant(reference)
    }

    /// Records what was asked for as the demands of the root.
    fn want(&mut self, asked: &[&RequestedSkill]) {
        let mut root = BTreeMap::new();
        for skill in asked {
            let Some((at, node)) = self
                .position(&skill.id)
                .and_then(|at| Some((at, self.node(at)?)))
            else {
                continue;
            };
            let wanted = range(&node.choices, |v| skill.numbers.contains(&v.number));
            root.insert(Package::Skill(at), wanted);
            self.asked.insert(at, skill.text.clone());
        }
        self.root = Demands::Of(root);
    }

    /// Records what each version demands, once all skills are known. False: it would take too
    /// many comparisons.
    fn demand(
        &mut self,
        asked: &[&RequestedSkill],
        found: &FxHashMap<String, Option<usize>>,
        max: usize,
        stop: &Stop,
    ) -> Result<bool, Error> {
        let mut comparisons = 0_usize;
        self.want(asked);
        let mut all: Vec<Vec<Demands>> = Vec::with_capacity(self.nodes.len());
        // The other side of each conflict: its versions are read before or after this one, so
        // it is added when all are known.
        let mut against: Vec<(usize, Ranges<u32>, usize)> = Vec::new();
        // Versions of a skill mostly have the same rules. They share one conflict, else the
        // solver would have a package for every version and rule.
        let mut known: FxHashMap<(usize, usize, String), usize> = FxHashMap::default();
        for (at, node) in self.nodes.iter().enumerate() {
            let mut of_node = Vec::with_capacity(node.choices.len());
            for version in &node.choices {
                let mut demands = BTreeMap::new();
                let mut impossible = None;
                for rule in rules_of(version) {
                    stop.check()?;
                    if comparisons > max {
                        return Ok(false);
                    }
                    if rule.demand == Demand::Requires {
                        let text = rule.target.skill.to_string().to_lowercase();
                        let position = found.get(&text).copied().flatten();
                        let target =
                            position.and_then(|position| Some((position, self.node(position)?)));
                        let Some((position, target)) = target else {
                            demands.insert(Package::Unknown(rule.text.into()), Ranges::full());
                            continue;
                        };
                        // A skill that requires itself is there. Only a version that asks for
                        // another one of itself can never be chosen.
                        if position == at {
                            if !meets(version, &rule.target.version) {
                                impossible = Some(format!(
                                    "'{}' {} requires itself as '{}'",
                                    node.name, version.semantic, rule.text
                                ));
                            }
                            continue;
                        }
                        comparisons += target.choices.len();
                        let meeting = target.meeting(&rule.target.version);
                        let package = Package::Skill(position);
                        let both = match demands.get(&package) {
                            Some(before) => meeting.intersection(before),
                            None => meeting,
                        };
                        demands.insert(package, both);
                        continue;
                    }
                    for position in self.meant(&rule.target.skill) {
                        comparisons += 1;
                        if position == at {
                            continue;
                        }
                        let Some(target) = self.node(position) else {
                            continue;
                        };
                        let key = (
                            at,
                            position,
                            format!("{:?}{}", rule.demand, rule.target.version),
                        );
                        let conflict = *known.entry(key).or_insert_with(|| {
                            let conflict = against.len();
                            comparisons += target.choices.len();
                            against.push((
                                position,
                                target.meeting(&rule.target.version),
                                conflict,
                            ));
                            conflict
                        });
                        demands.insert(Package::Conflict(conflict), Ranges::singleton(0_u32));
                    }
                }
                of_node.push(match impossible {
                    Some(why) => Demands::Impossible(why),
                    None => Demands::Of(demands),
                });
            }
            all.push(of_node);
        }
        let mut conflicts: Vec<_> = known.into_iter().collect();
        conflicts.sort_by_key(|(_, conflict)| *conflict);
        let conflicts = conflicts.into_iter();
        self.conflicts = conflicts
            .map(|((by, with, _), _)| Conflict { by, with })
            .collect();
        for (position, meeting, conflict) in against {
            let Some(of_node) = all.get_mut(position) else {
                continue;
            };
            for (at, demands) in (0_u32..).zip(of_node) {
                if let Demands::Of(demands) = demands
                    && meeting.contains(&at)
                {
                    demands.insert(Package::Conflict(conflict), Ranges::singleton(1_u32));
                }
            }
        }
        for (node, demands) in self.nodes.iter_mut().zip(all) {
            node.demands = demands;
        }
        Ok(true)
    }

    /// The rule by which a skill rules another one out, as the end of a sentence.
    pub(super) fn reason_of(&self, conflict: &Conflict, stop: &Stop) -> String {
        let (Some(by), Some(with)) = (self.node(conflict.by), self.node(conflict.with)) else {
            return String::new();
        };
        let rules = by.choices.iter().flat_map(|version| rules_of(version));
        let rule = rules
            .take_while(|_| !stop.is_set())
            .filter(|rule| rule.demand != Demand::Requires)
            .find(|rule| self.meant(&rule.target.skill).contains(&conflict.with));
        let (verb, reason) = match rule {
            Some(rule) if rule.demand == Demand::Forbids => {
                ("forbids to be composed with", because(rule.reason))
            }
            Some(rule) => ("is incompatible with", because(rule.reason)),
            None => ("is incompatible with", String::new()),
        };
        format!("{verb} '{}'{reason}", with.name)
    }
}

fn too_many(asked: &[RequestedSkill]) -> Finding {
    let message = format!(
        "the requirements lead to more than {MAX_SKILLS} skills or {MAX_VERSIONS} versions; name versions, or \
         fewer skills"
    );
    about_first(asked, message)
}

fn about_first(asked: &[RequestedSkill], message: String) -> Finding {
    let names: Vec<_> = asked.iter().map(|skill| skill.name.to_string()).collect();
    Finding::new(FindingCode::TooManySkills, message).about(names.into_iter().take(16))
}
