//! The fields of a document.

use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing,
    TextOptions,
};

/// A part of a skill whose words are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Its name.
    Name,
    /// Phrases that should make an agent think of it.
    Triggers,
    /// Its tags, technologies and category.
    Tags,
    /// Its description.
    Description,
    /// The headings of its instructions.
    Headings,
    /// Its author.
    Author,
    /// Its instructions.
    Body,
    /// The text files next to them.
    Files,
}

/// How many parts there are.
pub(super) const PART_COUNT: usize = 8;

impl Part {
    /// All parts, in the order of their fields.
    pub(super) const ALL: [Self; PART_COUNT] = [
        Self::Name,
        Self::Triggers,
        Self::Tags,
        Self::Description,
        Self::Headings,
        Self::Author,
        Self::Body,
        Self::Files,
    ];

    /// Its bit among those of all parts.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Its name, for people and in the index.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Triggers => "triggers",
            Self::Tags => "tags",
            Self::Description => "description",
            Self::Headings => "headings",
            Self::Author => "author",
            Self::Body => "body",
            Self::Files => "files",
        }
    }
}

/// Reads fields that are compared by stems.
pub(super) const STEMS: &str = "stems";
/// Reads fields that are compared by whole words.
pub(super) const WORDS: &str = "words";
/// Name of the field of the ordinal.
pub(super) const ORDINAL: &str = "ordinal";

/// The fields.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    /// The skill's key, by which its document is replaced.
    pub(super) key: Field,
    /// Its number in all that is stored by skill.
    pub(super) ordinal: Field,
    /// Its stored facts.
    pub(super) facts: Field,
    /// The signature of its text: none where it has no words.
    pub(super) signature: Field,
    /// Its parts.
    pub(super) parts: [Field; PART_COUNT],
    /// Whole words of its name: they are found by how they begin.
    pub(super) names: Field,
    /// Whole words of its name, description and tags: spelling is corrected by them.
    pub(super) vocabulary: Field,
}

/// The schema, and its fields.
pub(super) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let text = |reader, option, norms| {
        let indexing = TextFieldIndexing::default();
        let indexing = indexing.set_tokenizer(reader).set_index_option(option);
        TextOptions::default().set_indexing_options(indexing.set_fieldnorms(norms))
    };
    let part = text(STEMS, IndexRecordOption::WithFreqs, true);
    // Only asked whether a skill has the word, so neither counts nor lengths are stored.
    let words = text(WORDS, IndexRecordOption::Basic, false);
    let fields = Fields {
        parts: Part::ALL.map(|name| builder.add_text_field(name.name(), part.clone())),
        key: builder.add_text_field("key", STRING),
        ordinal: builder.add_u64_field(ORDINAL, NumericOptions::default() | FAST),
        facts: builder.add_bytes_field("facts", STORED),
        signature: builder.add_bytes_field("signature", STORED),
        names: builder.add_text_field("names", words.clone()),
        vocabulary: builder.add_text_field("vocabulary", words),
    };
    (builder.build(), fields)
}
