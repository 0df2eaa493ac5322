//! How well skills fit a task: by the words and the meaning of the whole skill, as
//! the search index judges them.

use std::sync::Arc;

use super::select::Wanted;
use super::telling;
use executor::Stop;
use model::tokens;
use registry::{Catalog, Head};
use search::{SearchIndex, SearchQuery, Tier, Why};

/// Skills that are looked at.
const CANDIDATES: usize = 100;
/// What the context counts, against the task.
const CONTEXT: f64 = 0.5;
/// A score below this says nothing; by meaning alone it takes more.
const MIN_SCORE: f64 = 0.35;
const MIN_SCORE_BY_MEANING: f64 = 1.0;

/// Tokens of the words that tell why a skill fits, estimated; the first is told in any case.
const SHORT: usize = 15;

/// A skill that fits.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    /// The skill; it has an active version.
    pub(super) head: Arc<Head>,
    /// How well; only the order means something.
    pub(super) score: f64,
    /// What of it fits, best first.
    pub(super) reasons: Vec<String>,
    /// The same in a few words.
    pub(super) why: String,
}

/// The skills that fit.
#[derive(Debug, Clone, Default)]
pub(super) struct Hits {
    /// The skills, best first.
    pub(super) hits: Vec<Hit>,
    /// How many the index found.
    pub(super) considered: usize,
}

/// The skills of a catalog that fit a task. Blocks.
pub(super) fn score(index: &SearchIndex, catalog: &Catalog, wanted: &Wanted, stop: &Stop) -> Hits {
    let mut scored = Hits::default();
    let wordings = std::iter::once(&wanted.task).chain(&wanted.phrasings);
    let wordings = wordings.map(|text| (text, 1.0));
    for (text, share) in wordings.chain([(&wanted.context, CONTEXT)]) {
        if text.trim().is_empty() {
            continue;
        }
        let query = SearchQuery {
            text: text.to_owned(),
            limit: CANDIDATES,
            no_snippets: true,
            ..SearchQuery::default()
        };
        let found = match index.search(&query, stop) {
            Ok(found) => found,
            // Whoever asked for it is told.
            Err(search::Error::Work(_)) => break,
            Err(error) => {
                tracing::error!(%error, "the search index cannot be read");
                continue;
            }
        };
        scored.considered = scored.considered.max(found.total);
        let others = scored.hits.len();
        for hit in found.hits {
            // A skill that went away since the index was read is no choice, nor is one that
            // its author leaves to people.
            let is_offered = |head: &Arc<Head>| head.is_offered();
            if !catalog.get(&hit.head.id.key()).is_some_and(is_offered) {
                continue;
            }
            let score = score_of(&hit.why);
            let min = match hit.why.tier {
                Tier::Meaning => MIN_SCORE_BY_MEANING,
                Tier::Name | Tier::NameWords | Tier::Words => MIN_SCORE,
            };
            if score < min {
                continue;
            }
            let score = share * score;
            let (reasons, why) = reasons(&hit.why, text, share < 1.0);
            // One wording finds each skill once.
            let mut known = scored.hits.iter_mut().take(others);
            match known.find(|known| known.head.id == hit.head.id) {
                Some(known) if share < 1.0 => {
                    known.score += score;
                    known.reasons.extend(reasons);
                }
                // Of several wordings the best counts.
                Some(known) if known.score < score => {
                    known.score = score;
                    (known.reasons, known.why) = (reasons, why);
                }
                Some(_) => {}
                None => scored.hits.push(Hit {
                    head: hit.head,
                    score,
                    reasons,
                    why,
                }),
            }
        }
    }
    scored.hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    scored
}

/// One number for the tier and the score in it.
fn score_of(why: &Why) -> f64 {
    let tier = match why.tier {
        Tier::Name => 2.0,
        Tier::NameWords => 1.0,
        Tier::Words | Tier::Meaning => 0.0,
    };
    tier + f64::from(why.words + why.meaning)
}

/// What of a skill fits a text, as sentences and in a few words.
fn reasons(why: &Why, text: &str, of_context: bool) -> (Vec<String>, String) {
    let of = if of_context { " of the context" } else { "" };
    let words = telling::words(text, &why.matched);
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
        if count > 1 && tokens(&longer) > SHORT {
            break;
        }
        short = longer;
    }
    (reasons, short)
}
