//! How well skills fit a task: by the words and the meaning of the whole skill, as
//! the search index judges them.

use std::sync::Arc;

use executor::Stop;
use registry::{Catalog, Head};
use search::{SearchIndex, SearchQuery, Tier, Why};

/// Skills that are looked at.
const CANDIDATES: usize = 100;
/// What the context counts, against the task.
const CONTEXT: f64 = 0.5;
/// A score below this says nothing; by meaning alone it takes more.
const MIN_SCORE: f64 = 0.35;
const MIN_SCORE_BY_MEANING: f64 = 1.0;

/// A skill that fits.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    /// The skill; it has an active version.
    pub(super) head: Arc<Head>,
    /// How well; only the order means something.
    pub(super) score: f64,
    /// What of it fits, best first.
    pub(super) reasons: Vec<String>,
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
pub(super) fn score(
    index: &SearchIndex,
    catalog: &Catalog,
    task: &str,
    context: &str,
    stop: &Stop,
) -> Hits {
    let mut scored = Hits::default();
    for (text, share) in [(task, 1.0), (context, CONTEXT)] {
        if text.trim().is_empty() {
            continue;
        }
        let query = SearchQuery {
            text: text.to_owned(),
            limit: CANDIDATES,
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
        for hit in found.hits {
            // A skill that went away since the index was read is no choice.
            if catalog.get(&hit.head.id.key()).is_none() {
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
            let reasons = reasons(&hit.why, share < 1.0);
            let mut known = scored.hits.iter_mut();
            match known.find(|known| known.head.id == hit.head.id) {
                Some(known) => {
                    known.score += score;
                    known.reasons.extend(reasons);
                }
                None => scored.hits.push(Hit {
                    head: hit.head,
                    score,
                    reasons,
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

fn reasons(why: &Why, of_context: bool) -> Vec<String> {
    let of = if of_context { " of the context" } else { "" };
    let mut reasons = Vec::new();
    if !why.matched.is_empty() {
        let parts: Vec<&str> = why.parts.iter().map(|part| part.name()).collect();
        reasons.push(format!(
            "has '{}'{of} in its {}",
            why.matched.join("', '"),
            parts.join(", ")
        ));
    }
    if why.meaning > why.words {
        reasons.push(format!("its meaning is near to that{of}"));
    }
    reasons
}
