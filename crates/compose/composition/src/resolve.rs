//! Adding what is required: a choice of versions that meets all rules.
//!
//! The graph of what can be reached is read first, within bounds, then solved by
//! `pubgrub`, which goes back over its choices and can say why there is none.
//! A version is a position in the list of its skill's versions, so that a range
//! means exactly what `semver` says it does.
//!
//! A name stands for its active version. What is added is the active version too
//! where the rules allow it, so that a roll-back is honored, else the highest that
//! was not withdrawn.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pubgrub::{
    Dependencies, DependencyProvider, PackageResolutionStatistics, PubGrubError, Ranges,
};

use super::finding::{Finding, FindingCode};
use super::graph::{Demands, Graph, Node};
use super::{Error, Member, explain};
use executor::Stop;
use model::{Reference, SkillId, Version, VersionNumber};
use registry::Release;

/// How much work a choice of versions may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Rules that are held against a version.
    pub(super) comparisons: usize,
    /// Choices and backtracks after which the solver gives up.
    pub(super) steps: usize,
    /// Versions that it may examine in all.
    pub(super) examined: usize,
}

/// A second or two of work.
pub(super) const LIMITS: Limits = Limits {
    comparisons: 10_000_000,
    steps: 200_000,
    examined: 50_000_000,
};

/// Where the solver finds skills.
pub trait Library {
    /// The skill that a reference leads to: its id and the name to show.
    fn find(&self, reference: &Reference) -> Option<(SkillId, Arc<str>)>;

    /// The versions of a skill, lowest first.
    ///
    /// # Errors
    /// They cannot be read.
    fn releases(&self, id: &SkillId) -> Result<Vec<Release>, Error>;

    /// The version that its name stands for.
    fn active(&self, id: &SkillId) -> Option<VersionNumber>;

    /// A version of a skill.
    ///
    /// # Errors
    /// It cannot be read.
    fn version(&self, id: &SkillId, number: VersionNumber) -> Result<Arc<Version>, Error>;
}

/// A skill that was asked for.
#[derive(Debug, Clone)]
pub struct RequestedSkill {
    /// The skill.
    pub id: SkillId,
    /// Shortest name that leads to it.
    pub name: Arc<str>,
    /// Versions that satisfy the request.
    pub numbers: Vec<VersionNumber>,
    /// As it was asked for.
    pub text: String,
}

/// A choice of versions: those that were asked for in their order, then those
/// that were added, by id. Or why there is none.
pub type Resolution = Result<Vec<Member>, Box<Finding>>;

/// Chooses versions of the skills that were asked for, and of all that they
/// require. Blocks: it reads every version that can be reached.
///
/// # Errors
/// The library cannot be read, or it is to stop.
pub fn resolve(
    library: &impl Library,
    asked: &[RequestedSkill],
    stop: &Stop,
) -> Result<Resolution, Error> {
    resolve_within(LIMITS, library, asked, stop)
}

/// Chooses versions within other limits.
pub(super) fn resolve_within(
    limits: Limits,
    library: &impl Library,
    asked: &[RequestedSkill],
    stop: &Stop,
) -> Result<Resolution, Error> {
    let graph = match Graph::read(library, asked, limits.comparisons, stop)? {
        Ok(graph) => graph,
        Err(finding) => return Ok(Err(finding)),
    };
    let solver = Solver {
        graph: &graph,
        limits,
        steps: Cell::new(0),
        examined: Cell::new(0),
        stop,
    };
    let chosen = match pubgrub::resolve(&solver, Package::Root, 0_u32) {
        Ok(chosen) => chosen,
        Err(PubGrubError::NoSolution(tree)) => {
            return Ok(Err(Box::new(explain::explain(&graph, tree, stop))));
        }
        Err(PubGrubError::ErrorInShouldCancel(GivenUp::Stopped(why))) => return Err(why.into()),
        Err(_) => {
            let Limits {
                steps, examined, ..
            } = limits;
            let message = format!(
                "no choice of versions was found in {steps} steps, or {examined} looks at a version; name \
                 versions, or fewer skills"
            );
            let finding = Finding::new(FindingCode::TooManySkills, message);
            return Ok(Err(Box::new(finding)));
        }
    };
    // Versions are positions in the list of a skill: so a range is what `semver` says it is,
    // pre-releases and all, and the solver compares numbers.
    let mut chosen: BTreeMap<usize, u32> = chosen
        .into_iter()
        .filter_map(|(package, version)| match package {
            Package::Skill(at) => Some((at, version)),
            _ => None,
        })
        .collect();
    let mut members = Vec::with_capacity(chosen.len());
    for skill in asked {
        let at = graph.position(&skill.id);
        members.extend(at.and_then(|at| graph.member(at, chosen.remove(&at)?)));
    }
    let mut added: Vec<_> = chosen
        .into_iter()
        .filter_map(|(at, version)| graph.member(at, version))
        .collect();
    added.sort_by_cached_key(|member| member.id.key());
    members.extend(added);
    Ok(Ok(members))
}

/// A package of the solver.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Package {
    /// What was asked for.
    Root,
    /// A skill, by its position in the graph.
    Skill(usize),
    /// Two skills that rule each other out: one requires 0 of it, the other 1,
    /// and it cannot be both.
    Conflict(usize),
    /// A skill that does not exist.
    Unknown(Arc<str>),
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

struct Solver<'a> {
    graph: &'a Graph,
    limits: Limits,
    steps: Cell<usize>,
    examined: Cell<usize>,
    stop: &'a Stop,
}

/// Why the solver gave up.
#[derive(Debug, thiserror::Error)]
pub(super) enum GivenUp {
    /// It took too many steps.
    #[error("too many steps")]
    TooLong,
    /// Nobody waits for it any more.
    #[error(transparent)]
    Stopped(#[from] executor::Error),
}

impl DependencyProvider for Solver<'_> {
    type P = Package;
    type V = u32;
    type VS = Ranges<u32>;
    /// What was in conflict before goes first, then what has few versions.
    type Priority = (u32, Reverse<usize>);
    type M = String;
    type Err = GivenUp;

    fn prioritize(
        &self,
        package: &Package,
        range: &Ranges<u32>,
        conflicts: &PackageResolutionStatistics,
    ) -> Self::Priority {
        let count = match package {
            Package::Skill(at) => self.graph.node(*at).map_or(0, |node| {
                // A step of the solver may look at every version of a skill, so steps alone
                // would not bound its time.
                self.examined.set(self.examined.get() + node.choices.len());
                (0..node.len()).filter(|at| range.contains(at)).count()
            }),
            _ => 0,
        };
        (conflicts.conflict_count(), Reverse(count))
    }

    fn choose_version(
        &self,
        package: &Package,
        range: &Ranges<u32>,
    ) -> Result<Option<u32>, GivenUp> {
        let choice = |node: &Node| {
            // The active version where it will do, so that a roll-back holds for those who
            // require the skill, too.
            let preferred = node.preferred.filter(|at| range.contains(at));
            preferred.or_else(|| {
                // Withdrawn versions are in the list only if they were asked for exactly.
                (0..node.len()).rev().find(|at| range.contains(at))
            })
        };
        Ok(match package {
            Package::Root => Some(0),
            Package::Skill(at) => self.graph.node(*at).and_then(choice),
            // The solver knows requirements only. So a conflict is a package of two versions,
            // of which each of the two skills requires another.
            Package::Conflict(_) => [0, 1].into_iter().find(|side| range.contains(side)),
            Package::Unknown(_) => None,
        })
    }

    fn get_dependencies(
        &self,
        package: &Package,
        version: &u32,
    ) -> Result<Dependencies<Package, Ranges<u32>, String>, GivenUp> {
        let demands = match package {
            Package::Root => Some(&self.graph.root),
            Package::Skill(at) => self.graph.node(*at).and_then(|node| node.demands(*version)),
            Package::Conflict(_) | Package::Unknown(_) => None,
        };
        Ok(match demands {
            Some(Demands::Of(demands)) => {
                let demands = demands
                    .iter()
                    .map(|(package, range)| (package.clone(), range.clone()));
                Dependencies::Available(demands.collect())
            }
            Some(Demands::Impossible(why)) => Dependencies::Unavailable(why.clone()),
            None => Dependencies::Available(Default::default()),
        })
    }

    fn should_cancel(&self) -> Result<(), GivenUp> {
        self.stop.check()?;
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > self.limits.steps || self.examined.get() > self.limits.examined {
            Err(GivenUp::TooLong)
        } else {
            Ok(())
        }
    }
}
