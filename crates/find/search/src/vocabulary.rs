//! The words of a segment's names, descriptions and tags, to find those with a similar
//! spelling.
//!
//! A word within `k` wrong letters differs from another in at most `2k` of the letters
//! that it is made of. So the letters of each word are a set of bits, and a scan of
//! all sets, a nanosecond each, leaves few words to be compared letter by letter: a
//! tenth of what an automaton takes to walk the dictionary of the index. The rule is the
//! same, which a property holds against the distance itself.

use tantivy::SegmentReader;
use tantivy::schema::Field;

/// The words, in the order of the index.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    text: String,
    words: Vec<KnownWord>,
}

/// A word of [`Vocabulary::text`].
#[derive(Debug, Clone, Copy)]
struct KnownWord {
    /// A bit for each letter that it has, see [`letters`].
    letters: u32,
    /// Its first letter; words are in the order of these.
    first: char,
    /// Where it ends.
    end: u32,
}

impl Vocabulary {
    /// Reads the words of a field.
    ///
    /// # Errors
    /// The segment cannot be read.
    pub(super) fn read(reader: &SegmentReader, field: Field) -> tantivy::Result<Self> {
        let index = reader.inverted_index(field)?;
        let mut vocabulary = Self::default();
        let mut words = index.terms().stream()?;
        while let Some((word, _)) = words.next() {
            if let Ok(word) = std::str::from_utf8(word) {
                vocabulary.push(word);
            }
        }
        vocabulary.text.shrink_to_fit();
        vocabulary.words.shrink_to_fit();
        Ok(vocabulary)
    }

    /// Adds a word behind those before it. A number is none: nobody misspells it.
    fn push(&mut self, word: &str) {
        let Some(first) = word.chars().next() else {
            return;
        };
        if !word.chars().any(char::is_alphabetic) {
            return;
        }
        // Skills are far from 4 GiB of different words; words beyond are not corrected.
        if let Ok(end) = u32::try_from(self.text.len() + word.len()) {
            self.text.push_str(word);
            let letters = letters(word);
            self.words.push(KnownWord {
                letters,
                first,
                end,
            });
        }
    }

    /// The words within `wrong` letters of one, or only those that begin with the same letter.
    /// Two neighbors that are exchanged are one wrong letter.
    pub(super) fn within<'a>(
        &'a self,
        word: &'a str,
        wrong: u32,
        same_first: bool,
    ) -> impl Iterator<Item = &'a str> {
        let range = match word.chars().next() {
            Some(first) if same_first => {
                let from = self.words.partition_point(|word| word.first < first);
                from..self.words.partition_point(|word| word.first <= first)
            }
            _ => 0..self.words.len(),
        };
        let from = range.start;
        let like = like(self.words.get(range).unwrap_or_default(), word, wrong);
        let others = like.into_iter().filter_map(move |at| self.word(from + at));
        let wrong = wrong as usize;
        others.filter(move |other| {
            // A letter has one byte, or four at most.
            let letter = if word.is_ascii() && other.is_ascii() {
                1
            } else {
                4
            };
            // Lengths first: the distance takes time that grows with the product of both.
            word.len().abs_diff(other.len()) <= letter * wrong
                && strsim::osa_distance(word, other) <= wrong
        })
    }

    fn word(&self, at: usize) -> Option<&str> {
        let before = at.checked_sub(1).and_then(|before| self.words.get(before));
        let start = before.map_or(0, |before| before.end);
        self.text
            .get(start as usize..self.words.get(at)?.end as usize)
    }
}

/// The words that are made of nearly the same letters as one.
fn like(words: &[KnownWord], word: &str, wrong: u32) -> Vec<usize> {
    let wanted = letters(word);
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let all = words.iter().enumerate();
            let like = all.filter(|(_, word)| (word.letters ^ wanted).count_ones() <= 2 * wrong);
            like.map(|(at, _)| at).collect()
        },
    )
}

/// A bit for each letter of a word: letters that are 32 apart in Unicode share one, which
/// finds more to be compared and misses nothing. Those of one alphabet are not.
fn letters(word: &str) -> u32 {
    word.chars()
        .fold(0, |bits, letter| bits | 1 << (u32::from(letter) % 32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_within_so_many_wrong_letters_is_found_and_nothing_else(
            words in prop::collection::btree_set("[abcé0-9語]{1,6}", 0..40),
            word in "[abcé0-9語]{1,6}",
            wrong in 0_u32..3,
            same_first in any::<bool>(),
        ) {
            let mut vocabulary = Vocabulary::default();
            for word in &words {
                vocabulary.push(word);
            }
            let found: Vec<&str> = vocabulary.within(&word, wrong, same_first).collect();
            let is_near = |other: &&String| {
                other.chars().any(char::is_alphabetic)
                    && strsim::osa_distance(&word, other) <= wrong as usize
                    && (!same_first || other.chars().next() == word.chars().next())
            };
            prop_assert_eq!(found, words.iter().filter(is_near).collect::<Vec<_>>());
        }
    }
}
