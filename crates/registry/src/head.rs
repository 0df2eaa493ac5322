//! The head of a skill: what changes about it.

use std::collections::BTreeMap;

use imbl::OrdSet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use model::{
    Digest, FilePath, MAX_STANDARD_DESCRIPTION_CHARS, SkillId, TrustTier, Version, VersionNumber,
    Yank, is_standard_name,
};

/// What is known of a skill without opening a version. Stored once a skill, and
/// kept in memory. It does not grow with the number of versions: each write of the
/// skill writes it anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The skill.
    pub id: SkillId,
    /// It was deleted; what is left keeps its numbers from being used again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The lowest number it can have: those below were deleted.
    pub first_number: VersionNumber,
    /// The highest number given so far.
    pub last_number: VersionNumber,
    /// The highest semantic version given so far.
    pub highest: semver::Version,
    /// The version that the name resolves to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<VersionNumber>,
    /// What a list shows; of the active version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Versions that were withdrawn, by the records of their own. Not stored with the
    /// head: the catalog keeps it.
    #[serde(skip)]
    pub(super) withdrawn: OrdSet<VersionNumber>,
    /// Withdrawals of before they had records of their own. The next write of the
    /// skill moves them there.
    #[serde(default, rename = "yanked", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) inline: BTreeMap<VersionNumber, Yank>,
    /// When the skill was first published.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Head {
    /// How far its origin is trusted. Only what comes with the server is
    /// official; nothing a skill says of itself counts.
    #[must_use]
    pub fn trust_tier(&self) -> TrustTier {
        if self.id.is_builtin() {
            TrustTier::Official
        } else {
            TrustTier::Unverified
        }
    }

    /// A version was withdrawn.
    #[must_use]
    pub fn is_withdrawn(&self, number: VersionNumber) -> bool {
        self.withdrawn.contains(&number)
    }

    /// Every version was withdrawn.
    #[must_use]
    pub fn is_all_withdrawn(&self) -> bool {
        self.highest_available().is_none()
    }

    /// The highest version that was not withdrawn. Looks at one version more than were
    /// withdrawn above it.
    #[must_use]
    pub fn highest_available(&self) -> Option<VersionNumber> {
        let mut withdrawn = self.withdrawn.iter().rev().map(|number| number.get());
        (self.first_number.get()..=self.last_number.get())
            .rev()
            .find(|number| withdrawn.next() != Some(*number))
            .and_then(VersionNumber::new)
    }

    /// Name and description of the active version keep to the Agent Skills
    /// standard, and the name is the slug.
    #[must_use]
    pub fn is_standard(&self) -> bool {
        self.summary.as_ref().is_some_and(|summary| {
            let description = summary.description.chars();
            let chars = description.take(MAX_STANDARD_DESCRIPTION_CHARS + 1).count();
            summary.name == self.id.slug()
                && is_standard_name(&summary.name)
                && summary.entry.is_skill_md()
                && (1..=MAX_STANDARD_DESCRIPTION_CHARS).contains(&chars)
        })
    }
}

/// What a list shows of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Name, as its front matter writes it.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Group it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// Semantic version.
    pub semantic: semver::Version,
    /// Its instructions: `SKILL.md`, nearly always.
    #[serde(
        default = "FilePath::skill_md",
        skip_serializing_if = "FilePath::is_skill_md"
    )]
    pub entry: FilePath,
    /// Words it is filed under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Technologies it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<String>,
}

impl From<&Version> for Summary {
    fn from(version: &Version) -> Self {
        let skill = &version.skill;
        Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            category: skill.category.clone(),
            semantic: version.semantic.clone(),
            entry: skill.entry.clone(),
            tags: skill.tags.clone(),
            technologies: skill.technologies.clone(),
        }
    }
}

/// Who has a semantic version. Kept when the skill is deleted, so that the
/// version never comes to mean other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SemanticEntry {
    /// The version.
    pub(super) number: VersionNumber,
    /// Its bytes.
    pub(super) digest: Digest,
}
