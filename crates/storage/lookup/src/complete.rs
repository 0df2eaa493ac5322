//! Completing the beginning of a name.
//!
//! Nothing is scanned: short names are an index of their own, and ids are
//! sought segment by segment, from one hit to behind all that begin like it.

use super::Lookup;
use model::{Reference, SkillKey};
use registry::{Catalog, Head};

/// The kind of name to complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameForm {
    /// A short name.
    Short,
    /// The next segment of an id.
    Id,
}

/// Names with a prefix, as they are written, in the order of their lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The names, each once.
    pub names: Vec<String>,
    /// There are more.
    pub has_more: bool,
}

impl Lookup {
    /// Returns up to `limit` names that begin with a prefix, compared without case. Only names
    /// that lead to an active version count.
    #[must_use]
    pub fn complete(&self, prefix: &str, form: NameForm, limit: usize) -> Completion {
        let catalog = self.registry.catalog();
        // One more than asked for shows whether there are more.
        let max = limit.saturating_add(1);
        let mut names: Vec<String> = match form {
            NameForm::Short => catalog
                .names_with_prefix(prefix)
                // `lookup` would read a name with the form of an id as an id.
                .filter(|(name, _)| matches!(Reference::parse(name), Reference::Name(_)))
                .map(|(name, winner)| spelled(name, winner))
                .take(max)
                .collect(),
            NameForm::Id => segments(&catalog, prefix).take(max).collect(),
        };
        let has_more = names.len() > limit;
        names.truncate(limit);
        Completion { names, has_more }
    }
}

/// Returns a name in lower case as the skill that wins it writes it.
fn spelled(name: &str, winner: &Head) -> String {
    let slug = winner.id.slug();
    let own = match &winner.summary {
        Some(summary) if !slug.eq_ignore_ascii_case(name) => &summary.name,
        _ => slug,
    };
    own.to_owned()
}

/// Returns the beginnings of ids up to the first slash after the prefix; whole ids where there
/// is none.
fn segments(catalog: &Catalog, prefix: &str) -> impl Iterator<Item = String> {
    let prefix = prefix.to_ascii_lowercase();
    let mut next = prefix.clone();
    std::iter::from_fn(move || {
        let head = catalog.live_from(&SkillKey::from_stored(&next))?;
        let (id, key) = (head.id.as_str(), head.id.key());
        let rest = key.as_str().strip_prefix(&prefix)?;
        let segment = match rest.split_once('/') {
            Some((segment, _)) => id.get(..=prefix.len() + segment.len())?,
            None => id,
        };
        next = end_of(&segment.to_ascii_lowercase());
        Some(segment.to_owned())
    })
}

/// Returns the lowest text above a segment and all keys that begin with it.
fn end_of(segment: &str) -> String {
    match segment.strip_suffix('/') {
        // `0` is the character after `/`: the whole subtree is skipped in one seek.
        Some(name) => format!("{name}0"),
        None => format!("{segment}\0"),
    }
}
