//! What the operator's settings say of trust.

use std::sync::Arc;

use serde::Deserialize;

use super::{Audience, Claims, Head, Names, StorageLimits};
use model::{SkillId, TrustTier};

/// Which new versions wait for somebody's approval. Each holds what the ones before it hold.
/// There is none that holds nothing: what the scanner says nobody should get is handed out
/// when a person said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldPolicy {
    /// Those that the scanner says nobody should get.
    #[default]
    Failed,
    /// Those that it says a person should look at.
    Warning,
    /// Updates that bring a host, a power or a finding of weight that the version before
    /// did not have.
    Changes,
    /// All of them.
    All,
}

/// Where skills come from that are trusted further than others: ids, or beginnings of ids up
/// to a `/`, such as `github/acme`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Verified by the operator.
    pub verified: Vec<String>,
    /// Known community sources.
    pub community: Vec<String>,
}

impl Tiers {
    /// The tier of a skill. Nothing that it says of itself counts.
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

/// What publishing follows.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Names that not everybody may give.
    pub names: Names,
    /// Which versions are held.
    pub hold: HoldPolicy,
    /// Whose skills are trusted how far.
    pub tiers: Tiers,
    /// What of other skills may be told with what is said of one; none: all of them.
    pub audience: Option<Arc<dyn Audience>>,
    /// How much namespaces may hold at first: see [`super::Registry::set_storage_limits`].
    pub storage: StorageLimits,
    /// Whose namespaces become; none: they stay as they are.
    pub claims: Option<Arc<dyn Claims>>,
}

impl Head {
    /// Has the tier be what policy says.
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
