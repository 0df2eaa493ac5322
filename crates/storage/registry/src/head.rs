//! The head of a skill: the facts about it that change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use facets::{Facets, Inferred};
use imbl::{OrdMap, OrdSet};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trust::Verdict;
use trust::quality::{self, QualityFactors};

use super::short_names::Claimed;
use super::{LocalSkill, ScanFacts};
use model::{
    Block, Digest, FilePath, MAX_STANDARD_DESCRIPTION_CHARS, Severity, SkillId, TrustTier, Version,
    VersionNumber, Yank, is_standard_name,
};

fn untrusted() -> TrustTier {
    TrustTier::Unverified
}

/// The facts about a skill that need no version. Stored once per skill, and held in memory. It
/// does not grow with the number of versions, since each write of the skill rewrites it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The skill.
    pub id: SkillId,
    /// It was deleted; the rest of the head reserves its numbers.
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
    /// The facts for lists; of the active version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Versions that were withdrawn, which have records of their own. Not stored with the head:
    /// the catalog holds it.
    #[serde(skip)]
    pub(super) withdrawn: OrdSet<VersionNumber>,
    /// Versions that are held for review, which have records of their own. Not stored with the
    /// head: the catalog holds it.
    #[serde(skip)]
    pub(super) held: OrdSet<VersionNumber>,
    /// Its short names are claimed by records of their own. Not so: it was written before names
    /// had holders, and its claims are older than all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_claims: bool,
    /// Its claims to short names. Not stored with the head: the catalog holds them.
    #[serde(skip)]
    pub(super) claims: OrdMap<Arc<str>, Claimed>,
    /// The trust in its origin, by policy. Not stored with the head.
    #[serde(skip, default = "untrusted")]
    pub(super) tier: TrustTier,
    /// Withdrawals of before they had records of their own. The next write of the
    /// skill moves them there.
    #[serde(default, rename = "yanked", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) inline: BTreeMap<VersionNumber, Yank>,
    /// Bytes of the files of all its versions: see [`super::Holding`]. None: it was written by a
    /// server that did not count, and is counted when it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// Its entry on the blocklist. Not stored with the head: the catalog holds it, and shows
    /// such a head without an active version.
    #[serde(skip)]
    pub blocked: Option<Arc<Block>>,
    /// The skill of a folder on the caller's machine, with its files. Never stored.
    #[serde(skip)]
    pub(super) local: Option<Arc<LocalSkill>>,
    /// The time at which the skill was first published.
    pub created_at: Timestamp,
    /// The time at which it last changed.
    pub updated_at: Timestamp,
}

impl Head {
    /// The head of a skill whose only version this is, which is not active.
    pub(super) fn new(id: SkillId, version: &Version) -> Self {
        Self {
            id,
            deleted: false,
            first_number: version.number,
            last_number: version.number,
            highest: version.semantic.clone(),
            active: None,
            summary: None,
            withdrawn: OrdSet::new(),
            held: OrdSet::new(),
            has_claims: true,
            claims: OrdMap::new(),
            tier: untrusted(),
            inline: BTreeMap::new(),
            bytes: Some(0),
            blocked: None,
            local: None,
            created_at: version.created_at,
            updated_at: version.created_at,
        }
    }

    /// Returns the trust in its origin: see [`super::Tiers::of`].
    #[must_use]
    pub fn trust_tier(&self) -> TrustTier {
        self.tier
    }

    /// Returns the quality of its active version at a time, from 0 to 1; none where that was not
    /// scanned yet.
    #[must_use]
    pub fn quality(&self, now: Timestamp) -> Option<f64> {
        let base = self.summary.as_ref()?.quality?;
        Some(quality::score(base, self.standing(now)))
    }

    /// Returns the verdict of the scan of its active version; none where that was not scanned yet.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let summary = self.summary.as_ref()?;
        let verdict = summary.verdict.unwrap_or(Verdict::Passed);
        summary.quality.map(|_| verdict)
    }

    /// Returns whether the scan found something to review in its active version.
    #[must_use]
    pub fn is_warned(&self) -> bool {
        self.verdict() > Some(Verdict::Passed)
    }

    /// Returns the factors of its quality that are not in its files.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> QualityFactors {
        let days = now.duration_since(self.updated_at).as_hours() / 24;
        QualityFactors {
            age_days: Some(u32::try_from(days).unwrap_or(0)),
            tier: self.tier,
        }
    }

    /// Returns whether it is in a folder of the caller's machine, and in no store.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Returns the digest of the only version of a skill in a folder.
    #[must_use]
    pub fn local_digest(&self) -> Option<Digest> {
        self.local.as_ref().map(|local| local.digest())
    }

    /// Returns whether a version is held for review.
    #[must_use]
    pub fn is_held(&self, number: VersionNumber) -> bool {
        self.held.contains(&number)
    }

    /// Returns the last version, if it is held for review.
    #[must_use]
    pub fn last_held(&self) -> Option<VersionNumber> {
        self.held
            .get_max()
            .copied()
            .filter(|held| *held == self.last_number)
    }

    /// Returns whether a version was withdrawn.
    #[must_use]
    pub fn is_withdrawn(&self, number: VersionNumber) -> bool {
        self.withdrawn.contains(&number)
    }

    /// Returns whether every version was withdrawn.
    #[must_use]
    pub fn is_all_withdrawn(&self) -> bool {
        self.highest_available().is_none()
    }

    /// Returns the highest version that is neither withdrawn nor held. Visits all versions above
    /// it.
    #[must_use]
    pub fn highest_available(&self) -> Option<VersionNumber> {
        (self.first_number.get()..=self.last_number.get())
            .rev()
            .filter_map(VersionNumber::new)
            .find(|number| !self.withdrawn.contains(number) && !self.held.contains(number))
    }

    /// Returns whether agents are offered it: it has an active version, and its author does not
    /// reserve it for people.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        let summary = self.summary.as_ref();
        summary.is_some_and(|summary| !summary.disable_model_invocation)
    }

    /// Returns whether name and description of the active version follow the Agent Skills
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

/// The facts of a skill for lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name, as its front matter writes it.
    pub name: String,
    /// The description of what it does and when to use it.
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
    /// The words that it is tagged with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The technologies that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<String>,
    /// Its display name; empty where that is its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Only people may invoke it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_model_invocation: bool,
    /// Other groups it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_categories: Vec<String>,
    /// The share of the version in the quality of the skill; none where it was not scanned yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// The verdict of the scan that `quality` is from; none: it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The categories and technologies that are inferred from the version.
    #[serde(default)]
    // In the head: lists could not use it in the search index, and to infer it from files at
    // each start would take as long as an import.
    pub inferred: Facets,
    /// The number of warnings about its files; none: not counted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problems: Option<u32>,
    /// The skills that it requires, as its rules write them; none: they were not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Vec<String>>,
}

/// Returns the skills that a version requires, as its rules write them.
pub(super) fn required_by(version: &Version) -> Vec<String> {
    let requirements = version.skill.requirements();
    requirements.map(str::to_owned).collect()
}

/// Returns the number of warnings of a version, for its author.
pub(super) fn warnings(version: &Version) -> u32 {
    let problems = version.problems.iter();
    let warnings = problems.filter(|problem| problem.severity == Severity::Warning);
    u32::try_from(warnings.count()).unwrap_or(u32::MAX)
}

impl Summary {
    /// Returns the categories that its author states, as they are written.
    pub fn stated_categories(&self) -> impl Iterator<Item = &str> {
        let stated = std::iter::once(&self.category).chain(&self.other_categories);
        stated
            .map(String::as_str)
            .filter(|category| !category.is_empty())
    }

    /// Returns the inferred categories, unless its author states a known one.
    #[must_use]
    pub fn inferred_categories(&self) -> &[Inferred] {
        let is_known = |word| facets::category_id(word).is_some();
        if self.stated_categories().any(is_known) {
            return &[];
        }
        &self.inferred.categories
    }

    /// Returns the inferred technologies, unless its author states a known one.
    #[must_use]
    pub fn inferred_technologies(&self) -> &[Inferred] {
        let is_known = |word: &String| facets::technology_id(word).is_some();
        if self.technologies.iter().any(is_known) {
            return &[];
        }
        &self.inferred.technologies
    }

    /// Returns its categories, the main one first: those that its author states, as the ids that
    /// the words mean (others in lower case), else the inferred ones, each with its confidence.
    pub fn categories(&self) -> impl Iterator<Item = (Cow<'_, str>, f64)> {
        let stated = self
            .stated_categories()
            .map(|word| (meant_category(word), 1.0));
        stated.chain(self.inferred_categories().iter().map(guess))
    }

    /// Returns the technologies that it is about, in the same way.
    pub fn technologies_about(&self) -> impl Iterator<Item = (Cow<'_, str>, f64)> {
        let stated = self.technologies.iter();
        let stated = stated.map(|word| (meant_technology(word), 1.0));
        stated.chain(self.inferred_technologies().iter().map(guess))
    }
}

fn guess(inferred: &Inferred) -> (Cow<'_, str>, f64) {
    (Cow::Borrowed(&inferred.id), inferred.confidence())
}

/// Returns the id of the category that a word means; an unknown word is its own id.
pub(super) fn meant_category(word: &str) -> Cow<'static, str> {
    let id = facets::category_id(word).map(Cow::Borrowed);
    id.unwrap_or_else(|| Cow::Owned(word.to_lowercase()))
}

/// Returns the id of the technology that a word means; an unknown word is its own id.
pub(super) fn meant_technology(word: &str) -> Cow<'static, str> {
    let id = facets::technology_id(word).map(Cow::Borrowed);
    id.unwrap_or_else(|| Cow::Owned(word.to_lowercase()))
}

impl Summary {
    /// Makes the summary of a version with this scan.
    #[must_use]
    pub fn new(version: &Version, scan: Option<ScanFacts>) -> Self {
        let skill = &version.skill;
        let mut summary = Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            category: skill.category.clone(),
            semantic: version.semantic.clone(),
            entry: skill.entry.clone(),
            tags: skill.tags.clone(),
            technologies: skill.technologies.clone(),
            other_categories: skill.other_categories.clone(),
            inferred: facets::infer(skill, &version.files),
            problems: Some(warnings(version)),
            requires: Some(required_by(version)),
            quality: None,
            verdict: None,
            display_name: skill.display_name.clone(),
            disable_model_invocation: skill.disable_model_invocation,
        };
        if let Some(scan) = scan {
            summary.set_scan(scan);
        }
        summary
    }

    /// Takes over a scan of its version.
    pub(super) fn set_scan(&mut self, ScanFacts { quality, verdict }: ScanFacts) {
        self.quality = Some(quality);
        self.verdict = (verdict > Verdict::Passed).then_some(verdict);
    }
}

/// The owner of a semantic version. It stays when the skill is deleted, so that the version
/// never comes to mean other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SemanticEntry {
    /// The version.
    pub(super) number: VersionNumber,
    /// Its bytes.
    pub(super) digest: Digest,
}
