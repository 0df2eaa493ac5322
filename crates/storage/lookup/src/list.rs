//! Lists of skills: filtered, in the order of their ids, page by page.

use std::ops::Bound;
use std::sync::Arc;

use super::{Error, Lookup};
use executor::{Kind, Stop};
use model::{Location, Reference, SkillId, SkillKey, TrustTier, open_token, seal_token};
use registry::{Catalog, Facet, Head};

const PAGE: &str = "skills";

/// A query for skills. Empty filters match everything.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Of this source.
    pub source: String,
    /// Of this author of the source.
    pub author: String,
    /// Of this category.
    pub category: String,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// About this technology.
    pub technology: String,
    /// Of this location.
    pub location: Option<Location>,
    /// Of this trust tier.
    pub trust_tier: Option<TrustTier>,
    /// With warnings about their files.
    pub with_problems: bool,
    /// Requiring the skill of this id or short name.
    pub requires: String,
}

/// A page of skills.
#[derive(Debug, Clone)]
pub struct ListPage {
    /// The skills, by id; each has a summary.
    pub heads: Vec<Arc<Head>>,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
    /// The skills among which these are.
    pub catalog: Arc<Catalog>,
    /// The token from which a watch shows the changes since this list.
    pub resume: String,
}

impl ListQuery {
    /// Facets that a skill must have.
    fn facets(&self) -> Vec<Facet> {
        let tags = self.tags.iter().map(|tag| tag.to_lowercase());
        let mut facets: Vec<_> = tags.map(Facet::Tag).collect();
        if !self.category.is_empty() {
            facets.push(Facet::category(&self.category));
        }
        if !self.technology.is_empty() {
            facets.push(Facet::technology(&self.technology));
        }
        facets.extend(self.location.map(Facet::Location));
        facets.extend(self.trust_tier.map(Facet::Tier));
        facets.extend(self.with_problems.then_some(Facet::Problems));
        facets
    }

    /// Returns the prefix of all keys of the list.
    fn prefix(&self) -> String {
        let (source, author) = (
            self.source.to_ascii_lowercase(),
            self.author.to_ascii_lowercase(),
        );
        match (source.is_empty(), author.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!("{source}/"),
            (false, false) => format!("{source}/{author}/"),
        }
    }

    /// Returns the text that a page token is bound to.
    fn binding(&self) -> String {
        let requires = self.requires.to_lowercase();
        format!("{:?}\0{}\0{requires}", self.facets(), self.prefix())
    }
}

impl Lookup {
    /// Returns a page of the skills that have an active version; off the async threads where it
    /// may have to visit more skills than the page has.
    ///
    /// # Errors
    /// The token is of another query; an author without a source.
    pub async fn page(
        &self,
        query: ListQuery,
        size: usize,
        token: String,
    ) -> Result<ListPage, Error> {
        // Without a filter a page is a walk of its own length, which is not worth a thread.
        if query.facets().is_empty() && query.requires.is_empty() {
            return self.list(&query, size, &token);
        }
        let lookup = self.clone();
        let list = move |_: &Stop| lookup.list(&query, size, &token);
        let executor = self.registry.executor();
        executor.run_fallible(Kind::Read, list).await
    }

    /// Returns the skills whose active versions require a skill, by id; off the async threads,
    /// since it visits all of them.
    ///
    /// # Errors
    /// The work is refused or to stop.
    pub async fn dependents(&self, id: &SkillId) -> Result<Vec<SkillId>, Error> {
        let (lookup, reference) = (self.clone(), Reference::Id(id.clone()));
        let find = move |_: &Stop| {
            let catalog = lookup.registry.catalog();
            let dependents = catalog.dependents(&reference);
            let heads = dependents.iter().filter_map(|key| catalog.get(key));
            Ok(heads.map(|head| head.id.clone()).collect())
        };
        let executor = self.registry.executor();
        executor.run_fallible(Kind::Read, find).await
    }

    /// The same on this thread.
    ///
    /// # Errors
    /// The token is of another query; an author without a source.
    pub fn list(&self, query: &ListQuery, size: usize, token: &str) -> Result<ListPage, Error> {
        if query.source.is_empty() && !query.author.is_empty() {
            return Err(Error::Parameter {
                field: "author",
                message: "an author is one of a source; name the source too".to_owned(),
            });
        }
        // Before the catalog is loaded: a watch from this token may repeat a change that is in
        // the list already, but misses none.
        let resume = self.registry.resume_token();
        let catalog = self.registry.catalog();
        // A token of another query would continue at a place that means nothing in this one.
        let binding = query.binding();
        let after = match token {
            "" => None,
            token => {
                let key = open_token(PAGE, &binding, token).ok_or(registry::Error::PageToken)?;
                Some(SkillKey::from_stored(&key))
            }
        };
        // One more than the page says whether there is a next one. There is no total: a filter
        // would have to visit every match to count them.
        let mut heads = candidates(&catalog, query, after.as_ref(), size + 1);
        let has_more = heads.len() > size;
        heads.truncate(size);
        let last = heads.last().filter(|_| has_more);
        let next = last.map(|last| seal_token(PAGE, &binding, last.id.key().as_str()));
        Ok(ListPage {
            heads,
            next,
            catalog,
            resume,
        })
    }
}

/// Returns up to `limit` skills of the query after a key.
///
/// Walks the smallest set that an index gives: the skills of one facet, the dependents
/// of one skill, else those of the prefix.
fn candidates(
    catalog: &Catalog,
    query: &ListQuery,
    after: Option<&SkillKey>,
    limit: usize,
) -> Vec<Arc<Head>> {
    let prefix = query.prefix();
    let mut sets = Vec::new();
    for facet in query.facets() {
        match catalog.with_facet(&facet) {
            Some(set) => sets.push(set),
            None => return Vec::new(),
        }
    }
    let dependents = match query.requires.as_str() {
        "" => None,
        skill => Some(catalog.dependents(&Reference::parse(skill))),
    };
    sets.extend(&dependents);
    // The smallest set is walked and the others are probed, so that a list costs no more than
    // its rarest filter.
    sets.sort_by_key(|set| set.len());
    let Some((smallest, rest)) = sets.split_first() else {
        let heads = catalog.live_after(&prefix, after);
        return heads.take(limit).cloned().collect();
    };
    // A walk begins at the prefix, or after the last page's key where that is further on.
    let first = SkillKey::from_stored(&prefix);
    let start = match after {
        Some(after) if *after >= first => Bound::Excluded(after.clone()),
        _ => Bound::Included(first),
    };
    smallest
        .range((start, Bound::Unbounded))
        .take_while(|key| key.as_str().starts_with(&prefix))
        .filter(|key| rest.iter().all(|set| set.contains(*key)))
        .filter_map(|key| catalog.get(key))
        .take(limit)
        .cloned()
        .collect()
}
