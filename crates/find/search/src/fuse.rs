//! Combines words and meaning.
//!
//! Certain matches are a tier of their own. Below that one score decides. Words answer
//! a query as far as some skill has them: all of them in its front parts, or nearly all
//! of them in its body; a long body has some of any words by accident, so a part of the
//! query in a body is no answer. Meaning counts for the share that is left, and a little
//! in any case, which orders skills that words cannot distinguish.

use super::lexical::{Cell, TermWeights};

/// The kind of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// The query is the whole name, or the id.
    Name,
    /// Every word of the query is in the name.
    NameWords,
    /// Words of the query are in it.
    Words,
    /// No word of the query is in it; its meaning is near.
    Meaning,
}

/// The weight of meaning where words answer everything.
const MIN_SEMANTIC_WEIGHT: f32 = 0.5;
/// The additional weight where they answer nothing.
const UNANSWERED_SEMANTIC_WEIGHT: f32 = 2.0;
/// How fast a body that has part of the query stops being an answer.
const BODY_EXPONENT: i32 = 3;

impl Tier {
    /// Its rank: matches by words and by meaning share one, and are ordered by score.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Name => 0,
            Self::NameWords => 1,
            Self::Words | Self::Meaning => 2,
        }
    }
}

/// Below this similarity a skill is about something else.
pub(super) const MIN_NEAR: f32 = 0.2;

/// How much of a query words answer in the skill that they answer best, from 0 to 1.
pub(super) fn answered(weighed: &TermWeights, cells: impl Iterator<Item = Cell>) -> f32 {
    let mut best = 0.0;
    for cell in cells {
        // The front parts are among all parts, so this is an upper bound.
        let any = weighed.share(cell.any);
        if any > best {
            best = best.max(cell.front()).max(any.powi(BODY_EXPONENT));
        }
    }
    best
}

/// The weight of meaning, where words answer this much of the query in the skill that they
/// answer best.
pub(super) fn weight_of_meaning(best: f32) -> f32 {
    MIN_SEMANTIC_WEIGHT + UNANSWERED_SEMANTIC_WEIGHT * (1.0 - best).clamp(0.0, 1.0)
}
