//! What skills and technologies say, compared.

use super::{Gap, TECHNOLOGIES};
use codebase::Area;
use codebase::Severity;
use codebase::{Analysis, TechStackItem, TechnologyKind, is_technology};
use registry::Head;
use search::folded_words;

/// How certain a technology must be.
const CERTAIN: f64 = 0.6;

/// The technologies that say most of what a codebase is: frameworks, then languages,
/// then the rest; the most certain first.
pub(super) fn main_technologies(analysis: &Analysis) -> Vec<&TechStackItem> {
    let rank = |item: &TechStackItem| match item.kind {
        TechnologyKind::Framework => 0,
        TechnologyKind::Language => 1,
        TechnologyKind::Platform => 2,
        TechnologyKind::Library => 3,
        TechnologyKind::Tool => 4,
    };
    let mut items: Vec<&TechStackItem> = analysis
        .stack
        .iter()
        .filter(|item| item.confidence >= CERTAIN)
        .collect();
    // The order of the stack decides among equals.
    items.sort_by_key(|item| rank(item));
    items.truncate(TECHNOLOGIES);
    items
}

/// What a skill says first of itself, in folded words.
pub(super) fn words_of(head: &Head) -> Vec<String> {
    let mut text = head.id.slug().to_owned();
    if let Some(summary) = &head.summary {
        let lists = summary.tags.iter().chain(&summary.technologies);
        for part in [&summary.name, &summary.description, &summary.category]
            .into_iter()
            .chain(lists)
        {
            text.push(' ');
            text.push_str(part);
        }
    }
    folded_words(&text)
}

pub(super) fn covers(head: &Head, area: &Area) -> bool {
    area.is_in(&words_of(head))
}

/// The words of a technology's name stand together in these.
pub(super) fn names(words: &[String], technology: &TechStackItem) -> bool {
    [&technology.name, &technology.technology_id]
        .into_iter()
        .any(|name| {
            let name = folded_words(name);
            !name.is_empty()
                && (words.windows(name.len()).any(|window| window == name)
                    || words.contains(&name.concat()))
        })
}

/// The technology as people write it, with the first number of its version.
pub(super) fn shown(technology: &TechStackItem) -> String {
    let major = technology.version.as_deref().and_then(|version| {
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        (!digits.is_empty() && digits != "0").then_some(digits)
    });
    match major {
        Some(major) => format!("{} {major}", technology.name),
        None => technology.name.clone(),
    }
}

/// What a skill calls itself: its name and what it is filed under, in folded words.
pub(super) fn titles(head: &Head) -> Vec<String> {
    let mut text = head.id.slug().to_owned();
    if let Some(summary) = &head.summary {
        for part in summary
            .tags
            .iter()
            .chain([&summary.name, &summary.category])
        {
            text.push(' ');
            text.push_str(part);
        }
    }
    folded_words(&text)
}

/// A skill that is for a technology, by what it states or by its name.
pub(super) fn is_of_a_technology(head: &Head) -> bool {
    let summary = head.summary.as_ref();
    summary.is_some_and(|summary| !summary.technologies.is_empty())
        || titles(head).iter().any(|word| is_technology(word))
}

/// The codebase in a sentence, and what is missing.
pub(super) fn summary(analysis: &Analysis, main: &[&TechStackItem], gaps: &[Gap]) -> String {
    let mut names: Vec<String> = main.iter().take(3).map(|item| shown(item)).collect();
    let kind = match analysis.project.kind.name() {
        "unknown" | "single" => "codebase",
        kind => kind,
    };
    let mut text = match names.len() {
        0 => format!("A {kind} of technologies that are not known."),
        1 => format!("{} {kind}.", names.remove(0)),
        _ => {
            let first = names.remove(0);
            format!("{first} {kind} with {}.", names.join(" and "))
        }
    };
    let missing: Vec<&str> = gaps
        .iter()
        .filter(|gap| gap.severity > Severity::Low)
        .map(|gap| gap.area)
        .collect();
    if missing.is_empty() {
        text.push_str(" Nothing that it plainly asks for is missing.");
    } else {
        text.extend([" Missing: ", &missing.join(", "), " skills."]);
    }
    text
}
