//! The request and the answer of a recommendation.

use std::sync::Arc;

use super::Severity;
use registry::Head;

/// The mode of recommendations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only skills for certain needs.
    #[default]
    Conservative,
    /// Also skills that may be useful.
    Exploratory,
}

/// A request for recommendations.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Skills at most; 0: 10.
    pub limit: usize,
    /// Leave out installed skills.
    pub exclude_installed: bool,
    /// The mode.
    pub mode: Mode,
    /// Ids or short names of installed skills.
    pub installed: Vec<String>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            limit: 0,
            exclude_installed: true,
            mode: Mode::default(),
            installed: Vec::new(),
        }
    }
}

/// The kind of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonKind {
    /// It is about a technology of the codebase.
    TechnologyMatch,
    /// No installed skill helps with what it helps with.
    GapCoverage,
    /// An installed skill goes with it.
    PopularPairing,
    /// Its author is trusted, or wrote an installed skill.
    AuthorReputation,
}

/// A reason to recommend a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The kind.
    pub kind: ReasonKind,
    /// The reason.
    pub text: String,
    /// How certain it is, from 0 to 1; the share it takes of what is left to 1.
    pub confidence: f64,
}

/// How much a skill would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// It is how code is written or tested with what the whole codebase is made of.
    Essential,
    /// It fits.
    Recommended,
    /// It may help.
    Optional,
}

/// A skill for the codebase.
#[derive(Debug, Clone)]
pub struct Recommendation {
    /// The skill.
    pub head: Arc<Head>,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// The reasons, the strongest first.
    pub reasons: Vec<Reason>,
    /// Categories that it is of, the main one first.
    pub areas: Vec<String>,
    /// How much it would help.
    pub priority: Priority,
}

/// An area that no installed skill helps with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The area.
    pub area: &'static str,
    /// The gap, as a sentence.
    pub text: String,
    /// Short names of skills that would help.
    pub suggested: Vec<String>,
    /// Its severity.
    pub severity: Severity,
}

/// Skills for a codebase.
#[derive(Debug, Clone)]
pub struct Recommendations {
    /// The skills, the best first.
    pub skills: Vec<Recommendation>,
    /// The codebase in a sentence, and its gaps.
    pub summary: String,
    /// The gaps, the worst first.
    pub gaps: Vec<Gap>,
    /// Share of the needs of the codebase that installed skills cover, from 0 to 1.
    pub coverage: f64,
    /// The installed skills that are known here.
    pub installed: Vec<Arc<Head>>,
}
