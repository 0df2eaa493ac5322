//! The meanings of all skills in memory, and the scan over them.
//!
//! A vector is kept as one byte a dimension. A scan reads them all, in their order:
//! it is bound by memory, and a hundred thousand take one or two milliseconds. Nothing
//! is approximated.

use std::sync::Arc;

/// Rows of one chunk. A chunk is what is copied when a row of it changes while a
/// search reads it.
const ROWS: usize = 1024;
/// Values that a processor takes at once. Rows are filled up with zeros to a multiple.
const LANES: usize = 16;

/// A row for each ordinal that has one.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    dimensions: usize,
    chunks: Vec<Arc<Chunk>>,
}

#[derive(Debug, Clone)]
struct Chunk {
    rows: Vec<[i8; LANES]>,
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

    /// Parts of a row.
    fn wide(&self) -> usize {
        self.dimensions.div_ceil(LANES).max(1)
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
        let wide = self.wide();
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new(Chunk {
                rows: vec![[0; LANES]; ROWS * wide],
                has: vec![false; ROWS],
            }));
        }
        let Some(chunk) = self.chunks.get_mut(chunk).map(Arc::make_mut) else {
            return;
        };
        let place = chunk.rows.chunks_exact_mut(wide).nth(at);
        if let (Some(place), Some(has)) = (place, chunk.has.get_mut(at))
            && row.len() == self.dimensions
        {
            for (place, value) in place.as_flattened_mut().iter_mut().zip(row) {
                *place = *value;
            }
            *has = true;
        }
    }

    /// Removes a row; says whether there was one.
    pub(super) fn clear(&mut self, ordinal: u32) -> bool {
        let (chunk, at) = Self::chunk(ordinal);
        let wide = self.wide();
        if !self.has(ordinal) {
            return false;
        }
        if let Some(chunk) = self.chunks.get_mut(chunk).map(Arc::make_mut)
            && let Some(has) = chunk.has.get_mut(at)
        {
            *has = false;
            let row = chunk.rows.chunks_exact_mut(wide).nth(at);
            row.into_iter()
                .flatten()
                .for_each(|part| *part = [0; LANES]);
        }
        true
    }

    /// How near each row is to a query, by ordinal, from -1 to 1; 0 where there is
    /// none. The query has as many dimensions as the rows.
    pub(super) fn scan(&self, query: &Query, into: &mut Vec<f32>) {
        into.clear();
        if query.dimensions != self.dimensions || self.dimensions == 0 {
            return;
        }
        into.reserve(self.chunks.len() * ROWS);
        for chunk in &self.chunks {
            products(&chunk.rows, &query.values, |sum| {
                into.push(sum * query.scale);
            });
        }
    }
}

/// A query as a scan reads it.
#[derive(Debug, Clone)]
pub(super) struct Query {
    dimensions: usize,
    values: Vec<[i16; LANES]>,
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
        let mut values = vec![[0; LANES]; vector.len().div_ceil(LANES)];
        for (place, value) in values.as_flattened_mut().iter_mut().zip(vector) {
            *place = (value * RANGE).round() as i16;
        }
        Self {
            dimensions: vector.len(),
            values,
            scale: 1.0 / (RANGE * LENGTH * scale),
        }
    }
}

/// The product of each row with a query, in their order; the rows are a multiple of
/// four.
#[cfg(target_arch = "x86_64")]
fn products(rows: &[[i8; LANES]], query: &[[i16; LANES]], mut each: impl FnMut(f32)) {
    use pulp::x86::V3;
    use pulp::{i8x16, i16x16, i32x8};

    let Some(v3) = V3::try_new() else {
        return products_anywhere(rows, query, each);
    };
    v3.vectorize(
        #[inline(always)]
        || {
            // Four at once: the query is read once for them, and no sum waits for
            // another.
            for rows in rows.chunks_exact(query.len() * 4) {
                let (ab, cd) = rows.split_at(query.len() * 2);
                let ((a, b), (c, d)) = (ab.split_at(query.len()), cd.split_at(query.len()));
                let mut sums: [i32x8; 4] = [v3.splat_i32x8(0); 4];
                for ((((a, b), c), d), query) in a.iter().zip(b).zip(c).zip(d).zip(query) {
                    let query: i16x16 = pulp::cast(*query);
                    for (sum, row) in sums.iter_mut().zip([a, b, c, d]) {
                        let row: i8x16 = pulp::cast(*row);
                        let row = v3.convert_i8x16_to_i16x16(row);
                        let products = v3.multiply_wrapping_add_adjacent_i16x16(row, query);
                        *sum = v3.wrapping_add_i32x8(*sum, products);
                    }
                }
                // Neighbours are added, twice: four sums, each in two halves.
                let [a, b, c, d] = sums.map(pulp::cast);
                let (ab, cd) = (
                    v3.avx2._mm256_hadd_epi32(a, b),
                    v3.avx2._mm256_hadd_epi32(c, d),
                );
                let halves: [[i32; 4]; 2] = pulp::cast(v3.avx2._mm256_hadd_epi32(ab, cd));
                let [low, high] = halves;
                for (low, high) in low.into_iter().zip(high) {
                    each(value(low + high));
                }
            }
        },
    );
}

#[cfg(not(target_arch = "x86_64"))]
use products_anywhere as products;

/// The same, in what every processor has.
fn products_anywhere(rows: &[[i8; LANES]], query: &[[i16; LANES]], mut each: impl FnMut(f32)) {
    for row in rows.chunks_exact(query.len()) {
        let row = row.as_flattened().iter();
        let products = row.zip(query.as_flattened());
        each(value(
            products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum(),
        ));
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

    proptest! {
        #[test]
        fn every_processor_gives_the_same_products(
            rows in prop::collection::vec(any::<[i8; LANES]>(), 3 * 8),
            query in prop::collection::vec(any::<[i16; LANES]>(), 3),
        ) {
            let (mut here, mut anywhere) = (Vec::new(), Vec::new());
            products(&rows, &query, |sum| here.push(sum));
            products_anywhere(&rows, &query, |sum| anywhere.push(sum));
            prop_assert_eq!(here, anywhere);
        }
    }
}
