//! Makes the records of a salvaged directory consistent.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::head::SemanticEntry;
use super::scans::SCANS;
use super::yanks::YANKS;
use super::{DIGESTS, Error, HEADS, Head, Registry, SEMANTICS, ScanFacts, Summary, VERSIONS};
use model::{Digest, SkillId, SkillKey, Version, VersionNumber};
use store::{Batch, prefix};

/// Maximum number of lost versions of one skill that are named one by one.
const MAX_NAMED: usize = 100;

/// The number of changes at which a batch is committed.
const CHANGES_PER_BATCH: usize = 200;

/// The result of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The number of skills that are left.
    pub skills: u64,
    /// The number of whole versions that are left.
    pub versions: u64,
    /// The losses, as sentences.
    pub lost: Vec<String>,
}

/// A skill as its versions describe it.
#[derive(Default)]
struct VersionSummary {
    /// The highest.
    last: Option<Version>,
    /// The highest that is neither withdrawn nor held.
    newest: Option<Version>,
    /// What lists show of the scan of each.
    scans: BTreeMap<VersionNumber, ScanFacts>,
    active: Option<Version>,
    numbers: BTreeSet<VersionNumber>,
    /// The highest semantic version: a version may be lower than one before it.
    highest: Option<semver::Version>,
    /// The time at which the first of them was published.
    created_at: Option<Timestamp>,
}

impl VersionSummary {
    fn summary(&self, version: Option<&Version>) -> Option<Summary> {
        version.map(|of| Summary::new(of, self.scans.get(&of.number).copied()))
    }
}

impl Registry {
    /// Removes what a damaged directory no longer holds whole, and reports it.
    ///
    /// A version without one of its contents goes; where it was the active one, the highest
    /// that is left takes its place. A skill whose head is lost gets one from its versions.
    /// Numbers are not used again.
    ///
    /// Reads everything: for commands, not for requests.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be written.
    pub async fn repair(&self) -> Result<Repaired, Error> {
        let store = &self.inner.store;
        let mut ids: BTreeMap<SkillKey, Option<Head>> = BTreeMap::new();
        for entry in store.scan(&HEADS, b"") {
            let head = entry?.1.value;
            ids.insert(head.id.key(), Some(head));
        }
        for entry in store.scan(&VERSIONS, b"") {
            if let Some(id) = id_of(&entry?.0) {
                ids.entry(id.key()).or_default();
            }
        }
        for entry in store.scan(&DIGESTS, b"") {
            if let Some(id) = id_of(&entry?.0) {
                ids.entry(id.key()).or_default();
            }
        }
        let mut repaired = Repaired::default();
        for (key, head) in ids {
            self.repair_skill(&key, head, &mut repaired).await?;
        }
        Ok(repaired)
    }

    async fn repair_skill(
        &self,
        key: &SkillKey,
        head: Option<Head>,
        repaired: &mut Repaired,
    ) -> Result<(), Error> {
        let store = &self.inner.store;
        let id = head.as_ref().map_or_else(
            || key.as_str().parse::<SkillId>().ok(),
            |head| Some(head.id.clone()),
        );
        let Some(id) = id else { return Ok(()) };
        let mut kept = VersionSummary::default();
        let mut known = BTreeSet::new();
        let mut batch = Batch::new();
        let mut changes = 0;
        for entry in store.scan(&VERSIONS, &prefix(key)) {
            let version = entry?.1.value;
            let number = version.number;
            known.insert(number);
            let gone = head
                .as_ref()
                .is_some_and(|head| head.deleted || number < head.first_number);
            let lost = if gone {
                None
            } else {
                self.lost_file(&version)?
            };
            if let Some(path) = &lost {
                repaired.lost.push(format!(
                    "version {number} of '{id}' lacks the content of '{path}'"
                ));
            }
            if gone || lost.is_some() {
                batch.delete(&VERSIONS, &(key.clone(), number));
                changes += 1;
                continue;
            }
            changes += self.index(key, &version, &mut batch)?;
            repaired.versions += 1;
            kept.numbers.insert(number);
            kept.highest = kept.highest.max(Some(version.semantic.clone()));
            kept.created_at.get_or_insert(version.created_at);
            if head
                .as_ref()
                .is_some_and(|head| head.active == Some(number))
            {
                kept.active = Some(version.clone());
            }
            let inline = head.as_ref().map(|head| &head.inline);
            let yanked = inline.is_some_and(|inline| inline.contains_key(&number))
                || store.get(&YANKS, &(key.clone(), number))?.is_some();
            if let Some(scan) = store.get(&SCANS, &(key.clone(), number))? {
                kept.scans.insert(number, scan.value.facts());
            }
            if !yanked && self.stored_hold(key, number)?.is_none() {
                kept.newest = Some(version.clone());
            }
            kept.last = Some(version);
            if changes >= CHANGES_PER_BATCH {
                store.commit(std::mem::take(&mut batch)).await?;
                changes = 0;
            }
        }
        // Semantic versions of lost versions are not given again.
        kept.highest = kept.highest.max(self.highest_ever(key)?);
        // A digest that leads to a missing version would make its bytes count as published.
        for entry in store.scan(&DIGESTS, &prefix(key)) {
            let (rest, number) = entry.map(|(rest, stored)| (rest, stored.value))?;
            let digest = <[u8; 32]>::try_from(rest.as_slice()).map(Digest::from);
            if let Ok(digest) = digest
                && !kept.numbers.contains(&number)
            {
                batch.delete(&DIGESTS, &(key.clone(), digest));
                changes += 1;
            }
        }
        let before = head.clone();
        let after = head_of(&id, head, &kept, &known, repaired);
        repaired.skills += u64::from(after.as_ref().is_some_and(|head| !head.deleted));
        if let Some(after) = after.filter(|after| before.as_ref() != Some(after)) {
            let revision = store.get(&HEADS, key)?.map(|stored| stored.revision);
            self.put_head(&mut batch, revision, after)?;
            changes += 1;
        }
        if changes > 0 {
            store.commit(batch).await?;
        }
        Ok(())
    }

    /// Returns the first of its files whose content is missing.
    fn lost_file(&self, version: &Version) -> Result<Option<String>, Error> {
        for file in &version.files {
            if !self.inner.store.has_content(&file.digest)? {
                return Ok(Some(file.path.to_string()));
            }
        }
        Ok(None)
    }

    /// Restores the index records of a version. Returns the number of changes.
    fn index(&self, key: &SkillKey, version: &Version, batch: &mut Batch) -> Result<usize, Error> {
        let store = &self.inner.store;
        let mut changes = 0;
        let by_digest = (key.clone(), version.digest);
        let found = store.get(&DIGESTS, &by_digest)?.map(|stored| stored.value);
        if found != Some(version.number) {
            batch.put(&DIGESTS, &by_digest, &version.number);
            changes += 1;
        }
        let by_semantic = (key.clone(), version.semantic.to_string());
        let found = store.get(&SEMANTICS, &by_semantic)?;
        if found.is_none_or(|found| found.value.number != version.number) {
            let entry = SemanticEntry {
                number: version.number,
                digest: version.digest,
            };
            batch.put(&SEMANTICS, &by_semantic, &entry);
            changes += 1;
        }
        Ok(changes)
    }
}

/// Returns the head that fits the versions; none where nothing is left of the skill.
fn head_of(
    id: &SkillId,
    head: Option<Head>,
    kept: &VersionSummary,
    known: &BTreeSet<VersionNumber>,
    repaired: &mut Repaired,
) -> Option<Head> {
    let Some(mut head) = head else {
        let last = kept.last.as_ref()?;
        let first = kept.numbers.first()?;
        let active = kept.newest.as_ref().map(|newest| newest.number);
        let now = active.map_or_else(
            || "none is active now".to_owned(),
            |active| format!("version {active} is active now"),
        );
        repaired
            .lost
            .push(format!("the data of '{id}' other than its versions; {now}"));
        return Some(Head {
            first_number: *first,
            last_number: known.last().copied().unwrap_or(last.number),
            highest: kept.highest.clone().unwrap_or(last.semantic.clone()),
            active,
            summary: kept.summary(kept.newest.as_ref()),
            bytes: None,
            created_at: kept.created_at.unwrap_or(last.created_at),
            ..Head::new(id.clone(), last)
        });
    };
    if head.deleted {
        return Some(head);
    }
    // Counted anew when it is read.
    head.bytes = None;
    if let Some(last) = known.last().filter(|last| **last > head.last_number) {
        head.last_number = *last;
    }
    if let Some(highest) = &kept.highest {
        head.highest = head.highest.max(highest.clone());
    }
    let numbers = head.first_number.get()..=head.last_number.get();
    let missing: Vec<u32> = numbers
        .filter(|number| VersionNumber::new(*number).is_none_or(|number| !known.contains(&number)))
        .collect();
    for number in missing.iter().take(MAX_NAMED) {
        repaired.lost.push(format!("version {number} of '{id}'"));
    }
    if missing.len() > MAX_NAMED {
        let more = missing.len() - MAX_NAMED;
        repaired
            .lost
            .push(format!("{more} more versions of '{id}'"));
    }
    let lost = head.active.filter(|active| !kept.numbers.contains(active));
    if let Some(lost) = lost {
        head.active = kept.newest.as_ref().map(|newest| newest.number);
        head.summary = kept.summary(kept.newest.as_ref());
        repaired.lost.push(head.active.map_or_else(
            || format!("the active version {lost} of '{id}'; it has no other"),
            |now| format!("the active version {lost} of '{id}'; version {now} is active now"),
        ));
    } else if let Some(active) = &kept.active {
        head.summary = kept.summary(Some(active));
    }
    head.inline
        .retain(|number, _| kept.numbers.contains(number));
    Some(head)
}

/// Returns the skill of a key that begins with one.
pub(super) fn id_of(key: &[u8]) -> Option<SkillId> {
    let end = key.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(key.get(..end)?).ok()?.parse().ok()
}
