//! Numbers of skills by source and by tier.

use super::{Catalog, Facet};
use model::TrustTier;

impl Catalog {
    /// Returns the number of skills with an active version of each source, the first segment of
    /// their ids, in lower case and in order.
    pub fn by_source(&self) -> impl Iterator<Item = (&str, usize)> {
        let sources = self.facets.range(Facet::Source(String::new())..);
        sources.map_while(|(facet, skills)| match facet {
            Facet::Source(source) => Some((source.as_str(), skills.len())),
            _ => None,
        })
    }

    /// Returns the number of skills with an active version of a tier.
    #[must_use]
    pub fn in_tier(&self, tier: TrustTier) -> usize {
        self.with_facet(&Facet::Tier(tier))
            .map_or(0, imbl::OrdSet::len)
    }
}
