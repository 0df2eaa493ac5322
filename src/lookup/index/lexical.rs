//! What words say: BM25 over weighted parts.
//!
//! The score of a word in a skill is that of BM25F (Robertson, Zaragoza and Taylor,
//! "Simple BM25 extension to multiple weighted fields", CIKM 2004): occurrences are
//! weighted by part and length before they are dampened, so that a word in three
//! parts counts less than three words. Lengths are compared with constants instead
//! of averages, so that the score of a skill does not depend on other skills; how
//! rare a word is does, and is counted over the skills that there are.

use std::sync::LazyLock;

use tantivy::SegmentReader;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::schema::{IndexRecordOption, Term};

use super::schema::{PARTS, Part};
use super::snapshot::Snapshot;
use super::terms::{Form, Group};

/// What a part is worth.
struct Worth {
    /// Of an occurrence.
    weight: f32,
    /// Words it usually has.
    length: f32,
    /// How much its length counts, from 0 to 1.
    slope: f32,
}

/// By part; found by trying on judged queries (`tests/relevance`).
fn worth(part: Part) -> Worth {
    let (weight, length, slope) = match part {
        Part::Name => (4.0, 3.0, 0.6),
        Part::Triggers => (2.5, 20.0, 0.5),
        Part::Tags => (1.5, 6.0, 0.3),
        Part::Description => (2.0, 40.0, 0.5),
        Part::Headings => (1.2, 60.0, 0.6),
        Part::Author => (1.0, 2.0, 0.0),
        Part::Body => (0.8, 900.0, 0.6),
        Part::Files => (0.3, 2000.0, 0.6),
    };
    Worth {
        weight,
        length,
        slope,
    }
}

/// How soon more occurrences stop counting.
const DAMPING: f32 = 1.2;
/// Share of a score that depends on how much of the query is there.
const COVERAGE: f32 = 0.5;

/// What words say of a skill. Bits are words of the query, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// Sum over the words.
    score: f32,
    /// Words that it has.
    pub(super) any: u32,
    /// Words that are in its name.
    pub(super) name: u32,
    /// Words that are in what it says of itself as a whole.
    pub(super) front: u32,
    /// Parts that have a word; bits by their order.
    parts: u8,
}

impl Cell {
    /// The parts that have a word of the query.
    pub(super) fn parts(self) -> Vec<Part> {
        let parts = Part::ALL.into_iter().enumerate();
        let parts = parts.filter(|(at, _)| self.parts >> at & 1 == 1);
        parts.map(|(_, part)| part).collect()
    }
}

/// Room for scores, used again by the next search.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    cells: Vec<Cell>,
    touched: Vec<u32>,
    /// Of the word that is read now: what its occurrences are worth, and bits of the
    /// parts that have it.
    word: Vec<f32>,
    word_parts: Vec<u8>,
    of_word: Vec<u32>,
    /// How near each skill is in meaning.
    pub(super) near: Vec<f32>,
}

impl Scratch {
    /// The skills that have a word of the query.
    pub(super) fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// What words say of a skill.
    pub(super) fn cell(&self, ordinal: u32) -> Cell {
        self.cells
            .get(ordinal as usize)
            .copied()
            .unwrap_or_default()
    }

    fn clear(&mut self, size: usize) {
        for ordinal in self.touched.drain(..) {
            if let Some(cell) = self.cells.get_mut(ordinal as usize) {
                *cell = Cell::default();
            }
        }
        if self.cells.len() < size {
            self.cells.resize(size, Cell::default());
            self.word.resize(size, 0.0);
            self.word_parts.resize(size, 0);
        }
    }
}

/// What the words of a query weigh.
#[derive(Debug, Clone, Default)]
pub(super) struct Weighed {
    /// What brings the score of a skill of nothing but the query to 1.
    to_one: f32,
    /// The share of the query that words are, for each byte of bits: it is asked for
    /// each skill that has any.
    shares: Vec<[f32; 256]>,
}

impl Weighed {
    /// Of words that weigh so much: the rarer, the more.
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
    pub(super) fn share(&self, bits: u32) -> f32 {
        let mut share = 0.0;
        for (shares, byte) in self.shares.iter().zip(bits.to_le_bytes()) {
            share += shares.get(usize::from(byte)).copied().unwrap_or_default();
        }
        share
    }

    /// The score of a cell: 1 would be a skill of nothing but the query.
    pub(super) fn score(&self, cell: Cell) -> f32 {
        let coverage = 1.0 - COVERAGE + COVERAGE * self.share(cell.any);
        cell.score * self.to_one * coverage
    }
}

/// Scores all skills that have a word of the query.
///
/// # Errors
/// The index cannot be read.
pub(super) fn score(
    snapshot: &Snapshot,
    groups: &[Group],
    scratch: &mut Scratch,
) -> tantivy::Result<Weighed> {
    scratch.clear(snapshot.slots.len());
    let mut weights = Vec::with_capacity(groups.len());
    let (names, fronts) = (parts_that(|part| part == Part::Name), parts_that(is_front));
    for (at, group) in groups.iter().enumerate() {
        let bit = 1_u32.checked_shl(u32::try_from(at).unwrap_or(u32::MAX));
        let bit = bit.unwrap_or_default();
        occurrences(snapshot, group, scratch)?;
        let weight = rarity(snapshot.live, scratch.of_word.len());
        weights.push(weight);
        for ordinal in scratch.of_word.drain(..) {
            let at = ordinal as usize;
            if let (Some(value), Some(parts), Some(cell)) = (
                scratch.word.get_mut(at).map(std::mem::take),
                scratch.word_parts.get_mut(at).map(std::mem::take),
                scratch.cells.get_mut(at),
            ) {
                if cell.any == 0 {
                    scratch.touched.push(ordinal);
                }
                cell.score += weight * value / (DAMPING + value);
                cell.any |= bit;
                cell.name |= if parts & names == 0 { 0 } else { bit };
                cell.front |= if parts & fronts == 0 { 0 } else { bit };
                cell.parts |= parts;
            }
        }
    }
    Ok(Weighed::new(&weights))
}

/// What a word weighs that so many of all skills have.
#[expect(clippy::cast_precision_loss, reason = "a logarithm of counts")]
fn rarity(all: usize, with: usize) -> f32 {
    let (all, with) = (all as f32, with as f32);
    (1.0 + (all - with + 0.5).max(0.5) / (with + 0.5)).ln()
}

/// Adds up the occurrences of a word, by skill.
fn occurrences(snapshot: &Snapshot, group: &Group, scratch: &mut Scratch) -> tantivy::Result<()> {
    let fields = &snapshot.fields;
    let (in_names, in_parts): (Vec<&Form>, Vec<&Form>) =
        group.forms.iter().partition(|form| form.in_names);
    for (reader, ordinals) in snapshot.segments() {
        for (part, field) in Part::ALL.into_iter().zip(fields.parts) {
            let index = reader.inverted_index(field)?;
            let bit = part_bit(part);
            for form in &in_parts {
                let term = Term::from_field_text(field, &form.text);
                let Some(info) = index.get_term_info(&term)? else {
                    continue;
                };
                let norms = reader.get_fieldnorms_reader(field)?;
                let by_length = BY_LENGTH.get(part as usize).unwrap_or(&[0.0; 256]);
                each_posting(reader, &index, &info, |document, count| {
                    let length = usize::from(norms.fieldnorm_id(document));
                    let value = by_length.get(length).copied().unwrap_or_default();
                    if let Some(ordinal) = ordinals.get(document as usize) {
                        scratch.add(*ordinal, value * frequency(count) * form.weight, bit);
                    }
                })?;
            }
        }
        let index = reader.inverted_index(fields.names)?;
        let (bit, weight) = (part_bit(Part::Name), worth(Part::Name).weight);
        for form in &in_names {
            let term = Term::from_field_text(fields.names, &form.text);
            let Some(info) = index.get_term_info(&term)? else {
                continue;
            };
            each_posting(reader, &index, &info, |document, _| {
                if let Some(ordinal) = ordinals.get(document as usize) {
                    scratch.add(*ordinal, weight * form.weight, bit);
                }
            })?;
        }
    }
    Ok(())
}

/// The documents of a segment that have a word, and how often.
fn each_posting(
    reader: &SegmentReader,
    index: &InvertedIndexReader,
    info: &TermInfo,
    mut each: impl FnMut(u32, u32),
) -> tantivy::Result<()> {
    let alive = reader.alive_bitset();
    let with = IndexRecordOption::WithFreqs;
    let mut block = index.read_block_postings_from_terminfo(info, with)?;
    while !block.docs().is_empty() {
        // A field without frequencies has none here.
        let counts = block.freqs().iter().copied().chain(std::iter::repeat(1));
        for (document, count) in block.docs().iter().zip(counts) {
            if alive.is_none_or(|alive| alive.is_alive(*document)) {
                each(*document, count);
            }
        }
        block.advance();
    }
    Ok(())
}

/// What an occurrence is worth, by part and by each length that the index tells apart.
static BY_LENGTH: LazyLock<[[f32; 256]; PARTS]> = LazyLock::new(|| Part::ALL.map(by_length));

#[expect(clippy::cast_precision_loss, reason = "lengths are rounded anyway")]
fn by_length(part: Part) -> [f32; 256] {
    let worth = worth(part);
    let mut values = [0.0; 256];
    for (id, value) in (0..=u8::MAX).zip(&mut values) {
        let length = FieldNormReader::id_to_fieldnorm(id) as f32;
        *value = worth.weight / (1.0 - worth.slope + worth.slope * length / worth.length);
    }
    values
}

#[expect(clippy::cast_precision_loss, reason = "counts of a word in a text")]
fn frequency(count: u32) -> f32 {
    count as f32
}

fn part_bit(part: Part) -> u8 {
    1 << part as u8
}

/// Bits of some of the parts.
fn parts_that(is_one: impl Fn(Part) -> bool) -> u8 {
    let parts = Part::ALL.into_iter().filter(|part| is_one(*part));
    parts.fold(0, |bits, part| bits | part_bit(part))
}

/// What it says, it says of the skill as a whole.
fn is_front(part: Part) -> bool {
    !matches!(part, Part::Author | Part::Body | Part::Files)
}

impl Scratch {
    fn add(&mut self, ordinal: u32, value: f32, part: u8) {
        let at = ordinal as usize;
        let (Some(word), Some(parts)) = (self.word.get_mut(at), self.word_parts.get_mut(at)) else {
            return;
        };
        if *parts == 0 {
            self.of_word.push(ordinal);
        }
        *word += value;
        *parts |= part;
    }
}
