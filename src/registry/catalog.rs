//! All skills in memory, as an immutable snapshot.
//!
//! A snapshot shares its parts with the one before it, so that a commit costs
//! the depth of a tree, not the number of skills, and a reader holds no lock.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::Head;
use crate::model::{Location, SkillKey};

/// A property by which skills are gathered, with its value in lower case.
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
}

/// All skills, by key, by short name and by facet.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    heads: OrdMap<SkillKey, Arc<Head>>,
    names: OrdMap<Arc<str>, OrdSet<(Location, SkillKey)>>,
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
        for name in names(&head) {
            let skills = self.names.entry(name).or_default();
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
        for name in names(&head) {
            if let Some(skills) = self.names.get_mut(&name) {
                skills.remove(&(head.id.location(), key.clone()));
                if skills.is_empty() {
                    self.names.remove(&name);
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

    /// Skills of a short name, in the order in which they win it: by location,
    /// then by id.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Head>> {
        self.names
            .get(name.to_lowercase().as_str())
            .into_iter()
            .flatten()
            .filter_map(|(_, key)| self.heads.get(key))
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
            Some(after) if *after >= first => std::ops::Bound::Excluded(after.clone()),
            _ => std::ops::Bound::Included(first.clone()),
        };
        self.heads
            .range((start, std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.as_str().starts_with(first.as_str()))
            .map(|(_, head)| head)
    }

    /// Keys of the skills that have a facet.
    #[must_use]
    pub fn with_facet(&self, facet: &Facet) -> Option<&OrdSet<SkillKey>> {
        self.facets.get(facet)
    }
}
