//! Locks: a composition by the bytes it was made of.
//!
//! A lock is complete in itself: the server stores nothing, and its holder gets the
//! same composition as long as the versions exist. Its digest covers all of it, so
//! that a change of the lock is not taken for a change of the skills.

use std::fmt::Write as _;

use super::{Member, ToolPolicy};
use model::Digest;

/// A composition that is pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// How tools are put together.
    pub policy: ToolPolicy,
    /// The skills, in the order of their ids.
    pub entries: Vec<LockEntry>,
    /// Digest over the policy and the entries, as it is written.
    pub digest: String,
}

/// A skill in a lock, in the caller's spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockEntry {
    /// `source/author/slug`.
    pub skill_id: String,
    /// Number of the version.
    pub number: u32,
    /// Semantic version.
    pub semantic: String,
    /// Digest over all files of the version.
    pub digest: String,
    /// Position of the skill in the composition, from 0.
    pub position: u32,
}

impl Lock {
    /// The lock of members in their order.
    #[must_use]
    pub fn of(members: &[Member], policy: ToolPolicy) -> Self {
        let mut entries: Vec<_> = (0..)
            .zip(members)
            .map(|(position, member)| LockEntry {
                skill_id: member.id.to_string(),
                number: member.version.number.get(),
                semantic: member.version.semantic.to_string(),
                digest: member.version.digest.to_string(),
                position,
            })
            .collect();
        entries.sort_by_cached_key(|entry| entry.skill_id.to_ascii_lowercase());
        let digest = digest(policy, &entries).to_string();
        Self {
            policy,
            entries,
            digest,
        }
    }

    /// The digest that its entries have.
    #[must_use]
    pub fn computed(&self) -> Digest {
        digest(self.policy, &self.entries)
    }

    /// The entries in the order of the composition.
    #[must_use]
    pub fn in_order(&self) -> Vec<&LockEntry> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|entry| entry.position);
        entries
    }
}

/// SHA-256 over the policy and a line for each entry, its parts divided by NUL.
fn digest(policy: ToolPolicy, entries: &[LockEntry]) -> Digest {
    // A checksum and no signature: a caller who changes a lock on purpose can compute it anew, and
    // gets no more than by a request for the same versions.
    let mut text = format!("repertoire lock 1\n{}\n", policy.name());
    for entry in entries {
        let LockEntry {
            skill_id,
            number,
            semantic,
            digest,
            position,
        } = entry;
        // Writing to a text cannot fail.
        let _written = writeln!(
            text,
            "{skill_id}\0{number}\0{semantic}\0{digest}\0{position}"
        );
    }
    Digest::of(text.as_bytes())
}
