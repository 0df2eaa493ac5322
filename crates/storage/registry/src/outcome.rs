//! The outcome of a write: for its caller, for a repeat of it, and for the log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Caller, Described, Head, Hold};
use model::{Digest, Event, EventKind, Principal, SkillId, Version, VersionNumber, Yank};
use store::Revision;

/// A version and its state at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionState {
    /// Its number.
    pub number: VersionNumber,
    /// Its semantic version.
    pub semantic: semver::Version,
    /// Digest over all its files.
    pub digest: Digest,
    /// The time at which it was published.
    pub created_at: Timestamp,
    /// Its publisher.
    pub created_by: Principal,
    /// The changes, in the publisher's words.
    pub change_summary: String,
    /// Whether the skill's name resolves to it.
    pub active: bool,
    /// The reason of its withdrawal; none: it was not withdrawn.
    pub withdrawn: Option<String>,
    /// The reason of its hold; none: it is not held.
    #[serde(default)]
    pub held: Option<String>,
    /// Bytes of its files.
    pub size: u64,
    /// The number of its files.
    pub files: usize,
}

impl VersionState {
    pub(super) fn new(
        head: &Head,
        version: &Version,
        yank: Option<&Yank>,
        hold: Option<&Hold>,
    ) -> Self {
        Self {
            number: version.number,
            semantic: version.semantic.clone(),
            digest: version.digest,
            created_at: version.created_at,
            created_by: version.created_by.clone(),
            change_summary: version.change_summary.clone(),
            active: head.active == Some(version.number),
            withdrawn: yank.map(|yank| yank.reason.clone()),
            held: hold.map(Hold::words),
            size: version.size(),
            files: version.files.len(),
        }
    }
}

impl From<&Described> for VersionState {
    fn from(described: &Described) -> Self {
        let Described {
            head,
            version,
            yank,
            hold,
        } = described;
        Self::new(head, version, yank.as_ref(), hold.as_ref())
    }
}

/// Returns an event of a skill as a whole.
pub(super) fn skill_event(kind: EventKind, id: &SkillId, time: Timestamp, by: &Caller) -> Event {
    Event {
        kind,
        skill_id: id.clone(),
        version: None,
        semantic_version: None,
        digest: None,
        active: None,
        held: false,
        time,
        actor: by.principal.clone(),
    }
}

/// Logs a write that changed something as one line. Writes of the server itself are left out:
/// the skills that come with it are published before it logs its address, which its operator
/// expects as the first line.
pub(super) fn log(revision: Revision, event: &Event) {
    if event.actor == Principal::system() {
        return;
    }
    let number = |number: Option<VersionNumber>| number.map(VersionNumber::get);
    let what = match event.kind {
        EventKind::Published => "published a version",
        EventKind::Activated => "activated a version",
        EventKind::Yanked => "withdrew a version",
        EventKind::Unyanked => "put a version back",
        EventKind::Deleted => "deleted a skill",
        EventKind::Blocked => "blocked a skill",
        EventKind::Unblocked => "took a skill off the blocklist",
        EventKind::Held => "held a version for review",
        EventKind::Approved => "approved a version",
        EventKind::Rejected => "rejected a version",
        EventKind::Scanned => "rescanned a version",
        EventKind::Named => "moved a short name",
    };
    tracing::info!(
        skill = %event.skill_id,
        version = number(event.version),
        semantic_version = event.semantic_version.as_ref().map(tracing::field::display),
        active = number(event.active),
        actor = %event.actor,
        revision,
        "{what}"
    );
}
