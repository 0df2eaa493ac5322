//! Findings in a skill's files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a problem matters. Ordered from bad to mild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The skill is refused.
    Error,
    /// The skill is accepted; some clients will not load it as written.
    Warning,
    /// The skill is accepted; its author may want to know.
    Info,
}

/// One finding: which rule, where, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Stable name of the rule, such as `description-missing`.
    pub rule: String,
    /// Path inside the skill. Empty: the skill as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Line from 1. 0: the file as a whole.
    #[serde(default)]
    pub line: u32,
    /// The problem, in words of the skill's author.
    pub message: String,
    /// How much it matters.
    pub severity: Severity,
}

impl Problem {
    /// A finding of a severity.
    #[must_use]
    pub fn new(
        severity: Severity,
        rule: &str,
        file: &str,
        line: usize,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            file: file.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            message: message.into(),
            severity,
        }
    }

    /// A finding that refuses the skill.
    #[must_use]
    pub fn error(rule: &str, file: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, rule, file, line, message)
    }

    /// A finding that is reported.
    #[must_use]
    pub fn warning(rule: &str, file: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, rule, file, line, message)
    }

    /// A finding its author may want to know.
    #[must_use]
    pub fn info(rule: &str, file: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, rule, file, line, message)
    }
}

impl fmt::Display for Problem {
    /// `SKILL.md:3: description-missing: …`, as compilers write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if self.line > 0 {
                write!(f, "{}:", self.line)?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}: {}", self.rule, self.message)
    }
}
