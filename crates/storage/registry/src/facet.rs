//! Properties by which the catalog indexes skills.

use super::Head;
use super::dependents::{called, requirements};
use super::head::{meant_category, meant_technology};
use model::{Location, TrustTier};

/// A property by which skills are indexed, with its value in lower case. Categories and
/// technologies are indexed by the ids that words mean: see [`Facet::category`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// The category.
    Category(String),
    /// One of the tags.
    Tag(String),
    /// One of the technologies.
    Technology(String),
    /// The location.
    Location(Location),
    /// The trust tier.
    Tier(TrustTier),
    /// The first segment of the id, in lower case.
    Source(String),
    /// Agents are not offered the skill.
    NotOffered,
    /// Its files have warnings.
    Problems,
    /// A skill that it requires, as its rules name it: see
    /// [`Catalog::dependents`](super::Catalog::dependents).
    Requires(String),
}

impl Facet {
    /// The facet of the category that a word means.
    #[must_use]
    pub fn category(word: &str) -> Self {
        Self::Category(meant_category(word).into_owned())
    }

    /// The facet of the technology that a word means.
    #[must_use]
    pub fn technology(word: &str) -> Self {
        Self::Technology(meant_technology(word).into_owned())
    }
}

/// The facets of a skill.
pub(super) fn facets(head: &Head) -> Vec<Facet> {
    let Some(summary) = &head.summary else {
        return Vec::new();
    };
    let mut facets = vec![
        Facet::Location(head.id.location()),
        Facet::Tier(head.trust_tier()),
        Facet::Source(head.id.source().to_ascii_lowercase()),
    ];
    if !head.is_offered() {
        facets.push(Facet::NotOffered);
    }
    facets.extend((summary.problems > Some(0)).then_some(Facet::Problems));
    let categories = summary.categories();
    facets.extend(categories.map(|(id, _)| Facet::Category(id.into_owned())));
    facets.extend(
        summary
            .tags
            .iter()
            .map(|tag| Facet::Tag(tag.to_lowercase())),
    );
    let technologies = summary.technologies_about();
    facets.extend(technologies.map(|(id, _)| Facet::Technology(id.into_owned())));
    facets.extend(requirements(summary).map(|target| Facet::Requires(called(&target))));
    facets
}
