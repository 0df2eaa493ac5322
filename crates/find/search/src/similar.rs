//! Near-duplicates of a skill.
//!
//! Every skill of the index has the signature of its description and its instructions
//! ([`signature`](super::signature)), and all of them are compared with that of the skill in
//! question: 128 bytes a skill, no texts. A table of bands (LSH) would look at fewer, miss
//! some, and take as much memory again, where 50,000 take some milliseconds.
//!
//! The skill in question may itself be in no index: blocked, held, or withdrawn. What is
//! found can be found by a search as well.

use std::sync::Arc;

use super::local::Front;
use super::{Error, SearchIndex, document};
use executor::{Kind, Stop};
use registry::Head;

/// Skills that are compared between two checks whether to stop.
const STOP_CHECK_INTERVAL: usize = 16 * 1024;

/// A skill with nearly the text of another one.
#[derive(Debug, Clone)]
pub struct SimilarSkill {
    /// The skill.
    pub head: Arc<Head>,
    /// How similar the texts are, from 0 to 1, estimated.
    pub similarity: f64,
    /// It has the same name, elsewhere.
    pub same_name: bool,
    /// All its files are the same, byte for byte.
    pub same_files: bool,
}

/// Skills with nearly the text of another one.
#[derive(Debug, Clone)]
pub struct SimilarSkills {
    /// Some of them, the most similar first.
    pub skills: Vec<SimilarSkill>,
    /// How many there are.
    pub total: usize,
    /// The index is still being made: there may be more.
    pub is_partial: bool,
}

impl SearchIndex {
    /// The skills whose texts are at least so similar to that of a skill, off the async
    /// threads, once the index is [`SearchIndex::ready`].
    ///
    /// # Errors
    /// The skill cannot be read; the work is refused or to stop.
    pub async fn find_similar(
        &self,
        head: Arc<Head>,
        min: f64,
        limit: usize,
    ) -> Result<SimilarSkills, Error> {
        self.ready().await;
        let index = self.clone();
        let find = move |stop: &Stop| index.similar(&head, min, limit, stop);
        let executor = self.inner.registry.executor();
        executor.run_fallible(Kind::Search, find).await
    }

    /// Does the same on this thread.
    ///
    /// # Errors
    /// The skill cannot be read; it is to stop.
    pub fn similar(
        &self,
        head: &Head,
        min: f64,
        limit: usize,
        stop: &Stop,
    ) -> Result<SimilarSkills, Error> {
        let front = self.front.as_ref();
        let registry = self.registry();
        let catalog = registry.catalog();
        let version = registry.to_compare(head)?;
        // Not from the index, in which a blocked or withdrawn skill is not.
        let signature = document::signature_of(registry, &version)?;
        let of_folders = front.and_then(Front::snapshot);
        let stored = self.inner.snapshot.load_full();
        let is_partial = stored.as_ref().is_none_or(|stored| !stored.caught_up);
        let key = head.id.key();
        let mut found = Vec::new();
        for (snapshot, is_local) in [(&of_folders, true), (&stored, false)] {
            let slots = snapshot.iter().flat_map(|snapshot| &snapshot.slots);
            for (at, slot) in slots.enumerate() {
                if at % STOP_CHECK_INTERVAL == 0 {
                    stop.check()?;
                }
                let Some((slot, kept)) = slot.as_ref().and_then(|s| Some((s, s.signature?))) else {
                    continue;
                };
                let similarity = signature.map_or(0.0, |signature| signature.similarity(&kept));
                let other = slot.head.id.key();
                if similarity < min || other == key {
                    continue;
                }
                // As it is now.
                let now = catalog.get(&other).filter(|now| now.is_local() == is_local);
                if let Some(now) = now.filter(|now| now.active == Some(slot.number)) {
                    found.push((Arc::clone(now), similarity));
                }
            }
        }
        found.sort_by(|(a, similar_a), (b, similar_b)| {
            let by_similarity = similar_b.total_cmp(similar_a);
            // Nobody is first by the id that they choose.
            let age = |head: &Head| (head.trust_tier(), head.created_at, head.id.key());
            by_similarity.then_with(|| age(a).cmp(&age(b)))
        });
        let total = found.len();
        let skills = found
            .into_iter()
            .take(limit)
            .filter_map(|(other, similarity)| {
                // One that went away meanwhile is left out, as by a search.
                let theirs = registry.to_compare(&other).ok()?;
                Some(SimilarSkill {
                    similarity,
                    same_name: theirs.skill.name.to_lowercase()
                        == version.skill.name.to_lowercase()
                        || other.id.slug().eq_ignore_ascii_case(head.id.slug()),
                    same_files: theirs.digest == version.digest,
                    head: other,
                })
            });
        Ok(SimilarSkills {
            skills: skills.collect(),
            total,
            is_partial,
        })
    }
}
