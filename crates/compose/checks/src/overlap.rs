//! The phrases that two skills share.

use std::cmp::Reverse;

use super::share;
use facets::{Phrase, Triggers};

/// Shared phrases that are shown.
const MAX_SHOWN_PHRASES: usize = 20;

/// The phrases that two skills share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// Phrases of either that call both up, those of the most words first. Of more than 20
    /// the first.
    pub shared: Vec<String>,
    /// How much of what calls one of them up calls the other up as well, of the one of which
    /// it is more: 1 to 100.
    pub percent: u32,
    /// Each phrase of either calls both up.
    pub whole: bool,
    /// How many phrases are shared.
    pub count: usize,
}

/// The phrases that call both skills up; none: there is none. The same whichever of them
/// comes first.
#[must_use]
pub fn overlap(one: &Triggers, other: &Triggers) -> Option<Overlap> {
    let both = |phrase: &&Phrase| one.called_by(phrase) && other.called_by(phrase);
    let of_one: Vec<&Phrase> = one.phrases.iter().filter(both).collect();
    let of_other: Vec<&Phrase> = other.phrases.iter().filter(both).collect();
    let mut shared: Vec<&Phrase> = of_one.iter().chain(&of_other).copied().collect();
    shared.sort_by_key(|phrase| (Reverse(phrase.stems.len()), &phrase.stems, &phrase.text));
    shared.dedup_by(|a, b| a.stems == b.stems);
    if shared.is_empty() {
        return None;
    }
    let of = |some: &[&Phrase], all: &Triggers| share(some.len(), all.phrases.len());
    let percent = of(&of_one, one).max(of(&of_other, other));
    Some(Overlap {
        percent,
        whole: of_one.len() == one.phrases.len() && of_other.len() == other.phrases.len(),
        count: shared.len(),
        shared: shared
            .into_iter()
            .take(MAX_SHOWN_PHRASES)
            .map(|phrase| phrase.text.clone())
            .collect(),
    })
}
