//! What a solution is worth.

use serde::{Deserialize, Serialize};

/// What came of grading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does what was asked.
    Pass,
    /// It does not.
    Fail,
    /// It could not be found out: it costs the learner nothing.
    Error,
    /// A person will look at it.
    Pending,
}

/// A solution, graded. The same exercise and solution give the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Graded {
    /// What came of it.
    pub verdict: Verdict,
    /// How much of it is right, 0 to 1, by the weights of the cases. 1 where it passes.
    pub score: f64,
    /// What to say of it.
    pub feedback: Feedback,
}

/// What a learner is told. Nothing in it comes from a case that is hidden, but its
/// description.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    /// One or two sentences.
    pub summary: String,
    /// Case by case; empty where nothing was run.
    pub results: Vec<CaseResult>,
    /// What to do next.
    pub suggestions: Vec<String>,
    /// What is good about it.
    pub exemplary_aspects: Vec<String>,
    /// What would be better.
    pub improvement_areas: Vec<String>,
}

impl Feedback {
    /// How many cases are right.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.passed).count()
    }

    /// How many cases are not.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.results.len() - self.passed()
    }
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseResult {
    /// Its description.
    pub name: String,
    /// Whether it is right.
    pub passed: bool,
    /// What should have come; none where the case is hidden, or it passed.
    pub expected: Option<String>,
    /// What came; none where the case is hidden, or it passed.
    pub actual: Option<String>,
    /// What went wrong, where nothing came at all.
    pub error: Option<String>,
    /// What to look at.
    pub look_at: Option<String>,
}
