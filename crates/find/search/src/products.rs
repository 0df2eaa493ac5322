//! Products of rows with a query, by the widest instructions that are worth it. All of
//! them give the same, since sums of integers are exact.

/// Bytes of a part of a row: two values each, the first half of the values in the low
/// bits.
pub(super) const PART_BYTES: usize = 32;
/// The value of zero in a row, whose values are from 0 to 15.
pub(super) const ZERO_OFFSET: u8 = 8;

/// The values of a query, as a part of a row has them: for the low bits and for the
/// high ones.
pub(super) type Values = [[i8; PART_BYTES]; 2];

/// The product of each row with a query of as many parts, in the order of the rows,
/// which are a multiple of four.
pub(super) fn products(rows: &[[u8; PART_BYTES]], query: &[Values], each: impl FnMut(i32)) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return x86::by_avx512(v4, rows, query, each);
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return x86::by_avx2(v3, rows, query, each);
        }
    }
    anywhere(rows, query, each);
}

/// With instructions that every processor has.
fn anywhere(rows: &[[u8; PART_BYTES]], query: &[Values], mut each: impl FnMut(i32)) {
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
    use pulp::x86::{V3, V4};
    use pulp::{cast, i32x8, i32x16};
    use std::arch::x86_64::{__m256i, __m512i};

    use super::{PART_BYTES, Values};

    /// With AVX-512: two parts at once. Of two rows with an odd number of parts, the
    /// middle two are of one each.
    pub(super) fn by_avx512(
        v4: V4,
        rows: &[[u8; PART_BYTES]],
        query: &[Values],
        mut each: impl FnMut(i32),
    ) {
        let (f, bw) = (v4.avx512f, v4.avx512bw);
        // The query for two rows, two parts at once.
        let twice: Vec<&Values> = query.iter().chain(query).collect();
        let pairs = twice.chunks_exact(2).map(|pair| match pair {
            [[low, high], [next_low, next_high]] => [[*low, *next_low], [*high, *next_high]],
            _ => Default::default(),
        });
        let query: Vec<[[[i8; PART_BYTES]; 2]; 2]> = pairs.collect();
        let (half, middle) = (query.len() / 2, query.len() % 2);
        v4.vectorize(
            #[inline(always)]
            || {
                let (low_bits, ones): (__m512i, __m512i) = (cast([15_u8; 64]), cast([1_i16; 32]));
                let (rows, _) = rows.as_chunks::<2>();
                for rows in rows.chunks_exact(query.len() * 2) {
                    let mut sums: [i32x8; 4] = [v4.splat_i32x8(0); 4];
                    let (two, _) = sums.as_chunks_mut::<2>();
                    for (sums, rows) in two.iter_mut().zip(rows.chunks_exact(query.len())) {
                        let mut of_both: [i32x16; 2] = [v4.splat_i32x16(0); 2];
                        let [first, second] = &mut of_both;
                        for (at, (row, [of_low, of_high])) in rows.iter().zip(&query).enumerate() {
                            let row: __m512i = cast(*row);
                            let low = f._mm512_and_si512(row, low_bits);
                            let high = f._mm512_and_si512(bw._mm512_srli_epi16::<4>(row), low_bits);
                            let low = bw._mm512_maddubs_epi16(low, cast(*of_low));
                            let high = bw._mm512_maddubs_epi16(high, cast(*of_high));
                            let both = bw._mm512_add_epi16(low, high);
                            let products: i32x16 = cast(bw._mm512_madd_epi16(both, ones));
                            if at < half {
                                *first = v4.wrapping_add_i32x16(*first, products);
                            } else if at >= half + middle {
                                *second = v4.wrapping_add_i32x16(*second, products);
                            } else {
                                *sums = cast(products);
                            }
                        }
                        let [first, second]: [[i32x8; 2]; 2] = cast(of_both);
                        for (sum, [low, high]) in sums.iter_mut().zip([first, second]) {
                            *sum = v4.wrapping_add_i32x8(*sum, v4.wrapping_add_i32x8(low, high));
                        }
                    }
                    for sum in added_up(v4.avx2, sums) {
                        each(sum);
                    }
                }
            },
        );
    }

    /// With AVX2: a part at once.
    pub(super) fn by_avx2(
        v3: V3,
        rows: &[[u8; PART_BYTES]],
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
                            // There is no shift of single bytes. What comes in from the neighbor
                            // is masked off.
                            let high = avx2._mm256_srli_epi16::<4>(row);
                            let high = avx2._mm256_and_si256(high, low_bits);
                            let low = avx2._mm256_maddubs_epi16(low, cast(*of_low));
                            let high = avx2._mm256_maddubs_epi16(high, cast(*of_high));
                            // At most 4 · 15 · 127, so nothing saturates in 16 bits.
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

    /// Adds up each of four sums. No closure: it would not be inlined into the caller, whose
    /// instruction set it needs.
    #[expect(
        clippy::inline_always,
        reason = "code outside of the caller does not have its instruction set"
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

    /// What each way that this processor has gives, with its name.
    fn everywhere(rows: &[[u8; PART_BYTES]], query: &[Values]) -> Vec<(&'static str, Vec<i32>)> {
        let mut all = vec![("any", Vec::new()), ("chosen", Vec::new())];
        anywhere(rows, query, |sum| all[0].1.push(sum));
        products(rows, query, |sum| all[1].1.push(sum));
        #[cfg(target_arch = "x86_64")]
        {
            let mut found = Vec::new();
            if let Some(v3) = pulp::x86::V3::try_new() {
                x86::by_avx2(v3, rows, query, |sum| found.push(sum));
                all.push(("AVX2", std::mem::take(&mut found)));
            }
            if let Some(v4) = pulp::x86::V4::try_new() {
                x86::by_avx512(v4, rows, query, |sum| found.push(sum));
                all.push(("AVX-512", found));
            }
        }
        all
    }

    proptest! {
        #[test]
        fn every_processor_gives_the_same_products(
            (rows, query) in (1_usize..6).prop_flat_map(|parts| (
                prop::collection::vec(any::<[u8; PART_BYTES]>(), parts * 8),
                prop::collection::vec(any::<Values>(), parts),
            )),
        ) {
            let found = everywhere(&rows, &query);
            let (_, first) = &found[0];
            prop_assert_eq!(first.len(), 8);
            for (name, products) in &found {
                prop_assert_eq!(products, first, "{}", name);
            }
        }
    }
}
