//! Phrases that trigger a skill: as its author states them, and as the sentences of a
//! description say when to use it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::text::{Before, Word, begins_use, pieces, stem, words};
use model::listed;

/// The most words of a phrase.
const MAX_PHRASE_WORDS: usize = 8;
/// The fewest words of a phrase of a description: one alone says too little.
const MIN_WORDS: usize = 2;

/// Words that say nothing of what is asked for, but lead to it or join it.
const EMPTY: &str = include_str!("empty_words.txt");

/// A phrase that triggers a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// As it is written, in lower case and without what leads to it.
    pub text: String,
    /// Its words as stems, sorted, each once: these are compared.
    pub stems: Vec<String>,
}

impl Phrase {
    /// Reads a phrase that an author states. `None`: it has no word.
    #[must_use]
    pub fn stated(text: &str) -> Option<Self> {
        let all = words(text);
        let telling: Vec<&Word> = all.iter().filter(|word| !is_empty(word)).collect();
        // A phrase of nothing but empty words is still what its author means.
        let telling = if telling.is_empty() {
            all.iter().collect()
        } else {
            telling
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self::of(text.to_lowercase(), &telling)
    }

    /// Reads a whole message, to search phrases in it.
    #[must_use]
    pub fn message(text: &str) -> Self {
        Self {
            text: String::new(),
            stems: stems(words(text).iter()),
        }
    }

    fn of(text: String, words: &[&Word]) -> Option<Self> {
        let stems = stems(words.iter().copied().take(MAX_PHRASE_WORDS));
        (!stems.is_empty()).then_some(Self { text, stems })
    }

    /// Tells whether the other phrase contains all words of this one.
    #[must_use]
    pub fn is_in(&self, other: &Self) -> bool {
        // Both are sorted, so one pass over the others is enough: `any` goes on where it stopped.
        let mut others = other.stems.iter();
        self.stems
            .iter()
            .all(|stem| others.any(|other| other == stem))
    }
}

/// The stems of words, sorted, each once.
fn stems<'a>(words: impl Iterator<Item = &'a Word>) -> Vec<String> {
    let stems: BTreeSet<&str> = words.map(|word| stem(&word.text)).collect();
    stems.into_iter().map(str::to_owned).collect()
}

/// Returns the phrases by which a description says when to use the skill: `reviewing pull
/// requests` of `Use when reviewing pull requests or …`. What it excludes is in none.
#[must_use]
pub fn uses(description: &str) -> Vec<Phrase> {
    let mut found: Vec<Phrase> = Vec::new();
    let mut is_use = false;
    for (_, piece) in pieces(description) {
        // Only at the start of a sentence: what follows an exclusion in it keeps its role.
        if piece.first().is_some_and(|word| word.before == Before::End) {
            is_use = begins_use(&piece);
        }
        if !is_use {
            continue;
        }
        for part in parts(&piece) {
            let telling: Vec<&Word> = part.iter().filter(|word| !is_empty(word)).collect();
            let Some(phrase) = Phrase::of(text(part), &telling) else {
                continue;
            };
            let is_new = found.iter().all(|known| known.stems != phrase.stems);
            if phrase.stems.len() >= MIN_WORDS && is_new {
                found.push(phrase);
            }
        }
    }
    found
}

/// The words of a piece between commas, brackets, `and` and `or`.
fn parts(piece: &[Word]) -> impl Iterator<Item = &[Word]> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = |word: &Word| word.before != Before::Blank || joins(word);
        let end = rest
            .iter()
            .skip(1)
            .position(ends)
            .map_or(rest.len(), |end| end + 1);
        let (part, behind) = rest.split_at_checked(end)?;
        rest = behind;
        Some(part)
    })
}

fn joins(word: &Word) -> bool {
    matches!(word.text.as_str(), "and" | "or")
}

fn is_empty(word: &Word) -> bool {
    static WORDS: LazyLock<FxHashSet<&str>> = LazyLock::new(|| listed(EMPTY).collect());
    WORDS.contains(word.text.as_str())
}

/// Joins the words from the first to the last that says something.
fn text(part: &[Word]) -> String {
    let says = |word: &Word| !is_empty(word);
    let from = part.iter().position(says).unwrap_or_default();
    let to = part.iter().rposition(says).map_or(from, |last| last + 1);
    let words = part.get(from..to).unwrap_or_default().iter();
    words
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_nothing_are_in_order() {
        assert!(listed(EMPTY).is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_description_says_when_to_use_the_skill() {
        for (description, expected) in [
            (
                "Performs reviews. Use when reviewing pull requests, examining code changes, or \
                 providing feedback on code quality. Covers naming and more things.",
                vec![
                    "reviewing pull requests",
                    "examining code changes",
                    "providing feedback on code quality",
                ],
            ),
            ("Use before merging any change.", vec![]),
            (
                "Use when completing tasks, implementing major features, or before merging to \
                 verify work meets requirements",
                vec![
                    "implementing major features",
                    "merging to verify work meets requirements",
                ],
            ),
            (
                "Builds sites. USE FOR: fixing trimming warnings. DO NOT USE FOR: publishing \
                 native binaries, optimizing binary size.",
                vec!["fixing trimming warnings"],
            ),
            ("Sorts lists and trees.", vec![]),
            ("", vec![]),
        ] {
            let found = uses(description);
            let texts: Vec<_> = found.iter().map(|phrase| phrase.text.as_str()).collect();
            assert_eq!(texts, expected, "{description}");
        }
    }

    #[test]
    fn a_phrase_is_in_another_whatever_its_grammar() {
        let phrase = |text: &str| Phrase::stated(text).expect("a phrase");
        for (one, other, is_in) in [
            ("test", "Write tests", true),
            ("write test", "writing a unit test", true),
            ("unit test", "test", false),
            ("jest", "vitest", false),
            ("use this", "use this", true),
            ("C++ build", "build c++ projects", true),
        ] {
            assert_eq!(phrase(one).is_in(&phrase(other)), is_in, "{one} / {other}");
        }
        assert_eq!(Phrase::stated(" -- "), None);
    }
}
