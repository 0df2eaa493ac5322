//! Scores by words: how much of a query a skill has, and how rare that is.
//!
//! `postings` has the value of a word in a skill; the rarity of a word is counted over
//! all skills.

use std::sync::Arc;

use super::postings::{self, Posting, Postings, Sums};
use super::schema::Part;
use super::snapshot::{SegmentView, Snapshot};
use super::terms::{Group, MAX_QUERY_WORDS};

/// Share of a score that depends on how much of the query is there.
const COVERAGE_WEIGHT: f32 = 0.5;

/// Where more than one in this many skills has a word of the query, all are cleared.
const CLEAR_ALL_RATIO: usize = 8;

/// Documents whose cells are added up at once: 24 KiB of them. Few in tests, which
/// have few.
const BLOCK_SIZE: u32 = if cfg!(test) { 3 } else { 2048 };

/// The score of a skill by words, in twelve bytes: a search goes through those of all skills
/// that have a word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// Sum over the words.
    score: f32,
    /// Words that it has; bits are words of the query, in their order.
    pub(super) any: u32,
    /// Share of the query that is in its front parts, of [`WHOLE_QUERY_SHARE`].
    front: u16,
    /// How many words are in its name.
    pub(super) name: u8,
    /// Parts that have a word; bits by their order.
    parts: u8,
}

/// The whole query, in the unit of stored shares.
const WHOLE_QUERY_SHARE: u16 = u16::MAX;

impl Cell {
    /// The parts that have a word of the query.
    pub(super) fn parts(self) -> Vec<Part> {
        let parts = Part::ALL.into_iter();
        parts.filter(|part| self.parts & part.bit() != 0).collect()
    }

    /// Share of the query that is in its front parts, from 0 to 1.
    pub(super) fn front(self) -> f32 {
        f32::from(self.front) / f32::from(WHOLE_QUERY_SHARE)
    }
}

/// Buffers for scores, used again by the next search.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    cells: Vec<Cell>,
    touched: Vec<u32>,
    sums: Sums,
    /// The similarity of each skill in meaning.
    pub(super) near: Vec<f32>,
}

impl Scratch {
    /// The skills that have a word of the query.
    pub(super) fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// The score of a skill by words.
    #[expect(clippy::indexing_slicing, reason = "there is a cell for every slot")]
    pub(super) fn cell(&self, ordinal: u32) -> Cell {
        self.cells[ordinal as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "a cell was touched")]
    fn clear(&mut self, size: usize) {
        if self.touched.len() > self.cells.len() / CLEAR_ALL_RATIO {
            self.cells.fill(Cell::default());
            self.touched.clear();
        }
        for ordinal in self.touched.drain(..) {
            self.cells[ordinal as usize] = Cell::default();
        }
        if self.cells.len() < size {
            self.cells.resize(size, Cell::default());
        }
    }
}

/// The weights of the words of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct TermWeights {
    /// The factor that brings the score of a skill that is nothing but the query to 1.
    to_one: f32,
    /// The share of the query for each byte of bits of words: it is looked up for each skill that
    /// has any.
    shares: Vec<[f32; 256]>,
}

impl TermWeights {
    /// The weights of words: the rarer, the more.
    fn new(words: &[f32]) -> Self {
        let total: f32 = words.iter().sum();
        let shares = words.chunks(8).map(|words| {
            let mut shares = [0.0; 256];
            for (bits, share) in shares.iter_mut().enumerate() {
                let there = words.iter().enumerate();
                let there = there.filter(|(at, _)| bits >> at & 1 == 1);
                *share = there.map(|(_, weight)| weight / total).sum();
            }
            shares
        });
        Self {
            shares: shares.collect(),
            to_one: if total > 0.0 { 1.0 / total } else { 0.0 },
        }
    }

    /// Share of the query that these words are, from 0 to 1.
    #[expect(clippy::indexing_slicing, reason = "a share for every byte")]
    pub(super) fn share(&self, bits: u32) -> f32 {
        let bytes = self.shares.iter().zip(bits.to_le_bytes());
        bytes.map(|(shares, byte)| shares[usize::from(byte)]).sum()
    }

    /// The score of a cell: 1 would be a skill of nothing but the query.
    pub(super) fn score(&self, cell: Cell) -> f32 {
        let coverage = 1.0 - COVERAGE_WEIGHT + COVERAGE_WEIGHT * self.share(cell.any);
        self.upper_bound(cell) * coverage.min(1.0)
    }

    /// An upper bound of the score, which is cheaper.
    pub(super) fn upper_bound(&self, cell: Cell) -> f32 {
        cell.score * self.to_one
    }
}

/// A word of the query, with its postings in each segment.
struct QueryWord {
    /// Its bit.
    bit: u32,
    weight: f32,
    /// Its share of the query, of [`WHOLE_QUERY_SHARE`].
    share: u16,
    postings: Vec<Arc<[Posting]>>,
}

/// Scores all skills that have a word of the query.
///
/// # Errors
/// The index cannot be read.
pub(super) fn score(
    snapshot: &Snapshot,
    cache: &Postings,
    groups: &[Group],
    scratch: &mut Scratch,
) -> tantivy::Result<TermWeights> {
    scratch.clear(snapshot.slots.len());
    let mut words = Vec::with_capacity(groups.len());
    // A query has a word for each bit, and no more.
    const { assert!(MAX_QUERY_WORDS == u32::BITS as usize) }
    for (bit, group) in (0..MAX_QUERY_WORDS).map(|at| 1_u32 << at).zip(groups) {
        let key = postings::key(group);
        let mut found = Vec::with_capacity(snapshot.segments.len());
        let mut with = 0;
        for segment in snapshot.segments() {
            let (reader, sums) = (segment.reader, &mut scratch.sums);
            let postings = cache.of(reader, &snapshot.fields, group, &key, sums)?;
            with += if segment.has_all() {
                postings.len()
            } else {
                let there = postings.iter().filter(|p| segment.has(p.document));
                there.count()
            };
            found.push(postings);
        }
        words.push(QueryWord {
            bit,
            weight: idf(snapshot.live, with),
            share: 0,
            postings: found,
        });
    }
    let weights: Vec<f32> = words.iter().map(|word| word.weight).collect();
    let weighed = TermWeights::new(&weights);
    for word in &mut words {
        word.share = share(word.weight * weighed.to_one);
    }
    for (at, segment) in snapshot.segments().enumerate() {
        add_up(&words, at, segment, scratch);
    }
    Ok(weighed)
}

/// A share from 0 to 1 as it is stored.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float stays within the range"
)]
fn share(share: f32) -> u16 {
    (share * f32::from(WHOLE_QUERY_SHARE)).round() as u16
}

/// Adds up the postings of the words in one segment. Blocks of documents are so small that their
/// cells stay in the cache of the processor until the last word has been added: with a million
/// skills each word would otherwise load all of them anew.
#[expect(
    clippy::indexing_slicing,
    reason = "postings for every segment, an ordinal for every document, a cell for every slot"
)]
fn add_up(words: &[QueryWord], at: usize, segment: SegmentView<'_>, scratch: &mut Scratch) {
    let (names, fronts) = (parts_that(|part| part == Part::Name), parts_that(is_front));
    let has_all = segment.has_all();
    let rests = words.iter().map(|word| &*word.postings[at]);
    let mut rests: Vec<&[Posting]> = rests.collect();
    loop {
        let firsts = rests.iter().filter_map(|rest| rest.first());
        let Some(first) = firsts.map(|posting| posting.document).min() else {
            return;
        };
        for (word, rest) in words.iter().zip(&mut rests) {
            // A word has at most one posting for each document of a block.
            let upper_bound = rest.len().min(BLOCK_SIZE as usize);
            let (near, _) = rest.split_at(upper_bound);
            let passed = near.partition_point(|posting| posting.document - first < BLOCK_SIZE);
            let (now, later) = rest.split_at(passed);
            *rest = later;
            for posting in now {
                if !has_all && !segment.has(posting.document) {
                    continue;
                }
                let ordinal = segment.kept.ordinals[posting.document as usize];
                let cell = &mut scratch.cells[ordinal as usize];
                if cell.any == 0 {
                    scratch.touched.push(ordinal);
                }
                let parts = posting.parts();
                cell.score += word.weight * posting.value();
                cell.any |= word.bit;
                cell.name += u8::from(parts & names != 0);
                let front = if parts & fronts == 0 { 0 } else { word.share };
                // Shares are rounded, and may add up to a little more than the whole.
                cell.front = cell.front.saturating_add(front);
                cell.parts |= parts;
            }
        }
    }
}

/// The weight of a word that `with` of all skills have.
#[expect(clippy::cast_precision_loss, reason = "a logarithm of counts")]
fn idf(all: usize, with: usize) -> f32 {
    let (all, with) = (all as f32, with as f32);
    (1.0 + (all - with + 0.5).max(0.5) / (with + 0.5)).ln()
}

/// Bits of some of the parts.
fn parts_that(is_one: impl Fn(Part) -> bool) -> u8 {
    let parts = Part::ALL.into_iter().filter(|part| is_one(*part));
    parts.fold(0, |bits, part| bits | part.bit())
}

/// The part describes the skill as a whole.
fn is_front(part: Part) -> bool {
    !matches!(part, Part::Author | Part::Body | Part::Files)
}
