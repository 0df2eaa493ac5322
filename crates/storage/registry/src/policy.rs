//! The operator's settings of trust.

use std::sync::Arc;

use serde::Deserialize;

use super::{Audience, Claims, Head, Names, StorageLimits};
use model::{SkillId, TrustTier};
use trust::Verdict;

/// The new versions that wait for approval. Each policy holds what the ones before it hold. None
/// holds nothing: a version with the verdict `failed` is handed out only when a person approved
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldPolicy {
    /// Versions with the verdict `failed`.
    Failed,
    /// Versions with the verdict `warning` of skills that the operator does not trust: those of
    /// the tiers `community` and `unverified`.
    #[default]
    Untrusted,
    /// All versions with the verdict `warning`.
    Warning,
    /// Updates that bring a host, a power or a finding of weight that the version before
    /// did not have.
    Changes,
    /// All of them.
    All,
}

impl HoldPolicy {
    /// Returns whether a verdict alone holds a new version of a skill of this tier.
    pub(super) fn holds(self, verdict: Verdict, tier: TrustTier) -> bool {
        match verdict {
            Verdict::Passed => false,
            Verdict::Warning if self == Self::Untrusted => tier > TrustTier::Verified,
            Verdict::Warning => self >= Self::Warning,
            Verdict::Failed => true,
        }
    }

    /// Returns the policy for what nobody publishes: stored versions that are scanned again, and
    /// folders around an agent. What is served goes on with a warning, where the operator did not
    /// ask for more.
    pub(super) fn of_what_is_served(self) -> Self {
        match self {
            Self::Untrusted => Self::Failed,
            asked => asked,
        }
    }
}

/// The trusted sources of skills: ids, or beginnings of ids up to a `/`, such as `github/acme`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Verified by the operator.
    pub verified: Vec<String>,
    /// Known community sources.
    pub community: Vec<String>,
}

impl Tiers {
    /// Returns the tier of a skill, which nothing in the skill itself can raise.
    #[must_use]
    pub fn of(&self, id: &SkillId) -> TrustTier {
        let key = id.key();
        let is_in = |places: &[String]| {
            places.iter().any(|place| {
                let place = place.trim_end_matches('/').to_ascii_lowercase();
                let rest = key.as_str().strip_prefix(&place);
                !place.is_empty()
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        if id.is_builtin() {
            TrustTier::Official
        } else if is_in(&self.verified) {
            TrustTier::Verified
        } else if is_in(&self.community) {
            TrustTier::Community
        } else {
            TrustTier::Unverified
        }
    }
}

/// The policy of publishing.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Reserved names.
    pub names: Names,
    /// The versions that are held.
    pub hold: HoldPolicy,
    /// The trust in the sources of skills.
    pub tiers: Tiers,
    /// The skills that a text about another skill may mention; none: all of them.
    pub audience: Option<Arc<dyn Audience>>,
    /// The initial limits of namespaces: see [`super::Registry::set_storage_limits`].
    pub storage: StorageLimits,
    /// The owners that namespaces get; none: they stay as they are.
    pub claims: Option<Arc<dyn Claims>>,
}

impl Head {
    /// Sets the tier by policy.
    pub(super) fn set_tier(&mut self, tiers: &Tiers) {
        self.tier = tiers.of(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TrustTier::{Community, Unverified, Verified};

    #[test]
    fn the_tier_is_the_one_of_the_place_that_a_skill_comes_from() {
        let tiers = Tiers {
            verified: vec!["github/acme".to_owned(), "git/x/one/".to_owned()],
            community: vec!["GitHub".to_owned(), String::new()],
        };
        let of = |id: &str| tiers.of(&id.parse().expect("an id"));
        let found = [
            "github/Acme/a",
            "github/acme-2/a",
            "git/x/one",
            "git/x/one-2",
            "local/x/a",
        ]
        .map(of);
        assert_eq!(
            found,
            [Verified, Community, Verified, Unverified, Unverified]
        );
    }
}
