//! The result of grading a solution.

use serde::{Deserialize, Serialize};

/// The verdict on a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does what was asked.
    Pass,
    /// It does not.
    Fail,
    /// It could not be graded: it costs the learner nothing.
    Error,
    /// A person will review it.
    Pending,
}

/// The result of grading. The same exercise and solution give the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Graded {
    /// The verdict.
    pub verdict: Verdict,
    /// How much of it is right, 0 to 1, by the weights of the cases. 1 where it passes.
    pub score: f64,
    /// The feedback.
    pub feedback: Feedback,
    /// Whether some of it was stopped when its time was up.
    pub ran_out: bool,
}

/// The feedback for a learner. Of a hidden case it has nothing but the description.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    /// One or two sentences.
    pub summary: String,
    /// Case by case; empty where nothing was run.
    pub results: Vec<CaseResult>,
    /// Next steps.
    pub suggestions: Vec<String>,
    /// The good points of it.
    pub exemplary_aspects: Vec<String>,
    /// Possible improvements.
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
    /// The result that was expected; none where the case is hidden, or it passed.
    pub expected: Option<String>,
    /// The result; none where the case is hidden, or it passed.
    pub actual: Option<String>,
    /// The error, where there is no result.
    pub error: Option<String>,
    /// A place to look at.
    pub look_at: Option<String>,
}
