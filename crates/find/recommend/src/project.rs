//! A codebase from the view of skills: the weight of each technology, and its needs.

use std::collections::BTreeMap;

use codebase::{Analysis, Fact, ProjectKind, TechStackItem, TechnologyKind};
use technologies::table;

use super::needs::{Need, Shape, is_relational, needs};

/// How certain a technology must be.
const MIN_CONFIDENCE: f64 = 0.5;
/// The weight from which on a project is made of a technology.
const MIN_MAIN_WEIGHT: f64 = 0.8;
/// Platforms that are written for as for a language.
pub(super) const RUNTIMES: &[&str] = &["dotnet", "nodejs", "jvm", "deno", "bun"];

/// The factor of a language next to a framework.
const LANGUAGE_FACTOR: f64 = 0.88;
/// The factor of a language that a manifest names and no file is written in.
const UNWRITTEN_FACTOR: f64 = 0.7;
/// The factor of React in an app that no browser shows.
const NATIVE_REACT_FACTOR: f64 = 0.6;
/// The weight of SQL next to a database.
const SQL_FACTOR: f64 = 0.6;
/// The weight of the product that a project without code runs, and the facts of mere helpers.
const RUN_WEIGHT: f64 = 0.95;
const BESIDE: &[Fact] = &[
    Fact::Database,
    Fact::Docker,
    Fact::ContinuousIntegration,
    Fact::Linting,
];

/// A technology of the codebase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used<'a> {
    pub(super) item: &'a TechStackItem,
    /// The technology that goes with it, and is meant.
    pub(super) as_well: Option<&'static str>,
    /// How much of the project it is, from 0 to 1.
    pub(super) weight: f64,
}

impl Used<'_> {
    /// The project is made of it.
    pub(super) fn is_main(&self) -> bool {
        self.weight >= MIN_MAIN_WEIGHT
    }

    /// It has this to show.
    pub(super) fn has(&self, fact: Fact) -> bool {
        has_fact(&self.item.technology_id, fact)
    }
}

/// A codebase.
#[derive(Debug)]
pub(super) struct Project<'a> {
    pub(super) analysis: &'a Analysis,
    /// Its technologies, by id.
    pub(super) stack: BTreeMap<&'a str, Used<'a>>,
    /// Its needs.
    pub(super) needs: Vec<Need>,
}

/// A technology has this to show.
pub(super) fn has_fact(id: &str, fact: Fact) -> bool {
    table()
        .get(id)
        .is_some_and(|known| known.facts.contains(&fact))
}

/// The weight of a technology by its kind. Frameworks say most about the work on a codebase, tools
/// least.
fn weight(item: &TechStackItem) -> f64 {
    let has = |fact: Fact| has_fact(&item.technology_id, fact);
    // Kinds alone would not do: a framework for tests says less of the work than one that a
    // project is made of.
    let by_kind = match item.kind {
        TechnologyKind::Framework if has(Fact::Tests) => 0.7,
        TechnologyKind::Framework => 1.0,
        TechnologyKind::Language if item.confidence >= 0.8 => 0.85,
        TechnologyKind::Library => 0.75,
        TechnologyKind::Platform if has(Fact::Frontend) || has(Fact::Backend) => 0.85,
        TechnologyKind::Platform if RUNTIMES.contains(&item.technology_id.as_str()) => 0.85,
        TechnologyKind::Platform if has(Fact::Database) => 0.82,
        TechnologyKind::Platform if !has(Fact::Deployment) && !has(Fact::ContinuousIntegration) => {
            0.75
        }
        TechnologyKind::Language | TechnologyKind::Platform => 0.65,
        TechnologyKind::Tool if has(Fact::Deployment) || has(Fact::Database) => 0.8,
        TechnologyKind::Tool if has(Fact::Docker) => 0.6,
        TechnologyKind::Tool => 0.4,
    };
    by_kind * item.confidence.sqrt()
}

/// Technologies that come with the use of another.
const AS_WELL: &[(&str, &str)] = &[
    ("typescript", "javascript"),
    ("csharp", "dotnet"),
    ("fsharp", "dotnet"),
];

impl<'a> Project<'a> {
    /// A codebase that was analyzed.
    pub(super) fn of(analysis: &'a Analysis) -> Self {
        let known = analysis.stack.iter();
        let known = known.filter(|item| item.confidence >= MIN_CONFIDENCE);
        let used = known.map(|item| Used {
            item,
            as_well: None,
            weight: weight(item),
        });
        let mut stack: BTreeMap<&str, Used<'_>> = used
            .map(|used| (used.item.technology_id.as_str(), used))
            .collect();
        for (one, other) in AS_WELL {
            if let Some(used) = stack.get(one).copied() {
                let weight = used.weight * 0.9;
                let as_well = table().get(other).map(|known| known.name);
                let other = stack.entry(other).or_insert(Used { as_well, ..used });
                other.weight = other.weight.max(weight);
            }
        }
        // Skills for React in browsers are of less use where the app is native.
        if stack.contains_key("react-native")
            && !["nextjs", "gatsby", "remix", "vite"]
                .iter()
                .any(|id| stack.contains_key(id))
            && let Some(react) = stack.get_mut("react")
        {
            react.weight *= NATIVE_REACT_FACTOR;
        }
        let shape = Shape::of(analysis);
        // A framework says more than its language, and so does what the codebase is about.
        let frameworks = stack
            .values()
            .filter(|used| used.item.kind == TechnologyKind::Framework);
        let beside = frameworks.into_iter().any(Used::is_main) || shape.has_domain();
        let written = &analysis.stats.languages_detected;
        for used in stack.values_mut() {
            if used.item.kind == TechnologyKind::Language {
                used.weight *= if beside { LANGUAGE_FACTOR } else { 1.0 };
                let is_written = written.is_empty() || written.contains(&used.item.technology_id);
                used.weight *= if is_written || used.as_well.is_some() {
                    1.0
                } else {
                    UNWRITTEN_FACTOR
                };
            }
        }
        // Where there is no code, the project is what it runs.
        if shape.language().is_none() {
            for used in stack.values_mut() {
                let runs = match used.item.kind {
                    TechnologyKind::Platform => true,
                    TechnologyKind::Tool => used.has(Fact::Deployment),
                    _ => false,
                };
                if runs && !BESIDE.iter().any(|fact| used.has(*fact)) {
                    used.weight = used.weight.max(RUN_WEIGHT * used.item.confidence.sqrt());
                }
            }
        }
        // A codebase with a relational database has SQL in it.
        if shape.is_relational()
            && let Some(used) = stack
                .values()
                .find(|used| is_relational(used.item))
                .copied()
        {
            let as_well = table().get("sql").map(|known| known.name);
            let sql = stack.entry("sql").or_insert(Used { as_well, ..used });
            sql.weight = SQL_FACTOR;
        }
        let needs = needs(&shape);
        Self {
            analysis,
            stack,
            needs,
        }
    }

    /// All of it is made of this: a framework or a language, not one of a part alone.
    pub(super) fn is_all(&self, used: &Used<'_>) -> bool {
        let kind = self.analysis.project.kind;
        used.is_main()
            && used.item.confidence >= 0.9
            && matches!(
                used.item.kind,
                TechnologyKind::Framework | TechnologyKind::Language
            )
            && (kind != ProjectKind::Monorepo || !used.item.file.contains('/'))
    }

    /// A framework says what work on it is like.
    pub(super) fn has_framework(&self) -> bool {
        self.stack
            .values()
            .any(|used| used.item.kind == TechnologyKind::Framework && used.is_main())
    }

    /// Its technologies, the weightiest first.
    pub(super) fn by_weight(&self) -> Vec<Used<'a>> {
        // Technologies that only come along, as JavaScript with TypeScript, are not named.
        let itself = |used: &&Used<'a>| used.as_well.is_none();
        let mut used: Vec<Used<'a>> = self.stack.values().filter(itself).copied().collect();
        used.sort_by(|a, b| {
            let by_id = || a.item.technology_id.cmp(&b.item.technology_id);
            b.weight.total_cmp(&a.weight).then_with(by_id)
        });
        used
    }

    /// Its need of an area.
    pub(super) fn need(&self, area: &str) -> Option<&Need> {
        self.needs.iter().find(|need| need.area == area)
    }
}
