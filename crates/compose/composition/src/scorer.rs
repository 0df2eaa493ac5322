//! How well skills fit a task: by the words and the meaning of the whole skill, as
//! the search index judges them.

use std::sync::Arc;

use super::reason_words;
use super::select::TaskQuery;
use executor::Stop;
use model::tokens;
use registry::{Catalog, Head};
use search::{MatchExplanation, SearchIndex, SearchQuery, Tier};

/// Skills that are considered for a wording.
const MAX_CANDIDATES: usize = 100;
/// The weight of the context, against the task.
const CONTEXT_WEIGHT: f64 = 0.5;
/// A score below this is chance; by meaning alone it takes more.
// Some skill is always nearest in meaning, however far off the task is.
const MIN_SCORE: f64 = 0.35;
const MIN_SCORE_BY_MEANING: f64 = 1.0;

/// Tokens of the words that say why a skill fits, estimated; the first is always there.
const MAX_REASON_TOKENS: usize = 15;

/// A skill that fits.
#[derive(Debug, Clone)]
pub(super) struct Hit<'a> {
    /// The skill; it had an active version when the index was read.
    pub(super) head: Arc<Head>,
    /// How well; only the order means something.
    pub(super) score: f64,
    /// What found it, the best wording first.
    found: Vec<WordingMatch<'a>>,
}

/// That a wording found a skill.
#[derive(Debug, Clone)]
struct WordingMatch<'a> {
    text: &'a str,
    is_context: bool,
    why: MatchExplanation,
}

/// The skills that fit.
#[derive(Debug, Clone, Default)]
pub(super) struct Hits<'a> {
    /// The skills, best first.
    pub(super) hits: Vec<Hit<'a>>,
    /// How many the index found.
    pub(super) considered: usize,
}

/// The skills that fit a task. Blocks.
pub(super) fn score<'a>(index: &SearchIndex, wanted: &'a TaskQuery, stop: &Stop) -> Hits<'a> {
    let mut scored = Hits::default();
    let wordings = std::iter::once(&wanted.task).chain(&wanted.phrasings);
    let wordings = wordings.map(|text| (text, 1.0));
    for (text, share) in wordings.chain([(&wanted.context, CONTEXT_WEIGHT)]) {
        if text.trim().is_empty() {
            continue;
        }
        let query = SearchQuery {
            text: text.to_owned(),
            limit: MAX_CANDIDATES,
            no_snippets: true,
            ..SearchQuery::default()
        };
        let found = match index.search(&query, stop) {
            Ok(found) => found,
            // The work is to stop, which the caller finds out from `stop` itself.
            Err(search::Error::Work(_)) => break,
            // One wording less: the others may still find skills.
            Err(error) => {
                tracing::error!(%error, "the search index cannot be read");
                continue;
            }
        };
        scored.considered = scored.considered.max(found.total);
        let others = scored.hits.len();
        for search::Hit { head, why } in found.hits {
            let score = score_of(&why);
            let min = match why.tier {
                Tier::Meaning => MIN_SCORE_BY_MEANING,
                Tier::Name | Tier::NameWords | Tier::Words => MIN_SCORE,
            };
            if score < min {
                continue;
            }
            let score = share * score;
            let is_context = share < 1.0;
            let found = WordingMatch {
                text,
                is_context,
                why,
            };
            // Only among those of earlier wordings, as one wording finds each skill once.
            let mut known = scored.hits.iter_mut().take(others);
            match known.find(|known| known.head.id == head.id) {
                // The context comes last and only adds: it never takes the place of the task.
                Some(known) if is_context => {
                    known.score += score;
                    known.found.push(found);
                }
                // Of several wordings the best counts.
                Some(known) if known.score < score => {
                    known.score = score;
                    known.found = vec![found];
                }
                Some(_) => {}
                None => scored.hits.push(Hit {
                    head,
                    score,
                    found: vec![found],
                }),
            }
        }
    }
    scored.hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    scored
}

impl Hit<'_> {
    /// The skill, if it is a choice: it is still there, and not left to people by its author.
    pub(super) fn offered<'c>(&self, catalog: &'c Catalog) -> Option<&'c Arc<Head>> {
        let head = catalog.get(&self.head.id.key());
        head.filter(|head| head.is_offered())
    }

    /// Why it fits: as sentences, best first, and in a few words.
    pub(super) fn reasons(&self) -> (Vec<String>, String) {
        let of = |found: &WordingMatch<'_>| reasons(&found.why, found.text, found.is_context);
        let mut all = self.found.iter().map(of);
        let (mut reasons, why) = all.next().unwrap_or_default();
        reasons.extend(all.flat_map(|(more, _)| more));
        (reasons, why)
    }
}

/// One number for the tier and the score in it.
fn score_of(why: &MatchExplanation) -> f64 {
    let tier = match why.tier {
        Tier::Name => 2.0,
        Tier::NameWords => 1.0,
        Tier::Words | Tier::Meaning => 0.0,
    };
    tier + f64::from(why.words + why.meaning)
}

/// Why a skill fits a text, as sentences and in a few words.
fn reasons(why: &MatchExplanation, text: &str, of_context: bool) -> (Vec<String>, String) {
    let of = if of_context { " of the context" } else { "" };
    let words = reason_words::words(text, &why.matched);
    let mut reasons = Vec::new();
    if !words.is_empty() {
        let parts: Vec<&str> = why.parts.iter().map(|part| part.name()).collect();
        reasons.push(format!(
            "has '{}'{of} in its {}",
            words.join("', '"),
            parts.join(", ")
        ));
    }
    if why.meaning > why.words || reasons.is_empty() {
        reasons.push(format!("its meaning is near to that{of}"));
    }
    let mut short = "by meaning".to_owned();
    for count in 1..=words.len() {
        let longer = format!("has {}", words.get(..count).unwrap_or_default().join(", "));
        if count > 1 && tokens(&longer) > MAX_REASON_TOKENS {
            break;
        }
        short = longer;
    }
    (reasons, short)
}
