//! How well a skill fits a codebase, by its technologies and by what it asks for. Pure.

use codebase::Fact;
use registry::Head;

use super::needs::Need;
use super::project::{Project, Used, has_fact};
use super::subject::{About, Subject};

/// The score of a technology in the name of a skill, and of one that it is about otherwise.
const NAMED_SCORE: f64 = 0.92;
const ABOUT_SCORE: f64 = 0.8;
/// The confidence from which on the first technology of a skill is a product that it is about.
const MIN_PRODUCT_CONFIDENCE: f64 = 0.75;
/// A second technology of the codebase.
const SECOND_WEIGHT: f64 = 0.15;
/// Work that is done once.
const DONE_ONCE_FACTOR: f64 = 0.6;
/// An area that the codebase does not ask for, and one that is no work on code.
const UNASKED_AREA_FACTOR: f64 = 0.85;
const OTHER_AREA_FACTOR: f64 = 0.55;
/// A language says little where the area is not asked for.
const LANGUAGE_ALONE_FACTOR: f64 = 0.7;
/// The factor where no word of a name but the technology is a common term: for a language, which
/// has many niches, and for anything else.
const LANGUAGE_NICHE_FACTOR: f64 = 0.5;
const NICHE_FACTOR: f64 = 0.8;
/// The least factor where the name has a technology of the codebase, and the skill is about
/// others as well.
const MIN_ONE_OF_MANY_FACTOR: f64 = 0.85;
/// A skill for a language or a framework that the codebase does not use.
const OTHER_LANGUAGE_FACTOR: f64 = 0.4;
/// Share of its technologies that the codebase has, of a skill that is essential.
const MIN_ESSENTIAL_SHARE: f64 = 0.75;
/// The weight of an area where a technology fits, too.
const AREA_WEIGHT: f64 = 0.4;
/// An area that a skill is for besides its main one.
const SECONDARY_AREA_FACTOR: f64 = 0.6;
const SECONDARY_DOMAIN_FACTOR: f64 = 0.85;
/// The factor where no word of the name of a skill for a domain is a common term.
const PLAIN_DOMAIN_FACTOR: f64 = 0.6;
/// A practice whose description names technologies that the codebase does not have.
const OTHERS_PRACTICE_FACTOR: f64 = 0.75;
/// A skill that comes with the server.
const BUNDLED_FACTOR: f64 = 0.6;
/// How certain a technology must be for a skill to be of no use without it.
const MIN_CONFIDENCE: f64 = 0.5;

/// Areas that are work on code, whatever it is for.
const ENGINEERING: &[&str] = &[
    "testing",
    "code-quality",
    "development",
    "debugging",
    "performance",
    "security",
    "backend",
    "frontend",
    "mobile",
    "api-design",
    "database",
    "deployment",
    "ci",
    "observability",
    "accessibility",
    "design",
    "automation",
];

/// Areas of everyday work.
const DAILY: &[&str] = &[
    "testing",
    "development",
    "code-quality",
    "frontend",
    "backend",
    "mobile",
];

/// Areas that are the subject of a codebase: few names of skills for these consist of common
/// terms.
const DOMAINS: &[&str] = &[
    "blockchain",
    "machine-learning",
    "data",
    "mobile",
    "agents",
    "documents",
    "writing",
    "marketing",
];

/// A technology of the codebase that a skill is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByTechnology<'a> {
    pub(super) used: Used<'a>,
    /// More than one is.
    pub(super) more: bool,
    pub(super) score: f64,
    /// Everyday work on the codebase needs the skill.
    pub(super) is_essential: bool,
}

/// An area of the codebase that a skill is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByNeed<'a> {
    pub(super) need: &'a Need,
    pub(super) score: f64,
}

fn has(project: &Project<'_>, about: &About<'_>) -> bool {
    project.stack.contains_key(about.id.as_ref())
}

/// How well a skill fits. Skills that come with the server are there for everybody, whatever
/// they work on, so they count less.
pub(super) struct Fit<'a> {
    pub(super) technology: Option<ByTechnology<'a>>,
    pub(super) need: Option<ByNeed<'a>>,
}

impl Fit<'_> {
    /// Both reasons together, as they are reported.
    pub(super) fn score(&self) -> f64 {
        let technology = self.technology.map_or(0.0, |found| found.score);
        let need = self.need.map_or(0.0, |found| found.score);
        // Of what is left to 1 each takes its share, so a second reason never lowers the score.
        1.0 - (1.0 - technology) * (1.0 - need)
    }
}

/// How well a skill fits a codebase that misses something.
pub(super) fn fit<'a>(
    head: &Head,
    subject: &Subject<'_>,
    project: &Project<'a>,
    missing: &[&'a Need],
) -> Fit<'a> {
    let share = if head.id.is_builtin() {
        BUNDLED_FACTOR
    } else {
        1.0
    };
    Fit {
        technology: by_technology(subject, project).map(|found| ByTechnology {
            score: found.score * share,
            ..found
        }),
        need: by_need(subject, project, missing).map(|found| ByNeed {
            score: found.score * share,
            ..found
        }),
    }
}

/// The skill is of no use to the codebase, which lacks what the skill is named for: a cloud,
/// another framework, the source or target of a migration.
fn is_for_others(subject: &Subject<'_>, project: &Project<'_>) -> bool {
    let mut named = subject.technologies.iter().filter(|about| about.is_named);
    named.any(|about| !has(project, about))
}

/// All such technologies of the skill, if there are any, are others than those of the
/// codebase.
fn are_others(subject: &Subject<'_>, project: &Project<'_>, such: fn(&About<'_>) -> bool) -> bool {
    let such = || subject.technologies.iter().filter(|about| such(about));
    such().next().is_some() && !such().any(|about| has(project, about))
}

/// The share of its technologies that the codebase has, by how certain they are; none where
/// it has none of them. Where the codebase has no tests, what they are written with is open.
fn share(subject: &Subject<'_>, project: &Project<'_>) -> Option<f64> {
    // A skill for `pytest` must not lose by a codebase that has no tests yet.
    let is_open = project.analysis.shows(Fact::Tests).is_none();
    let (mut here, mut all) = (0.0, 0.0);
    for about in &subject.technologies {
        if has(project, about) {
            here += about.confidence;
            all += about.confidence;
        } else if !(is_open && has_fact(&about.id, Fact::Tests)) {
            all += about.confidence;
        }
    }
    (here > 0.0).then(|| here / all)
}

/// The score of a skill by its technologies.
fn by_technology<'a>(subject: &Subject<'_>, project: &Project<'a>) -> Option<ByTechnology<'a>> {
    if is_for_others(subject, project) {
        return None;
    }
    let main = subject.main().unwrap_or_default();
    let is_asked = main == "development"
        || subject
            .categories
            .iter()
            .take(2)
            .any(|(id, _)| project.need(id).is_some());
    let is_work =
        ENGINEERING.contains(&main) || DOMAINS.contains(&main) && project.need(main).is_some();
    let share = share(subject, project)?;
    let score = |about: &About<'_>, used: &Used<'a>| {
        // Whatever work it is for: it is about a product, and that is in use.
        let is_product = !about.is_language
            && about.confidence >= MIN_PRODUCT_CONFIDENCE
            && subject
                .technologies
                .first()
                .is_some_and(|first| first.id == about.id);
        let strength = if about.is_named || is_product {
            NAMED_SCORE
        } else {
            ABOUT_SCORE * about.confidence
        };
        let min_share = if about.is_named {
            MIN_ONE_OF_MANY_FACTOR
        } else {
            0.0
        };
        let is_asked = is_asked || main == "database" && used.has(Fact::Database);
        let area = match (is_asked, is_work) {
            (true, _) => 1.0,
            _ if is_product && !about.is_named => 1.0,
            (false, true) => UNASKED_AREA_FACTOR,
            (false, false) if about.is_named && used.is_main() => UNASKED_AREA_FACTOR,
            (false, false) => OTHER_AREA_FACTOR,
        };
        let alone = if about.is_language && !is_asked {
            LANGUAGE_ALONE_FACTOR
        } else {
            1.0
        };
        let niche = if about.is_language {
            LANGUAGE_NICHE_FACTOR
        } else {
            NICHE_FACTOR
        };
        let niche = niche + (1.0 - niche) * subject.plain;
        strength * used.weight * share.sqrt().max(min_share) * area * alone * niche
    };
    let mut fitting: Vec<(f64, &About<'_>, Used<'a>)> = subject
        .technologies
        .iter()
        .filter_map(|about| {
            let used = project.stack.get(about.id.as_ref())?;
            Some((score(about, used), about, *used))
        })
        .collect();
    fitting.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.id.cmp(&b.1.id)));
    let (mut score, about, used) = *fitting.first()?;
    if let Some((_, _, second)) = fitting.get(1) {
        score = 1.0 - (1.0 - score) * (1.0 - SECOND_WEIGHT * second.weight);
    }
    if are_others(subject, project, |about| about.is_language)
        || are_others(subject, project, |about| about.is_framework)
    {
        score *= OTHER_LANGUAGE_FACTOR;
    }
    if subject.is_once {
        score *= DONE_ONCE_FACTOR;
    }
    let is_essential = about.is_named
        && project.is_all(&used)
        && DAILY.contains(&main)
        && (!about.is_language || main == "testing" && !project.has_framework())
        && subject.is_core
        && !subject.is_once
        && share >= MIN_ESSENTIAL_SHARE;
    Some(ByTechnology {
        used,
        more: fitting.len() > 1,
        score,
        is_essential,
    })
}

/// The score of a skill by its areas, where it is about no other technologies than those of the
/// codebase.
fn by_need<'a>(
    subject: &Subject<'_>,
    project: &Project<'_>,
    missing: &[&'a Need],
) -> Option<ByNeed<'a>> {
    let certain = || {
        let about = subject.technologies.iter();
        about.filter(|about| about.confidence >= MIN_CONFIDENCE)
    };
    let is_here = certain().any(|about| has(project, about));
    if certain().next().is_some() && !is_here || is_for_others(subject, project) {
        return None;
    }
    let weighed = subject.categories.iter().enumerate();
    let weighed = weighed.filter_map(|(rank, (id, confidence))| {
        let need = *missing.iter().find(|need| need.area == id)?;
        let share = match rank {
            0 => 1.0,
            _ if DOMAINS.contains(&need.area) => SECONDARY_DOMAIN_FACTOR,
            _ => SECONDARY_AREA_FACTOR,
        };
        let weight = need.severity.weight() * share * confidence.max(MIN_CONFIDENCE).sqrt();
        Some((weight, need))
    });
    // Of equal ones the first.
    let (mut score, need) = weighed.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    if DOMAINS.contains(&need.area) {
        score *= PLAIN_DOMAIN_FACTOR + (1.0 - PLAIN_DOMAIN_FACTOR) * subject.plain;
    } else {
        score *= subject.plain.powi(2);
        score *= if is_here { AREA_WEIGHT } else { 1.0 };
    }
    if subject
        .mentioned
        .iter()
        .any(|id| !project.stack.contains_key(id))
    {
        score *= OTHERS_PRACTICE_FACTOR;
    }
    if subject.is_once {
        score *= DONE_ONCE_FACTOR;
    }
    Some(ByNeed { need, score })
}
