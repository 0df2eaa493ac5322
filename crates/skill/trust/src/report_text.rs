//! A report in words, for callers that were refused a skill.

use model::{Problem, shown};

use super::{Finding, Report, Severity, Verdict};

/// The most findings that a sentence names.
const MAX_NAMED_FINDINGS: usize = 3;
/// The most findings that are reported as problems.
const MAX_REPORTED_FINDINGS: usize = 16;

impl Report {
    /// Sums up the findings against a skill in a sentence that begins with its name.
    #[must_use]
    pub fn describe(&self, skill: &str) -> String {
        let verdict = match self.verdict {
            Verdict::Failed => "must not be used",
            Verdict::Warning => "should be looked at before anybody uses it",
            Verdict::Passed => "passed",
        };
        let against = self
            .findings
            .iter()
            .filter(|found| found.verdict() != Verdict::Passed);
        let against: Vec<String> = against.map(location).collect();
        let (named, more) = against.split_at(against.len().min(MAX_NAMED_FINDINGS));
        let more = match more.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{skill} {verdict}: {}{more}", named.join(", "))
    }

    /// Returns the worst findings as problems of files.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let problems = self
            .findings
            .iter()
            .take(MAX_REPORTED_FINDINGS)
            .map(|found| Problem {
                rule: found.rule.to_string(),
                file: found.path.clone(),
                line: found.line,
                message: shown(&format!("{}: {}", found.title, found.evidence), 300),
                severity: match found.severity {
                    Severity::Critical | Severity::High => model::Severity::Error,
                    Severity::Medium => model::Severity::Warning,
                    Severity::Low | Severity::Info => model::Severity::Info,
                },
            });
        problems.collect()
    }
}

fn location(found: &Finding) -> String {
    match (found.path.as_str(), found.line) {
        ("", _) => found.title.to_string(),
        (path, 0) => format!("{} ({})", found.title, shown(path, 80)),
        (path, line) => format!("{} ({}:{line})", found.title, shown(path, 80)),
    }
}
