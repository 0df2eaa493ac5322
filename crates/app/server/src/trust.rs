//! Settings of trust: the blocklist, versions that are held for review, and trust tiers.

use std::path::PathBuf;

use registry::HoldPolicy;
use serde::Deserialize;

/// Settings of trust.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustConfig {
    /// File of skills to block: see [`registry::Feed`]. It is read at the start, and on
    /// request.
    pub blocklist_feed: Option<PathBuf>,
    /// Which new versions are held until they are approved.
    pub hold: HoldPolicy,
    /// Where verified skills come from: ids, or beginnings of ids up to a `/`, such as
    /// `github/acme`.
    pub verified: Vec<String>,
    /// Known community sources, in the same way.
    pub community: Vec<String>,
}
