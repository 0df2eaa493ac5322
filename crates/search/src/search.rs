//! A search, from the query to the page.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::analysis::{self, Analysis};
use super::explain::{Explainer, Why};
use super::filter::Filters;
use super::fuse::{self, MIN_NEAR, Tier};
use super::lexical::{Cell, Scratch, TermWeights};
use super::snapshot::{Slot, Snapshot};
use super::terms::Terms;
use super::tokens::Stemmer;
use super::top_k::{Ranked, TopK};
use super::{Error, Inner, retrieve, tokens};
use executor::Stop;
use model::{Location, caught};
use registry::Head;

/// Skills that only meaning finds, at most.
const BY_MEANING: usize = 50;
/// Skills whose meanings are looked at together.
const AT_ONCE: usize = 64;
/// Values of a facet that are counted out.
const FACET_VALUES: usize = 20;
/// Skills that look like others whose use is looked up, at most.
const TWINS: usize = 64;

/// What skills are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// How well they answer.
    #[default]
    Relevance,
    /// Their quality; no skill has a score yet, so this leaves them as they are.
    Score,
    /// Stars of their repositories; none are known yet.
    Stars,
    /// When they last changed.
    Updated,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sort {
    /// By what.
    pub by: SortBy,
    /// The least first.
    pub ascending: bool,
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    /// Words, a name, or a sentence.
    pub text: String,
    /// What a skill must have.
    pub filters: Filters,
    /// The order.
    pub sort: Sort,
    /// Skills to pass over.
    pub offset: usize,
    /// Skills at most.
    pub limit: usize,
    /// Count what is found by its properties.
    pub facets: bool,
    /// Look for words only.
    pub words_only: bool,
}

/// A skill that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The skill.
    pub head: Arc<Head>,
    /// Why it was found.
    pub why: Why,
}

/// How many of what was found have which value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facet {
    /// The property.
    pub field: &'static str,
    /// The most frequent values.
    pub values: Vec<(String, usize)>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct SearchResults {
    /// A page of it, the best first.
    pub hits: Vec<Hit>,
    /// How many were found.
    pub total: usize,
    /// How the query was understood.
    pub analysis: Analysis,
    /// Counts, where they were asked for.
    pub facets: Vec<Facet>,
    /// What to do where nothing was found.
    pub suggestions: Vec<String>,
}

/// What is found.
struct Ranking {
    /// The best of it, in no order.
    ranked: Vec<Ranked>,
    /// How many were found.
    total: usize,
    /// How many were found before filters.
    unfiltered: usize,
}

/// What a search leaves for the next one, which is spared to make it.
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
    /// What meaning counts.
    meaning: f32,
}

impl SearchResults {
    /// What is found before there is an index.
    pub(super) fn nothing(query: &SearchQuery) -> Self {
        Self {
            hits: Vec::new(),
            total: 0,
            analysis: Analysis::of_nothing(&query.text),
            facets: Vec::new(),
            suggestions: vec![analysis::BUILDING.to_owned()],
        }
    }
}

/// Reads of the index of words; its engine panics on files that are damaged.
pub(super) fn reading<T>(read: impl FnOnce() -> tantivy::Result<T>) -> Result<T, Error> {
    Ok(caught(read).map_err(Error::Task)??)
}

/// Runs a search on a state of the index.
///
/// # Errors
/// The index cannot be read, or the embedder failed.
pub(super) fn run(
    inner: &Inner,
    snapshot: &Snapshot,
    query: &SearchQuery,
    SearchScratch { scratch, stemmer }: &mut SearchScratch,
    stop: &Stop,
) -> Result<SearchResults, Error> {
    let terms = reading(|| Terms::read(snapshot, stemmer, &query.text))?;
    stop.check()?;
    let weighed = retrieve::lexical_and_semantic(inner, snapshot, query, &terms, scratch)?;
    let touched = scratch.touched().iter();
    let best = fuse::answered(&weighed, touched.map(|ordinal| scratch.cell(*ordinal)));
    let search = Search {
        inner,
        snapshot,
        query,
        terms,
        weighed,
        meaning: fuse::weight_of_meaning(best),
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
        .take(analysis::LOOKED_AT)
        .filter_map(|ranked| snapshot.slot(ranked.ordinal))
        .collect();
    let analysis = Analysis::new(&search.terms, stemmer, ranked.first(), &names, 1.0 - best);
    let suggestions = if total == 0 {
        analysis::suggestions(query, &search.terms, unfiltered, snapshot.caught_up)
    } else {
        Vec::new()
    };
    stop.check()?;
    let hits = search.explained(&page, scratch, stemmer);
    Ok(SearchResults {
        hits,
        total,
        analysis,
        facets,
        suggestions,
    })
}

impl Search<'_> {
    /// What is found and let through, as much of it as is needed.
    fn rank(&self, scratch: &Scratch) -> Ranking {
        // Until it has caught up, the index holds documents of skills that are gone.
        let everything = self.query.filters.is_empty() && self.snapshot.caught_up;
        let takes = |ordinal: u32| everything || self.takes(ordinal);
        let mut best = TopK::of(self.needed());
        let mut total = 0;
        for ordinal in scratch.touched() {
            if !takes(*ordinal) {
                continue;
            }
            total += 1;
            // Most are far behind, which the most that they can score tells.
            let cell = scratch.cell(*ordinal);
            let upper_bound = self.weighed.upper_bound(cell) + self.by_meaning(*ordinal, scratch);
            if upper_bound >= best.min() || self.may_be_meant(cell) {
                best.offer(self.by_words(*ordinal, scratch));
            }
        }
        let mut near = TopK::of(BY_MEANING);
        for (first, some) in (0..).step_by(AT_ONCE).zip(scratch.near.chunks(AT_ONCE)) {
            let min = near.min();
            let is_near = |meaning: f32| meaning >= MIN_NEAR && self.meaning * meaning >= min;
            // All of them without a branch: mostly none is near enough.
            if !some.iter().fold(false, |any, near| any | is_near(*near)) {
                continue;
            }
            for (ordinal, meaning) in (first..).zip(some) {
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

    /// The filters let it through.
    fn takes(&self, ordinal: u32) -> bool {
        let slot = self.snapshot.slot(ordinal);
        slot.is_some_and(|slot| self.query.filters.takes(slot))
    }

    /// How many of the best have to be known; all, where more than the order by
    /// relevance depends on them. Those that look like others may have to make scratch.
    fn needed(&self) -> usize {
        if self.query.facets || self.query.sort != Sort::default() {
            return usize::MAX;
        }
        let end = self.query.offset.saturating_add(self.query.limit);
        end.max(analysis::LOOKED_AT)
            .saturating_add(self.snapshot.twins)
    }

    /// What meaning gives a skill that has words of the query.
    fn by_meaning(&self, ordinal: u32, scratch: &Scratch) -> f32 {
        let near = scratch.near.get(ordinal as usize).copied();
        self.meaning * near.unwrap_or_default().max(0.0)
    }

    /// The place of a skill that has words of the query.
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

    /// The place of any skill, where it is found.
    fn ranked(&self, ordinal: u32, scratch: &Scratch) -> Option<Ranked> {
        let ranked = if scratch.cell(ordinal).any > 0 {
            self.by_words(ordinal, scratch)
        } else {
            let near = scratch.near.get(ordinal as usize).copied();
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

    /// Puts a skill behind the one whose name it looks like, unless somebody has
    /// loaded it: a name alone earns no place before the one who had it first.
    fn demote_confusables(&self, ranked: &mut [Ranked], scratch: &Scratch) -> Result<(), Error> {
        if self.snapshot.twins == 0 {
            return Ok(());
        }
        let mut firsts: FxHashMap<&str, Option<Ranked>> = FxHashMap::default();
        let mut looked_up = 0;
        for ranked in ranked {
            let Some(slot) = self
                .snapshot
                .slot(ranked.ordinal)
                .filter(|slot| slot.confusable)
            else {
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
            looked_up += 1;
            if looked_up <= TWINS && self.has_earned(&slot.head)? {
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

    /// Puts what is found into its order, as far as the page needs it, and cuts the
    /// page out.
    fn page(&self, ranked: &mut [Ranked]) -> Vec<Ranked> {
        let sort = self.query.sort;
        let updated = |ranked: &Ranked| {
            let slot = self.snapshot.slot(ranked.ordinal);
            slot.map(|slot| slot.head.updated_at)
        };
        let order = |a: &Ranked, b: &Ranked| {
            let by_field = match (sort.by, sort.ascending) {
                (SortBy::Relevance, true) => b.order(a),
                (SortBy::Updated, false) => updated(b).cmp(&updated(a)),
                (SortBy::Updated, true) => updated(a).cmp(&updated(b)),
                // No skill has a score or stars yet: they are all last.
                (SortBy::Relevance, false) | (SortBy::Score | SortBy::Stars, _) => a.order(b),
            };
            by_field.then_with(|| a.order(b))
        };
        let end = self.query.offset.saturating_add(self.query.limit);
        let needed = end.max(analysis::LOOKED_AT);
        let ranked = match ranked.len() {
            len if len > needed => {
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
            let Some(slot) = self.snapshot.slot(ranked.ordinal) else {
                continue;
            };
            let Some(summary) = &slot.head.summary else {
                continue;
            };
            for (field, counts) in &mut counts {
                let mut count = |value: &str| {
                    if !value.is_empty() {
                        *counts.entry(value.to_lowercase()).or_default() += 1;
                    }
                };
                match *field {
                    "category" => count(&summary.category),
                    "technology" => summary.technologies.iter().for_each(|t| count(t)),
                    "trust_tier" => count(slot.head.trust_tier().name()),
                    _ => count(slot.head.id.source()),
                }
            }
        }
        counts
            .into_iter()
            .map(|(field, counts)| {
                let mut values: Vec<_> = counts.into_iter().collect();
                values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                values.truncate(FACET_VALUES);
                Facet { field, values }
            })
            .filter(|facet| !facet.values.is_empty())
            .collect()
    }

    /// The page with reasons. A skill that went away since is left out.
    fn explained(&self, page: &[Ranked], scratch: &Scratch, stemmer: &mut Stemmer) -> Vec<Hit> {
        let catalog = self.inner.registry.catalog();
        let mut explainer = Explainer::new(&self.inner.registry, &self.terms, stemmer);
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
