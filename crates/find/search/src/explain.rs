//! Explanations of matches.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::document;
use super::fuse::Tier;
use super::lexical::Cell;
use super::schema::Part;
use super::snapshot::Slot;
use super::terms::Terms;
use super::tokens::{self, Stemmer};
use super::top_k::Ranked;
use registry::Registry;

/// The approximate number of characters of a snippet.
const SNIPPET_CHARS: usize = 220;
/// Bytes of a body that are searched for a snippet, at most and at once.
const MAX_SNIPPET_SEARCH_BYTES: usize = 16 * 1024;
const SNIPPET_CHUNK_BYTES: usize = 2 * 1024;

/// The explanation of a match.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchExplanation {
    /// The kind of match.
    pub tier: Tier,
    /// The score of words.
    pub words: f32,
    /// The score of meaning.
    pub meaning: f32,
    /// Parts that have words of the query.
    pub parts: Vec<Part>,
    /// Words of the query that it has, as they were typed.
    pub matched: Vec<String>,
    /// Text around them.
    pub snippet: Snippet,
}

/// A part of a text in one line, with the positions of words of the query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snippet {
    /// The text as its author wrote it, except for runs of whitespace, which are a space each.
    pub text: String,
    /// Ranges of its characters (Unicode code points), in their order; no two of them
    /// touch.
    pub highlights: Vec<Range<usize>>,
}

/// Explains the matches of one page.
pub(super) struct Explainer<'a> {
    registry: &'a Registry,
    terms: &'a Terms,
    /// The stems and whole words that match, each with the bit of its word of the query.
    wanted: FxHashMap<&'a str, u32>,
    /// First characters of the words that match: a stem begins as its word does.
    beginnings: FxHashSet<char>,
    /// The bits of words that were met, 0 where they do not match.
    known: FxHashMap<String, u32>,
    stemmer: &'a mut Stemmer,
    /// Texts are shown.
    pub(super) has_snippets: bool,
}

impl<'a> Explainer<'a> {
    /// By the words of a query.
    pub(super) fn new(registry: &'a Registry, terms: &'a Terms, stemmer: &'a mut Stemmer) -> Self {
        let mut wanted = FxHashMap::default();
        for (at, group) in (0..u32::BITS).zip(&terms.groups) {
            for form in &group.forms {
                wanted.entry(form.text.as_str()).or_insert(1 << at);
            }
        }
        Self {
            registry,
            terms,
            beginnings: wanted.keys().filter_map(|w| w.chars().next()).collect(),
            wanted,
            known: FxHashMap::default(),
            stemmer,
            has_snippets: true,
        }
    }

    /// Explains the match of a skill. Blocks where the text of its body is shown.
    pub(super) fn why(&mut self, slot: &Slot, ranked: &Ranked, cell: Cell) -> MatchExplanation {
        let mut matched = Vec::new();
        for (at, group) in self.terms.groups.iter().enumerate() {
            if cell.any >> at & 1 == 1 && !matched.contains(&group.word) {
                matched.push(group.word.clone());
            }
        }
        let parts = cell.parts();
        MatchExplanation {
            tier: ranked.tier,
            words: ranked.words,
            meaning: ranked.meaning,
            snippet: if self.has_snippets {
                self.snippet(slot, &parts, cell.any.count_ones())
            } else {
                Snippet::default()
            },
            parts,
            matched,
        }
    }

    /// Text of the skill around words of the query, as many as it has: of its
    /// description, or of its body where only that has any.
    fn snippet(&mut self, slot: &Slot, parts: &[Part], words: u32) -> Snippet {
        let summary = slot.head.summary.as_ref();
        let description = summary.map_or("", |summary| summary.description.as_str());
        let in_front = |part: &Part| !matches!(part, Part::Body | Part::Headings | Part::Files);
        if parts.is_empty() || parts.iter().any(in_front) {
            return excerpt(description, &self.matches(description));
        }
        match document::body(self.registry, slot) {
            Ok(body) => {
                let end = body.floor_char_boundary(MAX_SNIPPET_SEARCH_BYTES);
                let body = body.get(..end).unwrap_or(&body);
                let mut found = Vec::new();
                let mut from = 0;
                // Only up to a part that has all of them.
                while from < body.len() && best(&found).is_none_or(|(_, max)| max < words) {
                    let rest = body.get(from..).unwrap_or_default();
                    let end = end_of_lines(rest, SNIPPET_CHUNK_BYTES);
                    let there = self.matches(rest.get(..end).unwrap_or(rest));
                    let moved = there.into_iter();
                    found.extend(moved.map(|(at, word)| (from + at.start..from + at.end, word)));
                    from += end;
                }
                excerpt(body, &found)
            }
            // A snippet is no reason to fail: reading the skill reports the damage.
            Err(_) => excerpt(description, &self.matches(description)),
        }
    }

    /// The words of a text that match, each with its bit.
    fn matches(&mut self, text: &str) -> Vec<Match> {
        let mut found = Vec::new();
        let may_match = |first: char| self.beginnings.contains(&first);
        tokens::words_beginning(text, may_match, |word, range| {
            if !word.chars().next().is_some_and(may_match) {
                return;
            }
            let known = self.known.get(word).copied();
            let bit = known.unwrap_or_else(|| {
                let of = |text: &str| self.wanted.get(text).copied();
                let bit = of(self.stemmer.stem(word)).or_else(|| of(word));
                let bit = bit.unwrap_or_default();
                self.known.insert(word.to_owned(), bit);
                bit
            });
            if bit != 0 {
                found.push((range, bit));
            }
        });
        found
    }
}

/// The range of a word that matches, and the bit of the word of the query.
type Match = (Range<usize>, u32);

/// Cuts out the part of a text with the most matches.
fn excerpt(text: &str, found: &[Match]) -> Snippet {
    let begin = best(found).map_or(0, |(begin, _)| begin);
    // From the beginning where that is near, else from a little before.
    let begin = if begin < SNIPPET_CHARS / 2 {
        0
    } else {
        begin - SNIPPET_CHARS / 4
    };
    let begin = text.ceil_char_boundary(begin);
    let begin = match text
        .get(begin..)
        .and_then(|rest| rest.find(char::is_whitespace))
    {
        Some(space) if begin > 0 && space < SNIPPET_CHARS / 4 => begin + space,
        _ => begin,
    };
    let mut end = text.floor_char_boundary((begin + SNIPPET_CHARS).min(text.len()));
    if end < text.len()
        && let Some(space) = text
            .get(begin..end)
            .and_then(|part| part.rfind(char::is_whitespace))
        && space > SNIPPET_CHARS / 2
    {
        end = begin + space;
    }
    let whole = |range: &&Range<usize>| range.start >= begin && range.end <= end;
    let inside: Vec<_> = found.iter().map(|(range, _)| range).filter(whole).collect();
    let mut line = Line::default();
    if begin > 0 {
        line.push('…', false);
    }
    for (at, c) in text.get(begin..end).unwrap_or_default().char_indices() {
        line.push(c, inside.iter().any(|range| range.contains(&(begin + at))));
    }
    if end < text.len() {
        line.push('…', false);
    }
    line.snippet
}

/// A snippet as it is written, character by character.
#[derive(Default)]
struct Line {
    snippet: Snippet,
    /// How many characters it has.
    chars: usize,
    /// Whitespace came since the last of them.
    has_gap: bool,
}

impl Line {
    fn push(&mut self, c: char, is_match: bool) {
        if c.is_whitespace() {
            self.has_gap = true;
            return;
        }
        if std::mem::take(&mut self.has_gap) && self.chars > 0 {
            self.snippet.text.push(' ');
            self.chars += 1;
        }
        self.snippet.text.push(c);
        let at = self.chars;
        self.chars += 1;
        match self.snippet.highlights.last_mut() {
            _ if !is_match => {}
            Some(open) if open.end == at => open.end = self.chars,
            _ => self.snippet.highlights.push(at..self.chars),
        }
    }
}

/// The beginning of the part with the most different words, and their number.
fn best(found: &[Match]) -> Option<(usize, u32)> {
    let different = |from: usize| {
        let begin = found.get(from).map_or(0, |(range, _)| range.start);
        let near = found.iter().skip(from);
        let near = near.take_while(|(range, _)| range.end <= begin + SNIPPET_CHARS);
        near.fold(0_u32, |bits, (_, bit)| bits | bit).count_ones()
    };
    let stretches = (0..found.len().min(256)).map(|from| (different(from), Reverse(from)));
    let (max, Reverse(from)) = stretches.max()?;
    Some((found.get(from)?.0.start, max))
}

/// The end of the lines that fit into this many bytes; of a longer line, its end.
fn end_of_lines(text: &str, bytes: usize) -> usize {
    let from = text.floor_char_boundary(bytes.min(text.len()));
    let rest = text.get(from..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |end| from + end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is highlighted of a snippet, as a client takes it out.
    fn highlighted(snippet: &Snippet) -> Vec<String> {
        let chars: Vec<char> = snippet.text.chars().collect();
        let ranges = snippet.highlights.iter().cloned();
        ranges.map(|range| chars[range].iter().collect()).collect()
    }

    fn found(text: &str, words: &[&str]) -> Vec<Match> {
        let mut found: Vec<Match> = (words.iter())
            .flat_map(|word| text.match_indices(word))
            .map(|(at, word)| (at..at + word.len(), 1))
            .collect();
        found.sort_by_key(|(range, _)| range.start);
        found
    }

    #[test]
    fn highlights_are_counted_in_characters_of_the_snippet_and_those_that_overlap_are_one() {
        let text = "Über  **alle**\n\n 東京都庁 \u{1b}[2J undo";
        let snippet = excerpt(text, &found(text, &["alle", "東京", "京都", "undo"]));
        assert_eq!(
            snippet,
            Snippet {
                text: "Über **alle** 東京都庁 \u{1b}[2J undo".to_owned(),
                highlights: vec![7..11, 14..17, 24..28],
            }
        );
        assert_eq!(highlighted(&snippet), ["alle", "東京都", "undo"]);
        assert_eq!(excerpt("", &[]), Snippet::default());
    }

    #[test]
    fn a_cut_at_the_front_is_a_character_of_the_snippet() {
        let text = format!("{}needle {}", "é hay ".repeat(60), "hay ".repeat(90));
        let snippet = excerpt(&text, &found(&text, &["needle"]));
        assert!(snippet.text.starts_with("… hay é"), "{snippet:?}");
        assert!(snippet.text.ends_with("hay…"), "{snippet:?}");
        assert_eq!(highlighted(&snippet), ["needle"]);
    }

    proptest! {
        #[test]
        fn every_highlight_is_what_was_found(
            text in "(ab|c|é|字|👩‍💻|\\*\\*|[ \n\t\u{2003}]|\u{0}){0,200}",
        ) {
            let snippet = excerpt(&text, &found(&text, &["ab", "é", "字"]));
            let chars = snippet.text.chars().count();
            let mut behind = 0;
            for range in &snippet.highlights {
                prop_assert!(range.start >= behind && range.start < range.end && range.end <= chars);
                behind = range.end + 1;
            }
            for part in highlighted(&snippet) {
                prop_assert!(part.replace("ab", "").chars().all(|c| matches!(c, 'é' | '字')), "{part:?}");
            }
            // Between them nothing is left of what was looked for.
            let marked = |at: usize| snippet.highlights.iter().any(|range| range.contains(&at));
            let rest: String = snippet.text.chars().enumerate().map(|(at, c)| if marked(at) { '_' } else { c }).collect();
            prop_assert!(!["ab", "é", "字"].iter().any(|word| rest.contains(word)), "{rest:?}");
        }
    }
}
