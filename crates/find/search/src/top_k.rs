//! The best hits, as many as a page needs.

use std::cmp::Ordering;

use super::fuse::Tier;

/// A skill on its way into the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked {
    pub(super) ordinal: u32,
    pub(super) tier: Tier,
    /// Its name looks like another one, which comes before it.
    pub(super) second: bool,
    pub(super) words: f32,
    pub(super) meaning: f32,
    /// The tie-break key; see [`super::tie_break`].
    pub(super) tie: u64,
}

impl Ranked {
    pub(super) fn score(&self) -> f32 {
        self.words + self.meaning
    }

    /// The better one first.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        (self.tier.rank().cmp(&other.tier.rank()))
            .then(other.score().total_cmp(&self.score()))
            .then(self.second.cmp(&other.second))
            .then(self.tie.cmp(&other.tie))
    }
}

/// The best of the skills that are offered.
pub(super) struct TopK {
    needed: usize,
    best: Vec<Ranked>,
    /// The last of the best so far: a skill behind it is none of them.
    last: Option<Ranked>,
}

impl TopK {
    /// The best `needed`; all, where that is [`usize::MAX`].
    pub(super) fn of(needed: usize) -> Self {
        Self {
            needed,
            best: Vec::new(),
            last: None,
        }
    }

    /// The score below which a skill of the last tier is not among them.
    pub(super) fn min(&self) -> f32 {
        match &self.last {
            None => f32::NEG_INFINITY,
            Some(last) if last.tier.rank() < Tier::Words.rank() => f32::INFINITY,
            Some(last) => last.score(),
        }
    }

    /// Adds a skill, unless enough are better.
    pub(super) fn offer(&mut self, ranked: Ranked) {
        let last = self.last.as_ref();
        if last.is_some_and(|last| last.order(&ranked) == Ordering::Less) {
            return;
        }
        self.best.push(ranked);
        // Cut now and then: each cut costs as much as what it takes away.
        if self.best.len() >= self.needed.saturating_mul(4) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if let Some(last) = self
            .needed
            .checked_sub(1)
            .filter(|last| *last < self.best.len())
        {
            let (_, last, _) = self.best.select_nth_unstable_by(last, Ranked::order);
            self.last = Some(*last);
            self.best.truncate(self.needed);
        }
    }

    /// The best, in no order.
    pub(super) fn into_ranked(mut self) -> Vec<Ranked> {
        self.cut();
        self.best
    }
}
