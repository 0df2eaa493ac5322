//! A skill that takes part in a composition.

use std::sync::Arc;

use model::{Reference, SkillId, Version, VersionWish, VersionedReference, shown};

/// A version of a skill, and what to call it.
#[derive(Debug, Clone)]
pub struct Member {
    /// Shortest name that leads to the skill.
    pub name: Arc<str>,
    /// The skill.
    pub id: SkillId,
    /// The version.
    pub version: Arc<Version>,
}

impl Member {
    /// A reference of a rule means this skill, by its id, its slug or its name.
    ///
    /// Which skill wins a short name elsewhere does not matter here: a rule that
    /// forbids `pdf` forbids every skill of that name.
    #[must_use]
    pub fn is_meant_by(&self, reference: &Reference) -> bool {
        match reference {
            Reference::Id(id) => id.key() == self.id.key(),
            Reference::Name(name) => {
                let name = name.to_lowercase();
                self.id.slug().to_lowercase() == name
                    || self.version.skill.name.to_lowercase() == name
            }
        }
    }

    /// The version is one that a rule takes.
    #[must_use]
    pub fn meets(&self, wish: &VersionWish) -> bool {
        meets(&self.version, wish)
    }
}

/// A version is one that a rule takes.
pub(super) fn meets(version: &Version, wish: &VersionWish) -> bool {
    use model::VersionSelector::{Active, Number, Semantic};
    match wish {
        // A rule without a version is about the skill, whichever of its versions is here.
        VersionWish::Is(Active) => true,
        VersionWish::Is(Number(number)) => version.number == *number,
        VersionWish::Is(Semantic(semantic)) => version.semantic == *semantic,
        VersionWish::Within(range) => range.matches(&version.semantic),
        VersionWish::Holds(digest) => version.digest == *digest,
    }
}

/// The demand of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Demand {
    /// The target must be there.
    Requires,
    /// The target must not be there (compatibility).
    Incompatible,
    /// The target must not be there (composability).
    Forbids,
}

/// A rule of a skill, of either list.
#[derive(Debug, Clone)]
pub(super) struct RuleOf<'a> {
    pub(super) demand: Demand,
    pub(super) text: &'a str,
    pub(super) target: VersionedReference,
    pub(super) reason: &'a str,
}

/// The rules of a version, of both lists.
pub(super) fn rules_of(version: &Version) -> impl Iterator<Item = RuleOf<'_>> {
    use model::{CompatibilityRuleType, ComposabilityRuleType};
    let rule = |demand, text, reason| RuleOf {
        demand,
        text,
        target: VersionedReference::parse(text),
        reason,
    };
    let compatibility = version.skill.compatibility_rules.iter().map(move |r| {
        let demand = match r.kind {
            CompatibilityRuleType::Requires => Demand::Requires,
            CompatibilityRuleType::Incompatible => Demand::Incompatible,
        };
        rule(demand, r.skill.as_str(), r.reason.as_str())
    });
    let composability = version.skill.composability_rules.iter().map(move |r| {
        let demand = match r.kind {
            ComposabilityRuleType::Requires => Demand::Requires,
            ComposabilityRuleType::Forbids => Demand::Forbids,
        };
        rule(demand, r.skill.as_str(), r.reason.as_str())
    });
    compatibility.chain(composability)
}

/// Characters of an author's reason that a sentence repeats.
const MAX_REASON_CHARS: usize = 300;

/// The reason of a rule, as the end of a sentence.
pub(super) fn because(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {}", shown(reason, MAX_REASON_CHARS))
    }
}
