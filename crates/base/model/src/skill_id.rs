//! Identity of a skill: `source/author/slug`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Hosts of repositories, with their names as sources in ids.
pub const HOSTS: &[(&str, &str)] = &[
    ("github.com", "github"),
    ("gitlab.com", "gitlab"),
    ("bitbucket.org", "bitbucket"),
    ("codeberg.org", "codeberg"),
];

/// Characters a segment of an id may have.
const MAX_SEGMENT_CHARS: usize = 128;

/// `source/author/slug`, as it was first written.
///
/// Each segment is `[A-Za-z0-9][A-Za-z0-9._-]*`, 128 characters at most. Two ids
/// are the same skill where their [`SkillKey`]s are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillId {
    text: Arc<str>,
    author_at: u16,
    slug_at: u16,
}

/// The form of an id that is compared: lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillKey(Arc<str>);

/// The location of a skill. Ordered: the first one wins a short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// `local/project/…`
    Project,
    /// `local/user/…`
    User,
    /// Everything else.
    Global,
}

impl SkillId {
    /// Source of the skills that come with the server.
    pub const BUILTIN: &'static str = "builtin";
    /// Source of the skills of this machine's folders.
    pub const LOCAL: &'static str = "local";

    /// The id of these three segments.
    ///
    /// # Errors
    /// A segment that is empty, too long, or has a character it may not have.
    pub fn new(source: &str, author: &str, slug: &str) -> Result<Self, SkillIdError> {
        format!("{source}/{author}/{slug}").parse()
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// First segment: where the skill comes from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.text[..usize::from(self.author_at) - 1]
    }

    /// Second segment: the author.
    #[must_use]
    pub fn author(&self) -> &str {
        &self.text[usize::from(self.author_at)..usize::from(self.slug_at) - 1]
    }

    /// `source/author`, the namespace that owns the skill.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.text[..usize::from(self.slug_at) - 1]
    }

    /// Third segment: the short name.
    #[must_use]
    pub fn slug(&self) -> &str {
        &self.text[usize::from(self.slug_at)..]
    }

    /// The form that is compared.
    #[must_use]
    pub fn key(&self) -> SkillKey {
        SkillKey(self.text.to_ascii_lowercase().into())
    }

    /// The location of the skill.
    #[must_use]
    pub fn location(&self) -> Location {
        let is_local = self.source().eq_ignore_ascii_case(Self::LOCAL);
        match self.author() {
            author if is_local && author.eq_ignore_ascii_case("project") => Location::Project,
            author if is_local && author.eq_ignore_ascii_case("user") => Location::User,
            _ => Location::Global,
        }
    }

    /// The skill comes with the server.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.source().eq_ignore_ascii_case(Self::BUILTIN)
    }
}

impl SkillKey {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key from text that is known to be one, as in a stored record.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }
}

/// A text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` is not a skill id: {reason}")]
pub struct SkillIdError {
    id: String,
    reason: String,
}

fn segment_error(segment: &str, name: &str) -> Option<String> {
    let Some(first) = segment.chars().next() else {
        return Some(format!("its {name} is empty"));
    };
    if !first.is_ascii_alphanumeric() {
        return Some(format!("its {name} starts with {first:?}"));
    }
    if segment.len() > MAX_SEGMENT_CHARS {
        return Some(format!(
            "its {name} has more than {MAX_SEGMENT_CHARS} characters"
        ));
    }
    segment
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"._-".contains(*c))
        .map(|bad| format!("its {name} has the character {bad:?}"))
}

impl FromStr for SkillId {
    type Err = SkillIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |reason: String| SkillIdError {
            id: super::shown(text, 120),
            reason,
        };
        // Four are enough to know that there are too many, however long the text is.
        let segments: Vec<&str> = text.splitn(4, '/').collect();
        let &[source, author, slug] = segments.as_slice() else {
            return Err(wrong(
                "it must have three segments, `source/author/slug`".to_owned(),
            ));
        };
        for (segment, name) in [(source, "source"), (author, "author"), (slug, "slug")] {
            if let Some(reason) = segment_error(segment, name) {
                return Err(wrong(reason));
            }
        }
        let at = |at: usize| u16::try_from(at).map_err(|_| wrong("it is too long".to_owned()));
        Ok(Self {
            author_at: at(source.len() + 1)?,
            slug_at: at(source.len() + author.len() + 2)?,
            text: text.into(),
        })
    }
}

impl TryFrom<String> for SkillId {
    type Error = SkillIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SkillId> for String {
    fn from(id: SkillId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for SkillKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> SkillId {
        text.parse().expect("an id")
    }

    #[test]
    fn an_id_gives_back_its_segments_and_is_compared_without_case() {
        let skill = id("GitHub/Acme/Refunds");
        assert_eq!(
            (skill.source(), skill.author(), skill.slug()),
            ("GitHub", "Acme", "Refunds")
        );
        assert_eq!(skill.namespace(), "GitHub/Acme");
        assert_eq!(skill.key(), id("github/acme/refunds").key());
        assert_eq!(skill.to_string(), "GitHub/Acme/Refunds");
    }

    #[test]
    fn the_location_comes_from_the_id() {
        assert_eq!(id("local/project/x").location(), Location::Project);
        assert_eq!(id("Local/User/x").location(), Location::User);
        assert_eq!(id("local/global/x").location(), Location::Global);
        assert_eq!(id("github/project/x").location(), Location::Global);
    }

    #[test]
    fn what_is_not_an_id_is_refused_with_the_character() {
        for bad in [
            "", "a", "a/b", "a/b/c/d", "a//c", "/b/c", "a/b/", ".a/b/c", "a/-b/c", "a/b/c d",
            "a/b/é",
        ] {
            assert!(bad.parse::<SkillId>().is_err(), "{bad:?} was accepted");
        }
        let error = "a/b/c d".parse::<SkillId>().expect_err("a space");
        assert_eq!(
            error.to_string(),
            "`a/b/c d` is not a skill id: its slug has the character ' '"
        );
        assert!(
            format!("a/b/{}", "c".repeat(129))
                .parse::<SkillId>()
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_id_or_refused_and_an_id_reads_back(text in "[A-Za-z0-9._/-]{0,30}|.{0,40}") {
            if let Ok(id) = text.parse::<SkillId>() {
                prop_assert_eq!(id.as_str(), text.as_str());
                prop_assert_eq!(format!("{}/{}/{}", id.source(), id.author(), id.slug()), text);
            }
        }
    }
}
