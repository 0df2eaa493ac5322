//! What a search sees: a state of the index that does not change any more.

use std::sync::Arc;

use imbl::Vector;
use tantivy::error::DataCorruption;
use tantivy::{Searcher, SegmentReader};

use super::schema::Fields;
use super::signature::Signature;
use super::tie_break::TieBreakKeys;
use super::vectors::Vectors;
use super::vocabulary::Vocabulary;
use model::{Digest, VersionNumber};
use registry::Head;

/// A skill of the index. Its ordinal is its number in all that is kept by skill.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// The skill as it was when it was indexed.
    pub(super) head: Arc<Head>,
    /// The version that is indexed.
    pub(super) number: VersionNumber,
    /// Digest of the text that its meaning is taken from.
    pub(super) meaning: Digest,
    /// The signature of its text; none where it has no words.
    pub(super) signature: Option<Signature>,
    /// A file looks like a test.
    pub(super) has_tests: bool,
    /// It holds examples.
    pub(super) has_examples: bool,
    /// What its name looks like to a person: names that look alike are one.
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
    /// What is kept of each segment.
    pub(super) segments: Vec<Arc<Segment>>,
    /// The skills.
    pub(super) slots: Slots,
    /// Skills that look alike by name, those of one skeleton, by ordinal.
    pub(super) alike: imbl::HashMap<Arc<str>, Arc<[u32]>>,
    /// How many of the skills look like another.
    pub(super) confusables: usize,
    /// What decides among equals.
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
}

impl Snapshot {
    /// The skill of an ordinal.
    pub(super) fn slot(&self, ordinal: u32) -> Option<&Slot> {
        self.slots.get(ordinal as usize)?.as_ref()
    }

    /// The segments with what is kept of them.
    pub(super) fn segments(&self) -> impl Iterator<Item = (&SegmentReader, &Segment)> {
        let segments = self.segments.iter().map(AsRef::as_ref);
        self.searcher.segment_readers().iter().zip(segments)
    }
}

/// What is kept of a segment in memory; it never changes.
#[derive(Debug)]
pub(super) struct Segment {
    /// The ordinal of each document.
    pub(super) ordinals: Box<[u32]>,
    /// The words that spelling is corrected by.
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
