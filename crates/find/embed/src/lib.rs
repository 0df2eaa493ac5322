//! Texts as vectors.
//!
//! | module | embedder |
//! |---|---|
//! | `table`, `pieces` | a built-in table of pieces of words |
//! | `transformer` | a sentence transformer from a folder |
//! | `combined` | two at once |
//!
//! Rules:
//!
//! * The same text gets the same vector on every machine, and [`Embedder::digest`] changes
//!   where it would not.
//! * Nothing is fetched.
//!
//! Not here: the choice of texts, and storage of vectors (`search`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod combined;
mod pieces;
mod table;
#[cfg(feature = "transformer")]
mod transformer;

use std::fmt::Debug;

pub use combined::{CombinedEmbedder, CombinedEmbedderError};
pub use table::Table;
#[cfg(feature = "transformer")]
pub use transformer::{OpenError, Transformer};

use model::Digest;

/// Makes vectors of texts.
pub trait Embedder: Debug + Send + Sync {
    /// Name of the embedder, for people: its kind and its origin.
    fn name(&self) -> &str;

    /// Changes whenever the same text would get another vector.
    fn digest(&self) -> Digest;

    /// Values of each vector.
    fn dimensions(&self) -> usize;

    /// The best number of texts for one call.
    fn batch(&self) -> usize;

    /// Makes a vector of length 1 for each text; of length 0 where a text means nothing to
    /// it. Blocks.
    ///
    /// # Errors
    /// The embedder failed, in its words.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The text has a vector but is in no language that it knows, so that its neighbors are
    /// accidental. Not every embedder can detect this.
    fn is_noise(&self, _text: &str) -> bool {
        false
    }
}

/// Brings a vector to length 1 and returns the length that it had; one of length 0 stays as it is.
fn normalize(vector: &mut [f32]) -> f32 {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        for value in vector {
            *value /= length;
        }
    }
    length
}

/// Vectors cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EmbedError(pub String);
