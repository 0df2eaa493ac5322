//! What is asked for, and what is answered.

use std::sync::Arc;

use super::Severity;
use registry::Head;

/// How daring recommendations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Only what is plainly asked for.
    #[default]
    Conservative,
    /// Also what may be.
    Exploratory,
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Skills at most; 0: 10.
    pub limit: usize,
    /// Leave out what is installed.
    pub exclude_installed: bool,
    /// How daring.
    pub mode: Mode,
    /// Ids or short names of what is installed.
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

/// What kind of a reason it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonKind {
    /// It is about a technology of the codebase.
    TechnologyMatch,
    /// No installed skill helps with what it helps with.
    GapCoverage,
    /// An installed skill goes with it.
    PopularPairing,
    /// Who wrote it is trusted, or wrote what is installed.
    AuthorReputation,
}

/// Why a skill is recommended.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// What kind it is.
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
    /// Why, the strongest reason first.
    pub reasons: Vec<Reason>,
    /// Categories that it is of, the main one first.
    pub areas: Vec<String>,
    /// How much it would help.
    pub priority: Priority,
}

/// What no installed skill helps with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The area.
    pub area: &'static str,
    /// What is missing.
    pub text: String,
    /// Short names of skills that would help.
    pub suggested: Vec<String>,
    /// How bad it is.
    pub severity: Severity,
}

/// Skills for a codebase.
#[derive(Debug, Clone)]
pub struct Recommendations {
    /// The skills, the best first.
    pub skills: Vec<Recommendation>,
    /// The codebase in a sentence, and what is missing.
    pub summary: String,
    /// What is missing, the worst first.
    pub gaps: Vec<Gap>,
    /// Share of what the codebase asks for that is installed, from 0 to 1.
    pub coverage: f64,
    /// What is installed, as far as it is known here.
    pub installed: Vec<Arc<Head>>,
}
