//! Maps the words that people use for categories and technologies to ids.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::rules::{Naming, rules};
use super::text::words;

/// The most ids that are suggested for an unknown one.
const MAX_NEAREST_IDS: usize = 3;

/// Spells a word like an id: in lower case, with hyphens.
fn folded(word: &str) -> String {
    let mut id = String::new();
    for c in word.trim().chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            id.push(c);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(id.trim_end_matches('-').len());
    id
}

/// The ids of all categories.
pub fn categories() -> impl Iterator<Item = &'static str> {
    rules().categories.iter().map(|known| known.id)
}

/// Returns the category that a word of an author or a caller means. Of several that it may
/// mean, the first.
#[must_use]
pub fn category_id(word: &str) -> Option<&'static str> {
    static BY_WORD: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
        let mut by_word = HashMap::new();
        let known = &rules().categories;
        // Ids first, so that no alias hides an id.
        for known in known {
            by_word.insert(folded(known.id), known.id);
        }
        for known in known {
            for alias in &known.aliases {
                by_word.entry(folded(alias)).or_insert(known.id);
            }
        }
        by_word
    });
    // Most words are spelled like ids already.
    let known = BY_WORD.get(word);
    known.or_else(|| BY_WORD.get(&folded(word))).copied()
}

/// Returns the technology that a word of an author or a caller means: its id, its name, or
/// what people call it.
#[must_use]
pub fn technology_id(word: &str) -> Option<&'static str> {
    static BY_ID: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| technologies::technologies().map(|known| known.id).collect());
    let words: Vec<String> = words(word).into_iter().map(|word| word.text).collect();
    // A word such as `gemini` counts in names of skills alone, and is no name of a technology.
    let named = rules().names.exact(&words);
    let named = named.filter(|name| name.naming != Naming::InName);
    match named.and_then(|name| rules().technologies.get(name.technology?)) {
        Some(technology) => Some(technology.known.id),
        None => BY_ID.get(folded(word).as_str()).copied(),
    }
}

/// Returns the categories whose ids or aliases are nearest to an unknown word.
#[must_use]
pub fn nearest_categories(word: &str) -> Vec<&'static str> {
    let word = folded(word);
    let known = rules().categories.iter().flat_map(|known| {
        let words = std::iter::once(known.id).chain(known.aliases.iter().copied());
        words.map(|word| (known.id, word))
    });
    nearest(&word, known)
}

/// Returns the technologies whose ids or names are nearest to an unknown word.
#[must_use]
pub fn nearest_technologies(word: &str) -> Vec<&'static str> {
    let known = technologies::technologies()
        .flat_map(|known| [(known.id, known.id), (known.id, known.name)]);
    nearest(&folded(word), known)
}

/// Returns the ids of the words that share most pairs of letters with one: at least two in five.
fn nearest(
    word: &str,
    known: impl Iterator<Item = (&'static str, &'static str)>,
) -> Vec<&'static str> {
    let pairs = |word: &str| -> Vec<(char, char)> {
        // With blanks around it, the first and the last letter count, too.
        let word = format!(" {word} ");
        word.chars().zip(word.chars().skip(1)).collect()
    };
    let wanted = pairs(word);
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for (id, text) in known {
        let of = pairs(&folded(text));
        let shared = of.iter().filter(|pair| wanted.contains(pair)).count();
        // In thousandths.
        let near = 2000 * shared / (of.len() + wanted.len()).max(1);
        match found.iter_mut().find(|(_, known)| *known == id) {
            Some(known) => known.0 = known.0.max(near),
            None => found.push((near, id)),
        }
    }
    found.retain(|(near, _)| *near >= 400);
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    found
        .into_iter()
        .take(MAX_NEAREST_IDS)
        .map(|(_, id)| id)
        .collect()
}
