//! What calls a skill up: the one answer that conflicts, hooks, priorities and audits use.

use std::collections::HashSet;

use super::{Phrase, uses};
use model::Skill;

/// Phrases of a skill that count.
pub const MAX_TRIGGERS: usize = 200;
/// The phrases that call a skill up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggers {
    /// The phrases, each once, in the order of their author.
    pub phrases: Vec<Phrase>,
    /// Its author states them; else they are those of a description that says when to use
    /// the skill.
    pub stated: bool,
}

impl Triggers {
    /// What calls a skill up: its triggers, else the phrases of its description behind
    /// words such as `use when`. Of more than [`MAX_TRIGGERS`] the first count.
    #[must_use]
    pub fn of(skill: &Skill) -> Self {
        let mut phrases: Vec<Phrase> = Vec::new();
        let mut known = HashSet::new();
        let stated = skill.triggers.iter();
        for phrase in stated.filter_map(|text| Phrase::stated(text)) {
            // By stems, whatever their order: hosts match words, not sentences.
            if phrases.len() < MAX_TRIGGERS && known.insert(phrase.stems.clone()) {
                phrases.push(phrase);
            }
        }
        let stated = !phrases.is_empty();
        if !stated {
            phrases = uses(&skill.description);
            phrases.truncate(MAX_TRIGGERS);
        }
        Self { phrases, stated }
    }

    /// Nothing says when to use the skill.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// The phrases as texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.phrases.iter().map(|phrase| phrase.text.as_str())
    }

    /// A phrase of it is in what is asked.
    #[must_use]
    pub fn called_by(&self, asked: &Phrase) -> bool {
        self.phrases.iter().any(|phrase| phrase.is_in(asked))
    }
}
