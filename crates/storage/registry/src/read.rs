//! Reading: heads, versions, contents.
//!
//! [`Registry::version`] is where a version is handed out: what is blocked or held is
//! refused there, and read by its reviewers alone (`in_review`).

use std::sync::Arc;

use super::scans::SCANS;
use super::{Error, Head, Registry, SEMANTICS, Summary, VERSIONS};
use executor::Kind;
use model::{FileEntry, SkillId, Version, VersionNumber, VersionSelector};
use store::StoreError;

impl Registry {
    /// The head of a skill that exists, whether or not a version is active.
    ///
    /// # Errors
    /// There is no such skill.
    pub fn head(&self, id: &SkillId) -> Result<Arc<Head>, Error> {
        let catalog = self.catalog();
        let head = catalog.get(&id.key()).cloned();
        head.ok_or_else(|| catalog.not_found(id.as_str()))
    }

    /// Returns a version of a skill.
    ///
    /// # Errors
    /// There is no such version, or none is active, or its record is damaged; the skill is
    /// blocked, or the version held for review.
    pub fn version(&self, head: &Head, selector: &VersionSelector) -> Result<Arc<Version>, Error> {
        // First: the catalog shows a blocked skill without an active version, which would be the
        // wrong error.
        if let Some(block) = &head.blocked {
            return Err(Error::blocked(block));
        }
        if *selector == VersionSelector::Active && head.active.is_none() {
            return Err(self.none_active(head));
        }
        let number = self.number(head, selector)?;
        if head.is_held(number) {
            return Err(self.held(head, number));
        }
        self.any_version(head, number)
    }

    /// Returns the number of a version; where none is active, `Active` is the highest.
    pub(super) fn number(
        &self,
        head: &Head,
        selector: &VersionSelector,
    ) -> Result<VersionNumber, Error> {
        let not_found = || Error::no_version(head, selector.clone());
        let number = match selector {
            VersionSelector::Active => head.active.unwrap_or(head.last_number),
            VersionSelector::Number(number) => *number,
            VersionSelector::Semantic(version) if head.local.is_some() => {
                let local = head.local.as_ref().map(|local| &local.version);
                let found = local.filter(|local| local.semantic == *version);
                found.ok_or_else(not_found)?.number
            }
            VersionSelector::Semantic(version) => {
                let key = (head.id.key(), version.to_string());
                let entry = self.inner.store.get(&SEMANTICS, &key)?;
                entry.ok_or_else(not_found)?.value.number
            }
        };
        if (head.first_number..=head.last_number).contains(&number) {
            Ok(number)
        } else {
            Err(not_found())
        }
    }

    /// Returns the version of a skill that others are compared with: the active one, else the
    /// last, also where that is held or withdrawn, or the skill is blocked. Nothing of it may be
    /// handed out.
    ///
    /// # Errors
    /// Its record is damaged, or the skill was deleted meanwhile.
    pub fn to_compare(&self, head: &Head) -> Result<Arc<Version>, Error> {
        self.any_version(head, head.active.unwrap_or(head.last_number))
    }

    /// Returns a version of a skill, also one that is held or of a blocked skill: for callers
    /// that hand out nothing of it.
    pub(super) fn any_version(
        &self,
        head: &Head,
        number: VersionNumber,
    ) -> Result<Arc<Version>, Error> {
        let not_found = || Error::no_version(head, number.into());
        // A version that was deleted may still be in the cache.
        if !(head.first_number..=head.last_number).contains(&number) {
            return Err(not_found());
        }
        if let Some(local) = &head.local {
            return Ok(Arc::clone(&local.version));
        }
        let key = (head.id.key(), number);
        // Versions never change, so the cache is never stale; the range of the head covers
        // deletions.
        if let Some(version) = self.inner.versions.get(&key) {
            return Ok(version);
        }
        let stored = self.inner.store.get(&VERSIONS, &key)?;
        let version = Arc::new(stored.ok_or_else(not_found)?.value);
        self.inner.versions.insert(key, Arc::clone(&version));
        Ok(version)
    }

    /// Returns the error for a name that leads to no version.
    pub(super) fn none_active(&self, head: &Head) -> Error {
        match (head.highest_available(), head.held.get_max()) {
            (None, Some(number)) => self.held(head, *number),
            _ => Error::none_active(head),
        }
    }

    /// Returns the summary of a skill whose active version this is.
    pub(super) fn summary(&self, id: &SkillId, version: &Version) -> Result<Summary, Error> {
        let stored = self.inner.store.get(&SCANS, &(id.key(), version.number))?;
        let scan = stored.map(|stored| stored.value.facts());
        Ok(Summary::new(version, scan))
    }

    /// The same of a version by its number.
    pub(super) fn summary_of(&self, head: &Head, number: VersionNumber) -> Result<Summary, Error> {
        let version = self.any_version(head, number)?;
        self.summary(&head.id, &version)
    }

    /// Returns the bytes of a file of a version, checked against its digest. Blocks.
    ///
    /// # Errors
    /// The content is damaged.
    pub fn content(&self, file: &FileEntry) -> Result<bytes::Bytes, Error> {
        // By digest, so it does not matter whose bytes they are.
        let local = self.local.as_ref();
        if let Some(content) = local.and_then(|local| local.content(&file.digest)) {
            return Ok(content.clone());
        }
        let content = self.inner.store.content(&file.digest)?;
        content.ok_or_else(|| Error::missing(&file.digest))
    }

    /// The same, off the async threads, once there is memory for it in the answer.
    ///
    /// # Errors
    /// The version has no such file, or its content is damaged; there is no memory for it.
    pub async fn file(
        &self,
        id: &SkillId,
        version: &Version,
        path: &str,
    ) -> Result<bytes::Bytes, Error> {
        let entry = version.file(path).cloned();
        let entry = entry.ok_or_else(|| Error::no_file(id, version, path))?;
        let this = self.clone();
        // Before the read: a caller that has no memory left for an answer must cost no work.
        admission::reserve(entry.size).await?;
        let read = move |_: &_| this.content(&entry);
        let read = self.executor().run_fallible(Kind::Read, read).await;
        read.map_err(|error| self.gone(id, version.number, error))
    }

    /// Replaces the error of a missing content: the skill may have been deleted, and the store
    /// compacted, since the version was read.
    pub(super) fn gone(&self, id: &SkillId, number: VersionNumber, error: Error) -> Error {
        let is_missing = matches!(error, Error::Store(StoreError::Damaged { .. }));
        let stored = |key| self.inner.store.get(&VERSIONS, &key);
        if is_missing && matches!(stored((id.key(), number)), Ok(None)) {
            return Error::VersionNotFound {
                id: id.clone(),
                version: VersionSelector::Number(number),
                there: String::new(),
            };
        }
        error
    }
}
