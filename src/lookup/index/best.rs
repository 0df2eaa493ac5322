//! The best of what is found, as many as a page needs.

use std::cmp::Ordering;

use super::fuse::Tier;
use super::ties::Ties;

/// A skill on its way into the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranked {
    pub(super) ordinal: u32,
    pub(super) tier: Tier,
    /// It looks like another, which comes before it.
    pub(super) second: bool,
    pub(super) words: f32,
    pub(super) meaning: f32,
    /// What decides among equals; see [`super::ties`].
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

/// The best so many of what is offered.
pub(super) struct Best {
    needed: usize,
    kept: Vec<Ranked>,
    /// What is behind this is not among them.
    last: Option<Ranked>,
    /// How many were offered.
    pub(super) offered: usize,
}

impl Best {
    /// The best so many; all, where that is [`usize::MAX`].
    pub(super) fn of(needed: usize) -> Self {
        Self {
            needed,
            kept: Vec::new(),
            last: None,
            offered: 0,
        }
    }

    /// Takes a skill, unless so many are better.
    pub(super) fn offer(
        &mut self,
        tier: Tier,
        words: f32,
        meaning: f32,
        ordinal: u32,
        order: &Ties,
    ) {
        self.offered += 1;
        let behind = self.last.is_some_and(|last| {
            let by_tier = last.tier.rank().cmp(&tier.rank());
            by_tier.then(last.score().total_cmp(&(words + meaning)).reverse()) == Ordering::Less
        });
        if behind {
            return;
        }
        self.kept.push(Ranked {
            ordinal,
            tier,
            second: false,
            words,
            meaning,
            tie: order.get(ordinal),
        });
        // Cut now and then: each cut costs as much as what it takes away.
        if self.kept.len() >= self.needed.saturating_mul(4) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if let Some(last) = self
            .needed
            .checked_sub(1)
            .filter(|last| *last < self.kept.len())
        {
            let (_, last, _) = self.kept.select_nth_unstable_by(last, Ranked::order);
            self.last = Some(*last);
            self.kept.truncate(self.needed);
        }
    }

    /// The best, in no order.
    pub(super) fn into_ranked(mut self) -> Vec<Ranked> {
        self.cut();
        self.kept
    }
}
