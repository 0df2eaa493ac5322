//! Areas of work that skills help with, and when a codebase asks for one.

use super::{Analysis, Fact};

/// How much a codebase asks for an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Some codebases like this do.
    Low,
    /// Most do.
    Medium,
    /// Every one does.
    High,
}

/// An area of work.
#[derive(Debug)]
pub struct Area {
    /// Its name.
    pub name: &'static str,
    /// What is looked for, to find skills of it.
    pub query: &'static str,
    /// Beginnings of words that speak of it.
    words: &'static [&'static str],
    /// How much a codebase asks for it; none: not at all.
    asks: fn(&Analysis) -> Option<Severity>,
}

impl Area {
    /// How much a codebase asks for it.
    #[must_use]
    pub fn asked_by(&self, analysis: &Analysis) -> Option<Severity> {
        (self.asks)(analysis)
    }

    /// One of the words speaks of it; they are folded.
    #[must_use]
    pub fn is_in(&self, words: &[String]) -> bool {
        words.iter().any(|word| {
            self.words.iter().any(|beginning| {
                // Short ones are whole words: `ci` begins too many others.
                word == beginning || beginning.len() > 3 && word.starts_with(beginning)
            })
        })
    }
}

fn has(analysis: &Analysis, fact: Fact) -> bool {
    analysis.shows(fact).is_some()
}

/// Asked for where there is something, the more where that is missing which shows
/// that it is taken care of.
fn unless(analysis: &Analysis, there: bool, taken_care_of: Fact) -> Option<Severity> {
    match (there, has(analysis, taken_care_of)) {
        (false, _) => None,
        (true, false) => Some(Severity::High),
        (true, true) => Some(Severity::Medium),
    }
}

fn has_code(analysis: &Analysis) -> bool {
    !analysis.stats.languages_detected.is_empty() || !analysis.stack.is_empty()
}

/// All areas, in the order in which they are told.
pub const AREAS: &[Area] = &[
    Area {
        name: "testing",
        query: "testing",
        words: &[
            "test",
            "tdd",
            "coverage",
            "e2e",
            "playwright",
            "cypress",
            "qa",
        ],
        asks: |analysis| has_code(analysis).then_some(Severity::High),
    },
    Area {
        name: "security",
        query: "security review",
        words: &[
            "secur",
            "vulnerab",
            "owasp",
            "threat",
            "pentest",
            "hardening",
        ],
        asks: |analysis| {
            let exposed = has(analysis, Fact::Backend) || has(analysis, Fact::Frontend);
            let asked = unless(analysis, exposed, Fact::SecurityScanning);
            asked.or(has_code(analysis).then_some(Severity::Medium))
        },
    },
    Area {
        name: "code-quality",
        query: "code review and refactoring",
        words: &["review", "refactor", "lint", "quality", "clean"],
        asks: |analysis| unless(analysis, has_code(analysis), Fact::Linting).map(at_most_medium),
    },
    Area {
        name: "documentation",
        query: "documentation",
        words: &["document", "docs", "readme", "changelog"],
        asks: |analysis| {
            unless(analysis, has_code(analysis), Fact::Documentation).map(at_most_medium)
        },
    },
    Area {
        name: "deployment",
        query: "deployment",
        words: &[
            "deploy",
            "docker",
            "kubernet",
            "terraform",
            "helm",
            "release",
            "rollout",
        ],
        asks: |analysis| {
            let runs = [
                Fact::Backend,
                Fact::Frontend,
                Fact::Docker,
                Fact::Deployment,
            ];
            runs.iter()
                .any(|fact| has(analysis, *fact))
                .then_some(Severity::Medium)
        },
    },
    Area {
        name: "ci",
        query: "continuous integration pipeline",
        words: &["ci", "cicd", "pipeline", "jenkins"],
        asks: |analysis| {
            unless(analysis, has_code(analysis), Fact::ContinuousIntegration).map(at_most_medium)
        },
    },
    Area {
        name: "database",
        query: "database migrations and queries",
        words: &[
            "database", "sql", "postgres", "mysql", "migrat", "schema", "mongo",
        ],
        asks: |analysis| has(analysis, Fact::Database).then_some(Severity::High),
    },
    Area {
        name: "accessibility",
        query: "accessibility",
        words: &["accessib", "a11y", "wcag"],
        asks: |analysis| has(analysis, Fact::Frontend).then_some(Severity::Medium),
    },
    Area {
        name: "api-design",
        query: "api design",
        words: &["api", "rest", "graphql", "grpc", "openapi"],
        asks: |analysis| {
            let asked = has(analysis, Fact::ApiDescription) || has(analysis, Fact::Backend);
            asked.then_some(Severity::Medium)
        },
    },
    Area {
        name: "observability",
        query: "monitoring and observability",
        words: &[
            "observab", "monitor", "logging", "tracing", "metrics", "alert",
        ],
        asks: |analysis| {
            unless(analysis, has(analysis, Fact::Backend), Fact::Observability).map(at_most_medium)
        },
    },
    Area {
        name: "performance",
        query: "performance optimization",
        words: &["perform", "optimi", "latency", "profil", "cach"],
        asks: |analysis| has_code(analysis).then_some(Severity::Low),
    },
    Area {
        name: "debugging",
        query: "debugging",
        words: &["debug", "troubleshoot", "diagnos"],
        asks: |analysis| has_code(analysis).then_some(Severity::Low),
    },
    Area {
        name: "machine-learning",
        query: "machine learning",
        words: &[
            "machine",
            "llm",
            "rag",
            "embedding",
            "training",
            "inference",
        ],
        asks: |analysis| has(analysis, Fact::MachineLearning).then_some(Severity::Medium),
    },
];

/// Work that others can do without for a while.
fn at_most_medium(severity: Severity) -> Severity {
    match severity {
        Severity::High => Severity::Medium,
        Severity::Medium | Severity::Low => Severity::Low,
    }
}
