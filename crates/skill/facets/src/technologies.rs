//! Infers the technologies that a skill is about.
//!
//! Each part of a skill that names one adds to its evidence; above a bound the skill is
//! about it. So one mention behind "use when" is not enough, and a name, or what the skill says
//! first of itself, is enough.

use std::collections::{BTreeMap, BTreeSet};

use model::{FileEntry, listed};

use super::Inferred;
use super::phrases::Found;
use super::rules::{Name, Naming, rules};
use super::text::{Parts, Role, Word, words};

/// The weight of a mention, by the part that it is in.
const NAME_WEIGHT: f64 = 0.9;
const NAME_WORD_WEIGHT: f64 = 0.4;
const TAGS_WEIGHT: f64 = 0.5;
const TITLE_WEIGHT: f64 = 0.4;
/// In the first sentence of the description, and in the following ones.
const MATTER_WEIGHT: f64 = 0.6;
const MORE_MATTER_WEIGHT: f64 = 0.4;
const USE_WEIGHT: f64 = 0.3;
/// Named again in the same part.
const REPEATED_WEIGHT: f64 = 0.1;
const BODY_WEIGHT: f64 = 0.05;
const MAX_OF_BODY: f64 = 0.25;
const FENCES_WEIGHT: f64 = 0.1;
const FILES_WEIGHT: f64 = 0.1;
/// A part that names this many technologies is a list, and about none of them.
const MIN_MANY: usize = 5;
const ONE_OF_MANY_FACTOR: f64 = 0.5;

/// From this confidence on a skill is about a technology.
const MIN_ABOUT_CONFIDENCE: f64 = 0.5;
/// The most technologies of a skill.
const MAX_TECHNOLOGIES: usize = 8;

/// Words before an ordinary word that make it a name.
const BEFORE: &str = include_str!("words_before.txt");
/// Words behind it that do.
const BEHIND: &str = include_str!("words_behind.txt");
/// Words soon before a technology that is left behind: "migrate from X".
const LEAVES: &str = include_str!("words_leaving.txt");

/// Infers technologies, the most certain first.
pub(super) fn infer(parts: &Parts, files: &[FileEntry]) -> Vec<Inferred> {
    let mut evidence = TechnologyEvidence::default();
    evidence.part(&parts.name, TextPart::Name, NAME_WEIGHT);
    for tag in &parts.tags {
        evidence.part(tag, TextPart::Tag, TAGS_WEIGHT);
    }
    let first = parts.first();
    for (at, (role, words)) in parts.description.iter().enumerate() {
        let weight = match role {
            Role::Matter if at == first => MATTER_WEIGHT,
            Role::Matter => MORE_MATTER_WEIGHT,
            Role::Use => USE_WEIGHT,
            Role::Example => continue,
        };
        evidence.part(words, TextPart::Prose, weight);
    }
    evidence.part(&parts.title, TextPart::Prose, TITLE_WEIGHT);
    let mut body = TechnologyEvidence::default();
    for words in &parts.body {
        body.part(words, TextPart::Prose, BODY_WEIGHT);
    }
    // Only supports: what the body alone names is often an example.
    evidence.supported_by(&body, MAX_OF_BODY);
    let mut shown = TechnologyEvidence::default();
    for language in &parts.fences {
        shown.language(language, FENCES_WEIGHT);
    }
    for file in files {
        if let Some((_, ending)) = file.path.as_str().rsplit_once('.') {
            shown.language(ending, FILES_WEIGHT);
        }
    }
    evidence.supported_by(&shown, MAX_OF_BODY);
    evidence.strongest()
}

/// Returns the ids of the technologies that a text names, each once, in the order of the table.
/// Whether it is about them does not matter.
#[must_use]
pub fn named(text: &str) -> Vec<&'static str> {
    let words = words(text);
    let mut evidence = TechnologyEvidence::default();
    evidence.part(&words, TextPart::Prose, MIN_ABOUT_CONFIDENCE);
    let known = &rules().technologies;
    let ids = evidence.of.into_keys().filter_map(|at| known.get(at));
    ids.map(|technology| technology.known.id).collect()
}

/// The part of a skill that words are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPart {
    Name,
    Tag,
    Prose,
}

/// The evidence for each technology, by its index in the rules.
#[derive(Debug, Default)]
struct TechnologyEvidence {
    of: BTreeMap<usize, f64>,
    /// Those that an ordinary word in the name of the skill names.
    as_words: BTreeSet<usize>,
}

impl TechnologyEvidence {
    /// Adds the evidence of some words.
    fn part(&mut self, words: &[Word], part: TextPart, weight: f64) {
        let mut times: BTreeMap<usize, (u32, f64)> = BTreeMap::new();
        let mut last: Option<usize> = None;
        rules().names.find(words, |found: Found<'_, Name>| {
            let Some(technology) = found.value.technology else {
                return true;
            };
            let counts = match found.value.naming {
                Naming::Plain => true,
                Naming::InName => part == TextPart::Name,
                Naming::InCompany => {
                    let in_name = self.as_words.contains(&technology);
                    part != TextPart::Prose
                        || has_company(words, found.from, found.to, last)
                        || in_name && is_a_name(words, found.from)
                }
            };
            if counts {
                last = Some(found.to);
                let is_start = part == TextPart::Name && leads_on(words, found.to);
                if !is_start && !is_left(words, found.from) {
                    let as_a_word =
                        part == TextPart::Name && found.value.naming == Naming::InCompany;
                    if as_a_word {
                        self.as_words.insert(technology);
                    }
                    let known = times.entry(technology).or_default();
                    known.0 += 1;
                    known.1 = f64::max(known.1, if as_a_word { NAME_WORD_WEIGHT } else { weight });
                }
            }
            counts
        });
        let share = if times.len() >= MIN_MANY {
            ONE_OF_MANY_FACTOR
        } else {
            1.0
        };
        for (technology, (times, weight)) in times {
            let weight = weight * share;
            let again = REPEATED_WEIGHT * f64::from(times.min(3) - 1);
            *self.of.entry(technology).or_default() += weight + again.min(weight);
        }
    }

    /// Adds a language by its word on a block of code or its file ending.
    fn language(&mut self, word: &str, weight: f64) {
        let id = match word {
            "python" | "py" => "python",
            "typescript" | "ts" | "tsx" => "typescript",
            "javascript" | "js" | "jsx" | "mjs" => "javascript",
            "rust" | "rs" => "rust",
            "go" => "go",
            "java" => "java",
            "kotlin" | "kt" => "kotlin",
            "swift" => "swift",
            "csharp" | "cs" | "c#" => "csharp",
            "cpp" | "c++" => "cpp",
            "ruby" | "rb" => "ruby",
            "php" => "php",
            "dart" => "dart",
            "perl" | "pl" => "perl",
            "elixir" | "ex" => "elixir",
            "sql" => "sql",
            "solidity" | "sol" => "solidity",
            "hcl" | "terraform" | "tf" => "terraform",
            "dockerfile" => "docker",
            _ => return,
        };
        if let Some(at) = rules().technology(id) {
            *self.of.entry(at).or_default() += weight;
        }
    }

    /// Adds evidence to technologies that already have some.
    fn supported_by(&mut self, other: &Self, max: f64) {
        for (technology, weight) in &mut self.of {
            let more = other.of.get(technology).copied().unwrap_or_default();
            *weight += more.min(max);
        }
    }

    fn strongest(self) -> Vec<Inferred> {
        let mut found: Vec<(usize, f64)> = self.of.into_iter().collect();
        found.retain(|(_, weight)| *weight >= MIN_ABOUT_CONFIDENCE);
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(MAX_TECHNOLOGIES);
        let known = &rules().technologies;
        let inferred = |(at, weight): (usize, f64)| {
            let technology = known.get(at)?;
            // From .6 at the bound up to .95, above which no guess is.
            let confidence = (0.6 + 0.35 * (weight - MIN_ABOUT_CONFIDENCE)).min(0.95);
            Some(Inferred::new(technology.known.id, confidence))
        };
        found.into_iter().filter_map(inferred).collect()
    }
}

fn is_listed(list: &str, word: &Word) -> bool {
    listed(list).any(|known| known == word.text)
}

/// Tells whether an ordinary word is a name here: it is written like one, and is next to words that
/// names of technologies occur with, or near another one.
fn has_company(words: &[Word], from: usize, to: usize, last: Option<usize>) -> bool {
    let Some(word) = words.get(from) else {
        return false;
    };
    if !word.capital {
        return false;
    }
    let before = from.checked_sub(1).and_then(|at| words.get(at));
    let behind = words.get(to);
    let is_version = |word: &Word| word.text.starts_with(|c: char| c.is_ascii_digit());
    let names = behind.is_some_and(|word| is_listed(BEHIND, word) || is_version(word));
    let near = last.is_some_and(|end| from.saturating_sub(end) <= 1);
    let led = !word.first && before.is_some_and(|word| is_listed(BEFORE, word));
    names || near || led
}

/// It is written as names are, where capitals say something.
fn is_a_name(words: &[Word], at: usize) -> bool {
    words
        .get(at)
        .is_some_and(|word| word.capital && !word.first)
}

/// In a name it is what something else is made of: "X to Y".
fn leads_on(words: &[Word], to: usize) -> bool {
    words.get(to).is_some_and(|word| word.text == "to") && to + 1 < words.len()
}

/// It is what is left for something else: "migrate from X".
fn is_left(words: &[Word], at: usize) -> bool {
    let before = words.get(at.saturating_sub(6)..at).unwrap_or_default();
    let from = before
        .iter()
        .rposition(|word| matches!(word.text.as_str(), "from" | "off"));
    from.is_some_and(|from| {
        let (lead, between) = before.split_at(from);
        let leaves = lead.iter().any(|word| is_listed(LEAVES, word));
        let arrived = between
            .iter()
            .any(|word| matches!(word.text.as_str(), "to" | "into"));
        leaves && !arrived
    })
}
