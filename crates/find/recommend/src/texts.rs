//! Texts about technologies and the codebase.

use super::project::Project;
use super::{Gap, Severity};
use codebase::TechStackItem;

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

/// The codebase in a sentence, and its gaps.
pub(super) fn summary(project: &Project<'_>, gaps: &[Gap]) -> String {
    let mut names: Vec<String> = project
        .by_weight()
        .iter()
        .take(3)
        .map(|used| shown(used.item))
        .collect();
    let kind = match project.analysis.project.kind.name() {
        "unknown" | "single" => "codebase",
        kind => kind,
    };
    let mut text = match names.len() {
        0 => match (
            project.analysis.stats.texts,
            project.analysis.stats.documents,
        ) {
            (0, 0) => format!("A {kind} of technologies that are not known."),
            (texts, 0) => format!("A folder with {texts} texts."),
            (_, documents) => format!("A folder with {documents} documents."),
        },
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
