//! Finds phrases among words: the longest that begins at a word counts, and the
//! words of it belong to no other phrase.

use rustc_hash::FxHashMap;

/// Phrases, each with a value.
#[derive(Debug)]
pub(super) struct Phrases<T> {
    /// By the first word; the longest first.
    by_first: FxHashMap<String, Vec<(Vec<String>, T)>>,
}

impl<T> Default for Phrases<T> {
    fn default() -> Self {
        Self {
            by_first: FxHashMap::default(),
        }
    }
}

/// A phrase among words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a, T> {
    /// Its value.
    pub(super) value: &'a T,
    /// Its first word.
    pub(super) from: usize,
    /// Behind its last word.
    pub(super) to: usize,
}

impl<T> Phrases<T> {
    /// Adds a phrase; one of no words is none.
    pub(super) fn add(&mut self, mut words: Vec<String>, value: T) {
        if words.is_empty() {
            return;
        }
        let rest = words.split_off(1);
        let Some(first) = words.pop() else { return };
        let known = self.by_first.entry(first).or_default();
        let at = known.partition_point(|(other, _)| other.len() >= rest.len());
        known.insert(at, (rest, value));
    }

    /// Returns the value of exactly these words.
    pub(super) fn exact(&self, words: &[String]) -> Option<&T> {
        let (first, rest) = words.split_first()?;
        let known = self.by_first.get(first)?;
        known
            .iter()
            .find(|(other, _)| other == rest)
            .map(|(_, value)| value)
    }

    /// Calls `take` for each phrase among the words, which returns whether it counts there.
    pub(super) fn find<'a, W: AsRef<str>>(
        &'a self,
        words: &[W],
        mut take: impl FnMut(Found<'a, T>) -> bool,
    ) {
        let mut at = 0;
        while let Some((first, behind)) = words.get(at..).and_then(<[W]>::split_first) {
            let known = self.by_first.get(first.as_ref()).into_iter().flatten();
            let mut next = at + 1;
            // The longest first. Where that one does not count, a shorter one from the same word
            // may.
            for (rest, value) in known {
                let stands = behind.len() >= rest.len()
                    && rest.iter().zip(behind).all(|(a, b)| a == b.as_ref());
                let to = at + 1 + rest.len();
                if stands
                    && take(Found {
                        value,
                        from: at,
                        to,
                    })
                {
                    next = to;
                    break;
                }
            }
            at = next;
        }
    }
}
