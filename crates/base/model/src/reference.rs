//! Names of skills and versions, as callers write them.

use std::fmt;

use super::{Digest, FilePath, SkillId, SkillUri, VersionNumber};

/// A skill by its id or by its short name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `source/author/slug`.
    Id(SkillId),
    /// A slug or a name, to be looked up without case.
    Name(String),
}

impl Reference {
    /// Reads the text of a caller: an id where it has the form of one, the address of a
    /// skill's instructions, or else a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        // Most are ids, of which no error need be made.
        if text.contains("://")
            && let Ok(uri) = text.trim().parse::<SkillUri>()
            && uri.version == VersionSelector::Active
            && uri
                .file
                .as_ref()
                .is_none_or(|file| file.as_str() == FilePath::SKILL_MD)
        {
            return uri.skill;
        }
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

/// Selects a version of a skill.
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

/// The version of a skill that a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionWish {
    /// Exactly this one, or the active one.
    Is(VersionSelector),
    /// Any of a range that was not withdrawn.
    Within(semver::VersionReq),
    /// The one with these bytes.
    Holds(Digest),
}

/// A skill and the version that is asked for: `refunds`, `refunds@1.2.0`,
/// `refunds@3`, `refunds@^1.2`, `refunds@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedReference {
    /// The skill.
    pub skill: Reference,
    /// The version.
    pub version: VersionWish,
    /// The text behind an `@` that is no version: the whole text was read as a name,
    /// since names may contain one.
    pub unread: Option<String>,
}

impl VersionWish {
    /// Reads the version of a text; none where it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // Before ranges: as a range, `1.2.0` means `^1.2.0` and takes 1.9 as well.
        if let Some(exact) = VersionSelector::parse(text) {
            return Some(Self::Is(exact));
        }
        if let Ok(digest) = text.parse() {
            return Some(Self::Holds(digest));
        }
        // A number that is none, such as 0, is no range either.
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        text.parse().ok().map(Self::Within)
    }
}

impl fmt::Display for VersionWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(version) => version.fmt(f),
            Self::Within(range) => range.fmt(f),
            Self::Holds(digest) => digest.fmt(f),
        }
    }
}

impl VersionedReference {
    /// Reads the text of a caller or a rule. It is split at its last `@` where a version
    /// follows.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let active = VersionWish::Is(VersionSelector::Active);
        let split = text.rsplit_once('@');
        let split = split.map(|(skill, version)| (skill, version, VersionWish::parse(version)));
        let (skill, version, unread) = match split {
            Some((skill, _, Some(version))) => (skill.trim(), version, None),
            Some((_, unread, None)) => (text, active, Some(unread.to_owned())),
            None => (text, active, None),
        };
        Self {
            skill: Reference::parse(skill),
            version,
            unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_carries_a_number_a_version_a_range_or_a_digest() {
        let digest = Digest::of(b"x");
        for (text, skill, version) in [
            ("refunds", "refunds", "active"),
            ("a/b/refunds", "a/b/refunds", "active"),
            ("refunds@3", "refunds", "3"),
            ("refunds@1.2.0", "refunds", "1.2.0"),
            ("a/b/refunds@^1.2", "a/b/refunds", "^1.2"),
            ("refunds@1.2", "refunds", "^1.2"),
            ("refunds @ >=1, <2", "refunds", ">=1, <2"),
            ("refunds@*", "refunds", "*"),
        ] {
            let read = VersionedReference::parse(text);
            assert_eq!(
                (
                    read.skill.to_string(),
                    read.version.to_string(),
                    read.unread
                ),
                (skill.to_owned(), version.to_owned(), None),
                "{text}"
            );
        }
        let read = VersionedReference::parse(&format!("refunds@{digest}"));
        assert_eq!(read.version, VersionWish::Holds(digest));
    }

    #[test]
    fn what_is_no_version_belongs_to_the_name() {
        for (text, unread) in [("me@home", "home"), ("refunds@", ""), ("refunds@0", "0")] {
            let read = VersionedReference::parse(text);
            assert_eq!(
                (read.skill, read.unread.as_deref()),
                (Reference::Name(text.to_owned()), Some(unread))
            );
        }
    }
}
