//! Postings of a word in a segment of the index: each skill that has it, once.
//!
//! A word is searched for in eight parts of a skill and in several forms, each of which
//! has its own postings. They are added up when the word is asked for, and the sums
//! are cached: a segment never changes, so they are right for as long as it lives.
//! Deleted documents are among them, and left out when they are read.
//!
//! The score of a word in a skill is that of BM25F (Robertson, Zaragoza and Taylor,
//! "Simple BM25 extension to multiple weighted fields", CIKM 2004): occurrences are
//! weighted by part and length before they are dampened, so that a word in three
//! parts counts less than three words. Lengths are compared with constants instead
//! of averages, so that the score of a skill does not depend on other skills.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use quick_cache::unsync::Cache;
use tantivy::SegmentReader;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentId};
use tantivy::postings::TermInfo;
use tantivy::schema::{IndexRecordOption, Term};

use super::schema::{Fields, PART_COUNT, Part};
use super::terms::{Group, WordForm};

/// Bytes of the cache of postings, at least.
const MIN_CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes for each skill, where that is more: with as many the words of usual queries
/// are all there.
const CACHE_BYTES_PER_SKILL: u64 = 256;
/// The estimated number of cached words: a word of some hundred skills is usual.
const CACHE_WORD_CAPACITY: usize = 16 * 1024;
/// Bytes that an entry takes besides its postings and its word.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// Where more than one in this many documents has a word, all of them are read to put
/// them into order.
const READ_ALL_RATIO: usize = 16;

/// The weight of an occurrence by its part.
struct FieldWeights {
    /// Of an occurrence.
    weight: f32,
    /// Words it usually has.
    length: f32,
    /// How much its length counts, from 0 to 1.
    slope: f32,
}

/// By part; found by trying on judged queries (`tests/relevance`).
fn field_weights(part: Part) -> FieldWeights {
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
    FieldWeights {
        weight,
        length,
        slope,
    }
}

/// How soon more occurrences stop counting.
const SATURATION_FACTOR: f32 = 1.2;

/// A word in a skill, in eight bytes: the fewer, the more words fit into the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Posting {
    /// The skill's document in the segment.
    pub(super) document: u32,
    /// The value, with the parts in the last eight bits of its fraction: the rest of that
    /// distinguishes values that differ by a thirty thousandth.
    packed: u32,
}

impl Posting {
    fn new(document: u32, value: f32, parts: u8) -> Self {
        let value = value.to_bits() & !u32::from(u8::MAX);
        Self {
            document,
            packed: value | u32::from(parts),
        }
    }

    /// The value of its occurrences, from 0 to 1.
    pub(super) fn value(self) -> f32 {
        f32::from_bits(self.packed & !u32::from(u8::MAX))
    }

    /// Bits of the parts that have one, by [`Part::bit`].
    pub(super) fn parts(self) -> u8 {
        let [parts, ..] = self.packed.to_le_bytes();
        parts
    }
}

/// A cache of the postings of words.
pub(super) struct Postings {
    /// One cache for all: a shard of its bytes would not hold the longest lists. It is
    /// locked for a lookup and no longer.
    cache: Mutex<PostingsCache>,
}

type PostingsCache = Cache<(SegmentId, Arc<str>), Arc<[Posting]>, PostingsWeight>;

#[derive(Debug, Clone)]
struct PostingsWeight;

impl quick_cache::Weighter<(SegmentId, Arc<str>), Arc<[Posting]>> for PostingsWeight {
    fn weight(&self, (_, key): &(SegmentId, Arc<str>), postings: &Arc<[Posting]>) -> u64 {
        (ENTRY_OVERHEAD_BYTES + key.len() + size_of_val(&**postings)) as u64
    }
}

impl Default for Postings {
    fn default() -> Self {
        Self {
            cache: Mutex::new(Cache::with_weighter(
                CACHE_WORD_CAPACITY,
                MIN_CACHE_BYTES,
                PostingsWeight,
            )),
        }
    }
}

/// Buffers to add up the occurrences of a word, used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// By document.
    all: Vec<Sum>,
    /// The documents that have the word.
    touched: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    value: f32,
    parts: u8,
}

impl Postings {
    /// Grows the cache to what this many skills need. It grows by doubling, since each resize
    /// goes through all entries.
    pub(super) fn make_capacity(&self, skills: usize) {
        let needed = (skills as u64).saturating_mul(CACHE_BYTES_PER_SKILL);
        let bytes = needed
            .checked_next_power_of_two()
            .unwrap_or(MIN_CACHE_BYTES)
            .max(MIN_CACHE_BYTES);
        self.with(|kept| {
            if kept.capacity() < bytes {
                kept.set_capacity(bytes);
            }
        });
    }

    /// Empties the cache.
    #[cfg(test)]
    pub(super) fn forget(&self) {
        self.with(Cache::clear);
    }

    fn with<T>(&self, work: impl FnOnce(&mut PostingsCache) -> T) -> T {
        work(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The skills of a segment that have a word, by document.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(super) fn of(
        &self,
        reader: &SegmentReader,
        fields: &Fields,
        group: &Group,
        key: &Arc<str>,
        sums: &mut Sums,
    ) -> tantivy::Result<Arc<[Posting]>> {
        let key = (reader.segment_id(), Arc::clone(key));
        if let Some(postings) = self.with(|kept| kept.get(&key).map(Arc::clone)) {
            return Ok(postings);
        }
        // Segments differ in size. The values are zeros: `take` leaves the buffer empty.
        sums.all.resize(reader.max_doc() as usize, Sum::default());
        let read = read(reader, fields, group, sums);
        // Also after an error: the next word must find the buffers empty.
        let postings = sums.take();
        read?;
        let kept_one = Arc::clone(&postings);
        self.with(|kept| kept.insert(key, kept_one));
        Ok(postings)
    }
}

/// The key of the postings of a word: its forms.
pub(super) fn key(group: &Group) -> Arc<str> {
    let mut key = String::new();
    for form in &group.forms {
        // A word holds no such characters.
        key.push_str(&form.text);
        key.push(if form.in_names { '\u{1}' } else { '\u{2}' });
        key.push_str(&form.weight.to_string());
        key.push('\u{3}');
    }
    key.into()
}

impl Sums {
    fn add(&mut self, document: u32, value: f32, part: u8) {
        let Some(sum) = self.all.get_mut(document as usize) else {
            return;
        };
        if sum.parts == 0 {
            self.touched.push(document);
        }
        sum.value += value;
        sum.parts |= part;
    }

    /// Takes the sums, by document; the buffers are empty then.
    fn take(&mut self) -> Arc<[Posting]> {
        let posting = |document: u32, sum: &mut Sum| {
            let Sum { value, parts } = std::mem::take(sum);
            Posting::new(document, value / (SATURATION_FACTOR + value), parts)
        };
        let postings = if self.touched.len() > self.all.len() / READ_ALL_RATIO {
            let all = (0_u32..).zip(&mut self.all);
            let there = all.filter(|(_, sum)| sum.parts != 0);
            there.map(|(at, sum)| posting(at, sum)).collect()
        } else {
            self.touched.sort_unstable();
            let touched = self.touched.iter();
            touched
                .filter_map(|at| Some(posting(*at, self.all.get_mut(*at as usize)?)))
                .collect()
        };
        self.touched.clear();
        postings
    }
}

/// Adds up the occurrences of a word in a segment.
fn read(
    reader: &SegmentReader,
    fields: &Fields,
    group: &Group,
    sums: &mut Sums,
) -> tantivy::Result<()> {
    let (in_names, in_parts): (Vec<&WordForm>, Vec<&WordForm>) =
        group.forms.iter().partition(|form| form.in_names);
    let parts = Part::ALL.into_iter().zip(fields.parts);
    for ((part, field), by_length) in parts.zip(&*BY_LENGTH) {
        let index = reader.inverted_index(field)?;
        for form in &in_parts {
            let term = Term::from_field_text(field, &form.text);
            let Some(info) = index.get_term_info(&term)? else {
                continue;
            };
            let norms = reader.get_fieldnorms_reader(field)?;
            each(&index, &info, |document, count| {
                #[expect(clippy::indexing_slicing, reason = "a value for every byte")]
                let value = by_length[usize::from(norms.fieldnorm_id(document))];
                sums.add(document, value * frequency(count) * form.weight, part.bit());
            })?;
        }
    }
    let index = reader.inverted_index(fields.names)?;
    let weight = field_weights(Part::Name).weight;
    for form in &in_names {
        let term = Term::from_field_text(fields.names, &form.text);
        let Some(info) = index.get_term_info(&term)? else {
            continue;
        };
        each(&index, &info, |document, _| {
            sums.add(document, weight * form.weight, Part::Name.bit());
        })?;
    }
    Ok(())
}

/// The documents of a segment that have a term, and how often.
fn each(
    index: &InvertedIndexReader,
    info: &TermInfo,
    mut each: impl FnMut(u32, u32),
) -> tantivy::Result<()> {
    let with = IndexRecordOption::WithFreqs;
    let mut block = index.read_block_postings_from_terminfo(info, with)?;
    while !block.docs().is_empty() {
        let (documents, counts) = (block.docs(), block.freqs());
        if counts.len() == documents.len() {
            for (document, count) in documents.iter().zip(counts) {
                each(*document, *count);
            }
        } else {
            // A field without frequencies has none here.
            for document in documents {
                each(*document, 1);
            }
        }
        block.advance();
    }
    Ok(())
}

/// The weight of an occurrence, by part and by each length that the index distinguishes.
static BY_LENGTH: LazyLock<[[f32; 256]; PART_COUNT]> = LazyLock::new(|| Part::ALL.map(by_length));

#[expect(clippy::cast_precision_loss, reason = "lengths are rounded anyway")]
fn by_length(part: Part) -> [f32; 256] {
    let weights = field_weights(part);
    let mut values = [0.0; 256];
    for (id, value) in (0..=u8::MAX).zip(&mut values) {
        let length = FieldNormReader::id_to_fieldnorm(id) as f32;
        let relative = 1.0 - weights.slope + weights.slope * length / weights.length;
        *value = weights.weight / relative;
    }
    values
}

#[expect(clippy::cast_precision_loss, reason = "counts of a word in a text")]
fn frequency(count: u32) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn more_skills_get_more_memory_and_keep_it() {
        let postings = Postings::default();
        let capacity = |skills| {
            postings.make_capacity(skills);
            postings.with(|kept| kept.capacity())
        };
        let mib = 1024 * 1024;
        let bytes = [0, 250_000, 300_000, 1_000_000, 10].map(capacity);
        assert_eq!(bytes, [64, 64, 128, 256, 256].map(|n| n * mib));
    }

    proptest! {
        #[test]
        fn a_posting_tells_its_value_and_its_parts(
            document in any::<u32>(),
            value in 0.0_f32..1.0,
            parts in any::<u8>(),
        ) {
            let posting = Posting::new(document, value, parts);
            prop_assert_eq!((posting.document, posting.parts()), (document, parts));
            let lost = value - posting.value();
            prop_assert!((0.0..=value / 30_000.0).contains(&lost), "{lost} of {value}");
        }
    }
}
