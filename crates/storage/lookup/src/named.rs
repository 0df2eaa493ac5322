//! Reads and writes of the registry by a reference instead of an id.

use std::sync::Arc;

use super::{Error, FoundSkill, Lookup};
use model::{Reference, SkillId, VersionSelector};
use registry::{
    Archive, Described, ExportQuery, Head, Scanned, SkillUsage, VersionDiff, VersionPage,
};

impl Lookup {
    fn head(&self, skill: &Reference) -> Result<Arc<Head>, Error> {
        Ok(self.resolve(skill)?.head)
    }

    /// Returns the scan of a version of a skill, held or not.
    ///
    /// # Errors
    /// There is no such skill or version; the skill is blocked.
    pub async fn scan(
        &self,
        skill: &Reference,
        version: &VersionSelector,
    ) -> Result<Scanned, Error> {
        let head = self.head(skill)?;
        Ok(self.registry.scan_version(&head.id, version).await?)
    }

    /// Returns a version of a skill, and the `newest` versions of this skill, newest first.
    ///
    /// # Errors
    /// As [`Lookup::get`].
    pub fn with_versions(
        &self,
        skill: &Reference,
        version: &VersionSelector,
        newest: usize,
    ) -> Result<(FoundSkill, Vec<Described>), Error> {
        let found = self.get(skill, version)?;
        if newest == 0 {
            return Ok((found, Vec::new()));
        }
        let id = &found.described.head.id;
        let versions = self.registry.list_versions(id, newest, "")?.versions;
        Ok((found, versions))
    }

    /// A page of the versions of a skill.
    ///
    /// # Errors
    /// There is no such skill, or as [`registry::Registry::list_versions`].
    pub fn versions(
        &self,
        skill: &Reference,
        size: usize,
        token: &str,
    ) -> Result<VersionPage, Error> {
        let head = self.head(skill)?;
        Ok(self.registry.list_versions(&head.id, size, token)?)
    }

    /// A version of a skill, and the body of its instructions.
    ///
    /// # Errors
    /// There is no such skill, or as [`registry::Registry::instructions`].
    pub async fn instructions(
        &self,
        skill: &Reference,
        version: &VersionSelector,
    ) -> Result<(Described, String), Error> {
        let head = self.head(skill)?;
        Ok(self.registry.instructions(&head.id, version).await?)
    }

    /// Returns the differences between two versions of a skill.
    ///
    /// # Errors
    /// There is no such skill, or as [`registry::Registry::diff`].
    pub async fn diff(
        &self,
        skill: &Reference,
        from: Option<VersionSelector>,
        to: &VersionSelector,
    ) -> Result<VersionDiff, Error> {
        let head = self.head(skill)?;
        Ok(self.registry.diff(&head.id, from, to).await?)
    }

    /// Returns the usage of a skill.
    ///
    /// # Errors
    /// There is no such skill, or as [`registry::Registry::skill_usage`].
    pub fn usage(&self, skill: &Reference) -> Result<SkillUsage, Error> {
        Ok(self.registry.skill_usage(self.head(skill)?)?)
    }

    /// A version of a skill as an archive.
    ///
    /// # Errors
    /// There is no such skill, or as [`registry::Registry::export`].
    pub async fn export(&self, skill: &Reference, query: &ExportQuery) -> Result<Archive, Error> {
        let head = self.head(skill)?;
        Ok(self.registry.export(&head.id, query).await?)
    }

    /// Writes to a skill that a caller names by its full id.
    ///
    /// # Errors
    /// The text is no full id, or those of the write.
    pub async fn write<T>(
        &self,
        skill: &str,
        write: impl AsyncFnOnce(SkillId) -> Result<T, registry::Error>,
    ) -> Result<T, Error> {
        Ok(write(self.full_id(skill)?).await?)
    }

    /// Reads the full id by which a caller names a skill that it judges.
    ///
    /// # Errors
    /// The text is no full id; the error has the ids of the skills that may be meant.
    pub fn full_id(&self, skill: &str) -> Result<SkillId, Error> {
        // Whoever approves, withdraws or deletes means one skill, and a short name leads to
        // another one as soon as its owner moves it.
        skill.parse().map_err(|_| Error::FullIdRequired {
            name: skill.to_owned(),
            ids: match Reference::parse(skill) {
                Reference::Id(id) => vec![id],
                Reference::Name(name) => self.registry.catalog().some_named(&name),
            },
        })
    }
}
