//! Products of matrices, and the functions between them.
//!
//! * Each value of a product is summed in one order, with one rounding a step,
//!   whatever the processor's width is and whatever else is in the matrix. So a text
//!   has the same vector alone and among others, and on every machine that can
//!   multiply and add in one step.
//! * Only the caller's thread works.
//!
//! The right side is cut into panels of some columns, each column's value next to its
//! neighbors', and the left side into tiles of some rows. The sums of one tile over
//! one panel stay in registers: as in "Anatomy of high-performance matrix
//! multiplication" (Goto and van de Geijn, 2008), without the outer levels, as the
//! matrices of a sentence are small.

// A zero in its place would be a wrong vector that nobody sees.
#![expect(
    clippy::indexing_slicing,
    reason = "the shape of a model says how long everything is, and loading checks it"
)]
// What a dispatch does not inline is compiled for the baseline of the platform, without the wide
// instructions that the dispatch is there for.
#![expect(clippy::inline_always, reason = "only inside a dispatch it is widened")]

use pulp::{Arch, Simd, WithSimd};

/// Columns of a panel.
const PANEL_WIDTH: usize = 16;

/// The right side of a product, and the bias of each of its rows.
pub(super) struct Matrix {
    inputs: usize,
    outputs: usize,
    /// Panel by panel, input by input.
    panels: Vec<[f32; PANEL_WIDTH]>,
    added: Vec<[f32; PANEL_WIDTH]>,
}

impl Matrix {
    /// Of a value for each input and output.
    pub(super) fn new(
        inputs: usize,
        outputs: usize,
        value: impl Fn(usize, usize) -> f32,
        added: &[f32],
    ) -> Self {
        let count = outputs.div_ceil(PANEL_WIDTH);
        let mut panels = vec![[0.0; PANEL_WIDTH]; count * inputs];
        for (panel, rows) in panels.chunks_exact_mut(inputs.max(1)).enumerate() {
            let first = panel * PANEL_WIDTH;
            let wide = PANEL_WIDTH.min(outputs - first);
            for (input, row) in rows.iter_mut().enumerate() {
                for (column, cell) in row.iter_mut().take(wide).enumerate() {
                    *cell = value(input, first + column);
                }
            }
        }
        let mut bias = vec![[0.0; PANEL_WIDTH]; count];
        for (cell, value) in bias.as_flattened_mut().iter_mut().zip(added) {
            *cell = *value;
        }
        Self {
            inputs,
            outputs,
            panels,
            added: bias,
        }
    }

    /// Columns of a product with it.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// The product of some rows with it.
    pub(super) fn times(&self, left: &[f32]) -> Vec<f32> {
        let rows = left.len() / self.inputs.max(1);
        let mut out = vec![0.0; rows * self.outputs];
        let left = Columns::all(left, self.inputs);
        self.times_into(left, &mut out, self.outputs, 0);
        out
    }

    /// The product of some columns of rows with it, into rows of `stride` values, from column
    /// `first` on.
    pub(super) fn times_into(
        &self,
        left: Columns<'_>,
        out: &mut [f32],
        stride: usize,
        first: usize,
    ) {
        Arch::new().dispatch(Product {
            left,
            right: self,
            out,
            stride,
            first,
        });
    }
}

/// Some columns of rows.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    values: &'a [f32],
    /// Values of a row.
    stride: usize,
    /// First of the columns.
    first: usize,
    /// How many there are.
    count: usize,
}

impl<'a> Columns<'a> {
    /// Every column.
    pub(super) fn all(values: &'a [f32], stride: usize) -> Self {
        Self::some(values, stride, 0, stride)
    }

    /// Some columns.
    pub(super) fn some(values: &'a [f32], stride: usize, first: usize, count: usize) -> Self {
        Self {
            values,
            stride: stride.max(1),
            first,
            count,
        }
    }

    #[inline(always)]
    fn rows(self) -> impl Iterator<Item = &'a [f32]> {
        let columns = self.first..self.first + self.count;
        let rows = self.values.chunks_exact(self.stride);
        rows.map(move |row| &row[columns.clone()])
    }
}

struct Product<'a> {
    left: Columns<'a>,
    right: &'a Matrix,
    out: &'a mut [f32],
    stride: usize,
    first: usize,
}

impl WithSimd for Product<'_> {
    type Output = ();

    // As many sums as there are registers for, less those of the panel.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.run::<S, 12, 1>(simd),
            8 => self.run::<S, 6, 2>(simd),
            4 => self.run::<S, 4, 4>(simd),
            _ => self.run::<S, 1, PANEL_WIDTH>(simd),
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn run<S: Simd, const ROWS: usize, const PARTS: usize>(self, simd: S) {
        let inputs = self.right.inputs.max(1);
        let count = self.left.values.len() / self.left.stride;
        let mut tiles = vec![[0.0; ROWS]; count.div_ceil(ROWS) * inputs];
        for (at, row) in self.left.rows().enumerate() {
            let (tile, at) = (at / ROWS, at % ROWS);
            for (values, value) in tiles[tile * inputs..].iter_mut().zip(row) {
                values[at] = *value;
            }
        }
        let panels = self.right.panels.chunks_exact(inputs);
        for (panel, (right, added)) in panels.zip(&self.right.added).enumerate() {
            let wide = PANEL_WIDTH.min(self.right.outputs - panel * PANEL_WIDTH);
            let from = self.first + panel * PANEL_WIDTH;
            let mut rows = self.out.chunks_exact_mut(self.stride);
            for left in tiles.chunks_exact(inputs) {
                let sums = tile::<S, ROWS, PARTS>(simd, left, right, added);
                for (sums, row) in sums.iter().zip(rows.by_ref()) {
                    let mut values = [0.0; PANEL_WIDTH];
                    let (parts, _) = S::as_mut_simd_f32s(&mut values);
                    for (part, sum) in parts.iter_mut().zip(sums) {
                        *part = *sum;
                    }
                    row[from..from + wide].copy_from_slice(&values[..wide]);
                }
            }
        }
    }
}

#[inline(always)]
fn tile<S: Simd, const ROWS: usize, const PARTS: usize>(
    simd: S,
    left: &[[f32; ROWS]],
    right: &[[f32; PANEL_WIDTH]],
    added: &[f32; PANEL_WIDTH],
) -> [[S::f32s; PARTS]; ROWS] {
    let mut start = [simd.splat_f32s(0.0); PARTS];
    for (start, part) in start.iter_mut().zip(S::as_simd_f32s(added).0) {
        *start = *part;
    }
    let mut sums = [start; ROWS];
    for (left, right) in left.iter().zip(right) {
        let Some(right) = S::as_simd_f32s(right).0.first_chunk::<PARTS>() else {
            break;
        };
        for (sums, left) in sums.iter_mut().zip(left) {
            let left = simd.splat_f32s(*left);
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = simd.mul_add_e_f32s(left, *right, *sum);
            }
        }
    }
    sums
}

/// Adds the second to the first.
pub(super) fn add(to: &mut [f32], values: &[f32]) {
    for (to, value) in to.iter_mut().zip(values) {
        *to += value;
    }
}

/// Brings each row to mean 0 and variance 1, then scales and moves its values.
pub(super) fn normalize(values: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    let wide = scale.len().max(1);
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let count = wide as f32;
    Arch::new().dispatch(|| {
        for row in values.chunks_exact_mut(wide) {
            let mean = sum(row, |value| value) / count;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / count;
            let by = 1.0 / (variance + epsilon).sqrt();
            for ((value, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *value = (*value - mean) * by * scale + shift;
            }
        }
    });
}

/// Each row as shares of 1: the powers of e of its values, times a factor first.
pub(super) fn shares(values: &mut [f32], wide: usize, factor: f32) {
    Arch::new().dispatch(|| {
        for row in values.chunks_exact_mut(wide.max(1)) {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for value in row.iter_mut() {
                // Less the largest, which changes no share and keeps the powers from
                // overflowing.
                *value = exp((*value - max) * factor);
            }
            let all = 1.0 / sum(row, |value| value);
            for value in row.iter_mut() {
                *value *= all;
            }
        }
    });
}

/// The activation of the wide layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// `x · Φ(x)`, as it is.
    Gelu,
    /// `x · Φ(x)`, by its usual approximation with a tangent.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
}

impl Activation {
    /// Of each value.
    pub(super) fn apply(self, values: &mut [f32]) {
        Arch::new().dispatch(|| match self {
            Self::Gelu => values
                .iter_mut()
                .for_each(|x| *x *= 0.5 + 0.5 * erf(*x * std::f32::consts::FRAC_1_SQRT_2)),
            Self::GeluTanh => values.iter_mut().for_each(|x| {
                let twice = 1.595_769 * (*x + 0.044_715 * *x * *x * *x);
                *x /= 1.0 + exp((-twice).min(80.0));
            }),
            Self::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
        });
    }
}

/// The sum, in as many parts as a processor may add at once.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<PANEL_WIDTH>();
    let mut sums = [0.0; PANEL_WIDTH];
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += of(*value);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|value| of(*value)).sum::<f32>()
}

/// The error function, to within 5e-7: the ratio of polynomials that Eigen and XLA
/// take.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let mut above = -2.726_142_3e-10;
    for factor in [
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_5e-5,
        -7.349_906e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ] {
        above = above * square + factor;
    }
    let mut below = -1.456_607_2e-5;
    for factor in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2] {
        below = below * square + factor;
    }
    x * above / below
}

/// Added and taken away again, it leaves a whole number.
const ROUNDING_OFFSET: f32 = 12_582_912.0;

/// A power of e, to within 1e-7 of it, for exponents of at most 80; as Cephes has it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the range is bounded")]
fn exp(x: f32) -> f32 {
    // Below that the exponent would leave its eight bits.
    let x = x.max(-87.0);
    let twos = (x * std::f32::consts::LOG2_E + ROUNDING_OFFSET) - ROUNDING_OFFSET;
    let rest = x - twos * 0.693_359_4 + twos * 2.121_944_4e-4;
    let mut power = 1.987_569_1e-4;
    for factor in [
        1.398_2e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        power = power * rest + factor;
    }
    let power = power * rest * rest + rest + 1.0;
    power * f32::from_bits(((twos as i32 + 127) << 23).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from((state >> 16) as u16) / 32_768.0 - 1.0
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn a_product_is_what_the_definition_says_at_every_size() {
        for (rows, inputs, outputs) in
            [(1, 1, 1), (2, 5, 16), (7, 16, 17), (13, 33, 40), (25, 8, 3)]
        {
            let left = noise(rows * inputs, 1);
            let right = noise(inputs * outputs, 2);
            let added = noise(outputs, 3);
            let matrix = Matrix::new(inputs, outputs, |i, o| right[o * inputs + i], &added);
            let made = matrix.times(&left);
            assert_eq!(made.len(), rows * outputs);
            for row in 0..rows {
                for output in 0..outputs {
                    let sum = (0..inputs)
                        .map(|i| {
                            f64::from(left[row * inputs + i])
                                * f64::from(right[output * inputs + i])
                        })
                        .sum::<f64>();
                    let is = f64::from(made[row * outputs + output]);
                    assert!((sum + f64::from(added[output]) - is).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_product_alone_and_among_others() {
        let (left, right) = (noise(29 * 40, 4), noise(40 * 50, 5));
        let matrix = Matrix::new(40, 50, |i, o| right[o * 40 + i], &[]);
        let together = matrix.times(&left);
        for (row, made) in left.chunks(40).zip(together.chunks(50)) {
            assert_eq!(matrix.times(row), made);
        }
    }

    #[test]
    fn columns_of_wider_rows_are_multiplied_into_columns_of_wider_rows() {
        let left = noise(3 * 10, 6);
        let matrix = Matrix::new(4, 2, |i, o| if i == o { 1.0 } else { 0.0 }, &[]);
        let mut out = vec![9.0; 3 * 5];
        matrix.times_into(Columns::some(&left, 10, 3, 4), &mut out, 5, 1);
        for row in 0..3 {
            assert_eq!(
                out[row * 5..][..5],
                [9.0, left[row * 10 + 3], left[row * 10 + 4], 9.0, 9.0]
            );
        }
    }

    #[test]
    fn powers_and_the_error_function_are_near_the_tables() {
        for (x, is) in [
            (0.0, 0.0),
            (0.5, 0.520_499_9),
            (-1.0, -0.842_700_8),
            (2.0, 0.995_322_3),
            (3.3, 0.999_996_95),
            (50.0, 1.0),
        ] {
            assert!((erf(x) - is).abs() < 1e-6, "erf of {x}");
        }
        for x in [-86.0, -10.5, -1.0, -0.01, 0.0, 0.3, 1.0, 10.0, 80.0_f32] {
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-6, "e to the {x}");
        }
    }

    #[test]
    fn the_three_activations_are_what_they_are_called() {
        for (activation, at_one, at_minus_one) in [
            (Activation::Gelu, 0.841_344_7, -0.158_655_3),
            (Activation::GeluTanh, 0.841_192, -0.158_808),
            (Activation::Relu, 1.0, 0.0),
        ] {
            let mut values = [1.0, -1.0, 0.0, 60.0, -60.0];
            activation.apply(&mut values);
            for (made, is) in values.iter().zip([at_one, at_minus_one, 0.0, 60.0, 0.0]) {
                assert!((made - is).abs() < 1e-5, "{activation:?}: {made} and {is}");
            }
        }
    }

    #[test]
    fn shares_sum_to_one_and_rows_are_brought_to_one_variance() {
        let mut values = noise(3 * 21, 7);
        shares(&mut values, 21, 3.0);
        for row in values.chunks(21) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
        let mut values = noise(2 * 20, 8);
        normalize(&mut values, &[1.0; 20], &[0.0; 20], 1e-12);
        for row in values.chunks(20) {
            assert!(row.iter().sum::<f32>().abs() < 1e-4);
            assert!((row.iter().map(|value| value * value).sum::<f32>() - 20.0).abs() < 1e-3);
        }
    }
}
