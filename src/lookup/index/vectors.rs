//! The meanings of all skills in memory, and the scan over them.
//!
//! A vector is kept as one byte a dimension. A scan reads them all, in their order,
//! with the widest instructions that the processor has: it is bound by memory, and
//! a hundred thousand take milliseconds. Nothing is approximated.

use std::sync::Arc;

/// Rows of one chunk. A chunk is what is copied when a row of it changes while a
/// search reads it.
const ROWS: usize = 1024;

/// A row for each ordinal that has one.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    dimensions: usize,
    chunks: Vec<Arc<Chunk>>,
}

#[derive(Debug, Clone)]
struct Chunk {
    rows: Vec<i8>,
    has: Vec<bool>,
}

impl Vectors {
    /// No rows yet.
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            chunks: Vec::new(),
        }
    }

    fn chunk(ordinal: u32) -> (usize, usize) {
        let ordinal = ordinal as usize;
        (ordinal / ROWS, ordinal % ROWS)
    }

    /// The ordinal has a row.
    pub(super) fn has(&self, ordinal: u32) -> bool {
        let (chunk, at) = Self::chunk(ordinal);
        let chunk = self.chunks.get(chunk);
        chunk.is_some_and(|chunk| chunk.has.get(at).copied().unwrap_or_default())
    }

    /// Keeps a row; one of another length is none.
    pub(super) fn set(&mut self, ordinal: u32, row: &[i8]) {
        let (chunk, at) = Self::chunk(ordinal);
        let dimensions = self.dimensions;
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new(Chunk {
                rows: vec![0; ROWS * dimensions],
                has: vec![false; ROWS],
            }));
        }
        let Some(chunk) = self.chunks.get_mut(chunk).map(Arc::make_mut) else {
            return;
        };
        let place = chunk.rows.chunks_exact_mut(dimensions.max(1)).nth(at);
        if let (Some(place), Some(has)) = (place, chunk.has.get_mut(at))
            && place.len() == row.len()
        {
            place.copy_from_slice(row);
            *has = true;
        }
    }

    /// Removes a row; says whether there was one.
    pub(super) fn clear(&mut self, ordinal: u32) -> bool {
        let (chunk, at) = Self::chunk(ordinal);
        if !self.has(ordinal) {
            return false;
        }
        if let Some(chunk) = self.chunks.get_mut(chunk).map(Arc::make_mut)
            && let Some(has) = chunk.has.get_mut(at)
        {
            *has = false;
            let row = chunk.rows.chunks_exact_mut(self.dimensions.max(1)).nth(at);
            row.into_iter().flatten().for_each(|byte| *byte = 0);
        }
        true
    }

    /// How near each row is to a query, by ordinal, from -1 to 1; 0 where there is
    /// none. The query has as many dimensions as the rows.
    pub(super) fn scan(&self, query: &Query, into: &mut Vec<f32>) {
        into.clear();
        if query.values.len() != self.dimensions || self.dimensions == 0 {
            return;
        }
        into.reserve(self.chunks.len() * ROWS);
        let processor = pulp::Arch::new();
        for chunk in &self.chunks {
            processor.dispatch(|| {
                for row in chunk.rows.chunks_exact(self.dimensions) {
                    into.push(dot(row, &query.values) * query.scale);
                }
            });
        }
    }
}

/// A query as a scan reads it.
#[derive(Debug, Clone)]
pub(super) struct Query {
    values: Vec<i16>,
    scale: f32,
}

/// Length of a vector as it is kept: what a dimension can say, as far as it can.
const LENGTH: f32 = 127.0;

/// A vector of length 1 as a row. What is beyond a byte's range, which takes a
/// vector with nearly all of its length in one dimension, is cut.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast of a float stays within the range"
)]
pub(super) fn row(vector: &[f32], scale: f32) -> Vec<i8> {
    vector
        .iter()
        .map(|value| (value * LENGTH * scale).round() as i8)
        .collect()
}

impl Query {
    /// Of a vector of length 1, for rows of that scale.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a float stays within the range"
    )]
    pub(super) fn new(vector: &[f32], scale: f32) -> Self {
        const RANGE: f32 = 4096.0;
        Self {
            values: vector
                .iter()
                .map(|value| (value * RANGE).round() as i16)
                .collect(),
            scale: 1.0 / (RANGE * LENGTH * scale),
        }
    }
}

/// The sum of the products. The query comes in 16 bits, so that compilers make one
/// instruction of multiplying and adding.
#[inline(always)]
#[expect(
    clippy::cast_precision_loss,
    clippy::inline_always,
    reason = "a sum of rounded values; only inside the loop it is widened"
)]
fn dot(row: &[i8], query: &[i16]) -> f32 {
    let sum: i32 = row
        .iter()
        .zip(query)
        .map(|(a, b)| i32::from(i16::from(*a)) * i32::from(*b))
        .sum();
    sum as f32
}
