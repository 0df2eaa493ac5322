//! Infers what a skill is about: its categories, and its technologies, of the table that
//! `technologies` holds. Both are guesses from the text of the skill: each
//! has a confidence, and callers prefer what an author states.
//!
//! Rules:
//!
//! * A function of the skill as it was read and of the names of its files: it reads
//!   nothing, knows no other skill and no clock. So the facets of a stored version can
//!   be had again from its record, without its files.
//! * A skill is about a technology where it is of no use without that. One
//!   that a list of examples mentions, that it is not for ("not for AKS"), or that it leads
//!   away from ("migrate from X") does not count.
//! * A skill has one main category, the first, and others where it says as much of
//!   those.
//! * The rules are data: `categories.txt` and `technologies.txt`. [`RULES_VERSION`] numbers them,
//!   so that facets by older rules are recognized and can be inferred again.
//!
//! | file | holds |
//! |---|---|
//! | `text` | words of a text; what of a description is its matter, and what it excludes |
//! | `phrases` | the search for phrases of several words among words |
//! | `rules` | the two files, read |
//! | `technologies`, `categories` | what speaks for each, and how much |
//! | `trigger_phrases` | phrases that call a skill up, stated or in the sentences that say when to use it |
//! | `triggers` | what calls a skill up: the phrases that its author states, else those of its description |
//! | `vocabulary` | the words that people use for ids, and those nearest to an unknown one |
//!
//! Not here: filters by facets (`registry`, `search`, `lookup`), the technologies of a
//! codebase (`codebase`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod categories;
mod phrases;
mod rules;
mod technologies;
#[cfg(test)]
mod tests;
mod text;
mod trigger_phrases;
mod triggers;
mod vocabulary;

use std::borrow::Cow;

use model::{FileEntry, Skill};
use serde::{Deserialize, Serialize};

pub use technologies::named as technologies_named;
pub use trigger_phrases::{Phrase, uses};
pub use triggers::{MAX_TRIGGERS, Triggers};
pub use vocabulary::{
    categories as known_categories, category_id, nearest_categories, nearest_technologies,
    technology_id,
};

/// The number of the rules. Raised with every change of what they come to.
pub const RULES_VERSION: u32 = 1;

/// A category or a technology that a skill seems to be about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inferred {
    /// The id of the category, or of the technology.
    pub id: Cow<'static, str>,
    /// How certain it is, in hundredths: more digits would claim what the rules do not know.
    percent: u8,
}

/// The categories and technologies that a skill seems to be about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facets {
    /// The rules by which it was inferred.
    #[serde(default)]
    pub rules: u32,
    /// Categories, the main one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Inferred>,
    /// Technologies, the most certain first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<Inferred>,
}

/// Infers what a skill is about.
#[must_use]
pub fn infer(skill: &Skill, files: &[FileEntry]) -> Facets {
    let parts = text::Parts::of(skill);
    let technologies = technologies::infer(&parts, files);
    // After the technologies, which are evidence for categories themselves.
    let categories = categories::infer(&parts, &technologies);
    Facets {
        rules: RULES_VERSION,
        categories,
        technologies,
    }
}

impl Inferred {
    fn new(id: &'static str, confidence: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 1 to 100"
        )]
        let percent = (confidence * 100.0).round().clamp(1.0, 100.0) as u8;
        Self {
            id: Cow::Borrowed(id),
            percent,
        }
    }

    /// How certain it is, above 0 and at most 1.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        f64::from(self.percent) / 100.0
    }
}

impl Facets {
    /// Tells whether they were inferred by the current rules.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.rules == RULES_VERSION
    }
}
