//! Patterns of skills by their ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::SkillId;

/// Skills by id: `source/author/slug`, `source/author/*` or `source/*`. Compared
/// without case, as ids are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillPattern(Pattern);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Pattern {
    One(SkillId),
    Author { source: String, author: String },
    Source(String),
}

/// A text is no pattern of skills.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not `source/author/slug`, `source/author/*` or `source/*`")]
pub struct PatternError(String);

impl SkillPattern {
    /// The pattern means this skill.
    #[must_use]
    pub fn covers(&self, skill: &SkillId) -> bool {
        match &self.0 {
            Pattern::One(id) => id.key() == skill.key(),
            Pattern::Author { source, author } => {
                skill.source().eq_ignore_ascii_case(source)
                    && skill.author().eq_ignore_ascii_case(author)
            }
            Pattern::Source(source) => skill.source().eq_ignore_ascii_case(source),
        }
    }

    /// The pattern means skills of a namespace, `source/author`.
    #[must_use]
    pub fn is_about(&self, namespace: &str) -> bool {
        let (source, author) = namespace.split_once('/').unwrap_or((namespace, ""));
        let is = |of_source: &str, of_author: Option<&str>| {
            source.eq_ignore_ascii_case(of_source)
                && of_author.is_none_or(|of_author| author.eq_ignore_ascii_case(of_author))
        };
        match &self.0 {
            Pattern::One(id) => is(id.source(), Some(id.author())),
            Pattern::Author { source, author } => is(source, Some(author)),
            Pattern::Source(source) => is(source, None),
        }
    }
}

impl FromStr for SkillPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError(text.to_owned());
        // A segment is right where an id with it is.
        let right = |source: &str, author: &str| SkillId::new(source, author, "x").is_ok();
        let segments: Vec<_> = text.split('/').collect();
        let pattern = match segments.as_slice() {
            [source, "*"] if right(source, "x") => Pattern::Source((*source).to_owned()),
            [source, author, "*"] if right(source, author) => Pattern::Author {
                source: (*source).to_owned(),
                author: (*author).to_owned(),
            },
            _ => Pattern::One(text.parse().map_err(|_| wrong())?),
        };
        Ok(Self(pattern))
    }
}

impl TryFrom<String> for SkillPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<SkillPattern> for String {
    fn from(pattern: SkillPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for SkillPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::One(id) => f.write_str(id.as_str()),
            Pattern::Author { source, author } => write!(f, "{source}/{author}/*"),
            Pattern::Source(source) => write!(f, "{source}/*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_a_skill_or_all_of_an_author_or_of_a_source() {
        let covered = |pattern: &str| {
            let pattern: SkillPattern = pattern.parse().expect("a pattern");
            ["acme/ops/a", "ACME/Ops/b", "acme/dev/a", "acm/ops/a"]
                .map(|id| pattern.covers(&id.parse().expect("an id")))
        };
        assert_eq!(covered("acme/ops/A"), [true, false, false, false]);
        assert_eq!(covered("Acme/ops/*"), [true, true, false, false]);
        assert_eq!(covered("acme/*"), [true, true, true, false]);
        for text in ["acme/ops/a", "acme/ops/*", "acme/*"] {
            let pattern: SkillPattern = text.parse().expect("a pattern");
            assert_eq!(pattern.to_string(), text);
        }
        for wrong in [
            "",
            "*",
            "acme",
            "*/*",
            "acme/*/a",
            "a/b/c/d",
            "acme/o*/x",
            "a/b/",
            "/*",
            "a//*",
        ] {
            let error = wrong.parse::<SkillPattern>().expect_err("a refusal");
            assert!(error.to_string().contains(&format!("`{wrong}`")), "{error}");
        }
    }
}
