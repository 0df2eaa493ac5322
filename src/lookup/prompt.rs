//! The section of a prompt that says which skills there are, within a budget.
//!
//! What does not fit is given up in this order: the ends of descriptions, all
//! at one length; the descriptions; the last skills. The text says how many
//! skills it left out.
//!
//! Nothing here costs more than the budget does, however many skills there are:
//! each line takes some of it, and the lines end where it ends.

use super::Lookup;
use crate::model::MAX_SLUG_CHARS;
use crate::registry::{Catalog, Head};

pub(super) const HEADING: &str = "## Available Skills";
/// The budget of whoever names none.
pub(super) const DEFAULT_TOKENS: u32 = 2_000;
/// Bytes that are counted as a token.
pub(super) const TOKEN_BYTES: usize = 4;
/// Descriptions are not cut below this; they are left out instead.
const LEAST_CHARS: usize = 40;
const CUT: &str = "…";

/// The section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The section, in Markdown, without a line break at its end.
    pub text: String,
    /// How many skills are in it.
    pub listed: usize,
    /// How many were left out.
    pub left_out: usize,
    /// Short names of skills that are in it because nobody has used them.
    pub explored: Vec<String>,
    /// Short names of the first skills that were left out.
    pub next: Vec<String>,
}

impl Prompt {
    /// Tokens it takes, estimated.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.text.len().div_ceil(TOKEN_BYTES)
    }
}

impl Lookup {
    /// The skills with an active version, by location and id, in as many tokens
    /// at most; 0 is 2,000.
    ///
    /// A section that can name no skill is one sentence of up to 17 tokens, and
    /// this sentence is the answer even where fewer were asked for.
    #[must_use]
    pub fn prompt(&self, max_tokens: u32) -> Prompt {
        let tokens = match max_tokens {
            0 => DEFAULT_TOKENS,
            tokens => tokens,
        };
        let budget = usize::try_from(tokens)
            .unwrap_or(usize::MAX)
            .saturating_mul(TOKEN_BYTES);
        let catalog = self.registry.catalog();
        let skills = catalog
            .by_location()
            .filter_map(|head| Entry::of(&catalog, head));
        write(skills, catalog.live(), budget)
    }
}

/// What a line may say of a skill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    /// What to call it by.
    pub(super) short_name: &'a str,
    /// Its name, where this is another word than its slug.
    pub(super) name: Option<&'a str>,
    /// What it is for.
    pub(super) description: &'a str,
}

impl<'a> Entry<'a> {
    pub(super) fn of(catalog: &Catalog, head: &'a Head) -> Option<Self> {
        let summary = head.summary.as_ref()?;
        let name = summary.name.as_str();
        Some(Self {
            short_name: catalog.short_name(head),
            name: (!name.eq_ignore_ascii_case(head.id.slug())).then_some(name),
            description: &summary.description,
        })
    }

    /// Its line without a description.
    fn bare(&self) -> String {
        format!("\n- {}", self.short_name)
    }

    /// Its line with up to so many characters of its description.
    pub(super) fn line(&self, chars: usize) -> String {
        let name = self.name.map(|name| cut(name, MAX_SLUG_CHARS));
        let parts = [name, Some(cut(self.description, chars))];
        let parts: Vec<String> = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let mut line = self.bare();
        if !parts.is_empty() {
            line.push_str(": ");
            line.push_str(&parts.join(" - "));
        }
        line
    }
}

/// The section of `count` skills in at most `budget` bytes.
pub(super) fn write<'a>(
    skills: impl Iterator<Item = Entry<'a>>,
    count: usize,
    budget: usize,
) -> Prompt {
    if count == 0 {
        return unlisted("There are no skills.", 0, budget);
    }
    let mut left = budget.saturating_sub(HEADING.len());
    let mut fitting = Vec::new();
    for skill in skills {
        match left.checked_sub(skill.bare().len()) {
            Some(rest) => left = rest,
            None => return shortened(&fitting, count, budget),
        }
        fitting.push(skill);
    }
    let lines = match longest(&fitting, budget) {
        Some(chars) => fitting.iter().map(|skill| skill.line(chars)).collect(),
        None => fitting.iter().map(Entry::bare).collect::<String>(),
    };
    Prompt {
        text: format!("{HEADING}{lines}"),
        listed: count,
        left_out: 0,
        ..Prompt::default()
    }
}

/// The section where every skill fits with what it is for.
pub(super) fn whole<'a>(
    skills: impl Iterator<Item = Entry<'a>>,
    count: usize,
    budget: usize,
) -> Option<Prompt> {
    let mut left = budget.checked_sub(HEADING.len())?;
    let mut fitting = Vec::new();
    for skill in skills {
        left = left.checked_sub(skill.bare().len())?;
        fitting.push(skill);
    }
    let chars = longest(&fitting, budget).filter(|_| !fitting.is_empty())?;
    let lines: String = fitting.iter().map(|skill| skill.line(chars)).collect();
    Some(Prompt {
        text: format!("{HEADING}{lines}"),
        listed: count,
        left_out: 0,
        ..Prompt::default()
    })
}

/// The greatest length of descriptions with which all skills fit; none where it
/// is too small to be of use.
///
/// A greater length makes no line shorter, which is what searching by halves
/// relies on.
fn longest(skills: &[Entry<'_>], budget: usize) -> Option<usize> {
    let fits = |chars: usize| {
        let mut left = budget.checked_sub(HEADING.len());
        skills.iter().all(|skill| {
            left = left.and_then(|left| left.checked_sub(skill.line(chars).len()));
            left.is_some()
        })
    };
    if fits(usize::MAX) {
        return Some(usize::MAX);
    }
    if !fits(LEAST_CHARS) {
        return None;
    }
    // From below, so that no look reads much more than fits.
    let (mut good, mut bad) = (LEAST_CHARS, LEAST_CHARS * 2);
    while fits(bad) {
        (good, bad) = (bad, bad * 2);
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// As many bare lines as leave room to say how many are missing.
fn shortened(skills: &[Entry<'_>], count: usize, budget: usize) -> Prompt {
    let mut text = HEADING.to_owned();
    let ends: Vec<usize> = skills
        .iter()
        .map(|skill| {
            text.push_str(&skill.bare());
            text.len()
        })
        .collect();
    for (at, end) in ends.into_iter().enumerate().rev() {
        let (listed, left_out) = (at + 1, count - at - 1);
        let note = format!("\n{}", note("more ", left_out));
        if end + note.len() <= budget {
            text.truncate(end);
            text.push_str(&note);
            return Prompt {
                text,
                listed,
                left_out,
                ..Prompt::default()
            };
        }
    }
    unlisted(&note("", count), count, budget)
}

/// A sentence alone, below the heading where there is room for that.
fn unlisted(sentence: &str, left_out: usize, budget: usize) -> Prompt {
    let section = format!("{HEADING}\n{sentence}");
    Prompt {
        text: if section.len() <= budget {
            section
        } else {
            sentence.to_owned()
        },
        listed: 0,
        left_out,
        ..Prompt::default()
    }
}

fn note(more: &str, left_out: usize) -> String {
    let skills = if left_out == 1 {
        "skill is"
    } else {
        "skills are"
    };
    let number = grouped(left_out);
    format!("{number} {more}{skills} left out; list_skills shows all of them.")
}

/// A number with commas between its thousands.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (digit, after) in digits.chars().zip((0..digits.len()).rev()) {
        text.push(digit);
        if after > 0 && after % 3 == 0 {
            text.push(',');
        }
    }
    text
}

/// A text in one line of at most so many characters, cut behind a word where
/// that costs no more than half of it. Reads little more than it gives.
///
/// It is whole where the sign of the cut would take what the cut saves.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    // With as many characters more as the sign has bytes it is known whether
    // the sign is worth its place.
    let folded = fold(text, chars.saturating_add(CUT.len()));
    if folded.chars().nth(chars).is_none() {
        return folded;
    }
    let edge = folded.char_indices().nth(chars.saturating_sub(1));
    let Some((kept, rest)) = edge.and_then(|(edge, _)| folded.split_at_checked(edge)) else {
        return folded;
    };
    let kept = if rest.starts_with(' ') {
        kept
    } else {
        match kept.rsplit_once(' ') {
            Some((words, _)) if words.len() * 2 >= kept.len() => words,
            _ => kept,
        }
    };
    if kept.len() + CUT.len() >= folded.len() {
        return folded;
    }
    format!("{kept}{CUT}")
}

/// The first characters of a text whose runs of whitespace are one space each.
fn fold(text: &str, chars: usize) -> String {
    text.split_whitespace()
        .flat_map(|word| std::iter::once(' ').chain(word.chars()))
        .skip(1)
        .take(chars)
        .collect()
}
