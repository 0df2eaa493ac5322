//! How a caller names a skill and a version.

use std::fmt;

use super::{SkillId, VersionNumber};

/// A skill by its id or by its short name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `source/author/slug`.
    Id(SkillId),
    /// A slug or a name, to be looked up without case.
    Name(String),
}

impl Reference {
    /// What a caller wrote: an id where it has the form of one, else a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Name(text.to_owned()), Self::Id)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Which version of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum VersionSelector {
    /// The one its name resolves to.
    #[default]
    Active,
    /// By number, withdrawn or not.
    Number(VersionNumber),
    /// By semantic version, withdrawn or not.
    Semantic(semver::Version),
}

impl VersionSelector {
    /// `3` is a number, `1.2.0` a semantic version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse() {
            return VersionNumber::new(number).map(Self::Number);
        }
        text.parse().ok().map(Self::Semantic)
    }
}

impl fmt::Display for VersionSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Number(number) => number.fmt(f),
            Self::Semantic(version) => version.fmt(f),
        }
    }
}

impl From<VersionNumber> for VersionSelector {
    fn from(number: VersionNumber) -> Self {
        Self::Number(number)
    }
}
