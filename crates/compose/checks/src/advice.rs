//! What to do about conflicts.

use std::collections::HashSet;

use super::conflict::{ConflictKind, ConflictSeverity, Opposed, Subject};
use super::overlap::Overlap;

/// Sentences of one answer.
const MAX_SENTENCES: usize = 10;
/// Words of a slug that distinguish nothing.
const COMMON: &[&str] = &["skill", "skills", "agent", "helper", "tool", "tools"];

/// What to do about the conflicts of a skill, for the worst first.
pub(super) fn recommend(subject: &Subject, found: &[Opposed]) -> Vec<String> {
    let mut advice: Vec<String> = Vec::new();
    for Opposed { with, conflict } in found {
        let mine = &subject.member.name;
        let theirs = &with.member.name;
        match (conflict.kind, conflict.severity, &conflict.overlap) {
            (ConflictKind::TriggerOverlap, ConflictSeverity::Blocking, _) => {
                advice.push(format!(
                    "Keep one of {mine} and {theirs}: what triggers one of them triggers both"
                ));
            }
            (_, ConflictSeverity::Blocking, _) => {
                advice.push(format!("Use either {mine} or {theirs}, not both"));
            }
            (ConflictKind::TriggerOverlap, ConflictSeverity::Warning, Some(overlap)) => {
                advice.push(priority(subject, with));
                advice.extend(targets(subject, with, overlap));
            }
            _ => {}
        }
    }
    let mut known = HashSet::new();
    let advice = advice.into_iter();
    advice
        .filter(|sentence| known.insert(sentence.clone()))
        .take(MAX_SENTENCES)
        .map(|sentence| model::printable(&sentence).into_owned())
        .collect()
}

/// Which of two skills should come first.
fn priority(one: &Subject, other: &Subject) -> String {
    // The one with fewer phrases of its own: behind the other it would never be called up, while
    // the other still is by its own phrases.
    let own = |of: &Subject, than: &Subject| {
        let phrases = of.triggers.phrases.iter();
        phrases
            .filter(|phrase| !than.triggers.called_by(phrase))
            .count()
    };
    // The id decides between equals, so that the advice is the same from either side.
    let rank = |of: &Subject, than: &Subject| (own(of, than), of.member.id.key());
    let (first, last) = if rank(one, other) <= rank(other, one) {
        (one, other)
    } else {
        (other, one)
    };
    let (first_name, last_name) = (&first.member.name, &last.member.name);
    match own(last, first) {
        0 => format!("Consider setting priority: {first_name} > {last_name}"),
        more => format!(
            "Consider setting priority: {first_name} > {last_name}, which {more} other \
             {phrases} up",
            phrases = if more == 1 {
                "phrase calls"
            } else {
                "phrases call"
            }
        ),
    }
}

/// The words by which each of two skills can be meant.
fn targets(one: &Subject, other: &Subject, overlap: &Overlap) -> Option<String> {
    let words = |of: &Subject| -> Vec<String> {
        let slug = of.member.id.slug().to_lowercase();
        slug.split(['-', '_', '.']).map(str::to_owned).collect()
    };
    let (mine, theirs) = (words(one), words(other));
    let own = |words: &[String], others: &[String]| {
        let mut words = words.iter();
        words
            .find(|word| !others.contains(word) && !COMMON.contains(&word.as_str()))
            .cloned()
    };
    let (own_mine, own_theirs) = (own(&mine, &theirs)?, own(&theirs, &mine)?);
    // `shared` begins with the phrases of the most words.
    let shortest = overlap.shared.last()?;
    let has = |word: &str| shortest.split_whitespace().any(|other| other == word);
    if has(&own_mine) || has(&own_theirs) {
        return None;
    }
    Some(format!(
        "Use '{own_mine} {shortest}' and '{own_theirs} {shortest}' for explicit skill targeting"
    ))
}
