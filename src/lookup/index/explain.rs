//! Why a skill was found.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::best::Ranked;
use super::fuse::Tier;
use super::lexical::Cell;
use super::schema::Part;
use super::snapshot::Slot;
use super::terms::Terms;
use super::{document, tokens};
use crate::registry::Registry;

/// Characters of a snippet, about.
const SNIPPET: usize = 220;
/// Bytes of a body in which a snippet is looked for.
const LOOKED_THROUGH: usize = 16 * 1024;

/// Why a skill was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// What kind of a match it is.
    pub tier: Tier,
    /// What words gave.
    pub words: f32,
    /// What meaning gave.
    pub meaning: f32,
    /// Parts that have words of the query.
    pub parts: Vec<Part>,
    /// Words of the query that it has, as they were typed.
    pub matched: Vec<String>,
    /// Text around them, with each between `**`.
    pub snippet: String,
}

/// Says why skills were found, the skills of one page.
pub(super) struct Explainer<'a> {
    registry: &'a Registry,
    terms: &'a Terms,
    /// What matches, as stems and whole words.
    wanted: FxHashSet<&'a str>,
    /// First characters of what matches: a stem begins as its word does.
    beginnings: FxHashSet<char>,
    /// The stems of words that were met, where they match: making one costs more than
    /// all the rest, and texts repeat their words.
    known: FxHashMap<String, Option<String>>,
    stemmer: tokens::Stemmer,
}

impl<'a> Explainer<'a> {
    /// By the words of a query.
    pub(super) fn new(registry: &'a Registry, terms: &'a Terms) -> Self {
        let forms = terms.groups.iter().flat_map(|group| &group.forms);
        let wanted: FxHashSet<&str> = forms.map(|form| form.text.as_str()).collect();
        Self {
            registry,
            terms,
            beginnings: wanted.iter().filter_map(|w| w.chars().next()).collect(),
            wanted,
            known: FxHashMap::default(),
            stemmer: tokens::Stemmer::default(),
        }
    }

    /// Why this skill was found. Blocks where the text of its body is shown.
    pub(super) fn why(&mut self, slot: &Slot, ranked: &Ranked, cell: Cell) -> Why {
        let mut matched = Vec::new();
        for (at, group) in self.terms.groups.iter().enumerate() {
            if cell.any >> at & 1 == 1 && !matched.contains(&group.word) {
                matched.push(group.word.clone());
            }
        }
        let parts = cell.parts();
        Why {
            tier: ranked.tier,
            words: ranked.words,
            meaning: ranked.meaning,
            snippet: self.snippet(slot, &parts),
            parts,
            matched,
        }
    }

    /// Text of the skill around words of the query: of its description, or of its body
    /// where only that has any.
    fn snippet(&mut self, slot: &Slot, parts: &[Part]) -> String {
        let summary = slot.head.summary.as_ref();
        let description = summary.map_or("", |summary| summary.description.as_str());
        let in_front = |part: &Part| !matches!(part, Part::Body | Part::Headings | Part::Files);
        if parts.is_empty() || parts.iter().any(in_front) {
            return marked(description, &self.matches(description));
        }
        match document::body(self.registry, slot) {
            Ok(body) => {
                let end = body.floor_char_boundary(LOOKED_THROUGH);
                let body = body.get(..end).unwrap_or(&body);
                marked(body, &self.matches(body))
            }
            // A snippet is no answer: that the skill is damaged is told by reading it.
            Err(_) => marked(description, &self.matches(description)),
        }
    }

    /// Where words of a text match, each with its stem.
    fn matches(&mut self, text: &str) -> Vec<(Range<usize>, String)> {
        let mut found = Vec::new();
        tokens::words(text, |word, range| {
            let first = word.chars().next();
            if !first.is_some_and(|first| self.beginnings.contains(&first)) {
                return;
            }
            if !self.known.contains_key(word) {
                let stem = self.stemmer.stem(word);
                let matches = self.wanted.contains(stem) || self.wanted.contains(word);
                self.known
                    .insert(word.to_owned(), matches.then(|| stem.to_owned()));
            }
            if let Some(Some(stem)) = self.known.get(word) {
                found.push((range, stem.clone()));
            }
        });
        found
    }
}

/// The stretch of a text with the most of the matches, each between `**`.
fn marked(text: &str, found: &[(Range<usize>, String)]) -> String {
    let begin = best(found).unwrap_or_default();
    // From the beginning where that is near, else from a little before.
    let begin = if begin < SNIPPET / 2 {
        0
    } else {
        begin - SNIPPET / 4
    };
    let begin = text.ceil_char_boundary(begin);
    let begin = match text
        .get(begin..)
        .and_then(|rest| rest.find(char::is_whitespace))
    {
        Some(space) if begin > 0 && space < SNIPPET / 4 => begin + space,
        _ => begin,
    };
    let mut end = text.floor_char_boundary((begin + SNIPPET).min(text.len()));
    if end < text.len()
        && let Some(space) = text
            .get(begin..end)
            .and_then(|part| part.rfind(char::is_whitespace))
        && space > SNIPPET / 2
    {
        end = begin + space;
    }
    let mut snippet = String::new();
    if begin > 0 {
        snippet.push('…');
    }
    let mut at = begin;
    for (range, _) in found {
        if range.start >= at && range.end <= end {
            snippet.push_str(text.get(at..range.start).unwrap_or_default());
            snippet.push_str("**");
            snippet.push_str(text.get(range.clone()).unwrap_or_default());
            snippet.push_str("**");
            at = range.end;
        }
    }
    snippet.push_str(text.get(at..end).unwrap_or_default());
    if end < text.len() {
        snippet.push('…');
    }
    // In one line, as it is shown.
    snippet.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where the stretch with the most different words begins.
fn best(found: &[(Range<usize>, String)]) -> Option<usize> {
    let different = |from: usize| {
        let begin = found.get(from).map_or(0, |(range, _)| range.start);
        let near = found.iter().skip(from);
        let near = near.take_while(|(range, _)| range.end <= begin + SNIPPET);
        near.map(|(_, stem)| stem).collect::<FxHashSet<_>>().len()
    };
    (0..found.len().min(256))
        .map(|from| (different(from), std::cmp::Reverse(from)))
        .max()
        .and_then(|(_, std::cmp::Reverse(from))| Some(found.get(from)?.0.start))
}
