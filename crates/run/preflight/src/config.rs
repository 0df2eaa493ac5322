//! Settings of installs on the server's machine.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Policy;
use install::Method;
use model::TrustTier;

/// Settings of installs on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InstallConfig {
    /// The folder of skills that they are installed to; none: `~/.claude/skills`. It may
    /// begin with `~/`.
    pub directory: Option<PathBuf>,
    /// Folders below which callers may name another one. They may begin with `~/`.
    pub roots: Vec<PathBuf>,
    /// The method of an install.
    pub method: Method,
    /// Skills of a lower tier are not installed.
    pub min_trust_tier: TrustTier,
    /// Characters that all installed skills may have.
    pub budget_chars: u64,
}

impl Default for InstallConfig {
    fn default() -> Self {
        Self {
            directory: None,
            roots: Vec::new(),
            method: Method::default(),
            min_trust_tier: TrustTier::Unverified,
            budget_chars: 50_000,
        }
    }
}

impl InstallConfig {
    /// Resolves the settings for a data directory, and for the home of the server's user.
    #[must_use]
    pub fn policy(&self, data: &Path, person: Option<PathBuf>) -> Policy {
        let whole = |path: &PathBuf| match (path.strip_prefix("~"), &person) {
            (Ok(inside), Some(person)) => person.join(inside),
            _ => path.clone(),
        };
        let usual = || match &person {
            Some(person) => person.join(".claude/skills"),
            None => data.join("skills"),
        };
        Policy {
            directory: self.directory.as_ref().map_or_else(usual, whole),
            roots: self.roots.iter().map(whole).collect(),
            method: self.method,
            min_trust_tier: self.min_trust_tier,
            budget_chars: self.budget_chars,
            person,
        }
    }
}
