//! An index in memory, of the few skills of folders that are in front of the others for the
//! callers that have them.
//!
//! It is made anew whenever they change, by the code that makes the other one, so it is only as
//! large as they are; only vectors are reused. A search asks both and merges the hits: by tier,
//! then by score. How much words answer is taken from both, so that meaning counts the same in
//! either; the rarity of a word is counted in each for itself.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::analysis::{self, BUILDING};
use super::follow::embed;
use super::indexer::Indexer;
use super::query::by_score;
use super::search::MAX_FACET_VALUES;
use super::snapshot::{Slot, Snapshot};
use super::{
    Error, Facet, Hit, Inner, SearchIndex, SearchQuery, SearchResults, Sort, SortBy, document,
};
use executor::Stop;
use model::{Digest, caught};
use registry::{Catalog, Registry};

/// The index of the skills of some folders. It does not change any more.
#[derive(Debug, Clone)]
pub struct LocalIndex {
    inner: Arc<Inner>,
    /// Vectors by the digests of their texts, for the next one.
    vectors: Arc<HashMap<Digest, Vec<i8>>>,
    skills: usize,
}

/// An index in front of another one.
#[derive(Debug, Clone)]
pub(super) struct Front {
    pub(super) registry: Registry,
    index: LocalIndex,
}

/// The part that one of two indexes shows where one is in front of the other.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    /// All skills that there are.
    pub(super) catalog: &'a Catalog,
    /// The index is that of the skills of folders, the one in front.
    pub(super) is_front: bool,
    /// How much of the query words answer in the other one.
    pub(super) answered: f32,
    /// The vector of the query, once one of them had it made.
    pub(super) vector: &'a OnceLock<Vec<f32>>,
}

impl Layer<'_> {
    /// The index may have skills that are not to be seen.
    pub(super) fn hides_any(&self) -> bool {
        self.is_front || self.catalog.hides_any()
    }

    /// A skill of the index is the one that its id leads to.
    pub(super) fn shows(&self, slot: &Slot) -> bool {
        let head = self.catalog.get(&slot.head.id.key());
        self.is_front == head.is_some_and(|head| head.is_local())
    }
}

impl SearchIndex {
    /// Makes an index of the skills of folders that are in front of a registry's; it replaces
    /// `before`. Blocks.
    ///
    /// # Errors
    /// A skill cannot be read, the engine refuses, or no vectors can be made.
    pub fn local(
        &self,
        registry: Registry,
        before: Option<&LocalIndex>,
    ) -> Result<LocalIndex, Error> {
        let embedder = self.inner.embedder.clone();
        let skills = registry.local_heads();
        let keys: Vec<_> = skills.iter().map(|head| head.id.key()).collect();
        let dimensions = embedder
            .as_ref()
            .map_or(0, |embedder| embedder.dimensions());
        let index = || -> Result<Indexer, Error> {
            let mut indexer = Indexer::in_memory(registry.clone(), dimensions)?;
            indexer.update(keys.iter().cloned(), &CancellationToken::new())?;
            indexer.commit(0)?;
            indexer.has_caught_up();
            Ok(indexer)
        };
        let mut indexer = caught(index).map_err(Error::Panicked).flatten()?;
        let mut vectors = HashMap::new();
        if let Some(embedder) = &embedder {
            let snapshot = indexer.snapshot();
            let mut texts = Vec::new();
            for ordinal in indexer.pending(0, usize::MAX) {
                let Some(slot) = snapshot.slot(ordinal) else {
                    continue;
                };
                if let Some(row) = before.and_then(|before| before.vectors.get(&slot.meaning)) {
                    indexer.set_vector(ordinal, row);
                    vectors.insert(slot.meaning, row.clone());
                } else {
                    let text = document::meaning_of(&registry, slot)?;
                    texts.push((ordinal, slot.meaning, text));
                }
            }
            for some in texts.chunks(embedder.batch().max(1)) {
                vectors.extend(embed(&mut indexer, &**embedder, some)?);
            }
        }
        let inner = Inner::new(registry, self.inner.folder.clone(), embedder);
        inner.publish(indexer.snapshot());
        Ok(LocalIndex {
            inner: Arc::new(inner),
            vectors: Arc::new(vectors),
            skills: keys.len(),
        })
    }

    /// The same with another index in front, and the registry that has the skills of both.
    #[must_use]
    pub fn with_local(&self, registry: Registry, index: LocalIndex) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            front: Some(Front { registry, index }),
            view: None,
        }
    }
}

impl Front {
    /// The state of the index in front.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.index.inner.snapshot.load_full()
    }

    /// Searches both.
    pub(super) fn search(
        &self,
        behind: &Inner,
        query: &SearchQuery,
        stop: &Stop,
    ) -> Result<SearchResults, Error> {
        let catalog = self.registry.catalog();
        let vector = OnceLock::new();
        let layer = |is_front, answered| {
            Some(Layer {
                catalog: &catalog,
                is_front,
                answered,
                vector: &vector,
            })
        };
        // At least this many of the hits to skip are of the index behind.
        let passed = query.offset.saturating_sub(self.index.skills);
        let behind_query = SearchQuery {
            offset: passed,
            limit: query.limit.saturating_add(query.offset - passed),
            ..query.clone()
        };
        // All of its hits up to the end of the page: how many come before those behind is not
        // known yet.
        let query_here = SearchQuery {
            offset: 0,
            limit: query.offset.saturating_add(query.limit),
            ..query.clone()
        };
        let here = &self.index.inner;
        let (mut found, answered) = here.search(&query_here, layer(true, 0.0), None, stop)?;
        let (others, best) = behind.search(&behind_query, layer(false, answered), None, stop)?;
        if best > answered {
            // There they answer it better than here, so meaning counts less.
            (found, _) = here.search(&query_here, layer(true, best), None, stop)?;
        }
        Ok(self.merged(query, (found, others), passed, &catalog))
    }

    fn merged(
        &self,
        query: &SearchQuery,
        (here, others): (SearchResults, SearchResults),
        passed: usize,
        catalog: &Catalog,
    ) -> SearchResults {
        let now = self.registry.now();
        let shown = |hit: Hit, is_local: bool| {
            let head = catalog.get(&hit.head.id.key());
            // Both indexes may have the id by now; the catalog says which of the two counts.
            let head = head.filter(|head| head.active.is_some() && head.is_local() == is_local);
            head.cloned().map(|head| Hit { head, ..hit })
        };
        let mut hits = Vec::new();
        let mut first = here.hits.into_iter().filter_map(|hit| shown(hit, true));
        let mut second = others.hits.into_iter().filter_map(|hit| shown(hit, false));
        let (mut a, mut b) = (first.next(), second.next());
        loop {
            let takes_first = match (&a, &b) {
                (Some(a), Some(b)) => order(a, b, query.sort, now) != Ordering::Greater,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            if takes_first {
                hits.extend(a.take());
                a = first.next();
            } else {
                hits.extend(b.take());
                b = second.next();
            }
        }
        hits.drain(..hits.len().min(query.offset - passed));
        hits.truncate(query.limit);
        let total = here.total + others.total;
        let mut suggestions = others.suggestions;
        if here.total > 0 {
            let unsorted = analysis::unsorted(query.sort);
            // The index behind found nothing and says what to do, though there are hits in
            // front.
            suggestions.retain(|step| step == BUILDING || unsorted.as_ref() == Some(step));
        }
        let mut analysis = others.analysis;
        if others.total == 0 && here.total > 0 {
            analysis = here.analysis;
        } else {
            // A word that one of them knows is known.
            let is_word = |word: &String| {
                let mut repairs = here.analysis.repairs.iter();
                !here.analysis.unknown.contains(word) && !repairs.any(|known| known.word == *word)
            };
            analysis.unknown.retain(|word| !is_word(word));
            analysis.repairs.retain(|repair| !is_word(&repair.word));
        }
        SearchResults {
            hits,
            total,
            has_more: query.offset.saturating_add(query.limit) < total,
            analysis,
            facets: counted(here.facets, others.facets),
            suggestions,
        }
    }
}

/// The counts of both.
fn counted(here: Vec<Facet>, mut all: Vec<Facet>) -> Vec<Facet> {
    for facet in here {
        let Some(known) = all.iter_mut().find(|known| known.field == facet.field) else {
            all.push(facet);
            continue;
        };
        for (value, count) in facet.values {
            match known.values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, known)) => *known += count,
                None => known.values.push((value, count)),
            }
        }
        analysis::keep_most_frequent(&mut known.values, MAX_FACET_VALUES);
    }
    all
}

/// The order of two hits of different indexes: that of either, and among equals the nearer
/// location first.
fn order(a: &Hit, b: &Hit, sort: Sort, now: Timestamp) -> Ordering {
    let score = |hit: &Hit| hit.why.words + hit.why.meaning;
    let by_relevance = || {
        (a.why.tier.rank().cmp(&b.why.tier.rank()))
            .then(score(b).total_cmp(&score(a)))
            .then(a.head.id.location().cmp(&b.head.id.location()))
    };
    let updated = |hit: &Hit| hit.head.updated_at;
    let quality = |hit: &Hit| hit.head.quality(now);
    match (sort.by, sort.ascending) {
        (SortBy::Relevance, true) => by_relevance().reverse(),
        (SortBy::Updated, false) => updated(b).cmp(&updated(a)),
        (SortBy::Updated, true) => updated(a).cmp(&updated(b)),
        (SortBy::Score, ascending) => by_score(quality(a), quality(b), ascending),
        (SortBy::Relevance, false) | (SortBy::Stars, _) => Ordering::Equal,
    }
    .then_with(by_relevance)
}
