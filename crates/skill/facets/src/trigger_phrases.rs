//! Phrases that call a skill up: as its author states them, and as the sentences of a
//! description say when to use it.

use super::text::{Before, Word, begins_use, pieces, stem, words};

/// Words of a phrase that are looked at.
const MAX_PHRASE_WORDS: usize = 8;
/// Words that a phrase of a description has at least: one alone says too little.
const MIN_WORDS: usize = 2;

/// Words that say nothing of what is asked for, but lead to it or join it.
const EMPTY: &[&str] = &[
    "a",
    "about",
    "activate",
    "activates",
    "all",
    "also",
    "an",
    "and",
    "any",
    "are",
    "as",
    "ask",
    "asked",
    "asking",
    "asks",
    "at",
    "be",
    "before",
    "by",
    "can",
    "do",
    "does",
    "during",
    "either",
    "etc",
    "even",
    "explicitly",
    "for",
    "from",
    "has",
    "have",
    "help",
    "how",
    "i",
    "if",
    "in",
    "into",
    "invoke",
    "involving",
    "is",
    "it",
    "its",
    "keywords",
    "like",
    "me",
    "mention",
    "mentioned",
    "mentions",
    "my",
    "need",
    "needed",
    "needing",
    "needs",
    "of",
    "on",
    "only",
    "or",
    "other",
    "phrases",
    "requested",
    "s",
    "say",
    "says",
    "should",
    "skill",
    "so",
    "some",
    "such",
    "task",
    "tasks",
    "that",
    "the",
    "their",
    "them",
    "these",
    "they",
    "things",
    "this",
    "those",
    "to",
    "trigger",
    "triggers",
    "use",
    "used",
    "user",
    "users",
    "uses",
    "using",
    "via",
    "want",
    "wanting",
    "wants",
    "we",
    "what",
    "when",
    "whenever",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "with",
    "within",
    "work",
    "working",
    "would",
    "you",
    "your",
];

/// A phrase that calls a skill up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// As it is written, in lower case and without what leads to it.
    pub text: String,
    /// What is compared: its words without the ends that grammar gives them, sorted, each
    /// once.
    pub stems: Vec<String>,
}

impl Phrase {
    /// A phrase that an author states. None: it has no word.
    #[must_use]
    pub fn stated(text: &str) -> Option<Self> {
        let all = words(text);
        let told: Vec<&Word> = all.iter().filter(|word| !is_empty(word)).collect();
        // A phrase of nothing but such words is what its author means all the same.
        let told = if told.is_empty() {
            all.iter().collect()
        } else {
            told
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self::of(text.to_lowercase(), &told)
    }

    /// All that a message says, to look for phrases in.
    #[must_use]
    pub fn message(text: &str) -> Self {
        let words = words(text);
        let mut stems: Vec<String> = words
            .iter()
            .map(|word| stem(&word.text).to_owned())
            .collect();
        stems.sort_unstable();
        stems.dedup();
        Self {
            text: String::new(),
            stems,
        }
    }

    fn of(text: String, words: &[&Word]) -> Option<Self> {
        let first = words.iter().take(MAX_PHRASE_WORDS);
        let mut stems: Vec<String> = first.map(|word| stem(&word.text).to_owned()).collect();
        stems.sort_unstable();
        stems.dedup();
        (!stems.is_empty()).then_some(Self { text, stems })
    }

    /// Whoever says the other phrase says this one as well.
    #[must_use]
    pub fn is_in(&self, other: &Self) -> bool {
        let mut others = other.stems.iter();
        self.stems
            .iter()
            .all(|stem| others.any(|other| other == stem))
    }
}

/// The phrases by which a description says when to use the skill: `reviewing pull
/// requests` of `Use when reviewing pull requests or …`. What it excludes is in none.
#[must_use]
pub fn uses(description: &str) -> Vec<Phrase> {
    let mut found: Vec<Phrase> = Vec::new();
    let mut is_use = false;
    for (_, piece) in pieces(description) {
        if piece.first().is_some_and(|word| word.before == Before::End) {
            is_use = begins_use(&piece);
        }
        if !is_use {
            continue;
        }
        for part in parts(&piece) {
            let told: Vec<&Word> = part.iter().filter(|word| !is_empty(word)).collect();
            let Some(phrase) = Phrase::of(text(part), &told) else {
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
    EMPTY.binary_search(&word.text.as_str()).is_ok()
}

/// The words from the first to the last that says something.
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
        assert!(EMPTY.is_sorted_by(|a, b| a < b));
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
