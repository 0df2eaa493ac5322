//! Checks that the stored records are consistent.

use std::collections::HashSet;
use std::fs::File;

use super::numbers::VERSION_KEYS;
use super::repair::id_of;
use super::{DIGESTS, Error, Head, Registry, SEMANTICS, VERSIONS};
use executor::Stop;
use model::{Digest, SkillKey, VersionNumber};
use store::{Backup, Compacted, Compaction, StoreError, prefix};

/// The result of checking the registry.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// The number of skills checked.
    pub skills: u64,
    /// The number of versions checked.
    pub versions: u64,
    /// Contents that a version uses.
    pub contents: HashSet<Digest>,
    /// The inconsistencies, as sentences.
    pub damage: Vec<String>,
}

/// Returns the result of the work, or the reason why it was stopped.
fn stopped<T>(done: Result<T, StoreError>, stop: &Stop) -> Result<T, Error> {
    if matches!(done, Err(StoreError::Stopped)) {
        stop.check()?;
    }
    Ok(done?)
}

impl Registry {
    /// Rewrites the store without contents that no version uses, while others read and write.
    /// `progress` gets the number of records moved. Blocks.
    ///
    /// # Errors
    /// Another one is at work, something is damaged, the disk refuses, or so much is written
    /// that there is no end.
    pub fn compact(&self, stop: &Stop, mut progress: impl FnMut(u64)) -> Result<Compacted, Error> {
        // First, so that contents that are used from here on stay as well.
        let compaction = Compaction::begin(&self.inner.store)?;
        let audit = self.audit_until(stop)?;
        if let Some(damage) = audit.damage.into_iter().next() {
            return Err(Error::Unfit { damage });
        }
        let used = audit.contents;
        let done = compaction.run(
            |digest| used.contains(digest),
            |moved| {
                progress(moved);
                stop.check().map_err(|_| StoreError::Stopped)
            },
        );
        stopped(done, stop)
    }

    /// Takes a backup, while others read and write, in a file that has no name. Blocks.
    ///
    /// # Errors
    /// The store is damaged, or the disk refuses.
    pub fn backup(&self, stop: &Stop) -> Result<(File, Backup), Error> {
        let progress = |_| stop.check().map_err(|_| StoreError::Stopped);
        stopped(self.inner.store.backup_unnamed(progress), stop)
    }

    /// Checks every skill and version: is the active version there, has every version its
    /// number, its digest and its contents?
    ///
    /// Reads everything: for commands, not for requests.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn audit(&self) -> Result<Audit, Error> {
        self.audit_until(&Stop::never())
    }

    fn audit_until(&self, stop: &Stop) -> Result<Audit, Error> {
        let mut audit = Audit::default();
        let mut known = HashSet::new();
        for head in self.catalog().after("", None) {
            let key = head.id.key();
            if self.audit_skill(&key, stop, &mut audit)? {
                known.insert(key);
            }
        }
        self.audit_ownerless(&known, stop, &mut audit)?;
        Ok(audit)
    }

    /// Checks a skill. Others may write it meanwhile: what looks like damage then is checked
    /// again. Returns whether the skill exists.
    fn audit_skill(&self, key: &SkillKey, stop: &Stop, audit: &mut Audit) -> Result<bool, Error> {
        let live = || {
            let stored = self.stored_head(key)?;
            Ok::<_, Error>(stored.filter(|stored| !stored.value.deleted))
        };
        let mut head = live()?;
        while let Some(stored) = head {
            let (versions, damage) =
                self.inspect_skill(&stored.value, stop, &mut audit.contents)?;
            if !damage.is_empty() {
                head = live()?;
                // Every write of a version also writes the head: with the same head it is
                // damage, not a race.
                if head.as_ref().map(|head| head.revision) != Some(stored.revision) {
                    continue;
                }
            }
            audit.skills += 1;
            audit.versions += versions;
            audit.damage.extend(damage);
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the number of versions of a skill, and its inconsistencies.
    fn inspect_skill(
        &self,
        head: &Head,
        stop: &Stop,
        contents: &mut HashSet<Digest>,
    ) -> Result<(u64, Vec<String>), Error> {
        let store = &self.inner.store;
        let (mut damage, mut lacking) = (Vec::new(), Vec::new());
        let key = head.id.key();
        let mut numbers: HashSet<VersionNumber> = HashSet::new();
        for entry in store.scan(&VERSIONS, &prefix(&key)) {
            stop.check()?;
            let version = entry?.1.value;
            numbers.insert(version.number);
            let name = format!("version {} of '{}'", version.number, head.id);
            for file in &version.files {
                if contents.contains(&file.digest) {
                    continue;
                }
                if store.has_content(&file.digest)? {
                    contents.insert(file.digest);
                } else if !lacking.contains(&file.digest) {
                    lacking.push(file.digest);
                    damage.push(format!("{name} lacks the content of '{}'", file.path));
                }
            }
            if version.number > head.last_number {
                damage.push(format!("{name} is above the highest number given"));
            }
            let number = store.get(&DIGESTS, &(key.clone(), version.digest))?;
            if number.is_none_or(|number| number.value != version.number) {
                damage.push(format!("{name} is not found by its digest"));
            }
            let entry = store.get(&SEMANTICS, &(key.clone(), version.semantic.to_string()))?;
            if entry.is_none_or(|entry| entry.value.number != version.number) {
                damage.push(format!("{name} is not found by its semantic version"));
            }
        }
        if let Some(active) = head.active.filter(|active| !numbers.contains(active)) {
            let id = &head.id;
            damage.push(format!("the active version {active} of '{id}' is missing"));
        }
        Ok((numbers.len() as u64, damage))
    }

    /// Searches for versions of unknown skills.
    fn audit_ownerless(
        &self,
        known: &HashSet<SkillKey>,
        stop: &Stop,
        audit: &mut Audit,
    ) -> Result<(), Error> {
        let mut last = None;
        for entry in self.inner.store.scan(&VERSION_KEYS, b"") {
            stop.check()?;
            let (key, _) = entry?;
            let Some(id) = id_of(&key).filter(|id| last.as_ref() != Some(id)) else {
                continue;
            };
            let key = id.key();
            if !known.contains(&key) && self.stored_head(&key)?.is_none() {
                audit
                    .damage
                    .push(format!("versions of '{id}' belong to no skill"));
            }
            last = Some(id);
        }
        Ok(())
    }
}
