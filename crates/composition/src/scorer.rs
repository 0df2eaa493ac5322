//! How well skills fit a task.
//!
//! A [`Scorer`] finds candidates and judges them; a search index can be one. The
//! one here looks into the indexes of the catalog, by words: names, categories,
//! tags, technologies and triggers make a candidate, the description only counts
//! for one. So it costs what the words lead to, never all skills.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use executor::Stop;
use model::{SkillKey, stem, words};
use registry::{Catalog, Facet, Head, Summary};

/// What a task says.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// The task.
    pub task: &'a str,
    /// What else is known; counts half.
    pub context: &'a str,
}

/// A skill that fits.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The skill; it has an active version.
    pub head: Arc<Head>,
    /// How well; only the order means something.
    pub score: f64,
    /// What of it fits, best first.
    pub reasons: Vec<String>,
}

/// The skills that fit.
#[derive(Debug, Clone, Default)]
pub struct Hits {
    /// The skills, best first.
    pub hits: Vec<Hit>,
    /// How many were looked at.
    pub considered: usize,
    /// Words that led to more skills than were looked at.
    pub crowded: Vec<String>,
}

/// Finds the skills that fit a text.
pub trait Scorer: Debug + Send + Sync {
    /// Returns once it can judge; not before [`Scorer::score`] may be called.
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    /// The skills of a catalog that fit, best first. May block.
    fn score(&self, catalog: &Catalog, text: Text<'_>, stop: &Stop) -> Hits;
}

/// Words of a text that are looked at.
const WORDS: usize = 256;
/// Skills that one word leads to, at most.
const PER_WORD: usize = 512;
/// Skills that are looked at, at most.
const CANDIDATES: usize = 4_000;
/// Skills whose names only begin with a word, at most.
const PER_BEGINNING: usize = 16;
/// A score below this says nothing.
const LEAST: f64 = 2.0;

const NAME: f64 = 8.0;
const TRIGGER: f64 = 8.0;
const TECHNOLOGY: f64 = 3.0;
const TAG: f64 = 2.0;
const NAME_WORD: f64 = 1.5;
const DESCRIPTION_WORD: f64 = 0.4;
const DESCRIPTION: f64 = 2.0;

/// Words that say nothing of what a task is about.
const EMPTY: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for",
    "from", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "new", "of",
    "on", "or", "our", "please", "so", "some", "that", "the", "them", "then", "this", "to", "up",
    "use", "we", "what", "when", "which", "with", "you", "your",
];

/// Judges by words.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordScorer;

/// The words of a text with their weights.
struct Weighed {
    /// Words and pairs of them, in the order of the text.
    terms: Vec<String>,
    weights: FxHashMap<String, f64>,
    stems: FxHashMap<String, f64>,
}

impl Weighed {
    fn of(text: Text<'_>) -> Self {
        let mut weighed = Self {
            terms: Vec::new(),
            weights: FxHashMap::default(),
            stems: FxHashMap::default(),
        };
        for (text, weight) in [(text.task, 1.0), (text.context, 0.5)] {
            let mut before: Option<String> = None;
            for word in words(text).take(WORDS) {
                if let Some(before) = before {
                    // As names and tags join two words.
                    for join in ["-", "_", " ", ""] {
                        weighed.add(format!("{before}{join}{word}"), weight);
                    }
                }
                if !EMPTY.contains(&word.as_str()) {
                    let stem = stem(&word).to_owned();
                    weighed.stems.entry(stem).or_insert(weight);
                    weighed.add(word.clone(), weight);
                }
                before = Some(word);
            }
        }
        weighed
    }

    fn add(&mut self, term: String, weight: f64) {
        if !self.weights.contains_key(&term) {
            self.weights.insert(term.clone(), weight);
            self.terms.push(term);
        }
    }

    /// What a word or a phrase of a skill weighs here.
    fn weight(&self, term: &str) -> f64 {
        let term = term.to_lowercase();
        if let Some(weight) = self.weights.get(&term) {
            return *weight;
        }
        let mut least = f64::INFINITY;
        for word in words(&term) {
            least = least.min(self.stems.get(stem(&word)).copied().unwrap_or_default());
        }
        if least.is_finite() { least } else { 0.0 }
    }
}

impl Scorer for WordScorer {
    fn score(&self, catalog: &Catalog, text: Text<'_>, stop: &Stop) -> Hits {
        let weighed = Weighed::of(text);
        let (candidates, crowded) = candidates(catalog, &weighed);
        let considered = candidates.len();
        let judged = candidates
            .into_iter()
            .take_while(|_| !stop.is_set())
            .filter_map(|head| judge(head, &weighed));
        let mut hits: Vec<Hit> = judged.filter(|hit| hit.score >= LEAST).collect();
        hits.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| a.head.id.key().cmp(&b.head.id.key()))
        });
        Hits {
            hits,
            considered,
            crowded,
        }
    }
}

/// The skills that the words lead to, and the words that lead to too many.
fn candidates(catalog: &Catalog, weighed: &Weighed) -> (Vec<Arc<Head>>, Vec<String>) {
    let mut found: Vec<Arc<Head>> = Vec::new();
    let mut seen: FxHashSet<SkillKey> = FxHashSet::default();
    let mut crowded = Vec::new();
    let mut take = |head: &Arc<Head>| {
        if head.active.is_none() || found.len() >= CANDIDATES {
            return;
        }
        if seen.insert(head.id.key()) {
            found.push(Arc::clone(head));
        }
    };
    // The winner of a short name is the one that the name means.
    for term in &weighed.terms {
        if let Some(head) = catalog.named(term).next() {
            take(head);
        }
    }
    for term in &weighed.terms {
        let mut is_crowded = false;
        let facets = [
            Facet::Technology(term.clone()),
            Facet::Tag(term.clone()),
            Facet::Category(term.clone()),
            Facet::Trigger(stem(term).to_owned()),
        ];
        for skills in facets.iter().filter_map(|facet| catalog.with_facet(facet)) {
            is_crowded |= skills.len() > PER_WORD;
            let heads = skills
                .iter()
                .take(PER_WORD)
                .filter_map(|key| catalog.get(key));
            heads.for_each(&mut take);
        }
        if term.len() >= 4 {
            let named = catalog.names_with_prefix(term).take(PER_BEGINNING);
            named.for_each(|(_, head)| take(head));
        }
        if is_crowded {
            crowded.push(term.clone());
        }
    }
    (found, crowded)
}

fn judge(head: Arc<Head>, weighed: &Weighed) -> Option<Hit> {
    let summary = head.summary.as_ref()?;
    let mut parts: Vec<(f64, String)> = Vec::new();
    named(&head, summary, weighed, &mut parts);
    for trigger in &summary.triggers {
        triggered(trigger, weighed, &mut parts);
    }
    let mut listed = |values: &[String], worth: f64, what: &str| {
        for value in values {
            let weight = weighed.weight(value);
            if weight > 0.0 {
                parts.push((worth * weight, format!("{what} '{value}'")));
            }
        }
    };
    listed(&summary.technologies, TECHNOLOGY, "technology");
    listed(&summary.tags, TAG, "tag");
    listed(std::slice::from_ref(&summary.category), TAG, "category");
    let mut seen = FxHashSet::default();
    let mut shared = Vec::new();
    let mut worth = 0.0;
    for word in words(&summary.description) {
        let weight = weighed.stems.get(stem(&word)).copied().unwrap_or_default();
        if weight > 0.0 && seen.insert(stem(&word).to_owned()) {
            worth += DESCRIPTION_WORD * weight;
            shared.push(word);
        }
    }
    if worth > 0.0 {
        shared.truncate(8);
        let words = shared.join(", ");
        parts.push((
            worth.min(DESCRIPTION),
            format!("its description says {words}"),
        ));
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let score = parts.iter().map(|(worth, _)| worth).sum();
    Some(Hit {
        score,
        reasons: parts.into_iter().map(|(_, reason)| reason).collect(),
        head,
    })
}

fn named(head: &Head, summary: &Summary, weighed: &Weighed, parts: &mut Vec<(f64, String)>) {
    let slug = head.id.slug().to_lowercase();
    let whole = [slug.clone(), summary.name.to_lowercase()]
        .iter()
        .filter_map(|name| weighed.weights.get(name))
        .fold(0.0_f64, |best, weight| best.max(*weight));
    if whole > 0.0 {
        parts.push((NAME * whole, format!("its name '{slug}'")));
        return;
    }
    for word in words(&slug.replace('_', " ")) {
        let weight = weighed.stems.get(stem(&word)).copied().unwrap_or_default();
        if weight > 0.0 {
            parts.push((NAME_WORD * weight, format!("'{word}' in its name")));
        }
    }
}

/// A trigger counts as far as its words are there.
fn triggered(trigger: &str, weighed: &Weighed, parts: &mut Vec<(f64, String)>) {
    let all: Vec<String> = words(trigger)
        .filter(|word| !EMPTY.contains(&word.as_str()))
        .collect();
    let (mut there, mut weight, mut count) = (0.0_f64, f64::INFINITY, 0.0_f64);
    for word in &all {
        count += 1.0;
        if let Some(found) = weighed.stems.get(stem(word)) {
            there += 1.0;
            weight = weight.min(*found);
        }
    }
    if there == 0.0 {
        return;
    }
    let part = there / count;
    if part >= 1.0 {
        parts.push((TRIGGER * weight, format!("trigger '{trigger}'")));
    } else if part >= 0.5 {
        parts.push((
            TRIGGER * weight * part / 4.0,
            format!("trigger '{trigger}' in part"),
        ));
    }
}
