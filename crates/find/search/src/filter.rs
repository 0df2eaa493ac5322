//! Filters of a search.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;

use super::Error;
use super::snapshot::Slot;
use model::{Location, TrustTier};
use registry::{Catalog, Facet, Head};

/// The filters of a search. Of several values of one kind one is enough;
/// each kind that is given must be met. Texts are compared without case; categories and
/// technologies by the ids that they mean.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    /// Categories.
    pub categories: Vec<String>,
    /// Technologies.
    pub technologies: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Trust tiers.
    pub trust_tiers: Vec<TrustTier>,
    /// Sources.
    pub sources: Vec<String>,
    /// Namespaces: a source, or a source and an author with `/` between.
    pub namespaces: Vec<String>,
    /// Locations.
    pub locations: Vec<Location>,
    /// Quality at least, from 0 to 1.
    pub min_score: f64,
    /// Changed after.
    pub updated_after: Option<Timestamp>,
    /// With tests, or without.
    pub has_tests: Option<bool>,
    /// With examples, or without.
    pub has_examples: Option<bool>,
    /// An agent searches: skills that agents are not offered are left out.
    pub offered: bool,
}

impl Filters {
    /// No filter is set.
    pub(super) fn is_empty(&self) -> bool {
        self.given().is_empty() && !self.offered
    }

    /// The filters that are set, by the names of the contract.
    pub(super) fn given(&self) -> Vec<&'static str> {
        [
            ("categories", !self.categories.is_empty()),
            ("technologies", !self.technologies.is_empty()),
            ("tags", !self.tags.is_empty()),
            ("trust_tier", !self.trust_tiers.is_empty()),
            ("source", !self.sources.is_empty()),
            ("namespaces", !self.namespaces.is_empty()),
            ("location", !self.locations.is_empty()),
            ("min_score", self.min_score > 0.0),
            ("updated_after", self.updated_after.is_some()),
            ("has_tests", self.has_tests.is_some()),
            ("has_examples", self.has_examples.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect()
    }

    /// Replaces words for categories and technologies by the ids that they mean.
    ///
    /// # Errors
    /// A word means none that the vocabulary or a skill has: more likely it is misspelled than
    /// that nothing is wanted.
    pub(super) fn meant(&self, catalog: &Catalog) -> Result<Self, Error> {
        let is_live = |facet: &Facet| catalog.with_facet(facet).is_some();
        let categories = self.categories.iter().map(|word| {
            let known = facets::category_id(word).map(str::to_owned);
            let own = || is_live(&Facet::category(word)).then(|| word.to_lowercase());
            known.or_else(own).ok_or_else(|| Error::UnknownFacet {
                field: "filters.categories",
                what: "category",
                word: word.clone(),
                nearest: facets::nearest_categories(word),
            })
        });
        let technologies = self.technologies.iter().map(|word| {
            let known = facets::technology_id(word).map(str::to_owned);
            let own = || is_live(&Facet::technology(word)).then(|| word.to_lowercase());
            known.or_else(own).ok_or_else(|| Error::UnknownFacet {
                field: "filters.technologies",
                what: "technology",
                word: word.clone(),
                nearest: facets::nearest_technologies(word),
            })
        });
        Ok(Self {
            categories: categories.collect::<Result<_, _>>()?,
            technologies: technologies.collect::<Result<_, _>>()?,
            ..self.clone()
        })
    }

    /// The skill passes the filters at a time. Categories and technologies are
    /// [`Self::meant`].
    pub(super) fn takes(&self, slot: &Slot, now: Timestamp) -> bool {
        let head: &Arc<Head> = &slot.head;
        let Some(summary) = &head.summary else {
            return false;
        };
        // Filters that are not set look up nothing: this runs for each skill that has a word of
        // the query.
        (!self.offered || head.is_offered())
            && (self.categories.is_empty() || meets(&self.categories, summary.categories()))
            && (self.technologies.is_empty()
                || meets(&self.technologies, summary.technologies_about()))
            && (self.tags.is_empty() || any(&self.tags, &summary.tags))
            && (self.sources.is_empty() || any(&self.sources, [head.id.source()]))
            && (self.namespaces.is_empty() || self.namespaces.iter().any(|n| within(head, n)))
            && (self.trust_tiers.is_empty() || self.trust_tiers.contains(&head.trust_tier()))
            && (self.locations.is_empty() || self.locations.contains(&head.id.location()))
            && (self.min_score <= 0.0 || head.quality(now).is_some_and(|q| q >= self.min_score))
            && self.updated_after.is_none_or(|time| head.updated_at > time)
            && self.has_tests.is_none_or(|wanted| wanted == slot.has_tests)
            && self
                .has_examples
                .is_none_or(|wanted| wanted == slot.has_examples)
    }
}

/// One of the values is one of those wanted.
fn any<T: AsRef<str>>(wanted: &[String], values: impl IntoIterator<Item = T>) -> bool {
    values.into_iter().any(|value| {
        let value = value.as_ref().to_lowercase();
        wanted.iter().any(|wanted| wanted.to_lowercase() == value)
    })
}

/// One of the ids is one of those wanted.
fn meets<'a>(wanted: &[String], mut ids: impl Iterator<Item = (Cow<'a, str>, f64)>) -> bool {
    ids.any(|(id, _)| wanted.iter().any(|wanted| *wanted == id))
}

fn within(head: &Head, namespace: &str) -> bool {
    let namespace = namespace.trim_end_matches('/');
    match namespace.split_once('/') {
        None => head.id.source().eq_ignore_ascii_case(namespace),
        Some((source, author)) => {
            head.id.source().eq_ignore_ascii_case(source)
                && head.id.author().eq_ignore_ascii_case(author)
        }
    }
}
