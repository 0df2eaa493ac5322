//! Short names: the skill that each leads to.
//!
//! * A skill claims its names, its slug and that of its front matter, when it first has an active
//!   version. Of the skills of a name the first claim holds it; the place of a claim is the
//!   revision of its record, which no later write of the skill changes.
//! * So no publish, withdrawal, block or delete moves a name. One whose holder is withdrawn, held,
//!   blocked or deleted is reserved: it leads to that skill, never to the next one.
//! * A name moves where its owner or the operator gives it to another skill, where the operator
//!   trusts one of its skills more than its holder, and where its holder is renamed.
//! * Skills on a person's machine, and those that come with the server, are before all others, and
//!   `local/project` and `local/user` reserve no name.
//!
//! Not here: other spellings of a name (`nearest`), and what a caller reads by one (`lookup`).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::repair::id_of;
use super::{Catalog, Error, HEADS, Head, Registry, yanks};
use model::{Digest, Location, Problem, SkillId, SkillKey, TrustTier};
use store::{Batch, Expect, Reader, Revision, Store, StoreError, Stored, Table, TableId, prefix};

/// Skills by short name.
pub(super) type Names = OrdMap<Arc<str>, OrdSet<Place>>;
/// The claims of a skill.
type Claims = OrdMap<Arc<str>, Claimed>;

// Records of their own: the place of a claim is the revision of its record, which the store gives
// in the commit itself, so that of two claims at the same time one is first.
pub(super) const CLAIMS: Table<(SkillKey, Digest), Claim> = Table::new(TableId::NameClaims);

/// The rule of the problem that another skill holds a name.
const SHADOWED: &str = "SHADOWED";

/// The claim of a skill to a short name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    /// The name, in lower case.
    pub(super) name: String,
    /// The trust with which the name was given to the skill; none: the skill claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given: Option<TrustTier>,
    /// The time at which the skill was first published, where it had the name before names had
    /// holders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Timestamp>,
}

/// The claim of a skill to a short name, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Claimed {
    /// Given to it with the trust of its last holder; the last gift first.
    Given(TrustTier, Reverse<Revision>),
    /// Its own, since before names had holders.
    Before(Timestamp),
    /// Its own, since this commit.
    At(Revision),
}

impl From<Stored<Claim>> for Claimed {
    fn from(stored: Stored<Claim>) -> Self {
        let Stored { revision, value } = stored;
        match (value.given, value.before) {
            (Some(tier), _) => Self::Given(tier, Reverse(revision)),
            (None, Some(time)) => Self::Before(time),
            (None, None) => Self::At(revision),
        }
    }
}

/// The order of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Rank {
    /// Comes with a shared server: no caller may hide it from the others.
    Shared,
    /// Is at this location, before what comes with the server.
    Personal(Location),
    /// Comes with the server.
    Own,
    /// Everything else.
    Other,
}

/// The place of a skill in the order of a short name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// It neither leads anywhere nor reserves the name.
    is_vacant: bool,
    rank: Rank,
    /// The operator's trust in the skill, or that with which it was given the name.
    pub(super) tier: TrustTier,
    /// Its owner gave the name up.
    has_none: bool,
    claim: Option<Claimed>,
    created_at: Timestamp,
    // Decides nothing between strangers: no two claims are equal but those from before there were
    // records, of skills that were published at the same moment.
    key: SkillKey,
}

/// Returns the short names of a skill: its slug and its name.
pub(super) fn names(head: &Head) -> Vec<Arc<str>> {
    let slug = head.id.slug().to_lowercase();
    let name = head
        .summary
        .as_ref()
        .map(|summary| summary.name.to_lowercase());
    let name = name.filter(|name| *name != slug);
    std::iter::once(slug).chain(name).map(Arc::from).collect()
}

impl Head {
    /// Adds the claims of a head that was written before names had holders.
    pub(super) fn claim_first(&mut self) {
        if !self.has_claims && self.active.is_some() {
            for name in names(self) {
                let first = Claimed::Before(self.created_at);
                self.claims.entry(name).or_insert(first);
            }
        }
    }

    /// Returns the names by which it is found or which it reserves.
    fn indexed_names(&self) -> Vec<Arc<str>> {
        let mut all = names(self);
        let claimed = self.claims.keys();
        let others: Vec<_> = claimed
            .filter(|name| !all.contains(name))
            .cloned()
            .collect();
        all.extend(others);
        all
    }
}

impl Catalog {
    fn rank(&self, id: &SkillId) -> Rank {
        match id.location() {
            _ if id.is_builtin() && self.is_shared => Rank::Shared,
            _ if id.is_builtin() => Rank::Own,
            Location::Global => Rank::Other,
            location => Rank::Personal(location),
        }
    }

    pub(super) fn place(&self, head: &Head, name: &str) -> Place {
        let rank = self.rank(&head.id);
        let claim = head.claims.get(name).copied();
        let reserves = claim.is_some() && matches!(rank, Rank::Shared | Rank::Other);
        Place {
            is_vacant: head.active.is_none() && !reserves,
            rank,
            tier: match claim {
                Some(Claimed::Given(tier, _)) => head.tier.min(tier),
                _ => head.tier,
            },
            has_none: claim.is_none(),
            claim,
            created_at: head.created_at,
            key: head.id.key(),
        }
    }

    pub(super) fn add_names(&mut self, head: &Head) {
        for name in head.indexed_names() {
            let place = self.place(head, &name);
            if !(head.deleted && place.is_vacant) {
                self.names.entry(name).or_default().insert(place);
            }
        }
    }

    pub(super) fn remove_names(&mut self, head: &Head) {
        for name in head.indexed_names() {
            let place = self.place(head, &name);
            if let Some(skills) = self.names.get_mut(&name) {
                skills.remove(&place);
                if skills.is_empty() {
                    self.names.remove(&name);
                }
            }
        }
    }

    /// Returns the skill that holds a short name, in any case; it may be withdrawn, blocked, or
    /// deleted.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<&Arc<Head>> {
        self.any(&self.names.get(name.to_lowercase().as_str())?.get_min()?.key)
    }

    /// Returns a head, also of a deleted skill that holds a name.
    pub(super) fn any(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.heads.get(key).or_else(|| self.gone.get(key))
    }

    /// Returns all heads, also those of deleted skills that hold a name.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Head>> {
        self.heads.values().chain(self.gone.values())
    }

    /// Returns the skills of a short name, its holder first, without deleted ones.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<Head>> {
        let skills = self.names.get(name.to_lowercase().as_str());
        let skills = skills.into_iter().flatten();
        skills.filter_map(|place| self.heads.get(&place.key))
    }

    /// Returns the shortest name that leads to a skill: its slug, or its id where another skill
    /// holds the slug.
    #[must_use]
    pub fn short_name<'a>(&self, head: &'a Head) -> &'a str {
        let slug = head.id.slug();
        match self.holder(slug) {
            Some(holder) if holder.id.key() == head.id.key() => slug,
            _ => head.id.as_str(),
        }
    }

    /// Returns the short names with a prefix, in lower case and in order, each with the live
    /// skill that holds it.
    pub fn names_with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &Arc<Head>)> {
        let prefix = prefix.to_lowercase();
        let start = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        self.names
            .range::<_, str>(start)
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .filter_map(|(name, skills)| {
                let holder = self.heads.get(&skills.get_min()?.key)?;
                holder.active.is_some().then_some((&**name, holder))
            })
    }

    /// Returns the holder of a name where a skill, which need not exist yet, shares the name and
    /// does not get it.
    fn shadowing(&self, id: &SkillId, name: &str) -> Option<&Arc<Head>> {
        let name = name.to_lowercase();
        let (key, rank) = (id.key(), self.rank(id));
        let places = self.names.get(name.as_str())?;
        let first = places.get_min().filter(|place| place.key != key)?;
        let is_there = self
            .any(&key)
            .is_some_and(|head| head.claims.contains_key(name.as_str()));
        let is_before = (first.rank, first.tier) <= (rank, self.tiers.of(id));
        let is_held = !first.is_vacant && (is_there || is_before);
        self.any(&first.key).filter(|_| is_held)
    }

    /// Returns the claims of the skills of a namespace that come before one of a skill elsewhere which
    /// somebody sees who does not see them. `also_sees`: all who see the one skill see the other.
    pub(super) fn names_before_others(
        &self,
        namespace: &str,
        also_sees: impl Fn(&SkillId, &SkillId) -> bool,
    ) -> Vec<(SkillId, String)> {
        let prefix = format!("{}/", namespace.to_ascii_lowercase());
        let is_inside = |key: &SkillKey| key.as_str().starts_with(&prefix);
        let first = SkillKey::from_stored(&prefix);
        let heads = [&self.heads, &self.gone].map(|heads| heads.range(first.clone()..));
        let heads = heads
            .into_iter()
            .flat_map(|heads| heads.take_while(|(key, _)| is_inside(key)));
        let claims = heads.flat_map(|(_, head)| head.claims.keys().map(move |name| (head, name)));
        let is_before = |head: &Head, name: &str| {
            let place = self.place(head, name);
            let skills = self.names.get(name);
            let takes = |other: &Place| {
                let other = self.any(&other.key);
                other.is_some_and(|other| !also_sees(&other.id, &head.id))
            };
            let mut others = skills
                .into_iter()
                .flat_map(|skills| skills.range(place.clone()..));
            others.any(|other| !is_inside(&other.key) && takes(other))
        };
        claims
            .filter(|(head, name)| is_before(head, name))
            .map(|(head, name)| (head.id.clone(), name.to_string()))
            .collect()
    }

    /// Returns the heads that `before` lacks or has otherwise, and those that it alone has.
    pub(super) fn changed_heads(&self, before: &Self) -> Vec<(SkillKey, Option<Arc<Head>>)> {
        use imbl::ordmap::DiffItem::{Add, Remove, Update};
        let changes = before.heads.diff(&self.heads);
        let changes = changes.chain(before.gone.diff(&self.gone));
        let keys = changes.map(|change| match change {
            Add(key, _) | Remove(key, _) | Update { new: (key, _), .. } => key,
        });
        keys.map(|key| (key.clone(), self.any(key).cloned()))
            .collect()
    }
}

/// Returns the claims of all skills.
pub(super) fn all_claims(store: &Store) -> Result<HashMap<SkillKey, Claims>, StoreError> {
    let mut found: HashMap<_, Claims> = HashMap::new();
    for entry in store.scan(&CLAIMS, b"") {
        let (key, stored) = entry?;
        if let Some(id) = id_of(&key) {
            let name = Arc::from(stored.value.name.as_str());
            found
                .entry(id.key())
                .or_default()
                .insert(name, stored.into());
        }
    }
    Ok(found)
}

/// Returns the claims of a skill after a commit, by those before it.
pub(super) fn claims_of(reader: Reader<'_>, head: &Head, before: Option<&Head>) -> Claims {
    let key = head.id.key();
    let before = before.map_or_else(Claims::new, |before| before.claims.clone());
    let all: Vec<_> = before.keys().cloned().chain(names(head)).collect();
    let claims = all.into_iter().filter_map(|name| {
        let at = (key.clone(), Digest::of(name.as_bytes()));
        let claim = match reader.get(&CLAIMS, &at) {
            Ok(stored) => stored.map(Claimed::from),
            // What the commit has written is in memory. The rest cannot be read while the store is
            // opened again, and is as it was.
            Err(_) => before.get(&name).copied(),
        };
        Some((name, claim?))
    });
    claims.collect()
}

impl Registry {
    /// Adds the new head to a batch, and the claims of its names. The catalog has it when it has
    /// the event of the batch.
    pub(super) fn put_head(
        &self,
        batch: &mut Batch,
        revision: Option<Revision>,
        mut head: Head,
    ) -> Result<(), Error> {
        let key = head.id.key();
        batch.expect(&HEADS, &key, revision.into());
        self.claim_names(batch, &key, &mut head)?;
        yanks::move_out(batch, &mut head);
        batch.put(&HEADS, &key, &head);
        Ok(())
    }

    fn claim_names(
        &self,
        batch: &mut Batch,
        key: &SkillKey,
        after: &mut Head,
    ) -> Result<(), Error> {
        let store = &self.inner.store;
        // A head with claims has no older ones to add, which spares the read.
        let before = if after.has_claims {
            None
        } else {
            store.get(&HEADS, key)?.map(|stored| stored.value)
        };
        let first = before.filter(|head| !head.has_claims && head.active.is_some());
        let owned = first.as_ref().map_or_else(Vec::new, names);
        after.has_claims = true;
        let is_live = after.active.is_some();
        let claimed = if is_live { names(after) } else { owned.clone() };
        for name in &claimed {
            let at = (key.clone(), Digest::of(name.as_bytes()));
            if store.get(&CLAIMS, &at)?.is_none() {
                let first = first.as_ref().filter(|_| owned.contains(name));
                let claim = Claim {
                    name: name.to_string(),
                    given: None,
                    before: first.map(|head| head.created_at),
                };
                batch.expect(&CLAIMS, &at, Expect::Absent);
                batch.put(&CLAIMS, &at, &claim);
            }
        }
        // A renamed skill gives its old name up, or one skill could reserve any number of them.
        for entry in store.scan(&CLAIMS, &prefix(key)) {
            let name = entry?.1.value.name;
            if is_live && claimed.iter().all(|claimed| **claimed != *name) {
                batch.delete(&CLAIMS, &(key.clone(), Digest::of(name.as_bytes())));
            }
        }
        Ok(())
    }

    /// Returns a problem for each name of a skill that another one holds, as far as the caller
    /// sees that one.
    pub(super) fn shadowed(&self, id: &SkillId, name: &str) -> Vec<Problem> {
        let catalog = self.catalog();
        let mut names = vec![id.slug(), name];
        names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        let held = names.into_iter().filter_map(|name| {
            let holder = &catalog.shadowing(id, name)?.id;
            let message = format!(
                "`{name}` leads to {holder}, which had this name before: this skill is found by its id, {id}"
            );
            Some(Problem::warning(SHADOWED, "", 0, message))
        });
        held.collect()
    }
}
