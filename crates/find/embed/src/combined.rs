//! Two embedders as one: the values of the first, then those of the second.
//!
//! Each part is scaled before they are joined, the first by `w` and the second by the
//! root of `1 - w²`. So the joined vectors have length 1, and their product is
//! `w² · (product of the firsts) + (1 - w²) · (product of the seconds)`: one scan of
//! one table answers with the weighted sum of both similarities.
//!
//! A text that says nothing to one of them has the other's vector at length 1, and
//! one that says nothing to both has length 0.

use std::sync::Arc;

use super::{EmbedError, Embedder};
use model::Digest;

/// Two embedders.
#[derive(Debug)]
pub struct CombinedEmbedder {
    first: Arc<dyn Embedder>,
    second: Arc<dyn Embedder>,
    /// The factor of each part.
    weights: [f32; 2],
    name: String,
    digest: Digest,
}

/// A share is out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the first embedder's share is {0}: give more than 0 and less than 1")]
pub struct CombinedEmbedderError(pub f32);

impl CombinedEmbedder {
    /// Joins two embedders. The share, between 0 and 1, is that of the first one's
    /// similarity in the sum: `w²`.
    ///
    /// # Errors
    /// The share is not between 0 and 1.
    pub fn new(
        first: Arc<dyn Embedder>,
        second: Arc<dyn Embedder>,
        share: f32,
    ) -> Result<Self, CombinedEmbedderError> {
        if !(share > 0.0 && share < 1.0) {
            return Err(CombinedEmbedderError(share));
        }
        // Stored vectors are found by this digest, so the word stays whatever the type is
        // called.
        let mut made_of = b"both\n".to_vec();
        made_of.extend_from_slice(first.digest().as_bytes());
        made_of.extend_from_slice(second.digest().as_bytes());
        made_of.extend_from_slice(&share.to_le_bytes());
        Ok(Self {
            weights: [share.sqrt(), (1.0 - share).sqrt()],
            name: format!("{} and {}", first.name(), second.name()),
            digest: Digest::of(&made_of),
            first,
            second,
        })
    }

    fn join(&self, first: &[f32], second: &[f32]) -> Vec<f32> {
        let mut weights = self.weights;
        let is_silent = [first, second].map(|part| part.iter().all(|value| *value == 0.0));
        match is_silent {
            [true, false] => weights = [0.0, 1.0],
            [false, true] => weights = [1.0, 0.0],
            _ => {}
        }
        let [of_first, of_second] = weights;
        let first = first.iter().map(|value| value * of_first);
        let second = second.iter().map(|value| value * of_second);
        first.chain(second).collect()
    }
}

impl Embedder for CombinedEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn dimensions(&self) -> usize {
        self.first.dimensions() + self.second.dimensions()
    }

    fn batch(&self) -> usize {
        self.first.batch().min(self.second.batch())
    }

    fn is_noise(&self, text: &str) -> bool {
        self.first.is_noise(text) || self.second.is_noise(text)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let firsts = self.first.embed(texts)?;
        let seconds = self.second.embed(texts)?;
        for (embedder, made) in [(&self.first, &firsts), (&self.second, &seconds)] {
            let is_right = |vector: &Vec<f32>| vector.len() == embedder.dimensions();
            // Joined, a vector of another length would shift all values of the second part,
            // and every similarity with it.
            if made.len() != texts.len() || !made.iter().all(is_right) {
                let name = embedder.name();
                return Err(EmbedError(format!(
                    "{name}: not one whole vector for each text"
                )));
            }
        }
        let pairs = firsts.iter().zip(&seconds);
        Ok(pairs
            .map(|(first, second)| self.join(first, second))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows the texts that it was told.
    #[derive(Debug)]
    struct Known(&'static str, Vec<(&'static str, Vec<f32>)>);

    impl Embedder for Known {
        fn name(&self) -> &str {
            self.0
        }

        fn digest(&self) -> Digest {
            Digest::of(self.0.as_bytes())
        }

        fn dimensions(&self) -> usize {
            self.1[0].1.len()
        }

        fn batch(&self) -> usize {
            self.0.len()
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
            let vector = |text: &&str| {
                let known = self.1.iter().find(|(known, _)| known == text);
                known.map_or_else(
                    || vec![0.0; self.dimensions()],
                    |(_, vector)| vector.clone(),
                )
            };
            Ok(texts.iter().map(vector).collect())
        }
    }

    fn words() -> Arc<dyn Embedder> {
        let known = vec![("cat", vec![1.0, 0.0]), ("dog", vec![0.6, 0.8])];
        Arc::new(Known("words", known))
    }

    fn sense() -> Arc<dyn Embedder> {
        let known = vec![
            ("cat", vec![0.0, 0.0, 1.0]),
            ("dog", vec![0.0, 1.0, 0.0]),
            ("?", vec![0.0, 1.0, 0.0]),
        ];
        Arc::new(Known("sense of it", known))
    }

    fn both(share: f32) -> CombinedEmbedder {
        CombinedEmbedder::new(words(), sense(), share).expect("a share")
    }

    fn product(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn one_product_is_the_weighted_sum_of_both_similarities() {
        let made = both(0.3).embed(&["cat", "dog"]).expect("vectors");
        assert!((product(&made[0], &made[1]) - 0.3 * 0.6).abs() < 1e-6);
        assert!((product(&made[0], &made[0]) - 1.0).abs() < 1e-6);
        assert_eq!(made[0].len(), both(0.3).dimensions());
    }

    #[test]
    fn a_text_that_says_nothing_to_one_has_the_others_vector() {
        let made = both(0.3).embed(&["?", "nothing"]).expect("vectors");
        assert_eq!(made[0], [0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(made[1], [0.0; 5]);
    }

    #[test]
    fn the_digest_is_of_both_and_of_their_shares() {
        let digest = both(0.3).digest();
        assert_eq!(both(0.3).digest(), digest);
        assert_ne!(both(0.4).digest(), digest);
        let turned = CombinedEmbedder::new(sense(), words(), 0.3).expect("a share");
        assert_ne!(turned.digest(), digest);
        assert_eq!(turned.name(), "sense of it and words");
        assert_eq!(turned.batch(), 5);
    }

    #[test]
    fn a_share_of_nothing_of_all_or_of_no_number_is_refused() {
        for share in [0.0, 1.0, -0.1, f32::NAN, f32::INFINITY] {
            assert!(
                CombinedEmbedder::new(words(), sense(), share).is_err(),
                "{share}"
            );
        }
    }
}
