//! The events of skills.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, Principal, SkillId, VersionNumber};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A version was published.
    Published,
    /// Another version became active.
    Activated,
    /// A version was withdrawn.
    Yanked,
    /// A withdrawn version was put back.
    Unyanked,
    /// A skill was deleted with all its versions.
    Deleted,
    /// A skill was put on the blocklist.
    Blocked,
    /// A skill was taken off the blocklist.
    Unblocked,
    /// A version that was handed out is held for review.
    Held,
    /// A version that was held was approved.
    Approved,
    /// A version that was held was rejected.
    Rejected,
    /// The active version was scanned by other rules, with another result.
    Scanned,
    /// A short name was given to the skill, or the skill gave one up.
    Named,
}

/// An event, stored in the same atomic write as its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// Skill it happened to.
    pub skill_id: SkillId,
    /// Version it happened to; none for the skill as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionNumber>,
    /// Semantic version of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_version: Option<semver::Version>,
    /// Digest of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Version that is active from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<VersionNumber>,
    /// The version is held for review from then on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// When it happened.
    pub time: Timestamp,
    /// The caller that did it.
    pub actor: Principal,
}
