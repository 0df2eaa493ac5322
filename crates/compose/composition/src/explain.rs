//! Why no choice of versions meets all requirements, in sentences.
//!
//! The solver's derivation ends in facts that cannot all hold. A person can change
//! these facts, so they are reported; how one follows from the other is not.

use std::sync::Arc;

use pubgrub::{DerivationTree, External, Ranges};
use rustc_hash::FxHashSet;

use super::finding::{Finding, FindingCode};
use super::graph::{Graph, Node};
use super::member::{Demand, rules_of};
use super::resolve::Package;
use executor::Stop;

/// Facts that are reported; of the rest only how many there are.
const MAX_FACTS: usize = 24;
/// Facts that are examined.
const MAX_EXAMINED_FACTS: usize = 10_000;
/// Versions that are named one by one.
const MAX_NAMED_VERSIONS: usize = 6;

type Tree = DerivationTree<Package, Ranges<u32>, String>;
type Fact = External<Package, Ranges<u32>, String>;

/// The facts that cannot all hold.
pub(super) fn explain(graph: &Graph, tree: Tree, stop: &Stop) -> Finding {
    // What was asked for, what follows from it, and what there is to choose from.
    let mut facts: Vec<(u8, String)> = Vec::new();
    let mut known: FxHashSet<String> = FxHashSet::default();
    let mut skills: Vec<String> = Vec::new();
    let (externals, mut is_cut) = externals(&tree, MAX_EXAMINED_FACTS);
    for external in externals {
        if stop.is_set() {
            is_cut = true;
            break;
        }
        let Some((at, fact)) = fact(graph, external, stop) else {
            continue;
        };
        let order = match external {
            External::FromDependencyOf(Package::Root, ..) => 0,
            External::NoVersions(..) => 2,
            _ => 1,
        };
        if known.insert(fact.clone()) {
            facts.push((order, fact));
        }
        let name = at
            .and_then(|at| graph.node(at))
            .map(|node| node.name.to_string());
        skills.extend(name.filter(|name| !skills.contains(name)));
    }
    take_apart(tree);
    facts.sort_by_key(|(order, _)| *order);
    let more = facts.len().saturating_sub(MAX_FACTS);
    let facts: Vec<_> = facts
        .into_iter()
        .take(MAX_FACTS)
        .map(|(_, fact)| fact)
        .collect();
    let mut text = facts.join("; ");
    if is_cut {
        text = format!("{text}; and more than are looked at");
    } else if more > 0 {
        text = format!("{text}; and {more} more");
    }
    let message = format!("these cannot all hold: {text}");
    Finding::new(FindingCode::RequirementsUnsolvable, message).about(skills)
}

/// The leaves of a derivation, `max` at most, and whether there are more.
fn externals(tree: &Tree, max: usize) -> (Vec<&Fact>, bool) {
    let mut found = Vec::new();
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    let mut open = vec![tree];
    while let Some(tree) = open.pop() {
        match tree {
            DerivationTree::Derived(derived) => {
                // Parts of the tree are shared. Without this a part would be walked once for each
                // way to it, and there can be exponentially many ways.
                if derived.shared_id.is_none_or(|id| seen.insert(id)) {
                    open.push(&derived.cause2);
                    open.push(&derived.cause1);
                }
            }
            DerivationTree::External(external) if found.len() < max => found.push(external),
            DerivationTree::External(_) => return (found, true),
        }
    }
    (found, false)
}

/// Drops a derivation part by part.
fn take_apart(tree: Tree) {
    // Dropped as a whole it recurses as deep as it is, and a long derivation would overflow the
    // stack.
    let mut open = vec![Arc::new(tree)];
    while let Some(tree) = open.pop() {
        // None: another part still holds it, which comes later.
        if let Some(DerivationTree::Derived(derived)) = Arc::into_inner(tree) {
            open.push(derived.cause2);
            open.push(derived.cause1);
        }
    }
}

/// A fact as a sentence, with the skill that it is about. None where it follows
/// from the others.
fn fact(graph: &Graph, external: &Fact, stop: &Stop) -> Option<(Option<usize>, String)> {
    match external {
        // What was asked for says which versions it is.
        External::NoVersions(Package::Skill(at), _) if !graph.asked.contains_key(at) => {
            let node = graph.node(*at)?;
            let all = versions(node, &Ranges::full());
            let fact = if node.choices.is_empty() {
                format!("every version of '{}' was withdrawn", node.name)
            } else {
                format!("'{}' has no other versions than {all}", node.name)
            };
            Some((Some(*at), fact))
        }
        External::Custom(_, _, why) => Some((None, why.clone())),
        External::FromDependencyOf(Package::Root, _, Package::Skill(at), range) => {
            let node = graph.node(*at)?;
            let text = graph.asked.get(at).map_or(&*node.name, String::as_str);
            Some((
                Some(*at),
                format!("'{text}' was asked for, which is {}", versions(node, range)),
            ))
        }
        External::FromDependencyOf(Package::Skill(at), range, Package::Conflict(conflict), _) => {
            let node = graph.node(*at)?;
            let conflict = graph.conflicts.get(*conflict)?;
            (conflict.by == *at).then(|| {
                let text = graph.reason_of(conflict, stop);
                let of = versions(node, range);
                (Some(*at), format!("'{}' {of} {text}", node.name))
            })
        }
        External::FromDependencyOf(Package::Skill(at), range, Package::Unknown(text), _) => {
            let node = graph.node(*at)?;
            let of = versions(node, range);
            let fact = format!(
                "'{}' {of} requires '{text}', which does not exist",
                node.name
            );
            Some((Some(*at), fact))
        }
        External::FromDependencyOf(Package::Skill(at), range, Package::Skill(to), _) => {
            let (node, target) = (graph.node(*at)?, graph.node(*to)?);
            let chosen = (0..node.len()).find(|version| range.contains(version))?;
            let mut rules = rules_of(node.choice(chosen)?);
            let rule = rules.find(|rule| {
                let is_requirement = rule.demand == Demand::Requires;
                is_requirement && graph.meant(&rule.target.skill).contains(to)
            });
            let text = rule.map_or(&*target.name, |rule| rule.text);
            let of = versions(node, range);
            Some((Some(*at), format!("'{}' {of} requires '{text}'", node.name)))
        }
        External::NotRoot(..) | External::NoVersions(..) | External::FromDependencyOf(..) => None,
    }
}

/// The versions of a range, as a person names them.
fn versions(node: &Node, range: &Ranges<u32>) -> String {
    let among = (0..node.len()).filter(|at| range.contains(at));
    let named: Vec<_> = among
        .filter_map(|at| node.choice(at))
        .map(|version| version.semantic.to_string())
        .collect();
    match named.as_slice() {
        [] => "in no version that there is".to_owned(),
        all if all.len() <= MAX_NAMED_VERSIONS => all.join(", "),
        [first, .., last] => format!("{first} to {last}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_are_not_looked_at_are_told() {
        let leaf = |at| DerivationTree::External(External::NotRoot(Package::Skill(at), 0));
        let tree = (1..5).fold(leaf(0), |tree, at| {
            DerivationTree::Derived(pubgrub::Derived {
                terms: Default::default(),
                shared_id: None,
                cause1: Arc::new(tree),
                cause2: Arc::new(leaf(at)),
            })
        });
        for (max, found, is_cut) in [(4, 4, true), (5, 5, false), (6, 5, false)] {
            let (externals, cut) = externals(&tree, max);
            assert_eq!((externals.len(), cut), (found, is_cut), "{max}");
        }
    }
}
