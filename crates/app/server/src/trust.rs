//! What this server hands out to nobody, whoever publishes it.

use std::path::PathBuf;

use registry::{HoldPolicy, Tiers};
use serde::Deserialize;

/// What is trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustConfig {
    /// File of skills to block: see [`registry::Feed`]. It is taken in at the start, and
    /// when somebody asks for it.
    pub blocklist_feed: Option<PathBuf>,
    /// Which new versions wait for somebody's approval.
    pub hold: HoldPolicy,
    /// Where verified skills come from: ids, or beginnings of ids up to a `/`, such as
    /// `github/acme`.
    pub verified: Vec<String>,
    /// Known community sources, in the same way.
    pub community: Vec<String>,
}

impl TrustConfig {
    /// Whose skills are trusted how far.
    #[must_use]
    pub fn tiers(&self) -> Tiers {
        Tiers {
            verified: self.verified.clone(),
            community: self.community.clone(),
        }
    }
}
