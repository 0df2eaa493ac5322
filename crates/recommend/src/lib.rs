//! Skills for a codebase or a task: what fits its technologies, what closes a gap, what goes
//! with what is there.
//!
//! Rules:
//!
//! * A skill is recommended for reasons that can be told, and its score is made of
//!   these alone: each takes its share of what is left to 1, so that more reasons
//!   never lower it.
//! * Conservative: only skills that name a technology of the codebase, or an area
//!   that it asks for together with one, in what they say first of themselves.
//!   Exploratory: also what is near in meaning, areas that codebases like this may
//!   ask for, and a push for what nobody has used.
//! * The same codebase, skills and index give the same answer.
//!
//! Not here: what a codebase is made of (`codebase`), finding skills by words and
//! meaning (`search`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod advisor;
mod error;
mod recommendation;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use advisor::{Advisor, Analyzed, Source};
use codebase::{AREAS, Analysis, Area, Severity, TechStackItem};
pub use error::Error;
use executor::Stop;
use lookup::Lookup;
use model::{
    CompatibilityRuleType, ComposabilityRuleType, Reference, SkillKey, TrustTier, VersionSelector,
};
pub use recommendation::{
    Gap, Mode, Priority, Reason, ReasonKind, Recommendation, Recommendations, Wish,
};
use registry::{Head, Registry};
use search::{Part, SearchIndex, SearchQuery, Tier, folded_words};
use texts::{
    covers, is_of_a_technology, main_technologies, names, shown, summary, titles, words_of,
};

/// Skills that are recommended where no number is asked for.
const LIMIT: usize = 10;
/// Technologies that are looked for, the main ones.
const TECHNOLOGIES: usize = 8;
/// Skills that are looked at for each technology, and for each area.
const CANDIDATES: usize = 20;
/// Scores from which on a skill is worth telling.
const MIN: f64 = 0.35;
const MIN_EXPLORATORY: f64 = 0.15;
/// Skills that are named for a gap.
const SUGGESTED: usize = 3;

/// What speaks for a skill so far.
#[derive(Debug)]
struct Candidate {
    head: Arc<Head>,
    reasons: BTreeMap<(ReasonKind, String), Reason>,
    closes: Option<Severity>,
    main: bool,
}

struct Recommender<'a> {
    registry: &'a Registry,
    index: &'a SearchIndex,
    wish: &'a Wish,
    main: Vec<&'a TechStackItem>,
    installed: Vec<Arc<Head>>,
    candidates: BTreeMap<SkillKey, Candidate>,
    stop: &'a Stop,
}

/// Skills for a codebase. Blocks for some searches.
///
/// # Errors
/// The index or the registry cannot be read, or it is to stop.
pub fn recommend(
    registry: &Registry,
    index: &SearchIndex,
    analysis: &Analysis,
    wish: &Wish,
    stop: &Stop,
) -> Result<Recommendations, search::Error> {
    let mut recommender = Recommender {
        registry,
        index,
        wish,
        main: main_technologies(analysis),
        installed: installed(registry, &wish.installed),
        candidates: BTreeMap::new(),
        stop,
    };
    let asked: Vec<(&Area, Severity)> = AREAS
        .iter()
        .filter_map(|area| Some((area, area.asked_by(analysis)?)))
        .collect();
    let missing: Vec<(&Area, Severity)> = asked
        .iter()
        .filter(|(area, _)| !recommender.installed.iter().any(|head| covers(head, area)))
        .copied()
        .collect();
    recommender.by_technology()?;
    recommender.by_gap(&missing)?;
    recommender.by_pairing()?;
    recommender.by_author();
    let coverage = recommender.coverage(&asked);
    let skills = recommender.best();
    let mut gaps: Vec<Gap> = missing
        .iter()
        .filter(|(_, severity)| *severity > Severity::Low || wish.mode == Mode::Exploratory)
        .map(|(area, severity)| recommender.gap(area, *severity))
        .collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.severity));
    Ok(Recommendations {
        summary: summary(analysis, &recommender.main, &gaps),
        coverage,
        gaps,
        skills: skills
            .into_iter()
            .take(match wish.limit {
                0 => LIMIT,
                limit => limit,
            })
            .collect(),
        installed: recommender.installed,
    })
}

/// The skills of these names that are known here.
fn installed(registry: &Registry, names: &[String]) -> Vec<Arc<Head>> {
    let catalog = registry.catalog();
    let mut found: BTreeMap<SkillKey, Arc<Head>> = BTreeMap::new();
    for name in names {
        let reference = Reference::parse(name.trim());
        if let Ok(resolved) = Lookup::resolve_among(&catalog, &reference) {
            found.insert(resolved.head.id.key(), resolved.head);
        }
    }
    found.into_values().collect()
}

impl Recommender<'_> {
    fn found(&self, text: String) -> Result<Vec<search::Hit>, search::Error> {
        let query = SearchQuery {
            text,
            limit: CANDIDATES,
            words_only: self.wish.mode == Mode::Conservative,
            ..SearchQuery::default()
        };
        Ok(self.index.search(&query, self.stop)?.hits)
    }

    fn add(&mut self, head: &Arc<Head>, reason: Reason, closes: Option<Severity>, main: bool) {
        let key = head.id.key();
        if self.wish.exclude_installed && self.installed.iter().any(|other| other.id.key() == key) {
            return;
        }
        let candidate = self.candidates.entry(key).or_insert_with(|| Candidate {
            head: Arc::clone(head),
            reasons: BTreeMap::new(),
            closes: None,
            main: false,
        });
        candidate.closes = candidate.closes.max(closes);
        candidate.main |= main;
        let known = candidate.reasons.entry((reason.kind, reason.text.clone()));
        known
            .and_modify(|known| known.confidence = known.confidence.max(reason.confidence))
            .or_insert(reason);
    }

    fn by_technology(&mut self) -> Result<(), search::Error> {
        for (rank, technology) in self.main.clone().into_iter().enumerate() {
            // The first ones say more of the codebase than the last.
            let weight = if rank < TECHNOLOGIES / 2 { 1.0 } else { 0.8 };
            for hit in self.found(technology.name.clone())? {
                let words = words_of(&hit.head);
                let strength = if names(&folded_words(hit.head.id.slug()), technology) {
                    0.6
                } else if names(&words, technology) {
                    0.45
                } else if self.wish.mode == Mode::Exploratory
                    && (hit.why.tier == Tier::Meaning || hit.why.parts.contains(&Part::Body))
                {
                    0.2
                } else {
                    continue;
                };
                let specializes = self
                    .main
                    .iter()
                    .filter(|other| names(&words, other))
                    .count()
                    > 1;
                let text = format!(
                    "Your project uses {}, {} is about it{}",
                    shown(technology),
                    self.short(&hit.head),
                    if specializes {
                        " and more of your stack"
                    } else {
                        ""
                    }
                );
                let reason = Reason {
                    kind: ReasonKind::TechnologyMatch,
                    text,
                    confidence: strength * weight * technology.confidence,
                };
                self.add(&hit.head, reason, None, rank < TECHNOLOGIES / 2);
            }
        }
        Ok(())
    }

    fn by_gap(&mut self, missing: &[(&Area, Severity)]) -> Result<(), search::Error> {
        for (area, severity) in missing {
            let strength = match severity {
                Severity::High => 0.45,
                Severity::Medium => 0.35,
                Severity::Low if self.wish.mode == Mode::Exploratory => 0.25,
                Severity::Low => continue,
            };
            let first = self.main.first().map(|technology| technology.name.clone());
            let queries = [
                first.map(|name| format!("{name} {}", area.query)),
                Some(area.query.to_owned()),
            ];
            for query in queries.into_iter().flatten() {
                for hit in self.found(query)? {
                    let words = words_of(&hit.head);
                    let about = self.main.iter().any(|technology| names(&words, technology));
                    // Of another technology: it helps others.
                    let elsewhere = !about && is_of_a_technology(&hit.head);
                    let daring = self.wish.mode == Mode::Exploratory;
                    // In passing, descriptions speak of many areas.
                    let titled = about || daring || area.is_in(&titles(&hit.head));
                    if !area.is_in(&words) || elsewhere || !titled {
                        continue;
                    }
                    let reason = Reason {
                        kind: ReasonKind::GapCoverage,
                        text: format!("No {} skills are installed", area.name),
                        confidence: if about { strength + 0.15 } else { strength },
                    };
                    self.add(&hit.head, reason, Some(*severity), about);
                }
            }
        }
        Ok(())
    }

    /// What installed skills require, or are required by among what was found.
    fn by_pairing(&mut self) -> Result<(), search::Error> {
        let catalog = self.registry.catalog();
        for head in self.installed.clone() {
            for target in self.requires(&head)? {
                let reference = Reference::parse(&target);
                if let Ok(resolved) = Lookup::resolve_among(&catalog, &reference) {
                    let reason = Reason {
                        kind: ReasonKind::PopularPairing,
                        text: format!("{}, which is installed, requires it", self.short(&head)),
                        confidence: 0.6,
                    };
                    self.add(&resolved.head, reason, None, true);
                }
            }
        }
        let found: Vec<Arc<Head>> = self
            .candidates
            .values()
            .map(|c| Arc::clone(&c.head))
            .collect();
        let here: BTreeSet<SkillKey> = self.installed.iter().map(|head| head.id.key()).collect();
        for head in found {
            for target in self.requires(&head)? {
                let resolved = Lookup::resolve_among(&catalog, &Reference::parse(&target));
                if let Ok(resolved) = resolved
                    && here.contains(&resolved.head.id.key())
                {
                    let reason = Reason {
                        kind: ReasonKind::PopularPairing,
                        text: format!(
                            "It goes with {}, which is installed",
                            self.short(&resolved.head)
                        ),
                        confidence: 0.2,
                    };
                    self.add(&head, reason, None, false);
                }
            }
        }
        Ok(())
    }

    fn requires(&self, head: &Head) -> Result<Vec<String>, search::Error> {
        self.stop.check()?;
        if head.active.is_none() {
            return Ok(Vec::new());
        }
        let version = self.registry.version(head, &VersionSelector::Active)?;
        let compatibility = version.skill.compatibility_rules.iter();
        let compatibility = compatibility
            .filter(|rule| rule.kind == CompatibilityRuleType::Requires)
            .map(|rule| rule.skill.clone());
        let composability = version.skill.composability_rules.iter();
        let composability = composability
            .filter(|rule| rule.kind == ComposabilityRuleType::Requires)
            .map(|rule| rule.skill.clone());
        Ok(compatibility.chain(composability).collect())
    }

    /// Who wrote it; only for what other reasons speak for.
    fn by_author(&mut self) {
        let authors: BTreeSet<(String, String)> = self
            .installed
            .iter()
            .filter(|head| head.id.source() != "local")
            .map(|head| (head.id.source().to_owned(), head.id.author().to_owned()))
            .collect();
        for candidate in self.candidates.values_mut() {
            let id = &candidate.head.id;
            let text = match candidate.head.trust_tier() {
                TrustTier::Official => "It comes with the server".to_owned(),
                TrustTier::Verified => format!("{} is verified", id.author()),
                _ if authors.contains(&(id.source().to_owned(), id.author().to_owned())) => {
                    format!("{} wrote skills that are installed", id.author())
                }
                _ => continue,
            };
            let reason = Reason {
                kind: ReasonKind::AuthorReputation,
                text,
                confidence: 0.1,
            };
            let key = (reason.kind, reason.text.clone());
            candidate.reasons.insert(key, reason);
        }
    }

    fn short(&self, head: &Head) -> String {
        self.registry.catalog().short_name(head).to_owned()
    }

    /// The candidates that are worth telling, the best first.
    fn best(&self) -> Vec<Recommendation> {
        let min = match self.wish.mode {
            Mode::Conservative => MIN,
            Mode::Exploratory => MIN_EXPLORATORY,
        };
        let mut best: Vec<Recommendation> = self
            .candidates
            .values()
            .map(Candidate::recommendation)
            .filter(|recommendation| recommendation.score >= min)
            .collect();
        best.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| a.head.id.key().cmp(&b.head.id.key()))
        });
        best
    }

    fn gap(&self, area: &Area, severity: Severity) -> Gap {
        let suggested = self.best().into_iter().filter(|r| covers(&r.head, area));
        let suggested = suggested.take(SUGGESTED).map(|r| self.short(&r.head));
        let of = match self.main.first() {
            Some(technology) => format!(" for {}", shown(technology)),
            None => String::new(),
        };
        Gap {
            area: area.name,
            text: format!("No {} skills installed{of}", area.name),
            suggested: suggested.collect(),
            severity,
        }
    }

    /// Share of the main technologies and the areas asked for that an installed
    /// skill speaks of. Areas count by how much they are asked for.
    fn coverage(&self, asked: &[(&Area, Severity)]) -> f64 {
        let words: Vec<Vec<String>> = self.installed.iter().map(|head| words_of(head)).collect();
        let mut all = 0.0;
        let mut there = 0.0;
        for technology in &self.main {
            all += 1.0;
            if words.iter().any(|words| names(words, technology)) {
                there += 1.0;
            }
        }
        for (area, severity) in asked {
            let weight = match severity {
                Severity::High => 1.0,
                Severity::Medium => 0.5,
                Severity::Low => 0.25,
            };
            all += weight;
            if words.iter().any(|words| area.is_in(words)) {
                there += weight;
            }
        }
        if all > 0.0 { there / all } else { 0.0 }
    }
}

impl Candidate {
    fn recommendation(&self) -> Recommendation {
        let mut reasons: Vec<Reason> = self.reasons.values().cloned().collect();
        reasons.sort_by(|a, b| {
            let by_confidence = b.confidence.total_cmp(&a.confidence);
            by_confidence.then_with(|| (a.kind, &a.text).cmp(&(b.kind, &b.text)))
        });
        let left: f64 = reasons
            .iter()
            .map(|reason| 1.0 - reason.confidence)
            .product();
        let score = 1.0 - left;
        let areas = AREAS.iter().filter(|area| covers(&self.head, area));
        Recommendation {
            head: Arc::clone(&self.head),
            score,
            areas: areas.map(|area| area.name).collect(),
            priority: match (self.closes, self.main) {
                (Some(Severity::High), true) if score >= 0.6 => Priority::Essential,
                _ if score >= 0.5 => Priority::Recommended,
                _ => Priority::Optional,
            },
            reasons,
        }
    }
}
