//! Recommends skills for a codebase or a task: those that fit its technologies, close a gap, or go
//! with installed skills.
//!
//! Rules:
//!
//! * A skill is recommended for reasons that are reported, and its score is made of
//!   these alone: each takes its share of what is left to 1, so that more reasons
//!   never lower it.
//! * The catalog says what a skill is about ([`registry::Summary`]); mentions do not count. The
//!   codebase must have what its name names: a cloud's variant of a database, another
//!   framework, and the way from one product to another are for codebases that have these. Of
//!   the technologies that only the description names, one of several is enough.
//! * A technology counts by what it is to the codebase: a framework more than its
//!   language, that more than a library, a tool least (`project`).
//! * An area of work counts where evidence shows that the codebase needs it, which is
//!   reported (`needs`). No gap is reported for every codebase.
//! * Essential is little: how code is written or tested with the main framework, or with the
//!   language where there is none. A wrong one costs more trust than three right ones give.
//! * Conservative: these. Exploratory: also what is near to the main technologies in
//!   meaning, and what is worth less.
//! * The same codebase, skills and index give the same answer.
//! * Candidates are the skills that the catalog has under one of the technologies or areas; only
//!   those that may be among the best are examined closely.
//!
//! Not here: the analysis of codebases (`codebase`), search by words and meaning (`search`).

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
mod fit;
mod needs;
mod project;
mod ranking;
mod recommendation;
mod recommender;
mod subject;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use advisor::{Advisor, Analyzed, Source};
use codebase::Analysis;
pub use error::Error;
use executor::Stop;
use lookup::Lookup;
use model::{Reference, SkillKey};
use needs::Need;
pub use needs::Severity;
use project::Project;
use ranking::Candidates;
pub use recommendation::{
    Gap, Mode, Priority, Reason, ReasonKind, Recommendation, Recommendations, Wish,
};
use recommender::Recommender;
use registry::{Head, Registry};
use search::SearchIndex;
use subject::Subject;
use texts::summary;

/// Skills that are recommended where no number is asked for.
const LIMIT: usize = 10;

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
    let project = Project::of(analysis);
    let mut recommender = Recommender {
        registry,
        index,
        wish,
        project: &project,
        installed: installed(registry, &wish.installed),
        candidates: Candidates::default(),
        stop,
    };
    let here = recommender.installed.clone();
    let here: Vec<Subject<'_>> = here.iter().map(|head| Subject::of(head)).collect();
    let missing: Vec<&Need> = project
        .needs
        .iter()
        .filter(|need| !here.iter().any(|subject| subject.is_for(need.area)))
        .collect();
    recommender.by_fit(&missing)?;
    if wish.mode == Mode::Exploratory {
        recommender.by_meaning()?;
    }
    recommender.by_pairing()?;
    recommender.by_author();
    let coverage = coverage(&project, &here);
    let skills = recommender.candidates.best(recommender.min_score());
    let mut gaps: Vec<Gap> = missing
        .iter()
        .filter(|need| need.severity > Severity::Low || wish.mode == Mode::Exploratory)
        .map(|need| recommender.gap(need, &skills))
        .collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.severity));
    Ok(Recommendations {
        summary: summary(&project, &gaps),
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

/// Share of the main technologies and needs of a codebase that installed skills cover. Areas
/// count by their severity.
fn coverage(project: &Project<'_>, installed: &[Subject<'_>]) -> f64 {
    let main = project
        .by_weight()
        .into_iter()
        .filter(project::Used::is_main);
    let technologies = main.map(|used| {
        let id = &used.item.technology_id;
        let is_there = installed.iter().any(|subject| subject.is_about(id));
        (1.0, is_there)
    });
    let areas = project.needs.iter().map(|need| {
        let is_there = installed.iter().any(|subject| subject.is_for(need.area));
        (need.severity.weight(), is_there)
    });
    let (mut all, mut there) = (0.0, 0.0);
    for (weight, is_there) in technologies.chain(areas) {
        all += weight;
        there += if is_there { weight } else { 0.0 };
    }
    if all > 0.0 { there / all } else { 0.0 }
}
