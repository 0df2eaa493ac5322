//! Reads the name of a skill, and makes its slug.

use super::findings::{Findings, shown};
use super::keys::{KeyEntry, Keys};
use super::tree::NodeShape;
use model::{MAX_SLUG_CHARS, Problem, invisible, is_device, is_standard_name, slugify};

/// Returns the name as written, or made from the id's slug or the folder's name; and the slug.
pub(super) fn read(
    keys: &Keys<'_>,
    folder: Option<&str>,
    slug: Option<&str>,
    findings: &mut Findings,
) -> (String, Option<String>) {
    let entry = keys.find("name");
    let from_folder = folder.and_then(slugify);
    let other = slug.map(str::to_owned).or_else(|| from_folder.clone());
    let written = entry.and_then(|entry| written(entry, findings));
    let Some((entry, name)) = written else {
        let message = match (slug, &from_folder) {
            (Some(slug), _) => format!("There is no `name`; the id's, `{slug}`, was taken"),
            (None, Some(folder)) => {
                format!("There is no `name`; the folder's, `{folder}`, was taken")
            }
            (None, None) => "There is no `name`".to_owned(),
        };
        findings.warning("name-missing", 1, message);
        if other.is_none() {
            findings.error(
                "name-unusable",
                1,
                "Neither `name` nor a folder gives the skill a name",
            );
        }
        return (other.clone().unwrap_or_default(), other);
    };
    check(name, entry.line, folder, findings);
    let slug = slugify(name).or(other);
    check_slug(name, slug.as_deref(), entry.line, findings);
    (name.to_owned(), slug)
}

/// Checks a name that is in no file yet.
pub(super) fn problems(name: &str) -> Vec<Problem> {
    let mut findings = Findings::default();
    check(name, 0, None, &mut findings);
    check_slug(name, slugify(name).as_deref(), 0, &mut findings);
    let mut problems = findings.into_problems();
    problems.sort_by(|a, b| (a.severity, &a.rule).cmp(&(b.severity, &b.rule)));
    problems
}

fn check_slug(name: &str, slug: Option<&str>, line: usize, findings: &mut Findings) {
    // `con` or `nul`: such a skill could not be installed there.
    if slug.is_some_and(is_device) {
        findings.error(
            "name-unusable",
            line,
            format!(
                "`{}` is a device on Windows, where no folder can have its name",
                shown(name)
            ),
        );
    }
    if slug.is_none() {
        findings.error(
            "name-unusable",
            line,
            format!(
                "`{}` has no letter or digit of a-z0-9, of which a skill's address is made",
                shown(name)
            ),
        );
    }
}

fn written<'a>(entry: KeyEntry<'a>, findings: &mut Findings) -> Option<(KeyEntry<'a>, &'a str)> {
    let kind = entry.node.kind();
    match (&entry.node.shape, entry.node.text()) {
        (NodeShape::Text(_), Some(name)) => (!name.trim().is_empty()).then_some((entry, name)),
        (_, Some(name)) => {
            findings.warning(
                "name-not-text",
                entry.line,
                format!(
                    "The name is {kind} to YAML; put it in quotes: \"{}\"",
                    shown(name)
                ),
            );
            Some((entry, name))
        }
        _ => {
            findings.warning(
                "name-not-text",
                entry.line,
                format!("The name is {kind}, not text"),
            );
            None
        }
    }
}

fn check(name: &str, line: usize, folder: Option<&str>, findings: &mut Findings) {
    if name.contains(['\n', '\r', '\t']) {
        let message = "The name has a line break or a tab";
        findings.error("name-hidden-characters", line, message);
    }
    if let Some((_, hidden, kind)) = invisible(name).next() {
        findings.error(
            "name-hidden-characters",
            line,
            format!("The name has {}: {}", kind.what(), hidden.escape_unicode()),
        );
    }
    let chars = name.chars().count();
    let is_long = chars > MAX_SLUG_CHARS;
    if is_long {
        findings.warning(
            "name-too-long",
            line,
            format!("The name has {chars} characters; the standard allows {MAX_SLUG_CHARS}"),
        );
    }
    // A long name may be standard but for its length, which was reported.
    let has_unusual = !name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if has_unusual || (!is_long && !is_standard_name(name)) {
        findings.warning(
            "name-nonstandard",
            line,
            format!(
                "`{}` is not a valid name: use lower-case letters, digits and single hyphens",
                shown(name)
            ),
        );
    }
    if let Some(folder) = folder.filter(|folder| *folder != name) {
        findings.warning(
            "name-folder-mismatch",
            line,
            format!(
                "The name is `{}` and the folder `{}`",
                shown(name),
                shown(folder)
            ),
        );
    }
}
