//! Estimates how much of their texts two skills share, without the texts.
//!
//! The similarity of two texts is that of the sets of their shingles, three words in a row
//! each: what is in both, as a share of what is in either (Jaccard). A signature estimates it
//! in [`BYTES`] bytes a skill, by one permutation hashing (Li, Owen, Zhang 2012):
//!
//! * Every shingle is thrown into [`BINS_PER_SHINGLE`] of as many bins as there are bytes, and a bin
//!   keeps the lowest hash that it got: of two texts it keeps the same one as often as they
//!   are similar. Of that hash one byte is kept (b-bit minwise hashing, Li and König 2010).
//! * A bin that got nothing, as in short texts, has the byte of another one (Shrivastava
//!   2017).
//!
//! So the share of equal bytes is the similarity, off by sqrt(s (1 - s) / 128) on average:
//! .035 at .8, .02 at .95, nothing at 1. The bytes of skills in the index and those of
//! a skill that is compared with them are both made here, so a change here needs a new index
//! (`indexer::FORM`).

use super::tokens;

/// Bytes of a signature, and bins.
pub(super) const BYTES: usize = 128;
/// Words of a shingle.
const WORDS_PER_SHINGLE: usize = 3;
/// Bins that a shingle is thrown into. More fill all bins of shorter texts.
const BINS_PER_SHINGLE: u64 = 8;
/// How often bytes of different texts are equal by chance.
const CHANCE_PROBABILITY: f64 = 1.0 / 256.0;

/// The signature of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature([u8; BYTES]);

impl Signature {
    /// The signature of texts one after the other; none where they have no words.
    pub(super) fn of(texts: &[&str]) -> Option<Self> {
        let mut bins = [u64::MAX; BYTES];
        shingles(texts, |shingle| throw(shingle, &mut bins));
        let has = |bin: usize| bins.get(bin).is_some_and(|lowest| *lowest != u64::MAX);
        if !(0..BYTES).any(has) {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (bin, byte) in bytes.iter_mut().enumerate() {
            // Some bin has something, and every bin is asked sooner or later.
            // The same bins in every text, so that similar short texts borrow from the same
            // ones.
            let tries = (1..).map(|at| index(mixed((bin as u64) << 32 | at)));
            let from = std::iter::once(bin).chain(tries).find(|bin| has(*bin));
            let lowest = from.and_then(|bin| bins.get(bin)).copied();
            [*byte, ..] = lowest.unwrap_or_default().to_le_bytes();
        }
        Some(Self(bytes))
    }

    /// Reads a stored signature; none where the bytes are none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes, to be stored.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// How similar the two texts are, from 0 to 1, estimated.
    pub(super) fn similarity(&self, other: &Self) -> f64 {
        let equal = self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count();
        #[expect(clippy::cast_precision_loss, reason = "128 at most")]
        let share = equal as f64 / BYTES as f64;
        ((share - CHANCE_PROBABILITY) / (1.0 - CHANCE_PROBABILITY)).clamp(0.0, 1.0)
    }
}

/// The hashes of the shingles of texts one after the other; fewer words than a shingle has
/// are one.
fn shingles(texts: &[&str], mut each: impl FnMut(u64)) {
    let mut last = [0; WORDS_PER_SHINGLE];
    let mut words = 0_usize;
    let hash =
        |last: &[u64; WORDS_PER_SHINGLE]| last.iter().fold(0, |hash, word| mixed(hash ^ word));
    for text in texts {
        tokens::words(text, |word, _| {
            last.rotate_left(1);
            last[WORDS_PER_SHINGLE - 1] = fnv(word.as_bytes());
            words += 1;
            if words >= WORDS_PER_SHINGLE {
                each(hash(&last));
            }
        });
    }
    if (1..WORDS_PER_SHINGLE).contains(&words) {
        each(hash(&last));
    }
}

fn throw(shingle: u64, bins: &mut [u64; BYTES]) {
    for at in 0..BINS_PER_SHINGLE {
        let hash = mixed(shingle.wrapping_add(at));
        if let Some(lowest) = bins.get_mut(index(hash)) {
            // The remainder chose the bin, so it says nothing within it.
            *lowest = (*lowest).min(hash / BYTES as u64);
        }
    }
}

/// The bin of a hash.
fn index(hash: u64) -> usize {
    usize::try_from(hash % BYTES as u64).unwrap_or_default()
}

/// FNV-1a: signatures are compared with those of other builds, so nothing may be used that
/// hashes otherwise there.
fn fnv(bytes: &[u8]) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(begin, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// A number whose bits all depend on all bits of another one (`SplitMix64`).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn text(words: &[u32]) -> String {
        let words: Vec<_> = words.iter().map(|word| format!("w{word}")).collect();
        words.join(" ")
    }

    fn estimated(a: &str, b: &str) -> f64 {
        let of = |text| Signature::of(&[text]).expect("words");
        of(a).similarity(&of(b))
    }

    /// What is estimated.
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    fn similarity(a: &str, b: &str) -> f64 {
        let set = |text: &str| -> BTreeSet<u64> {
            let mut set = BTreeSet::new();
            shingles(&[text], |shingle| _ = set.insert(shingle));
            set
        };
        let (a, b) = (set(a), set(b));
        a.intersection(&b).count() as f64 / a.union(&b).count() as f64
    }

    /// The variance of an estimate that the page of the crate and the docs state.
    #[expect(clippy::cast_precision_loss, reason = "128")]
    fn variance(similarity: f64) -> f64 {
        similarity * (1.0 - similarity) / BYTES as f64
    }

    /// Texts of so many words, the second with some of them changed: `edits` in a thousand.
    fn pair(words: usize, edits: u32, seed: u64) -> (String, String) {
        let mut state = seed;
        let mut next = |below: u64| {
            state = mixed(state);
            u32::try_from(state % below).expect("few")
        };
        let one: Vec<u32> = (0..words).map(|_| next(2_000)).collect();
        let other = one.iter().map(|word| {
            if next(1_000) < edits {
                2_000 + next(2_000)
            } else {
                *word
            }
        });
        let other: Vec<u32> = other.collect();
        (text(&one), text(&other))
    }

    #[test]
    fn what_has_the_same_words_is_the_same_and_what_has_none_has_no_signature() {
        let text = "Reviews pull requests. Look at the tests first, then at the rest.";
        let other = "REVIEWS pull-requests!\n\n* Look at the *tests* first; then at the rest";
        assert_eq!(Signature::of(&[text]), Signature::of(&[other]));
        assert_eq!(Signature::of(&["Sort."]), Signature::of(&["sort"]));
        assert!(estimated(text, "Something else, which shares no three words with it.") < 0.1);
        assert!(estimated("one two", "two one") < 0.1);
        assert_eq!(Signature::of(&["", " -- \n"]), None);
        let split = Signature::of(&["Reviews pull", "requests. Look"]);
        assert_eq!(split, Signature::of(&["Reviews pull requests. Look"]));
    }

    #[test]
    fn a_signature_is_read_as_it_was_kept_and_stays_what_it_is() {
        let signature = Signature::of(&["Pays back what was paid."]).expect("words");
        assert_eq!(Signature::read(signature.as_bytes()), Some(signature));
        assert_eq!(Signature::read(&[]), None);
        // Those in an index were made by another build.
        assert_eq!(fnv(b"paid"), 0x0369_370d_eb88_b8c7);
        assert_eq!(mixed(1), 0x910a_2dec_8902_5cc1);
    }

    /// The bound of the docs, over pairs of all lengths and similarities.
    #[test]
    fn the_estimate_is_off_by_no_more_than_is_said_and_to_neither_side() {
        for words in [30_u16, 100, 500, 3_000] {
            let (mut sum, mut squares, mut bounds, mut pairs) = (0.0, 0.0, 0.0, 0);
            for seed in 0..400 {
                let edits = u32::try_from(seed % 20).expect("few") * 10;
                let (a, b) = pair(usize::from(words), edits, mixed(seed + u64::from(words)));
                let truth = similarity(&a, &b);
                let off = estimated(&a, &b) - truth;
                sum += off;
                squares += off * off;
                bounds += variance(truth);
                pairs += 1;
            }
            let (mean, error) = (sum / f64::from(pairs), (squares / f64::from(pairs)).sqrt());
            let said = (bounds / f64::from(pairs)).sqrt();
            assert!(mean.abs() < 0.01, "{words} words: {mean}");
            assert!(error < said * 1.15, "{words} words: {error}, {said}");
        }
    }

    proptest! {
        #[test]
        fn no_estimate_is_far_off(words in 20_usize..1_500, edits in 0_u32..300, seed: u64) {
            let (a, b) = pair(words, edits, seed);
            let (truth, found) = (similarity(&a, &b), estimated(&a, &b));
            let deviation = variance(truth).sqrt();
            prop_assert!((found - truth).abs() <= 6.0 * deviation + 0.02, "{truth} {found}");
            prop_assert!((found - estimated(&b, &a)).abs() < f64::EPSILON);
        }
    }
}
