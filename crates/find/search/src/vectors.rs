//! The meanings of all skills in memory, and the scan over them.
//!
//! A scan reads all vectors, in their order, and is bound by memory. So a vector takes
//! as few bytes as it needs: half a byte for each dimension. Similarities are
//! off by .01 at that, where those of different skills spread by .085,
//! and the relevance that was measured is the same. Nothing else is approximated: an index
//! of nearest neighbors would miss some and have to be built, where a scan takes 0.3 ms
//! for 50,000 skills, and some 10 for a million.

use std::sync::Arc;

use super::products::{PART_BYTES, Values, ZERO_OFFSET, products};

/// Rows of one chunk, which is copied when a row of it changes while a search reads it.
const ROWS_PER_CHUNK: usize = 1024;

/// A row for each ordinal that has one.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    dimensions: usize,
    chunks: Vec<Arc<Chunk>>,
}

/// Rows are filled up with zeros to whole parts.
#[derive(Debug, Clone)]
struct Chunk {
    rows: Vec<[u8; PART_BYTES]>,
    has: Vec<bool>,
}

/// The step of a half byte, in units of a byte. Found by trying on judged queries
/// (`tests/relevance`): the first dimensions of the built-in table say most and have the
/// largest values, which 5 and less cut off.
const QUANTIZATION_FACTOR: f32 = 7.0;

/// Parts of a row; there is one at least.
fn parts(dimensions: usize) -> usize {
    dimensions.div_ceil(2 * PART_BYTES).max(1)
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
        (ordinal / ROWS_PER_CHUNK, ordinal % ROWS_PER_CHUNK)
    }

    /// The ordinal has a row.
    #[expect(clippy::indexing_slicing, reason = "a chunk has ROWS of them")]
    pub(super) fn has(&self, ordinal: u32) -> bool {
        let (chunk, at) = Self::chunk(ordinal);
        self.chunks.get(chunk).is_some_and(|chunk| chunk.has[at])
    }

    /// Stores a row; one of another length is ignored.
    #[expect(clippy::indexing_slicing, reason = "the chunks up to it were made")]
    pub(super) fn set(&mut self, ordinal: u32, row: &[i8]) {
        if row.len() != self.dimensions {
            return;
        }
        let (chunk, at) = Self::chunk(ordinal);
        let parts = parts(self.dimensions);
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new(Chunk {
                rows: vec![[ZERO_OFFSET << 4 | ZERO_OFFSET; PART_BYTES]; ROWS_PER_CHUNK * parts],
                has: vec![false; ROWS_PER_CHUNK],
            }));
        }
        Arc::make_mut(&mut self.chunks[chunk]).put(at, row, parts);
    }

    /// Removes a row; returns whether there was one.
    #[expect(clippy::indexing_slicing, reason = "it has a row, so it has a chunk")]
    pub(super) fn clear(&mut self, ordinal: u32) -> bool {
        let (chunk, at) = Self::chunk(ordinal);
        if !self.has(ordinal) {
            return false;
        }
        let chunk = Arc::make_mut(&mut self.chunks[chunk]);
        // A scan reads every row, so that of a skill that is gone must be near to nothing.
        chunk.put(at, &vec![0; self.dimensions], parts(self.dimensions));
        chunk.has[at] = false;
        true
    }

    /// Computes the similarity of each row to a query, by ordinal, from -1 to 1; 0 where there
    /// is none. The query has as many dimensions as the rows.
    pub(super) fn scan(&self, query: &Query, into: &mut Vec<f32>) {
        into.clear();
        if query.dimensions != self.dimensions || self.dimensions == 0 {
            return;
        }
        into.reserve(self.chunks.len() * ROWS_PER_CHUNK);
        for chunk in &self.chunks {
            products(&chunk.rows, &query.values, |sum| {
                into.push(value(sum - query.zeros) * query.to_one);
            });
        }
    }
}

impl Chunk {
    /// Writes a row of this many parts.
    #[expect(
        clippy::indexing_slicing,
        reason = "a chunk has parts for ROWS of them"
    )]
    fn put(&mut self, at: usize, row: &[i8], parts: usize) {
        let parts = &mut self.rows[at * parts..(at + 1) * parts];
        for (part, values) in parts.iter_mut().zip(row.chunks(2 * PART_BYTES)) {
            let (low, high) = values.split_at(values.len().min(PART_BYTES));
            for (cell, value) in part.iter_mut().zip(low) {
                *cell = *cell & !15 | half(*value);
            }
            for (cell, value) in part.iter_mut().zip(high) {
                *cell = *cell & 15 | half(*value) << 4;
            }
        }
        self.has[at] = true;
    }
}

/// A value as half a byte; values beyond its range are clamped.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is from 0 to 15"
)]
fn half(value: i8) -> u8 {
    let steps = (f32::from(value) / QUANTIZATION_FACTOR).round();
    (steps + f32::from(ZERO_OFFSET)).clamp(0.0, 15.0) as u8
}

/// A query as a scan reads it.
#[derive(Debug, Clone)]
pub(super) struct Query {
    dimensions: usize,
    values: Vec<Values>,
    /// The product with a row that is all zeros.
    zeros: i32,
    /// The factor from products to similarities.
    to_one: f32,
}

/// Length of a stored vector: the largest value of a byte.
const LENGTH: f32 = 127.0;

/// A vector of length 1 as a row. Values beyond a byte's range are clamped, which takes a
/// vector with nearly all of its length in one dimension.
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
        let mut values = vec![[[0; PART_BYTES]; 2]; parts(vector.len())];
        let max = vector.iter().fold(0.0_f32, |max, v| max.max(v.abs()));
        // The largest value takes all of a byte: a query is one row, so it may have a scale of
        // its own.
        let to_byte = if max > 0.0 { 127.0 / max } else { 1.0 };
        let cells = values.as_flattened_mut().as_flattened_mut();
        for (cell, value) in cells.iter_mut().zip(vector) {
            *cell = (value * to_byte).round() as i8;
        }
        let sum: i32 = cells.iter().map(|value| i32::from(*value)).sum();
        Self {
            dimensions: vector.len(),
            values,
            zeros: i32::from(ZERO_OFFSET) * sum,
            to_one: QUANTIZATION_FACTOR / (to_byte * LENGTH * scale),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of rounded values")]
fn value(sum: i32) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The product of a row with a query, and how far a scan may be off: by half a step of
    /// each value of the row, and by half a step of each of the query.
    fn wanted(row: &[i8], query: &[f32]) -> (f32, f32) {
        let (min, max) = (-8.0 * QUANTIZATION_FACTOR, 7.0 * QUANTIZATION_FACTOR);
        let row = row.iter().map(|value| f32::from(*value).clamp(min, max));
        let products = row.clone().zip(query).map(|(row, query)| row * query);
        let of_row = query
            .iter()
            .map(|query| query.abs() * (QUANTIZATION_FACTOR / 2.0));
        let max = query.iter().fold(0.0_f32, |max, v| max.max(v.abs()));
        let of_query = row.map(|row| (row.abs() + QUANTIZATION_FACTOR / 2.0) * max / 254.0);
        (
            products.sum(),
            of_row.sum::<f32>() + of_query.sum::<f32>() + 0.01,
        )
    }

    proptest! {
        #[test]
        fn a_scan_gives_the_products_of_all_rows_but_for_what_is_rounded(
            rows in (1_usize..400).prop_flat_map(|dimensions| {
                let row = || prop::collection::vec(any::<i8>(), dimensions);
                prop::collection::vec(row(), 2..9)
            }),
        ) {
            let dimensions = rows[0].len();
            let (query, rows) = rows.split_first().expect("a query");
            let query: Vec<f32> = query.iter().map(|value| f32::from(*value) / 128.0).collect();
            let mut vectors = Vectors::new(dimensions);
            for (ordinal, row) in (0..).zip(rows) {
                vectors.set(ordinal * 700, &vec![127; dimensions]);
                vectors.set(ordinal * 700, row);
            }
            let scanned = Query::new(&query, 1.0 / LENGTH);
            let mut near = Vec::new();
            vectors.scan(&scanned, &mut near);
            for (ordinal, row) in (0..).zip(rows) {
                let (wanted, off) = wanted(row, &query);
                let found = near[ordinal as usize * 700];
                prop_assert!((found - wanted).abs() <= off, "{found} for {wanted}, {off}");
                prop_assert!(vectors.clear(ordinal * 700));
            }
            vectors.scan(&scanned, &mut near);
            prop_assert!(near.iter().all(|near| near.abs() < 1e-6));
        }
    }
}
