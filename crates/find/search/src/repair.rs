//! Corrections of words that no skill has.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption, Term};
use tantivy::{DocSet as _, TERMINATED};

use super::snapshot::{SegmentView, Snapshot};

/// Words that are tried instead of one, at most.
const MAX_CORRECTIONS: usize = 3;
/// Letters from which on one letter may be wrong, and two.
const MIN_ONE_TYPO_CHARS: usize = 4;
const MIN_TWO_TYPO_CHARS: usize = 7;
/// Letters of a word that was written together with another.
const MIN_PART_CHARS: usize = 3;

/// The words that the skills of a state of the index have.
pub(super) struct Dictionary<'a>(pub(super) &'a Snapshot);

impl Dictionary<'_> {
    fn has(&self, field: Field, text: &str) -> tantivy::Result<bool> {
        for segment in self.0.segments() {
            let index = segment.reader.inverted_index(field)?;
            let term = Term::from_field_text(field, text);
            if let Some(info) = index.get_term_info(&term)?
                && is_used(segment, &index, &info)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A part of a skill has a word of this stem.
    pub(super) fn has_stem(&self, stem: &str) -> tantivy::Result<bool> {
        // The long texts first, which most words are in.
        for field in self.0.fields.parts.into_iter().rev() {
            if self.has(field, stem)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A name, description or tag has this word.
    pub(super) fn has_word(&self, word: &str) -> tantivy::Result<bool> {
        self.has(self.0.fields.vocabulary, word)
    }

    /// The first words of names that begin with this and are longer.
    pub(super) fn names_beginning(
        &self,
        beginning: &str,
        max: usize,
    ) -> tantivy::Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for segment in self.0.segments() {
            let index = segment.reader.inverted_index(self.0.fields.names)?;
            let from = index.terms().range().ge(beginning);
            let mut words = from.into_stream()?;
            let mut of_segment = 0;
            while let Some((word, info)) = words.next() {
                let word = std::str::from_utf8(word).unwrap_or_default();
                if !word.starts_with(beginning) || of_segment > max {
                    break;
                }
                if word != beginning && is_used(segment, &index, info)? {
                    found.insert(word.to_owned());
                    of_segment += 1;
                }
            }
        }
        while found.len() > max {
            found.pop_last();
        }
        Ok(found)
    }

    /// Words of names, descriptions and tags within `wrong` letters, or only those that begin
    /// with the same letter, each with the number of skills that have it.
    fn within(
        &self,
        word: &str,
        wrong: u32,
        same_first: bool,
    ) -> tantivy::Result<BTreeMap<String, u32>> {
        let mut found = BTreeMap::new();
        let field = self.0.fields.vocabulary;
        for segment in self.0.segments() {
            let index = segment.reader.inverted_index(field)?;
            for near in segment.kept.vocabulary.within(word, wrong, same_first) {
                let info = index.get_term_info(&Term::from_field_text(field, near))?;
                let skills = info.map_or(Ok(0), |info| skills_with(segment, &index, &info))?;
                if skills > 0 {
                    *found.entry(near.to_owned()).or_default() += skills;
                }
            }
        }
        Ok(found)
    }
}

/// A skill of a segment has a word.
fn is_used(
    segment: SegmentView<'_>,
    index: &InvertedIndexReader,
    info: &TermInfo,
) -> tantivy::Result<bool> {
    if segment.has_all() {
        return Ok(true);
    }
    let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    while postings.doc() != TERMINATED {
        if segment.has(postings.doc()) {
            return Ok(true);
        }
        postings.advance();
    }
    Ok(false)
}

/// Counts the skills of a segment that have a word. Deleted documents stay in a segment until it
/// is merged, and do not count; nor do hidden ones.
fn skills_with(
    segment: SegmentView<'_>,
    index: &InvertedIndexReader,
    info: &TermInfo,
) -> tantivy::Result<u32> {
    if segment.has_all() {
        return Ok(info.doc_freq);
    }
    let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut skills = 0;
    while postings.doc() != TERMINATED {
        skills += u32::from(segment.has(postings.doc()));
        postings.advance();
    }
    Ok(skills)
}

/// The words nearest to one that no skill has, those first that most skills have. The
/// first letter is seldom wrong: it is tried last, and never with another.
///
/// # Errors
/// The index cannot be read.
pub(super) fn near(dictionary: &Dictionary<'_>, word: &str) -> tantivy::Result<Vec<String>> {
    let letters = word.chars().count();
    let attempts: &[(u32, bool)] = match letters {
        _ if letters < MIN_ONE_TYPO_CHARS || !word.chars().any(char::is_alphabetic) => &[],
        _ if letters < MIN_TWO_TYPO_CHARS => &[(1, true), (1, false)],
        _ => &[(1, true), (1, false), (2, true)],
    };
    for (wrong, same_first) in attempts {
        let found = dictionary.within(word, *wrong, *same_first)?;
        let mut near: Vec<_> = found.into_iter().map(|(w, n)| (Reverse(n), w)).collect();
        if !near.is_empty() {
            near.sort();
            near.truncate(MAX_CORRECTIONS);
            return Ok(near.into_iter().map(|(_, word)| word).collect());
        }
    }
    Ok(Vec::new())
}

/// Two words that skills have and that were written as one, the first such pair.
///
/// # Errors
/// The index cannot be read.
pub(super) fn apart(
    dictionary: &Dictionary<'_>,
    word: &str,
) -> tantivy::Result<Option<(String, String)>> {
    for (at, _) in word.char_indices() {
        let Some((first, second)) = word.split_at_checked(at) else {
            continue;
        };
        if first.chars().count() >= MIN_PART_CHARS
            && second.chars().count() >= MIN_PART_CHARS
            && dictionary.has_word(first)?
            && dictionary.has_word(second)?
        {
            return Ok(Some((first.to_owned(), second.to_owned())));
        }
    }
    Ok(None)
}
