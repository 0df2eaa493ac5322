//! Scores the quality of a skill, in parts that each have a reason.
//!
//! A function of facts: the same facts give the same score. No author's name adds to it;
//! the tier, which the operator decides, does.

use model::{Skill, TrustTier};
use serde::{Deserialize, Serialize};

use super::{Report, Severity, Verdict};

/// The weights of facts besides a skill's files.
const FRESHNESS_WEIGHT: f64 = 0.10;
const PROVENANCE_WEIGHT: f64 = 0.10;

/// The facts of a version by itself.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The skill as it was read.
    pub skill: &'a Skill,
    /// Its instructions, without the front matter.
    pub body: &'a str,
    /// Paths of its files.
    pub files: &'a [&'a str],
    /// The report of the scan; none while it is pending.
    pub report: Option<&'a Report>,
}

/// Facts besides a skill's files, which change without a new version.
#[derive(Debug, Clone, Copy)]
pub struct QualityFactors {
    /// Days since it last changed, where that is known.
    pub age_days: Option<u32>,
    /// The tier that policy gives it.
    pub tier: TrustTier,
}

/// One part of a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name: `documentation`, `structure`, `examples`, `tests`, `security`, `freshness`
    /// or `provenance`.
    pub name: String,
    /// From 0 to 1.
    pub score: f64,
    /// How much it counts; the weights of all parts add up to 1.
    pub weight: f64,
    /// Why.
    pub reason: String,
}

/// A score with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// From 0 to 1: the parts by their weights.
    pub score: f64,
    /// The parts, in the order that is documented.
    pub parts: Vec<Part>,
}

/// Returns the parts of a version by itself.
#[must_use]
pub fn parts(facts: &Facts<'_>) -> Vec<Part> {
    vec![
        part("documentation", 0.25, documentation(facts)),
        part("structure", 0.15, structure(facts)),
        part("examples", 0.10, examples(facts)),
        part("tests", 0.10, tests(facts)),
        part("security", 0.20, security(facts.report)),
    ]
}

/// Returns the share of the score of those parts.
#[must_use]
pub fn base(parts: &[Part]) -> f64 {
    parts.iter().map(|part| part.score * part.weight).sum()
}

/// The score of a skill, from what its version adds to it.
#[must_use]
pub fn score(base: f64, factors: QualityFactors) -> f64 {
    let freshness = freshness(factors.age_days) * FRESHNESS_WEIGHT;
    rounded(base + freshness + provenance(factors.tier).0 * PROVENANCE_WEIGHT)
}

/// The score of a skill with all its parts.
#[must_use]
pub fn quality(parts: Vec<Part>, factors: QualityFactors) -> Quality {
    let score = score(base(&parts), factors);
    let parts = parts.into_iter().chain(factor_parts(factors)).collect();
    Quality { score, parts }
}

fn factor_parts(factors: QualityFactors) -> [Part; 2] {
    let QualityFactors { age_days, tier } = factors;
    let age = age_days.map_or_else(
        || "it is not known when it last changed".to_owned(),
        |days| format!("changed {days} days ago"),
    );
    let (score, tier) = provenance(tier);
    let tier = format!("its origin is {tier}");
    [
        part("freshness", FRESHNESS_WEIGHT, (freshness(age_days), age)),
        part("provenance", PROVENANCE_WEIGHT, (score, tier)),
    ]
}

/// Rounds to three digits: more would claim what the facts do not know.
fn rounded(score: f64) -> f64 {
    (score * 1000.0).round().clamp(0.0, 1000.0) / 1000.0
}

fn part(name: &str, weight: f64, (score, reason): (f64, String)) -> Part {
    Part {
        name: name.to_owned(),
        score: rounded(score),
        weight,
        reason,
    }
}

/// Adds up what holds; the reason names what does not.
fn checklist(items: &[(f64, bool, &str)]) -> (f64, String) {
    let score = items.iter().filter(|item| item.1).map(|item| item.0).sum();
    let missing: Vec<&str> = items
        .iter()
        .filter(|item| !item.1)
        .map(|item| item.2)
        .collect();
    let reason = if missing.is_empty() {
        "has all that is looked for".to_owned()
    } else {
        format!("lacks {}", missing.join(", "))
    };
    (score, reason)
}

fn documentation(facts: &Facts<'_>) -> (f64, String) {
    let description = facts.skill.description.trim();
    let lower = description.to_lowercase();
    let says_when = [
        "use when", "use this", "when ", "trigger", "whenever", "use for",
    ]
    .iter()
    .any(|words| lower.contains(words))
        || !facts.skill.triggers.is_empty();
    let length = description.chars().count();
    let body = facts.body.trim().chars().count();
    checklist(&[
        (0.25, length >= 40, "a description of a sentence"),
        (0.25, says_when, "when to use it"),
        (0.25, body >= 400, "instructions of some length"),
        (
            0.15,
            (40..=1_024).contains(&length) && body <= 50_000,
            "a length that agents can read",
        ),
        (
            0.10,
            !facts.skill.license.is_empty() || has_file(facts, "license"),
            "a licence",
        ),
    ])
}

fn structure(facts: &Facts<'_>) -> (f64, String) {
    let lines = facts.body.lines().count();
    let headings = facts
        .body
        .lines()
        .filter(|line| line.starts_with('#'))
        .count();
    let is_short = lines <= 500;
    checklist(&[
        (0.35, headings >= 2, "headings"),
        (
            0.35,
            is_short || facts.files.len() > 1,
            "files next to long instructions",
        ),
        (0.15, is_short, "at most 500 lines of instructions"),
        (
            0.15,
            model::is_standard_name(&facts.skill.name),
            "a name as the standard has it",
        ),
    ])
}

fn examples(facts: &Facts<'_>) -> (f64, String) {
    let fences = facts
        .body
        .lines()
        .filter(|line| line.trim_start().starts_with("```"))
        .count()
        / 2;
    let lower = facts.body.to_lowercase();
    let names_one = lower.contains("example") || lower.contains("e.g.");
    let has_folder = facts.files.iter().any(|path| {
        let path = path.to_lowercase();
        path.contains("example") || path.contains("template") || path.contains("sample")
    });
    checklist(&[
        (0.5, fences > 0, "a block of code"),
        (0.2, fences > 2, "several of them"),
        (0.3, names_one || has_folder, "an example"),
    ])
}

fn tests(facts: &Facts<'_>) -> (f64, String) {
    let has_scripts = facts.files.iter().any(|path| path.starts_with("scripts/"));
    if facts.files.iter().any(|path| model::is_test(path)) {
        (1.0, "has tests or evaluations".to_owned())
    } else if has_scripts {
        (0.2, "has scripts and no tests of them".to_owned())
    } else {
        (
            0.6,
            "has no scripts that would need tests, and no evaluations".to_owned(),
        )
    }
}

fn freshness(age_days: Option<u32>) -> f64 {
    match age_days {
        Some(0..=90) => 1.0,
        Some(91..=365) => 0.8,
        // An unknown age neither helps nor harms.
        None | Some(366..=730) => 0.5,
        Some(_) => 0.2,
    }
}

fn provenance(tier: TrustTier) -> (f64, &'static str) {
    match tier {
        TrustTier::Official => (1.0, "official"),
        TrustTier::Verified => (0.9, "verified"),
        TrustTier::Community => (0.6, "known to the community"),
        TrustTier::Unverified => (0.3, "unverified"),
    }
}

fn security(report: Option<&Report>) -> (f64, String) {
    let Some(report) = report else {
        return (0.3, "it was not scanned yet".to_owned());
    };
    let medium = report
        .findings
        .iter()
        .filter(|found| found.severity == Severity::Medium)
        .count();
    match report.verdict {
        Verdict::Failed => (0.0, "the scan blocks it".to_owned()),
        Verdict::Warning => (0.3, "the scan holds it for review".to_owned()),
        Verdict::Passed if medium > 0 => (
            0.8,
            format!("the scan passed it with {medium} findings of medium severity"),
        ),
        Verdict::Passed => (1.0, "the scan found nothing of weight".to_owned()),
    }
}

fn has_file(facts: &Facts<'_>, start: &str) -> bool {
    let name = |path: &str| super::files::file_name(path).to_lowercase();
    facts.files.iter().any(|path| name(path).starts_with(start))
}
