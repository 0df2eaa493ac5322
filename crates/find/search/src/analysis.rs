//! The analysis of a query, and suggestions where nothing was found.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::fuse::Tier;
use super::query::{SearchQuery, Sort, SortBy};
use super::search::SearchResults;
use super::snapshot::Slot;
use super::terms::Terms;
use super::tokens::{self, Stemmer};
use super::top_k::Ranked;
use model::listed;

/// Skills of the result that are examined, the best ones.
pub(super) const MAX_EXAMINED_SKILLS: usize = 20;
/// Refinements that are suggested.
const MAX_REFINEMENTS: usize = 3;
/// Skills that a refinement must keep, so that it is worth a try.
const MIN_REFINED_SKILLS: usize = 2;
/// The suggestion while there is no index yet.
pub(super) const BUILDING: &str =
    "The index is being built; the answer will be complete once it is done";

/// A word that no skill has, and its corrections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The word.
    pub word: String,
    /// The words that were searched for instead.
    pub read_as: Vec<String>,
}

/// The analysis of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Analysis {
    /// The query with its spelling corrected.
    pub interpreted: String,
    /// The intent.
    pub intent: String,
    /// Narrower queries.
    pub refinements: Vec<String>,
    /// Words that were corrected.
    pub repairs: Vec<Repair>,
    /// Words that are unknown and were not corrected.
    pub unknown: Vec<String>,
    /// Share of the query that words left to meaning, from 0 to 1.
    pub meaning_share: f32,
}

impl Analysis {
    pub(super) fn of_nothing(query: &str) -> Self {
        Self {
            interpreted: tokens::folded(query),
            intent: GENERAL.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn new(
        terms: &Terms,
        stemmer: &mut Stemmer,
        first: Option<&Ranked>,
        found: &[&Slot],
        meaning_share: f32,
    ) -> Self {
        Self {
            interpreted: terms.interpreted.clone(),
            intent: intent(terms, first),
            refinements: refinements(terms, stemmer, found),
            repairs: terms.repairs.clone(),
            unknown: terms.unknown.clone(),
            meaning_share: meaning_share.clamp(0.0, 1.0),
        }
    }
}

const NAME: &str = "skill_name";
const GENERAL: &str = "general";

/// Intents, each with the beginnings of words that speak of it; the first that fits is it.
static INTENTS: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
    include_str!("analysis/intents.txt")
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(intent, beginnings)| (intent, listed(beginnings).collect()))
        .collect()
});

fn intent(terms: &Terms, first: Option<&Ranked>) -> String {
    if first.is_some_and(|first| first.tier == Tier::Name) {
        return NAME.to_owned();
    }
    let words: Vec<&str> = terms.interpreted.split(' ').collect();
    let intent = INTENTS.iter().find(|(_, beginnings)| {
        words.iter().any(|word| {
            beginnings.iter().any(|beginning| {
                // Short ones are whole words: `ci` begins too many others.
                word == beginning || beginning.len() > 3 && word.starts_with(beginning)
            })
        })
    });
    intent.map_or(GENERAL, |(intent, _)| intent).to_owned()
}

/// The query with a word more: one that several of the best have in their names and
/// tags, and not all.
fn refinements(terms: &Terms, stemmer: &mut Stemmer, found: &[&Slot]) -> Vec<String> {
    let asked: Vec<String> = terms
        .interpreted
        .split(' ')
        .map(|word| stemmer.stem(word).to_owned())
        .collect();
    let mut counts: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for slot in found {
        let Some(summary) = &slot.head.summary else {
            continue;
        };
        let texts = std::iter::once(&summary.name)
            .chain(&summary.tags)
            .chain(&summary.technologies);
        let mut of_skill: BTreeMap<String, String> = BTreeMap::new();
        for text in texts {
            for word in tokens::list(text) {
                let stem = stemmer.stem(&word.text).to_owned();
                let says_something = word.text.chars().count() > 1 && !tokens::is_empty(&word.text);
                if says_something && !asked.contains(&stem) {
                    of_skill.entry(stem).or_insert(word.text);
                }
            }
        }
        for (stem, word) in of_skill {
            counts.entry(stem).or_insert((word, 0)).1 += 1;
        }
    }
    let mut words: Vec<(String, usize)> = counts
        .into_values()
        .filter(|(_, count)| *count >= MIN_REFINED_SKILLS && *count < found.len())
        .collect();
    keep_most_frequent(&mut words, MAX_REFINEMENTS);
    let words = words.into_iter();
    words
        .map(|(word, _)| format!("{} {word}", terms.interpreted))
        .collect()
}

/// Keeps the most frequent of some values, in this order; among equals in that of the alphabet.
pub(super) fn keep_most_frequent(values: &mut Vec<(String, usize)>, max: usize) {
    values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    values.truncate(max);
}

/// Explains why an order that was asked for is ignored.
pub(super) fn unsorted(sort: Sort) -> Option<String> {
    match sort.by {
        SortBy::Relevance | SortBy::Updated | SortBy::Score => None,
        SortBy::Stars => Some(
            "The order is by relevance: search does not know the stars of skills, so leave out `sort` or sort by `score` or `updated`"
                .to_owned(),
        ),
    }
}

/// Suggestions where nothing was found; `unfiltered` skills match without the filters.
pub(super) fn suggestions(
    query: &SearchQuery,
    terms: &Terms,
    unfiltered: usize,
    caught_up: bool,
) -> Vec<String> {
    let mut steps = Vec::new();
    if !caught_up {
        steps.push(BUILDING.to_owned());
    }
    let given = query.filters.given();
    if !given.is_empty() {
        let filters = given.join("`, `");
        steps.push(format!(
            "Relax the filters `{filters}`: {unfiltered} skills match without them"
        ));
    }
    if !terms.unknown.is_empty() {
        let unknown = terms.unknown.join("', '");
        steps.push(format!(
            "No skill has '{unknown}', nor a word spelled like it: use other words"
        ));
    }
    if query.words_only {
        steps.push("Leave out `words_only`, so that meaning counts as well".to_owned());
    }
    if steps.is_empty() {
        steps.push("Use fewer or more general words, or list the skills".to_owned());
    }
    steps
}

impl SearchResults {
    /// The results before there is an index.
    pub(super) fn nothing(query: &SearchQuery) -> Self {
        Self {
            analysis: Analysis::of_nothing(&query.text),
            suggestions: vec![BUILDING.to_owned()],
            ..Self::default()
        }
    }
}
