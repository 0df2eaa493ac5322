//! Judging skills by the search index.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::scorer::{Hit, Hits, Scorer, Text};
use executor::Stop;
use registry::Catalog;
use search::{SearchIndex, SearchQuery, Tier, Why};

/// Skills that are looked at.
const CANDIDATES: usize = 100;
/// How long an index is waited for that is being opened.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// What the context counts, against the task.
const CONTEXT: f64 = 0.5;
/// A score below this says nothing; by meaning alone it takes more.
const LEAST: f64 = 0.35;
const LEAST_BY_MEANING: f64 = 1.0;

/// Judges by words and meaning of the whole skill.
#[derive(Debug)]
pub struct IndexScorer {
    index: SearchIndex,
}

impl IndexScorer {
    /// By an index.
    #[must_use]
    pub fn new(index: SearchIndex) -> Self {
        Self { index }
    }
}

impl Scorer for IndexScorer {
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.index.ready(PATIENCE))
    }

    fn score(&self, catalog: &Catalog, text: Text<'_>, stop: &Stop) -> Hits {
        let mut hits: Vec<Hit> = Vec::new();
        let mut considered = 0;
        for (text, share) in [(text.task, 1.0), (text.context, CONTEXT)] {
            let query = SearchQuery {
                text: text.to_owned(),
                limit: CANDIDATES,
                ..SearchQuery::default()
            };
            if text.trim().is_empty() {
                continue;
            }
            let found = match self.index.search(&query, stop) {
                Ok(found) => found,
                // Whoever asked for it is told.
                Err(search::Error::Work(_)) => break,
                Err(error) => {
                    tracing::error!(%error, "the search index cannot be read");
                    continue;
                }
            };
            considered = considered.max(found.total);
            for hit in found.hits {
                // A skill that went away since the index was read is no choice.
                if catalog.get(&hit.head.id.key()).is_none() {
                    continue;
                }
                let least = match hit.why.tier {
                    Tier::Meaning => LEAST_BY_MEANING,
                    Tier::Name | Tier::NameWords | Tier::Words => LEAST,
                };
                if score(&hit.why) < least {
                    continue;
                }
                let score = share * score(&hit.why);
                let reasons = reasons(&hit.why, share < 1.0);
                match hits.iter_mut().find(|known| known.head.id == hit.head.id) {
                    Some(known) => {
                        known.score += score;
                        known.reasons.extend(reasons);
                    }
                    None => hits.push(Hit {
                        head: Arc::clone(&hit.head),
                        score,
                        reasons,
                    }),
                }
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        Hits {
            hits,
            considered,
            crowded: Vec::new(),
        }
    }
}

/// One number for the tier and the score in it.
fn score(why: &Why) -> f64 {
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
