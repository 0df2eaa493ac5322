//! Collects reasons for skills: fit, meaning, pairing, author.

use std::collections::BTreeSet;
use std::sync::Arc;

use executor::Stop;
use lookup::Lookup;
use model::{Reference, SkillKey, TrustTier, VersionSelector};
use registry::{Facet, Head, Registry};
use search::{SearchIndex, SearchQuery};

use super::fit::{Fit, fit};
use super::needs::Need;
use super::project::Project;
use super::ranking::Candidates;
use super::recommendation::ReasonKind::{
    self, AuthorReputation, GapCoverage, PopularPairing, TechnologyMatch,
};
use super::recommendation::{Gap, Mode, Reason, Recommendation, Wish};
use super::subject::Subject;
use super::texts::shown;

/// Scores from which on a skill is worth reporting.
const MIN: f64 = 0.3;
const MIN_EXPLORATORY: f64 = 0.15;
/// Skills that are examined closely, the best by the facts of the catalog.
const MAX_EXAMINED_SKILLS: usize = 64;
/// Main technologies that are searched for by meaning, and skills that are examined for each.
const MAX_SEMANTIC_QUERIES: usize = 4;
const MAX_SEMANTIC_CANDIDATES: usize = 20;
/// The weight of nearness in meaning.
const SEMANTIC_WEIGHT: f64 = 0.2;
/// The weight of being required by an installed skill, and of requiring one.
const REQUIRED_WEIGHT: f64 = 0.6;
const GOES_WITH_WEIGHT: f64 = 0.2;
/// The weight of the author.
const SAME_AUTHOR_WEIGHT: f64 = 0.05;
/// Skills that are named for a gap.
const MAX_SUGGESTED_SKILLS: usize = 3;

/// Collects reasons for skills.
pub(super) struct Recommender<'a> {
    pub(super) registry: &'a Registry,
    pub(super) index: &'a SearchIndex,
    pub(super) wish: &'a Wish,
    pub(super) project: &'a Project<'a>,
    pub(super) installed: Vec<Arc<Head>>,
    pub(super) candidates: Candidates,
    pub(super) stop: &'a Stop,
}

impl Recommender<'_> {
    fn add(&mut self, head: &Arc<Head>, kind: ReasonKind, text: String, confidence: f64) {
        self.add_reason(head, kind, text, confidence, false);
    }

    fn add_reason(
        &mut self,
        head: &Arc<Head>,
        kind: ReasonKind,
        text: String,
        confidence: f64,
        is_essential: bool,
    ) {
        if !self.is_left_out(head) {
            let reason = Reason {
                kind,
                text,
                confidence,
            };
            self.candidates.add(head, reason, is_essential);
        }
    }

    fn is_left_out(&self, head: &Head) -> bool {
        let mut installed = self.installed.iter();
        self.wish.exclude_installed && installed.any(|other| other.id.key() == head.id.key())
    }

    /// Adds skills for its technologies and needs.
    pub(super) fn by_fit(&mut self, missing: &[&Need]) -> Result<(), search::Error> {
        let (catalog, project) = (self.registry.catalog(), self.project);
        // Not by a search: the catalog has skills by technology and category, which bound the
        // score of a skill.
        let technologies = project.stack.keys();
        let technologies = technologies.map(|id| Facet::Technology((*id).to_owned()));
        let areas = missing
            .iter()
            .map(|need| Facet::Category(need.area.to_owned()));
        let keys: BTreeSet<&SkillKey> = technologies
            .chain(areas)
            .filter_map(|facet| catalog.with_facet(&facet))
            .flatten()
            .collect();
        let mut possible: Vec<(f64, &Arc<Head>)> = Vec::with_capacity(keys.len());
        for head in keys.into_iter().filter_map(|key| catalog.get(key)) {
            self.stop.check()?;
            let is_here = |id: &str| project.stack.contains_key(id);
            let max = fit(head, &Subject::at_best(head, is_here), project, missing).score();
            if max >= self.min_score() && !self.is_left_out(head) {
                possible.push((max, head));
            }
        }
        possible.sort_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then_with(|| a.1.id.key().cmp(&b.1.id.key()))
        });
        // The scores of the best so far, the lowest first; copies of one name count once, since
        // only one of them is reported.
        let mut best: Vec<f64> = Vec::new();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for (max, head) in possible {
            self.stop.check()?;
            // Its upper bound is below the scores that were found: the names and descriptions
            // of the rest need not be read.
            if best.len() >= MAX_EXAMINED_SKILLS && best.first().is_some_and(|min| max < *min) {
                break;
            }
            let fit = fit(head, &Subject::of(head), project, missing);
            let score = fit.score();
            if score < self.min_score() {
                continue;
            }
            if names.insert(head.id.slug()) {
                // Kept in order: the lowest score that still counts is the first.
                best.insert(best.partition_point(|other| *other < score), score);
                if best.len() > MAX_EXAMINED_SKILLS {
                    best.remove(0);
                }
            }
            self.add_fit(head, &fit);
        }
        Ok(())
    }

    fn add_fit(&mut self, head: &Arc<Head>, fit: &Fit<'_>) {
        if let Some(found) = &fit.technology {
            let text = format!(
                "Your project uses {}, {} is about {}{}",
                shown(found.used.item),
                self.short(head),
                found.used.as_well.unwrap_or("it"),
                if found.more {
                    " and more of your stack"
                } else {
                    ""
                }
            );
            let essential = found.is_essential;
            self.add_reason(head, TechnologyMatch, text, found.score, essential);
        }
        if let Some(found) = &fit.need {
            let Need { area, because, .. } = found.need;
            let text = format!("No {area} skills are installed, and {because}");
            self.add(head, GapCoverage, text, found.score);
        }
    }

    /// Adds skills that are near to its main technologies in meaning.
    pub(super) fn by_meaning(&mut self) -> Result<(), search::Error> {
        for used in self
            .project
            .by_weight()
            .into_iter()
            .take(MAX_SEMANTIC_QUERIES)
        {
            let query = SearchQuery {
                text: used.item.name.clone(),
                limit: MAX_SEMANTIC_CANDIDATES,
                ..SearchQuery::default()
            };
            for hit in self.index.search(&query, self.stop)?.hits {
                let text = format!(
                    "Your project uses {}, {} has to do with it",
                    shown(used.item),
                    self.short(&hit.head)
                );
                self.add(&hit.head, TechnologyMatch, text, SEMANTIC_WEIGHT);
            }
        }
        Ok(())
    }

    /// Adds skills that installed ones require, and reasons for candidates that require those.
    pub(super) fn by_pairing(&mut self) -> Result<(), search::Error> {
        let catalog = self.registry.catalog();
        for head in self.installed.clone() {
            for target in self.requires(&head)? {
                let reference = Reference::parse(&target);
                if let Ok(resolved) = Lookup::resolve_among(&catalog, &reference) {
                    let text = format!("{}, which is installed, requires it", self.short(&head));
                    self.add(&resolved.head, PopularPairing, text, REQUIRED_WEIGHT);
                }
            }
        }
        let found = self.candidates.heads();
        let here: BTreeSet<SkillKey> = self.installed.iter().map(|head| head.id.key()).collect();
        for head in found {
            for target in self.requires(&head)? {
                let resolved = Lookup::resolve_among(&catalog, &Reference::parse(&target));
                if let Ok(resolved) = resolved
                    && here.contains(&resolved.head.id.key())
                {
                    let other = self.short(&resolved.head);
                    let text = format!("It goes with {other}, which is installed");
                    self.add(&head, PopularPairing, text, GOES_WITH_WEIGHT);
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
        let requirements = version.skill.requirements();
        Ok(requirements.map(str::to_owned).collect())
    }

    /// Adds the author as a reason, to candidates that have others.
    pub(super) fn by_author(&mut self) {
        let authors: BTreeSet<(String, String)> = self
            .installed
            .iter()
            // A folder of this machine and the server itself are no authors that say anything of
            // a skill.
            .filter(|head| head.id.source() != "local" && !head.id.is_builtin())
            .map(|head| (head.id.source().to_owned(), head.id.author().to_owned()))
            .collect();
        for head in self.candidates.heads() {
            let (author, source) = (head.id.author(), head.id.source());
            let text = if authors.contains(&(source.to_owned(), author.to_owned())) {
                format!("{author} wrote skills that are installed")
            } else if head.trust_tier() == TrustTier::Verified {
                format!("The operator trusts skills of {author}")
            } else {
                continue;
            };
            self.add(&head, AuthorReputation, text, SAME_AUTHOR_WEIGHT);
        }
    }

    fn short(&self, head: &Head) -> String {
        self.registry.catalog().short_name(head).to_owned()
    }

    /// The score from which on a skill is worth reporting.
    pub(super) fn min_score(&self) -> f64 {
        match self.wish.mode {
            Mode::Conservative => MIN,
            Mode::Exploratory => MIN_EXPLORATORY,
        }
    }

    /// An area that no installed skill is for, with the best that are.
    pub(super) fn gap(&self, need: &Need, best: &[Recommendation]) -> Gap {
        let suggested = best
            .iter()
            .filter(|r| r.areas.iter().any(|area| area == need.area));
        let suggested = suggested
            .take(MAX_SUGGESTED_SKILLS)
            .map(|r| self.short(&r.head));
        let of = match self.project.by_weight().first() {
            Some(used) => format!(" for {}", shown(used.item)),
            None => String::new(),
        };
        Gap {
            area: need.area,
            text: format!("No {} skills installed{of}", need.area),
            suggested: suggested.collect(),
            severity: need.severity,
        }
    }
}
