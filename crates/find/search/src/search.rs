//! A search, from the query to the page.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::analysis::{self, Analysis};
use super::explain::{Explainer, MatchExplanation};
use super::fuse::{self, MIN_NEAR, Tier};
use super::lexical::{Cell, Scratch, TermWeights};
use super::local::Layer;
use super::query::{SearchQuery, Sort, SortBy, by_score};
use super::snapshot::{Slot, Snapshot};
use super::terms::Terms;
use super::tokens::Stemmer;
use super::top_k::{Ranked, TopK};
use super::{Error, Inner, retrieve, tokens};
use embed::Embedder;
use executor::Stop;
use model::Location;
use registry::Head;

/// Skills that only meaning finds, at most.
const MAX_SEMANTIC_ONLY: usize = 50;
/// Skills whose similarities are checked together.
const MAX_BATCH: usize = 64;
/// Values of a facet that are counted out.
pub(super) const MAX_FACET_VALUES: usize = 20;
/// Confusables whose use is looked up, at most.
const MAX_CONFUSABLES: usize = 64;

/// A skill that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The skill.
    pub head: Arc<Head>,
    /// The explanation of the match.
    pub why: MatchExplanation,
}

/// The counts of the values of a property among the hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facet {
    /// The property.
    pub field: &'static str,
    /// The most frequent values.
    pub values: Vec<(String, usize)>,
}

/// The results of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchResults {
    /// A page of the hits, the best first.
    pub hits: Vec<Hit>,
    /// How many were found.
    pub total: usize,
    /// There are some behind this page.
    pub has_more: bool,
    /// The analysis of the query.
    pub analysis: Analysis,
    /// Counts, where they were asked for.
    pub facets: Vec<Facet>,
    /// Suggestions where nothing was found.
    pub suggestions: Vec<String>,
}

/// The ranked hits.
struct Ranking {
    /// The best of them, in no order.
    ranked: Vec<Ranked>,
    /// How many were found.
    total: usize,
    /// How many were found before filters.
    unfiltered: usize,
}

/// Buffers and caches that a search leaves for the next one.
#[derive(Default)]
pub(super) struct SearchScratch {
    scratch: Scratch,
    stemmer: Stemmer,
}

/// One search.
struct Search<'a> {
    inner: &'a Inner,
    snapshot: &'a Snapshot,
    query: &'a SearchQuery,
    terms: Terms,
    weighed: TermWeights,
    /// The part of the index that is seen; none: all of it.
    layer: Option<Layer<'a>>,
    /// The weight of meaning.
    meaning: f32,
    /// The current time, for scores that depend on the age of a skill.
    now: Timestamp,
}

/// Runs a search on a state of the index. Returns also how much of the query words answer.
///
/// # Errors
/// The index cannot be read, or the embedder failed.
pub(super) fn run(
    inner: &Inner,
    snapshot: &Snapshot,
    query: &SearchQuery,
    SearchScratch { scratch, stemmer }: &mut SearchScratch,
    layer: Option<Layer<'_>>,
    stop: &Stop,
) -> Result<(SearchResults, f32), Error> {
    let terms = retrieve::reading(|| Terms::read(snapshot, stemmer, &query.text))?;
    stop.check()?;
    let own = OnceLock::new();
    let vector = layer.map_or(&own, |layer| layer.vector);
    let weighed = retrieve::lexical_and_semantic(inner, snapshot, query, &terms, scratch, vector)?;
    // Words that no skill has, in no language: neighbors in meaning are accidental.
    let is_noise = |embedder: &Arc<dyn Embedder>| embedder.is_noise(&query.text);
    if scratch.touched().is_empty() && inner.embedder.as_ref().is_some_and(is_noise) {
        scratch.near.clear();
    }
    let touched = scratch.touched().iter();
    // How much words answer is taken from both indexes, so that meaning counts the same in
    // either.
    let best = fuse::answered(&weighed, touched.map(|ordinal| scratch.cell(*ordinal)));
    let best = layer.map_or(best, |layer| layer.answered.max(best));
    let search = Search {
        inner,
        snapshot,
        query,
        terms,
        weighed,
        layer,
        meaning: fuse::weight_of_meaning(best),
        now: inner.registry.now(),
    };
    let Ranking {
        mut ranked,
        total,
        unfiltered,
    } = search.rank(scratch);
    stop.check()?;
    search.demote_confusables(&mut ranked, scratch)?;
    let facets = if query.facets {
        search.facets(&ranked)
    } else {
        Vec::new()
    };
    let page = search.page(&mut ranked);
    let names: Vec<&Slot> = ranked
        .iter()
        .take(analysis::MAX_EXAMINED_SKILLS)
        .filter_map(|ranked| snapshot.slot(ranked.ordinal))
        .collect();
    let analysis = Analysis::new(&search.terms, stemmer, ranked.first(), &names, 1.0 - best);
    let mut suggestions: Vec<String> = analysis::unsorted(query.sort).into_iter().collect();
    if total == 0 {
        let (terms, caught_up) = (&search.terms, snapshot.caught_up);
        suggestions.extend(analysis::suggestions(query, terms, unfiltered, caught_up));
    }
    stop.check()?;
    // Reasons cost a read of the text, so only what is shown has them.
    let hits = search.explained(&page, scratch, stemmer);
    let results = SearchResults {
        hits,
        total,
        has_more: query.offset.saturating_add(query.limit) < total,
        analysis,
        facets,
        suggestions,
    };
    Ok((results, best))
}

impl Search<'_> {
    /// The hits that pass the filters, as many as are needed.
    fn rank(&self, scratch: &Scratch) -> Ranking {
        // Until it has caught up, the index holds documents of skills that are gone.
        let everything = self.query.filters.is_empty()
            && self.snapshot.caught_up
            && !self.layer.is_some_and(|layer| layer.hides_any());
        let takes = |ordinal: u32| {
            if everything {
                self.snapshot.sees(ordinal)
            } else {
                self.takes(ordinal)
            }
        };
        let mut best = TopK::of(self.needed());
        let mut total = 0;
        for ordinal in scratch.touched() {
            if !takes(*ordinal) {
                continue;
            }
            total += 1;
            // Most are far behind, which their upper bound already shows.
            let cell = scratch.cell(*ordinal);
            let upper_bound = self.weighed.upper_bound(cell) + self.by_meaning(*ordinal, scratch);
            if upper_bound >= best.min() || self.may_be_meant(cell) {
                best.offer(self.by_words(*ordinal, scratch));
            }
        }
        let mut near = TopK::of(MAX_SEMANTIC_ONLY);
        for (first, some) in (0..).step_by(MAX_BATCH).zip(scratch.near.chunks(MAX_BATCH)) {
            let min = near.min();
            let is_near = |meaning: f32| meaning >= MIN_NEAR && self.meaning * meaning >= min;
            // All of them without a branch: mostly none is near enough.
            if !some.iter().fold(false, |any, near| any | is_near(*near)) {
                continue;
            }
            for (ordinal, meaning) in (first..).zip(some) {
                // With a word of the query it was counted above.
                if is_near(*meaning) && scratch.cell(ordinal).any == 0 && takes(ordinal) {
                    let score = self.meaning * meaning;
                    near.offer(self.placed(ordinal, Tier::Meaning, 0.0, score));
                }
            }
        }
        let near = near.into_ranked();
        total += near.len();
        let unfiltered = scratch.touched().len() + near.len();
        let mut ranked = best.into_ranked();
        ranked.extend(near);
        Ranking {
            ranked,
            total,
            unfiltered,
        }
    }

    /// The skill passes the filters.
    fn takes(&self, ordinal: u32) -> bool {
        let slot = self.snapshot.slot(ordinal);
        slot.is_some_and(|slot| {
            self.query.filters.takes(slot, self.now)
                && self.layer.is_none_or(|layer| layer.shows(slot))
        })
    }

    /// How many of the best have to be known, as some confusables may fall back; all, where
    /// more than the order by relevance depends on them.
    fn needed(&self) -> usize {
        if self.query.facets || self.query.sort != Sort::default() {
            return usize::MAX;
        }
        let end = self.query.offset.saturating_add(self.query.limit);
        end.max(analysis::MAX_EXAMINED_SKILLS)
            .saturating_add(self.snapshot.confusables)
    }

    /// The score by meaning of a skill with words of the query: 0 where it has no vector yet.
    fn by_meaning(&self, ordinal: u32, scratch: &Scratch) -> f32 {
        let near = scratch.near.get(ordinal as usize).copied();
        self.meaning * near.unwrap_or_default().max(0.0)
    }

    /// The rank of a skill that has words of the query.
    fn by_words(&self, ordinal: u32, scratch: &Scratch) -> Ranked {
        let cell = scratch.cell(ordinal);
        let has_all = self.has_all(cell);
        let head = if self.may_be_meant(cell) {
            self.snapshot.slot(ordinal).map(|slot| &slot.head)
        } else {
            None
        };
        let is_id = |head: &Head| {
            head.id
                .as_str()
                .eq_ignore_ascii_case(self.query.text.trim())
        };
        let tier = match head {
            Some(head) if has_all && self.is_named(head) || is_id(head) => Tier::Name,
            Some(_) if has_all => Tier::NameWords,
            _ => Tier::Words,
        };
        let meaning = self.by_meaning(ordinal, scratch);
        self.placed(ordinal, tier, self.weighed.score(cell), meaning)
    }

    /// All words of the query are in its name.
    fn has_all(&self, cell: Cell) -> bool {
        usize::from(cell.name) == self.terms.groups.len()
    }

    /// The query may be its name; or its id, some words of which are in the name.
    fn may_be_meant(&self, cell: Cell) -> bool {
        self.has_all(cell) || cell.name > 0 && self.query.text.contains('/')
    }

    fn placed(&self, ordinal: u32, tier: Tier, words: f32, meaning: f32) -> Ranked {
        Ranked {
            ordinal,
            tier,
            second: false,
            words,
            meaning,
            tie: self.snapshot.tie_breaks.get(ordinal),
        }
    }

    /// The rank of any skill, where it is found.
    fn ranked(&self, ordinal: u32, scratch: &Scratch) -> Option<Ranked> {
        let ranked = if scratch.cell(ordinal).any > 0 {
            self.by_words(ordinal, scratch)
        } else {
            let near = scratch.near.get(ordinal as usize).copied();
            // Below that a search would not have found it, so nothing falls back behind it.
            let near = near.filter(|near| *near >= MIN_NEAR)?;
            self.placed(ordinal, Tier::Meaning, 0.0, self.meaning * near)
        };
        self.takes(ordinal).then_some(ranked)
    }

    /// The query is the name of a skill.
    fn is_named(&self, head: &Head) -> bool {
        let name = head.summary.as_ref().map(|summary| summary.name.as_str());
        [Some(head.id.slug()), name]
            .into_iter()
            .flatten()
            .any(|name| tokens::folded(name) == self.terms.folded)
    }

    /// Puts a skill behind the one whose name it looks like (`preact` is not like `react`),
    /// unless somebody has loaded it: a name alone does not rank it before the older one.
    fn demote_confusables(&self, ranked: &mut [Ranked], scratch: &Scratch) -> Result<(), Error> {
        if self.snapshot.confusables == 0 {
            return Ok(());
        }
        let mut firsts: FxHashMap<&str, Option<Ranked>> = FxHashMap::default();
        let mut looked_up = 0;
        for ranked in ranked {
            let slot = self.snapshot.slot(ranked.ordinal);
            let Some(slot) = slot.filter(|slot| slot.confusable) else {
                continue;
            };
            let first = *firsts
                .entry(&slot.skeleton)
                .or_insert_with(|| self.ranked(self.first_of(slot)?, scratch));
            let Some(first) = first.filter(|first| first.ordinal != ranked.ordinal) else {
                continue;
            };
            if first.order(ranked) == Ordering::Less {
                continue;
            }
            // Each is a read of the store, and anybody can publish a hundred names that look
            // alike.
            looked_up += 1;
            if looked_up <= MAX_CONFUSABLES && self.has_earned(&slot.head)? {
                continue;
            }
            *ranked = Ranked {
                ordinal: ranked.ordinal,
                second: true,
                tie: ranked.tie,
                ..first
            };
        }
        Ok(())
    }

    /// The skill that had a name first, among those that look alike: the operator's
    /// own, then the more trusted, then the older.
    fn first_of(&self, slot: &Slot) -> Option<u32> {
        let alike = self.snapshot.alike.get(&slot.skeleton)?;
        alike
            .iter()
            .filter_map(|ordinal| Some((*ordinal, &self.snapshot.slot(*ordinal)?.head)))
            .min_by_key(|(_, head)| {
                // `false` comes first: skills of the project and the user are the operator's
                // own.
                let own = head.id.location() == Location::Global;
                (own, head.trust_tier(), head.created_at, head.id.key())
            })
            .map(|(ordinal, _)| ordinal)
    }

    /// Somebody has loaded it.
    fn has_earned(&self, head: &Head) -> Result<bool, Error> {
        let usage = self.inner.registry.usage(head)?;
        Ok(usage.iter().any(|(_, usage)| usage.loads > 0))
    }

    /// Sorts the hits as far as the page needs it, and cuts the page out.
    fn page(&self, ranked: &mut [Ranked]) -> Vec<Ranked> {
        let sort = self.query.sort;
        let updated = |ranked: &Ranked| {
            let slot = self.snapshot.slot(ranked.ordinal);
            slot.map(|slot| slot.head.updated_at)
        };
        let score = |ranked: &Ranked| {
            let slot = self.snapshot.slot(ranked.ordinal);
            slot.and_then(|slot| slot.head.quality(self.now))
        };
        let order = |a: &Ranked, b: &Ranked| {
            let by_field = match (sort.by, sort.ascending) {
                (SortBy::Relevance, true) => b.order(a),
                (SortBy::Updated, false) => updated(b).cmp(&updated(a)),
                (SortBy::Updated, true) => updated(a).cmp(&updated(b)),
                (SortBy::Score, ascending) => by_score(score(a), score(b), ascending),
                // The index knows no stars: all are last.
                (SortBy::Relevance, false) | (SortBy::Stars, _) => a.order(b),
            };
            by_field.then_with(|| a.order(b))
        };
        let end = self.query.offset.saturating_add(self.query.limit);
        let needed = end.max(analysis::MAX_EXAMINED_SKILLS);
        let ranked = match ranked.len() {
            len if len > needed => {
                // A page needs few of many: these are picked in linear time, and only they are
                // sorted.
                ranked.select_nth_unstable_by(needed, order);
                ranked.split_at_mut(needed).0
            }
            _ => ranked,
        };
        ranked.sort_unstable_by(order);
        let page = ranked.iter().skip(self.query.offset);
        page.take(self.query.limit).copied().collect()
    }

    fn facets(&self, ranked: &[Ranked]) -> Vec<Facet> {
        let mut counts: [(&'static str, BTreeMap<String, usize>); 4] =
            ["category", "technology", "trust_tier", "source"]
                .map(|field| (field, BTreeMap::new()));
        for ranked in ranked {
            let slot = self.snapshot.slot(ranked.ordinal);
            let Some((slot, summary)) =
                slot.and_then(|slot| Some((slot, slot.head.summary.as_ref()?)))
            else {
                continue;
            };
            for (field, counts) in &mut counts {
                let mut count = |value: &str| {
                    if !value.is_empty() {
                        *counts.entry(value.to_lowercase()).or_default() += 1;
                    }
                };
                match *field {
                    "category" => summary.categories().for_each(|(id, _)| count(&id)),
                    "technology" => {
                        summary.technologies_about().for_each(|(id, _)| count(&id));
                    }
                    "trust_tier" => count(slot.head.trust_tier().name()),
                    _ => count(slot.head.id.source()),
                }
            }
        }
        counts
            .into_iter()
            .map(|(field, counts)| {
                let mut values: Vec<_> = counts.into_iter().collect();
                analysis::keep_most_frequent(&mut values, MAX_FACET_VALUES);
                Facet { field, values }
            })
            .filter(|facet| !facet.values.is_empty())
            .collect()
    }

    /// The page with reasons. A skill that went away since is left out.
    fn explained(&self, page: &[Ranked], scratch: &Scratch, stemmer: &mut Stemmer) -> Vec<Hit> {
        let catalog = self.inner.registry.catalog();
        let mut explainer = Explainer::new(&self.inner.registry, &self.terms, stemmer);
        explainer.has_snippets = !self.query.no_snippets;
        let mut hits = Vec::with_capacity(page.len());
        for ranked in page {
            let slot = self.snapshot.slot(ranked.ordinal);
            let head = slot.and_then(|slot| catalog.get(&slot.head.id.key()));
            let (Some(slot), Some(head)) = (slot, head.filter(|head| head.active.is_some())) else {
                continue;
            };
            let why = explainer.why(slot, ranked, scratch.cell(ranked.ordinal));
            hits.push(Hit {
                head: Arc::clone(head),
                why,
            });
        }
        hits
    }
}
