//! Products of rows with a query, by the widest instructions that are worth it. All of
//! them give the same, since sums of integers are exact.

/// Bytes of a part of a row: two values each, the first half of the values in the low
/// bits.
pub(super) const PART: usize = 32;
/// What a value of nothing is in a row, whose values are from 0 to 15.
pub(super) const ZERO: u8 = 8;

/// The values of a query, as a part of a row has them: for the low bits and for the
/// high ones.
pub(super) type Values = [[i8; PART]; 2];

/// The product of each row with a query of as many parts, in the order of the rows,
/// which are a multiple of four.
pub(super) fn products(rows: &[[u8; PART]], query: &[Values], each: impl FnMut(i32)) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        return x86::by_avx2(v3, rows, query, each);
    }
    anywhere(rows, query, each);
}

/// In what every processor has.
fn anywhere(rows: &[[u8; PART]], query: &[Values], mut each: impl FnMut(i32)) {
    for row in rows.chunks_exact(query.len()) {
        let mut sum = 0;
        for (row, [low, high]) in row.iter().zip(query) {
            for ((row, low), high) in row.iter().zip(low).zip(high) {
                sum += i32::from(row & 15) * i32::from(*low);
                sum += i32::from(row >> 4) * i32::from(*high);
            }
        }
        each(sum);
    }
}

/// Four rows at once: no sum waits for another, and one way to add up is for all four.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use pulp::core_arch::x86::Avx2;
    use pulp::x86::V3;
    use pulp::{cast, i32x8};
    use std::arch::x86_64::__m256i;

    use super::{PART, Values};

    /// With AVX2: a part at once. It is faster than memory; AVX-512 would only wait
    /// longer.
    pub(super) fn by_avx2(
        v3: V3,
        rows: &[[u8; PART]],
        query: &[Values],
        mut each: impl FnMut(i32),
    ) {
        let avx2 = v3.avx2;
        v3.vectorize(
            #[inline(always)]
            || {
                let (low_bits, ones): (__m256i, __m256i) = (cast([15_u8; 32]), cast([1_i16; 16]));
                for rows in rows.chunks_exact(query.len() * 4) {
                    let mut sums: [i32x8; 4] = [v3.splat_i32x8(0); 4];
                    for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(query.len())) {
                        for (row, [of_low, of_high]) in row.iter().zip(query) {
                            let row: __m256i = cast(*row);
                            let low = avx2._mm256_and_si256(row, low_bits);
                            let high = avx2._mm256_srli_epi16::<4>(row);
                            let high = avx2._mm256_and_si256(high, low_bits);
                            let low = avx2._mm256_maddubs_epi16(low, cast(*of_low));
                            let high = avx2._mm256_maddubs_epi16(high, cast(*of_high));
                            let both = avx2._mm256_add_epi16(low, high);
                            let products = cast(avx2._mm256_madd_epi16(both, ones));
                            *sum = v3.wrapping_add_i32x8(*sum, products);
                        }
                    }
                    for sum in added_up(avx2, sums) {
                        each(sum);
                    }
                }
            },
        );
    }

    /// Each of four sums, added up. No closure: it would not be part of the caller, whose
    /// instructions this is made of.
    #[expect(
        clippy::inline_always,
        reason = "what is not part of the caller has not its instructions"
    )]
    #[inline(always)]
    fn added_up(avx2: Avx2, [a, b, c, d]: [i32x8; 4]) -> [i32; 4] {
        // Neighbours are added, twice: four sums, each in two halves.
        let ab = avx2._mm256_hadd_epi32(cast(a), cast(b));
        let cd = avx2._mm256_hadd_epi32(cast(c), cast(d));
        let [mut sums, high]: [[i32; 4]; 2] = cast(avx2._mm256_hadd_epi32(ab, cd));
        for (sum, high) in sums.iter_mut().zip(high) {
            *sum += high;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_processor_gives_the_same_products(
            rows in prop::collection::vec(any::<[u8; PART]>(), 3 * 8),
            query in prop::collection::vec(any::<Values>(), 3),
        ) {
            let (mut by_any, mut by_this) = (Vec::new(), Vec::new());
            anywhere(&rows, &query, |sum| by_any.push(sum));
            products(&rows, &query, |sum| by_this.push(sum));
            prop_assert_eq!(by_any.len(), 8);
            prop_assert_eq!(by_any, by_this);
        }
    }
}
