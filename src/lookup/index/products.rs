//! Products of rows with a query, by the widest instructions that the processor has.
//! All of them give the same, since sums of integers are exact.

/// Values of a part of a head: a byte each.
pub(super) const HEAD: usize = 32;
/// Bytes of a part of a tail: two values each, the first half of them in the low bits.
pub(super) const TAIL: usize = 64;
/// What a value of nothing is in a tail, whose values are from 0 to 15.
pub(super) const ZERO: u8 = 8;

/// The values of a query, as rows have theirs.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// Those of the head.
    pub(super) head: Vec<[i16; HEAD]>,
    /// Those of the tail: for the low bits and for the high ones.
    pub(super) tail: Vec<[[i8; TAIL]; 2]>,
}

/// The products of each row with a query, that of the heads and that of the tails, in
/// the order of the rows, which are a multiple of four.
pub(super) fn products(
    heads: &[[i8; HEAD]],
    tails: &[[u8; TAIL]],
    query: &Values,
    each: impl FnMut(i32, i32),
) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(v4) = pulp::x86::V4::try_new() {
            return x86::by_avx512(v4, heads, tails, query, each);
        }
        if let Some(v3) = pulp::x86::V3::try_new() {
            return x86::by_avx2(v3, heads, tails, query, each);
        }
    }
    anywhere(heads, tails, query, each);
}

/// In what every processor has.
fn anywhere(
    heads: &[[i8; HEAD]],
    tails: &[[u8; TAIL]],
    query: &Values,
    mut each: impl FnMut(i32, i32),
) {
    let heads = heads.chunks_exact(query.head.len());
    for (head, tail) in heads.zip(tails.chunks_exact(query.tail.len())) {
        let values = query.head.as_flattened();
        let head = head.as_flattened().iter().zip(values);
        let head = head.map(|(row, query)| i32::from(*row) * i32::from(*query));
        let mut sum = 0;
        for (row, [low, high]) in tail.iter().zip(&query.tail) {
            for ((row, low), high) in row.iter().zip(low).zip(high) {
                sum += i32::from(row & 15) * i32::from(*low);
                sum += i32::from(row >> 4) * i32::from(*high);
            }
        }
        each(head.sum(), sum);
    }
}

/// Four rows at once: no sum waits for another, and one way to add up is for all four.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use pulp::core_arch::x86::Avx2;
    use pulp::x86::{V3, V4};
    use pulp::{cast, i8x16, i8x32, i16x16, i16x32, i32x8, i32x16};
    use std::arch::x86_64::{__m256i, __m512i};

    use super::{HEAD, TAIL, Values};

    /// With AVX-512: a part at once.
    pub(super) fn by_avx512(
        v4: V4,
        heads: &[[i8; HEAD]],
        tails: &[[u8; TAIL]],
        query: &Values,
        mut each: impl FnMut(i32, i32),
    ) {
        let (f, bw) = (v4.avx512f, v4.avx512bw);
        v4.vectorize(
            #[inline(always)]
            || {
                let (low_bits, ones): (__m512i, __m512i) = (cast([15_u8; 64]), cast([1_i16; 32]));
                let heads = heads.chunks_exact(query.head.len() * 4);
                let tails = tails.chunks_exact(query.tail.len() * 4);
                for (heads, tails) in heads.zip(tails) {
                    let mut sums: [[i32x16; 4]; 2] = [[v4.splat_i32x16(0); 4]; 2];
                    let [of_heads, of_tails] = &mut sums;
                    for (sum, row) in of_heads
                        .iter_mut()
                        .zip(heads.chunks_exact(query.head.len()))
                    {
                        for (row, query) in row.iter().zip(&query.head) {
                            let (row, query): (i8x32, i16x32) = (cast(*row), cast(*query));
                            let row = v4.convert_i8x32_to_i16x32(row);
                            let products = v4.multiply_wrapping_add_adjacent_i16x32(row, query);
                            *sum = v4.wrapping_add_i32x16(*sum, products);
                        }
                    }
                    for (sum, row) in of_tails
                        .iter_mut()
                        .zip(tails.chunks_exact(query.tail.len()))
                    {
                        for (row, [of_low, of_high]) in row.iter().zip(&query.tail) {
                            let row: __m512i = cast(*row);
                            let low = f._mm512_and_si512(row, low_bits);
                            let high = f._mm512_and_si512(bw._mm512_srli_epi16::<4>(row), low_bits);
                            let low = bw._mm512_maddubs_epi16(low, cast(*of_low));
                            let high = bw._mm512_maddubs_epi16(high, cast(*of_high));
                            let both = bw._mm512_add_epi16(low, high);
                            let products = cast(bw._mm512_madd_epi16(both, ones));
                            *sum = v4.wrapping_add_i32x16(*sum, products);
                        }
                    }
                    let [heads, tails] = sums;
                    let heads = added_up(v4.avx2, halved(v4, heads));
                    let tails = added_up(v4.avx2, halved(v4, tails));
                    for (head, tail) in heads.into_iter().zip(tails) {
                        each(head, tail);
                    }
                }
            },
        );
    }

    /// With AVX2: half of a part at once.
    pub(super) fn by_avx2(
        v3: V3,
        heads: &[[i8; HEAD]],
        tails: &[[u8; TAIL]],
        query: &Values,
        mut each: impl FnMut(i32, i32),
    ) {
        let avx2 = v3.avx2;
        v3.vectorize(
            #[inline(always)]
            || {
                let (low_bits, ones): (__m256i, __m256i) = (cast([15_u8; 32]), cast([1_i16; 16]));
                let heads = heads.chunks_exact(query.head.len() * 4);
                let tails = tails.chunks_exact(query.tail.len() * 4);
                for (heads, tails) in heads.zip(tails) {
                    let mut sums: [[i32x8; 4]; 2] = [[v3.splat_i32x8(0); 4]; 2];
                    let [of_heads, of_tails] = &mut sums;
                    for (sum, row) in of_heads
                        .iter_mut()
                        .zip(heads.chunks_exact(query.head.len()))
                    {
                        for (row, query) in row.iter().zip(&query.head) {
                            let (row, query): ([i8x16; 2], [i16x16; 2]) =
                                (cast(*row), cast(*query));
                            for (row, query) in row.into_iter().zip(query) {
                                let row = v3.convert_i8x16_to_i16x16(row);
                                let products = v3.multiply_wrapping_add_adjacent_i16x16(row, query);
                                *sum = v3.wrapping_add_i32x8(*sum, products);
                            }
                        }
                    }
                    for (sum, row) in of_tails
                        .iter_mut()
                        .zip(tails.chunks_exact(query.tail.len()))
                    {
                        for (row, [of_low, of_high]) in row.iter().zip(&query.tail) {
                            let (of_low, of_high): ([__m256i; 2], [__m256i; 2]) =
                                (cast(*of_low), cast(*of_high));
                            let row: [__m256i; 2] = cast(*row);
                            for ((row, of_low), of_high) in row.into_iter().zip(of_low).zip(of_high)
                            {
                                let low = avx2._mm256_and_si256(row, low_bits);
                                let high = avx2._mm256_srli_epi16::<4>(row);
                                let high = avx2._mm256_and_si256(high, low_bits);
                                let low = avx2._mm256_maddubs_epi16(low, of_low);
                                let high = avx2._mm256_maddubs_epi16(high, of_high);
                                let both = avx2._mm256_add_epi16(low, high);
                                let products = cast(avx2._mm256_madd_epi16(both, ones));
                                *sum = v3.wrapping_add_i32x8(*sum, products);
                            }
                        }
                    }
                    let [heads, tails] = sums;
                    let (heads, tails) = (added_up(avx2, heads), added_up(avx2, tails));
                    for (head, tail) in heads.into_iter().zip(tails) {
                        each(head, tail);
                    }
                }
            },
        );
    }

    /// Each of four sums, its halves added. No closure, here and below: it would not
    /// be part of the caller, whose instructions this is made of.
    #[expect(
        clippy::inline_always,
        reason = "what is not part of the caller has not its instructions"
    )]
    #[inline(always)]
    fn halved(v4: V4, [a, b, c, d]: [i32x16; 4]) -> [i32x8; 4] {
        let [a_low, a_high]: [i32x8; 2] = cast(a);
        let [b_low, b_high]: [i32x8; 2] = cast(b);
        let [c_low, c_high]: [i32x8; 2] = cast(c);
        let [d_low, d_high]: [i32x8; 2] = cast(d);
        [
            v4.wrapping_add_i32x8(a_low, a_high),
            v4.wrapping_add_i32x8(b_low, b_high),
            v4.wrapping_add_i32x8(c_low, c_high),
            v4.wrapping_add_i32x8(d_low, d_high),
        ]
    }

    /// Each of four sums, added up.
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

    /// What a way to take products gives for each row.
    type Found = Vec<(i32, i32)>;

    /// Each way that this processor has, with its name.
    fn everywhere(
        heads: &[[i8; HEAD]],
        tails: &[[u8; TAIL]],
        query: &Values,
    ) -> Vec<(&'static str, Found)> {
        let mut all = vec![("any", Found::new()), ("chosen", Found::new())];
        anywhere(heads, tails, query, |head, tail| {
            all[0].1.push((head, tail));
        });
        products(heads, tails, query, |head, tail| {
            all[1].1.push((head, tail));
        });
        #[cfg(target_arch = "x86_64")]
        {
            let mut found = Found::new();
            if let Some(v3) = pulp::x86::V3::try_new() {
                x86::by_avx2(v3, heads, tails, query, |head, tail| {
                    found.push((head, tail));
                });
                all.push(("AVX2", std::mem::take(&mut found)));
            }
            if let Some(v4) = pulp::x86::V4::try_new() {
                x86::by_avx512(v4, heads, tails, query, |head, tail| {
                    found.push((head, tail));
                });
                all.push(("AVX-512", found));
            }
        }
        all
    }

    proptest! {
        #[test]
        fn every_processor_gives_the_same_products(
            heads in prop::collection::vec(any::<[i8; HEAD]>(), 3 * 8),
            tails in prop::collection::vec(any::<[u8; TAIL]>(), 2 * 8),
            head in prop::collection::vec(any::<[i16; HEAD]>(), 3),
            tail in prop::collection::vec(any::<[[i8; TAIL]; 2]>(), 2),
        ) {
            let found = everywhere(&heads, &tails, &Values { head, tail });
            let (_, first) = &found[0];
            prop_assert_eq!(first.len(), 8);
            for (name, products) in &found {
                prop_assert_eq!(products, first, "{}", name);
            }
        }
    }
}
