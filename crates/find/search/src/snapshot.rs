//! Snapshots: immutable states of the index, which searches read.

use std::sync::Arc;

use imbl::Vector;
use tantivy::error::DataCorruption;
use tantivy::{Searcher, SegmentReader};

use super::schema::Fields;
use super::signature::Signature;
use super::tie_break::TieBreakKeys;
use super::vectors::Vectors;
use super::vocabulary::Vocabulary;
use model::{Digest, SkillId, VersionNumber};
use registry::Head;

/// A skill of the index. Its ordinal is its number in all that is stored by skill.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// The skill as it was when it was indexed.
    pub(super) head: Arc<Head>,
    /// The version that is indexed.
    pub(super) number: VersionNumber,
    /// Digest of the text that its vector is made of.
    pub(super) meaning: Digest,
    /// The signature of its text; none where it has no words.
    pub(super) signature: Option<Signature>,
    /// A file looks like a test.
    pub(super) has_tests: bool,
    /// It holds examples.
    pub(super) has_examples: bool,
    /// The look of its name: names that look alike have the same.
    pub(super) skeleton: Arc<str>,
    /// Another name looks like it.
    pub(super) confusable: bool,
}

/// The skills by ordinal; none where a skill went away.
pub(super) type Slots = Vector<Option<Slot>>;

/// A state of the index.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    /// The words.
    pub(super) searcher: Searcher,
    /// The fields that they are in.
    pub(super) fields: Fields,
    /// The data in memory for each segment.
    pub(super) segments: Vec<Arc<Segment>>,
    /// The skills.
    pub(super) slots: Slots,
    /// Skills that look alike by name, those of one skeleton, by ordinal.
    pub(super) alike: imbl::HashMap<Arc<str>, Arc<[u32]>>,
    /// How many of the skills look like another.
    pub(super) confusables: usize,
    /// The tie-break keys.
    pub(super) tie_breaks: TieBreakKeys,
    /// Their meanings.
    pub(super) vectors: Vectors,
    /// How many skills there are.
    pub(super) live: usize,
    /// How many of them have no vector yet.
    pub(super) pending: usize,
    /// Events of the log up to here are in it.
    pub(super) position: u64,
    /// It has caught up once.
    pub(super) caught_up: bool,
    /// The skills of it that are seen; none: all of them.
    pub(super) seen: Option<Ordinals>,
}

/// A set of ordinals.
#[derive(Debug, Clone)]
pub(super) struct Ordinals(Box<[u64]>);

impl Ordinals {
    /// The ordinals for which `has` returns true. It is called for each ordinal, in their
    /// order.
    fn of(slots: &Slots, mut has: impl FnMut(Option<&Slot>, u32) -> bool) -> Self {
        let mut words = vec![0; slots.len().div_ceil(64)];
        for (ordinal, slot) in (0..).zip(slots) {
            if has(slot.as_ref(), ordinal)
                && let Some(word) = words.get_mut(ordinal as usize / 64)
            {
                *word |= 1 << (ordinal % 64);
            }
        }
        Self(words.into())
    }

    fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn has(&self, ordinal: u32) -> bool {
        let word = self.0.get(ordinal as usize / 64);
        word.is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }
}

/// A segment of a state of the index.
#[derive(Clone, Copy)]
pub(super) struct SegmentView<'a> {
    /// The segment on disk.
    pub(super) reader: &'a SegmentReader,
    /// Its data in memory.
    pub(super) kept: &'a Segment,
    seen: Option<&'a Ordinals>,
}

impl SegmentView<'_> {
    /// Every document of it is there.
    pub(super) fn has_all(&self) -> bool {
        self.seen.is_none() && self.reader.alive_bitset().is_none()
    }

    /// A document is there: it was not deleted since, and is seen.
    pub(super) fn has(&self, document: u32) -> bool {
        let alive = self.reader.alive_bitset();
        alive.is_none_or(|alive| alive.is_alive(document))
            && self.seen.is_none_or(|seen| {
                let ordinal = self.kept.ordinals.get(document as usize);
                ordinal.is_some_and(|ordinal| seen.has(*ordinal))
            })
    }
}

impl Snapshot {
    /// The same for a caller that sees the skills for which `sees` returns true. `before` is its
    /// view of an earlier state, in which most skills are the same.
    pub(super) fn seen_by(&self, sees: impl Fn(&SkillId) -> bool, before: Option<&Self>) -> Self {
        let known = before.and_then(|before| Some((before.slots.iter(), before.seen.as_ref()?)));
        let (known, shown_before) = known.unzip();
        let mut known = known.into_iter().flatten();
        let shown = Ordinals::of(&self.slots, |slot, ordinal| {
            // Taken before anything returns: the two lists of slots are walked in step.
            let same = known.next().and_then(Option::as_ref);
            let Some(slot) = slot else { return false };
            // To see that the skill is the same costs a tenth of asking `sees`.
            let same = same.filter(|same| Arc::ptr_eq(&same.head, &slot.head));
            match (same, shown_before) {
                (Some(_), Some(shown)) => shown.has(ordinal),
                _ => sees(&slot.head.id),
            }
        });
        Self {
            live: shown.len(),
            seen: Some(shown),
            ..self.clone()
        }
    }

    /// The skill of an ordinal.
    pub(super) fn slot(&self, ordinal: u32) -> Option<&Slot> {
        let slot = self.slots.get(ordinal as usize)?.as_ref();
        slot.filter(|_| self.sees(ordinal))
    }

    /// A skill of the index is seen.
    pub(super) fn sees(&self, ordinal: u32) -> bool {
        self.seen.as_ref().is_none_or(|seen| seen.has(ordinal))
    }

    /// The segments with their data in memory.
    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentView<'_>> {
        let readers = self.searcher.segment_readers().iter();
        let seen = self.seen.as_ref();
        let views = readers.zip(&self.segments);
        views.map(move |(reader, kept)| SegmentView { reader, kept, seen })
    }
}

/// The data in memory for a segment; it never changes.
#[derive(Debug)]
pub(super) struct Segment {
    /// The ordinal of each document.
    pub(super) ordinals: Box<[u32]>,
    /// The words for corrections of spelling.
    pub(super) vocabulary: Vocabulary,
}

impl Segment {
    /// Reads it.
    ///
    /// # Errors
    /// The segment cannot be read.
    pub(super) fn read(reader: &SegmentReader, fields: &Fields) -> tantivy::Result<Self> {
        Ok(Self {
            ordinals: ordinals(reader)?,
            vocabulary: Vocabulary::read(reader, fields.vocabulary)?,
        })
    }
}

/// The ordinal of each document of a segment.
///
/// # Errors
/// The segment cannot be read, or a document has none: then it is not what was written.
pub(super) fn ordinals(reader: &SegmentReader) -> tantivy::Result<Box<[u32]>> {
    let column = reader.fast_fields().u64(super::schema::ORDINAL)?;
    let ordinal = |document| {
        let ordinal = column.first(document)?;
        u32::try_from(ordinal).ok()
    };
    let ordinals: Option<_> = (0..reader.max_doc()).map(ordinal).collect();
    ordinals.ok_or_else(|| DataCorruption::comment_only("a document has no ordinal").into())
}
