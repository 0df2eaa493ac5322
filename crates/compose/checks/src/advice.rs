//! What to do about conflicts.

use super::conflict::{ConflictKind, ConflictSeverity, Opposed, Subject};
use super::triggers::Overlap;

/// Sentences of one answer.
const MAX_SENTENCES: usize = 10;
/// Words of a slug that tell nothing apart.
const COMMON: &[&str] = &["skill", "skills", "agent", "helper", "tool", "tools"];

/// What to do about the conflicts of a skill, for the worst first.
pub(super) fn recommend(subject: &Subject, found: &[Opposed]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for Opposed { with, conflict } in found {
        let mine = &subject.member.name;
        let theirs = &with.member.name;
        match (conflict.kind, conflict.severity, &conflict.overlap) {
            (ConflictKind::TriggerOverlap, ConflictSeverity::Blocking, _) => {
                told.push(format!(
                    "Keep one of {mine} and {theirs}: what triggers one of them triggers both"
                ));
            }
            (_, ConflictSeverity::Blocking, _) => {
                told.push(format!("Use either {mine} or {theirs}, not both"));
            }
            (ConflictKind::TriggerOverlap, ConflictSeverity::Warning, Some(overlap)) => {
                told.push(priority(subject, with));
                told.extend(targets(subject, with, overlap));
            }
            _ => {}
        }
    }
    let mut known = std::collections::HashSet::new();
    told.retain(|sentence| known.insert(sentence.clone()));
    told.truncate(MAX_SENTENCES);
    told.into_iter()
        .map(|sentence| model::printable(&sentence).into_owned())
        .collect()
}

/// The skill with less of its own goes first: it would never be called up behind the other,
/// while that one is by what is its own.
fn priority(one: &Subject, other: &Subject) -> String {
    let own = |of: &Subject, than: &Subject| {
        let phrases = of.triggers.phrases.iter();
        phrases
            .filter(|phrase| !than.triggers.called_by(phrase))
            .count()
    };
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
    let shortest = overlap.shared.last()?;
    let has = |word: &str| shortest.split_whitespace().any(|other| other == word);
    if has(&own_mine) || has(&own_theirs) {
        return None;
    }
    Some(format!(
        "Use '{own_mine} {shortest}' and '{own_theirs} {shortest}' for explicit skill targeting"
    ))
}
