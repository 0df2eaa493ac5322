//! Checking that what is stored fits together.

use std::collections::HashSet;
use std::fs::File;

use super::{DIGESTS, Error, Registry, SEMANTICS, VERSIONS};
use crate::executor::Stop;
use crate::model::{Digest, VersionNumber};
use crate::store::{Backup, Compacted, Compaction, StoreError, prefix};

/// What checking the registry found.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Skills looked at.
    pub skills: u64,
    /// Versions looked at.
    pub versions: u64,
    /// Contents that a version uses.
    pub contents: HashSet<Digest>,
    /// What does not fit, as sentences.
    pub damage: Vec<String>,
}

/// What the work came to, or why it was stopped.
fn stopped<T>(done: Result<T, StoreError>, stop: &Stop) -> Result<T, Error> {
    if matches!(done, Err(StoreError::Stopped)) {
        stop.check()?;
    }
    Ok(done?)
}

impl Registry {
    /// Writes the store anew without contents that no version uses, while others read and
    /// write. `progress` is told how many records were moved. Blocks.
    ///
    /// # Errors
    /// Another one is at work, the store is damaged, the disk refuses, or so much is written
    /// that there is no end.
    pub fn compact(&self, stop: &Stop, mut progress: impl FnMut(u64)) -> Result<Compacted, Error> {
        // First, so that what is used from here on stays as well.
        let compaction = Compaction::begin(&self.inner.store)?;
        let mut used = HashSet::new();
        for entry in self.inner.store.scan(&VERSIONS, b"") {
            let version = entry?.1.value;
            stop.check()?;
            for file in &version.files {
                if used.insert(file.digest) && !self.inner.store.has_content(&file.digest)? {
                    return Err(Error::missing(&file.digest));
                }
            }
        }
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

    /// Looks at every skill and version: is the active version there, has every
    /// version its number, its digest and its contents?
    ///
    /// Reads everything: for commands, not for requests.
    ///
    /// # Errors
    /// A record is damaged.
    pub fn audit(&self) -> Result<Audit, Error> {
        let store = &self.inner.store;
        let mut audit = Audit::default();
        for head in self.catalog().after("", None) {
            audit.skills += 1;
            let key = head.id.key();
            let mut numbers: HashSet<VersionNumber> = HashSet::new();
            for entry in store.scan(&VERSIONS, &prefix(&key)) {
                let version = entry?.1.value;
                audit.versions += 1;
                numbers.insert(version.number);
                let name = format!("version {} of '{}'", version.number, head.id);
                for file in &version.files {
                    if audit.contents.insert(file.digest) && !store.has_content(&file.digest)? {
                        audit
                            .damage
                            .push(format!("{name} lacks the content of '{}'", file.path));
                    }
                }
                if version.number > head.last_number {
                    audit
                        .damage
                        .push(format!("{name} is above the highest number given"));
                }
                let number = store
                    .get(&DIGESTS, &(key.clone(), version.digest))?
                    .map(|stored| stored.value);
                if number != Some(version.number) {
                    audit
                        .damage
                        .push(format!("{name} is not found by its digest"));
                }
                let number = store
                    .get(&SEMANTICS, &(key.clone(), version.semantic.to_string()))?
                    .map(|stored| stored.value.number);
                if number != Some(version.number) {
                    audit
                        .damage
                        .push(format!("{name} is not found by its semantic version"));
                }
            }
            if let Some(active) = head.active.filter(|active| !numbers.contains(active)) {
                audit.damage.push(format!(
                    "the active version {active} of '{}' is missing",
                    head.id
                ));
            }
        }
        Ok(audit)
    }
}
