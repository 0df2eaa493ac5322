//! All skills in memory, as an immutable snapshot.
//!
//! A snapshot shares its parts with the one before it, so that a commit costs
//! the depth of a tree, not the number of skills, and a reader holds no lock.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::facet::{Facet, facets};
use super::short_names::Names;
use super::{Head, Holding, Policy, Tiers};
use model::{Block, Event, EventKind, Location, SkillKey, TrustTier, VersionNumber};

/// All skills, by key, by short name and by facet.
///
/// A skill is live where it has an active version. Those that are not have no facet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    pub(super) heads: OrdMap<SkillKey, Arc<Head>>,
    /// Heads of deleted skills that hold a short name.
    pub(super) gone: OrdMap<SkillKey, Arc<Head>>,
    /// Skills by short name; the first of each set holds it.
    pub(super) names: Names,
    pub(super) facets: OrdMap<Facet, OrdSet<SkillKey>>,
    /// The blocklist.
    pub(super) blocks: OrdMap<SkillKey, Arc<Block>>,
    /// Skills of the store that those of folders hide, by the id that they share.
    pub(super) hidden: OrdMap<SkillKey, Arc<Head>>,
    /// The reasons why folders of these names, in lower case, are no skills.
    pub(super) refused: Arc<BTreeMap<String, String>>,
    /// The storage that namespaces use, by name in lower case.
    pub(super) holdings: OrdMap<String, Holding>,
    /// Versions that are held for review.
    held: OrdSet<(SkillKey, VersionNumber)>,
    /// The trust in the sources of skills.
    pub(super) tiers: Arc<Tiers>,
    /// More than one machine is served.
    pub(super) is_shared: bool,
}

/// A cursor over the skills of a namespace in a set.
struct Namespace<'a> {
    set: &'a OrdSet<SkillKey>,
    prefix: String,
    /// The lowest key that was not given.
    from: SkillKey,
}

impl<'a> Namespace<'a> {
    fn new(set: &'a OrdSet<SkillKey>, name: &str) -> Self {
        let prefix = format!("{name}/");
        Self {
            set,
            from: SkillKey::from_stored(&prefix),
            prefix,
        }
    }

    fn next(&mut self) -> Option<&'a SkillKey> {
        let key = self.set.range::<_, SkillKey>(&self.from..).next()?;
        let is_inside = key.as_str().starts_with(&self.prefix);
        self.from = SkillKey::from_stored(&format!("{key}\0"));
        is_inside.then_some(key)
    }

    /// Returns a key after its own, and not after any other.
    fn end(&self) -> SkillKey {
        // `0` is the character after `/`.
        SkillKey::from_stored(&format!("{}0", self.prefix.trim_end_matches('/')))
    }
}

/// Returns the skills of a set, one of each namespace in turn. It looks up only as many as are
/// taken.
fn in_turn(set: &OrdSet<SkillKey>) -> impl Iterator<Item = &SkillKey> {
    let mut found: VecDeque<Namespace<'_>> = VecDeque::new();
    let mut unseen = Some(SkillKey::from_stored(""));
    std::iter::from_fn(move || {
        // Each namespace is searched when the first round comes to it.
        if let Some(from) = unseen.take()
            && let Some(key) = set.range::<_, SkillKey>(&from..).next()
        {
            let namespace = key.as_str().rsplit_once('/').map_or("", |(name, _)| name);
            let mut namespace = Namespace::new(set, namespace);
            unseen = Some(namespace.end());
            let first = namespace.next();
            found.push_back(namespace);
            return first;
        }
        while let Some(mut namespace) = found.pop_front() {
            if let Some(key) = namespace.next() {
                found.push_back(namespace);
                return Some(key);
            }
        }
        None
    })
}

/// Returns the first key that may start with `prefix`, and the range of keys after `after`, or
/// from there on.
fn beginning(
    prefix: &str,
    after: Option<&SkillKey>,
) -> (SkillKey, (Bound<SkillKey>, Bound<SkillKey>)) {
    let first = SkillKey::from_stored(prefix);
    let start = match after {
        Some(after) if *after >= first => Bound::Excluded(after.clone()),
        _ => Bound::Included(first.clone()),
    };
    (first, (start, Bound::Unbounded))
}

impl Catalog {
    pub(super) fn build<E>(
        heads: impl Iterator<Item = Result<Head, E>>,
        blocks: OrdMap<SkillKey, Arc<Block>>,
        policy: &Policy,
    ) -> Result<Self, E> {
        let mut catalog = Self {
            blocks,
            tiers: Arc::new(policy.tiers.clone()),
            is_shared: policy.names.is_shared(),
            ..Self::default()
        };
        for head in heads {
            catalog.insert(head?);
        }
        Ok(catalog)
    }

    /// Returns an empty catalog with the same rules.
    pub(super) fn empty(&self) -> Self {
        Self {
            tiers: Arc::clone(&self.tiers),
            is_shared: self.is_shared,
            ..Self::default()
        }
    }

    /// Updates the blocklist.
    pub(super) fn set_block(&mut self, key: &SkillKey, block: Option<Block>) {
        match block {
            Some(block) => self.blocks.insert(key.clone(), Arc::new(block)),
            None => self.blocks.remove(key),
        };
    }

    /// Applies an event of a skill, with the head that it has now.
    pub(super) fn apply(&mut self, event: &Event, head: Option<Head>) {
        // Removed and inserted as a whole: names, facets and ranks of the old head are in many
        // indexes, and the new one may share none of them.
        let before = self.remove(&event.skill_id.key());
        let Some(mut head) = head else { return };
        // The head may be of what was published after a delete.
        if let Some(before) = before.filter(|_| event.kind != EventKind::Deleted) {
            head.withdrawn = before.withdrawn.clone();
            head.held = before.held.clone();
        }
        match (event.kind, event.version) {
            (EventKind::Yanked, Some(number)) => {
                head.withdrawn.insert(number);
            }
            (EventKind::Unyanked, Some(number)) => {
                head.withdrawn.remove(&number);
            }
            (EventKind::Approved, Some(number)) => {
                head.held.remove(&number);
            }
            (_, Some(number)) if event.held => {
                head.held.insert(number);
            }
            _ => {}
        }
        self.insert(head);
    }

    pub(super) fn insert(&mut self, mut head: Head) {
        let key = head.id.key();
        head.set_tier(&self.tiers);
        head.claim_first();
        head.blocked = self.blocks.get(&key).cloned();
        if head.blocked.is_some() {
            // So every index of live skills leaves it out.
            head.active = None;
            head.summary = None;
        }
        self.index(Arc::new(head));
    }

    /// Adds a head as it is.
    pub(super) fn index(&mut self, head: Arc<Head>) {
        let key = head.id.key();
        if head.deleted {
            if !head.claims.is_empty() {
                self.add_names(&head);
                self.gone.insert(key, head);
            }
            return;
        }
        for number in &head.held {
            self.held.insert((key.clone(), *number));
        }
        self.hold(&head);
        self.add_names(&head);
        for facet in facets(&head) {
            self.facets.entry(facet).or_default().insert(key.clone());
        }
        self.heads.insert(key, head);
    }

    pub(super) fn remove(&mut self, key: &SkillKey) -> Option<Arc<Head>> {
        if let Some(gone) = self.gone.remove(key) {
            self.remove_names(&gone);
        }
        let head = self.heads.remove(key)?;
        self.release(&head);
        for number in &head.held {
            self.held.remove(&(key.clone(), *number));
        }
        self.remove_names(&head);
        for facet in facets(&head) {
            if let Some(skills) = self.facets.get_mut(&facet) {
                skills.remove(key);
                if skills.is_empty() {
                    self.facets.remove(&facet);
                }
            }
        }
        Some(head)
    }

    /// Returns the number of skills on the blocklist.
    #[must_use]
    pub fn blocked(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the blocklist's entry of a skill.
    #[must_use]
    pub fn block(&self, key: &SkillKey) -> Option<&Arc<Block>> {
        self.blocks.get(key)
    }

    /// Returns the blocklist, by id, after a skill.
    pub(super) fn blocks_after(
        &self,
        after: Option<&SkillKey>,
    ) -> impl Iterator<Item = &Arc<Block>> {
        let (_, range) = beginning("", after);
        self.blocks.range(range).map(|(_, block)| block)
    }

    /// Returns the number of skills, those without an active version included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Returns whether there is no skill.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns the head of a skill.
    #[must_use]
    pub fn get(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.heads.get(key)
    }

    /// Returns the number of versions that are held for review.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the versions that are held for review, after one, by skill and number.
    pub fn held_after<'a>(
        &'a self,
        after: Option<&(SkillKey, VersionNumber)>,
    ) -> impl Iterator<Item = (Arc<Head>, VersionNumber)> + 'a {
        let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.clone()));
        let found = self.held.range((start, Bound::Unbounded));
        found.filter_map(|(key, number)| Some((Arc::clone(self.heads.get(key)?), *number)))
    }

    /// Returns the number of live skills.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live_sets().map(OrdSet::len).sum()
    }

    /// Returns the number of live skills that agents are offered.
    #[must_use]
    pub fn offered(&self) -> usize {
        let others = self.with_facet(&Facet::NotOffered);
        self.live() - others.map_or(0, OrdSet::len)
    }

    /// Returns the live skills by location, then by id.
    pub fn by_location(&self) -> impl Iterator<Item = &Arc<Head>> {
        self.live_sets()
            .flatten()
            .filter_map(|key| self.heads.get(key))
    }

    /// Returns the live skills, those that the operator trusts most first: of each tier one of
    /// each source and author in turn, so that the many skills of one author cannot push out those
    /// of others where not all fit, nor many strangers those that are trusted. It looks up only as
    /// many as are taken.
    pub fn in_turn(&self) -> impl Iterator<Item = &Arc<Head>> {
        use TrustTier::{Community, Official, Unverified, Verified};
        let tiers = [Official, Verified, Community, Unverified];
        let sets = tiers.map(|tier| self.with_facet(&Facet::Tier(tier)));
        let keys = sets.into_iter().flatten().flat_map(in_turn);
        keys.filter_map(|key| self.heads.get(key))
    }

    /// Returns the live skill with the lowest key that is not below `key`.
    #[must_use]
    pub fn live_from(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.live_sets()
            .filter_map(|set| set.range::<_, SkillKey>(key..).next())
            .min()
            .and_then(|key| self.heads.get(key))
    }

    /// Returns sets of which exactly one has each live skill.
    fn live_sets(&self) -> impl Iterator<Item = &OrdSet<SkillKey>> {
        [Location::Project, Location::User, Location::Global]
            .into_iter()
            .filter_map(|location| self.with_facet(&Facet::Location(location)))
    }

    /// Returns the live skills whose keys come after `after` and start with `prefix`, in order.
    pub fn live_after<'a>(
        &'a self,
        prefix: &str,
        after: Option<&SkillKey>,
    ) -> impl Iterator<Item = &'a Arc<Head>> {
        let (first, range) = beginning(prefix, after);
        let mut sets: Vec<_> = self
            .live_sets()
            .map(|set| set.range(range.clone()).peekable())
            .collect();
        // Each skill is in one of the few sets, so the lowest of their next keys is next.
        let merged = std::iter::from_fn(move || {
            let next = |set: &mut std::iter::Peekable<_>| set.peek().copied();
            let lowest = sets.iter_mut().filter_map(next).min()?;
            sets.iter_mut().find_map(|set| set.next_if_eq(&lowest))
        });
        merged
            .take_while(move |key: &&SkillKey| key.as_str().starts_with(first.as_str()))
            .filter_map(|key| self.heads.get(key))
    }

    /// Returns the skills whose keys come after `after` and start with `prefix`, in order.
    pub fn after<'a>(
        &'a self,
        prefix: &str,
        after: Option<&SkillKey>,
    ) -> impl Iterator<Item = &'a Arc<Head>> {
        let (first, range) = beginning(prefix, after);
        self.heads
            .range(range)
            .take_while(move |(key, _)| key.as_str().starts_with(first.as_str()))
            .map(|(_, head)| head)
    }

    /// Returns the keys of the skills that have a facet.
    #[must_use]
    pub fn with_facet(&self, facet: &Facet) -> Option<&OrdSet<SkillKey>> {
        self.facets.get(facet)
    }
}
