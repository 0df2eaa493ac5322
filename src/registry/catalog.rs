//! All skills in memory, as an immutable snapshot.
//!
//! A snapshot shares its parts with the one before it, so that a commit costs
//! the depth of a tree, not the number of skills, and a reader holds no lock.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::Head;
use crate::model::{Location, SkillKey, stem, words};

/// A property by which skills are gathered, with its value in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facet {
    /// The category.
    Category(String),
    /// One of the tags.
    Tag(String),
    /// One of the technologies.
    Technology(String),
    /// The stem of a word of one of the triggers.
    Trigger(String),
    /// The location.
    Location(Location),
}

/// Skills by short name, in the order in which they win it.
type Names = OrdMap<Arc<str>, OrdSet<(Location, SkillKey)>>;

/// All skills, by key, by short name and by facet.
///
/// A skill is live where it has an active version. Those that are not have
/// names of their own, so that what wins a name is the first of its set, and
/// no facet.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    heads: OrdMap<SkillKey, Arc<Head>>,
    live_names: Names,
    withdrawn_names: Names,
    facets: OrdMap<Facet, OrdSet<SkillKey>>,
}

/// Short names under which a skill is found: its slug and its name.
fn names(head: &Head) -> Vec<Arc<str>> {
    let slug = head.id.slug().to_lowercase();
    let name = head
        .summary
        .as_ref()
        .map(|summary| summary.name.to_lowercase());
    let name = name.filter(|name| *name != slug);
    std::iter::once(slug).chain(name).map(Arc::from).collect()
}

fn facets(head: &Head) -> Vec<Facet> {
    let Some(summary) = &head.summary else {
        return Vec::new();
    };
    let mut facets = vec![Facet::Location(head.id.location())];
    if !summary.category.is_empty() {
        facets.push(Facet::Category(summary.category.to_lowercase()));
    }
    facets.extend(
        summary
            .tags
            .iter()
            .map(|tag| Facet::Tag(tag.to_lowercase())),
    );
    facets.extend(
        summary
            .technologies
            .iter()
            .map(|t| Facet::Technology(t.to_lowercase())),
    );
    facets.extend(
        summary
            .triggers
            .iter()
            .flat_map(|trigger| words(trigger))
            .map(|word| Facet::Trigger(stem(&word).to_owned())),
    );
    facets
}

impl Catalog {
    pub(super) fn build<E>(heads: impl Iterator<Item = Result<Head, E>>) -> Result<Self, E> {
        let mut catalog = Self::default();
        for head in heads {
            catalog.insert(head?);
        }
        Ok(catalog)
    }

    /// The catalog with a new head of a skill. A deleted one goes away.
    pub(super) fn with(&self, head: Head) -> Self {
        let mut catalog = self.clone();
        catalog.remove(&head.id.key());
        catalog.insert(head);
        catalog
    }

    fn insert(&mut self, head: Head) {
        if head.deleted {
            return;
        }
        let key = head.id.key();
        let index = self.names_of(&head);
        for name in names(&head) {
            let skills = index.entry(name).or_default();
            skills.insert((head.id.location(), key.clone()));
        }
        for facet in facets(&head) {
            self.facets.entry(facet).or_default().insert(key.clone());
        }
        self.heads.insert(key, Arc::new(head));
    }

    fn remove(&mut self, key: &SkillKey) {
        let Some(head) = self.heads.remove(key) else {
            return;
        };
        let index = self.names_of(&head);
        for name in names(&head) {
            if let Some(skills) = index.get_mut(&name) {
                skills.remove(&(head.id.location(), key.clone()));
                if skills.is_empty() {
                    index.remove(&name);
                }
            }
        }
        for facet in facets(&head) {
            if let Some(skills) = self.facets.get_mut(&facet) {
                skills.remove(key);
                if skills.is_empty() {
                    self.facets.remove(&facet);
                }
            }
        }
    }

    fn names_of(&mut self, head: &Head) -> &mut Names {
        if head.active.is_some() {
            &mut self.live_names
        } else {
            &mut self.withdrawn_names
        }
    }

    /// How many skills there are, those without an active version included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// There is no skill.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The head of a skill.
    #[must_use]
    pub fn get(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.heads.get(key)
    }

    /// Skills of a short name, in the order in which they win it: live ones
    /// first, then by location, then by id.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Head>> {
        let name = name.to_lowercase();
        [&self.live_names, &self.withdrawn_names]
            .into_iter()
            .filter_map(move |index| index.get(name.as_str()))
            .flatten()
            .filter_map(|(_, key)| self.heads.get(key))
    }

    /// The shortest name that leads to a skill: its slug, or its id where
    /// another skill wins the slug.
    #[must_use]
    pub fn short_name<'a>(&self, head: &'a Head) -> &'a str {
        let slug = head.id.slug();
        match self.named(slug).next() {
            Some(winner) if winner.id.key() == head.id.key() => slug,
            _ => head.id.as_str(),
        }
    }

    /// Short names that begin so, in lower case and in their order, each with
    /// the live skill that wins it.
    pub fn names_with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &Arc<Head>)> {
        let prefix = prefix.to_lowercase();
        let start = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        self.live_names
            .range::<_, str>(start)
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .filter_map(|(name, skills)| {
                let (_, winner) = skills.get_min()?;
                Some((&**name, self.heads.get(winner)?))
            })
    }

    /// How many skills are live.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live_sets().map(OrdSet::len).sum()
    }

    /// The live skills by location, then by id.
    pub fn by_location(&self) -> impl Iterator<Item = &Arc<Head>> {
        self.live_sets()
            .flatten()
            .filter_map(|key| self.heads.get(key))
    }

    /// The live skill with the lowest key that is not below `key`.
    #[must_use]
    pub fn live_from(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.live_sets()
            .filter_map(|set| set.range::<_, SkillKey>(key..).next())
            .min()
            .and_then(|key| self.heads.get(key))
    }

    /// Every live skill is in exactly one of these.
    fn live_sets(&self) -> impl Iterator<Item = &OrdSet<SkillKey>> {
        [Location::Project, Location::User, Location::Global]
            .into_iter()
            .filter_map(|location| self.with_facet(&Facet::Location(location)))
    }

    /// Skills whose keys come after `after` and start with `prefix`, in the order
    /// of their keys.
    pub fn after<'a>(
        &'a self,
        prefix: &str,
        after: Option<&SkillKey>,
    ) -> impl Iterator<Item = &'a Arc<Head>> {
        let first = SkillKey::from_stored(prefix);
        let start = match after {
            Some(after) if *after >= first => Bound::Excluded(after.clone()),
            _ => Bound::Included(first.clone()),
        };
        self.heads
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| key.as_str().starts_with(first.as_str()))
            .map(|(_, head)| head)
    }

    /// Keys of the skills that have a facet.
    #[must_use]
    pub fn with_facet(&self, facet: &Facet) -> Option<&OrdSet<SkillKey>> {
        self.facets.get(facet)
    }
}
