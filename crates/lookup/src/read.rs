//! Handing out files, by address, by name and by path.

use bytes::Bytes;

use super::{Error, FoundSkill, Lookup};
use model::{FileEntry, Reference, SkillUri, VersionSelector};
use registry::UsageKind;

/// A file as text.
#[derive(Debug, Clone)]
pub struct SkillText {
    /// The version it belongs to.
    pub found: FoundSkill,
    /// The file.
    pub file: FileEntry,
    /// Canonical address of the file; with the version where one was asked for.
    pub uri: SkillUri,
    /// Its bytes.
    pub text: String,
}

/// A file, or a part of it.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// The version it belongs to.
    pub found: FoundSkill,
    /// The file.
    pub file: FileEntry,
    /// The bytes asked for.
    pub bytes: Bytes,
}

impl Lookup {
    /// A file of a skill as text, by its address.
    ///
    /// # Errors
    /// The address is none, leads nowhere, or to a file that is not text.
    pub async fn read(&self, uri: &str, session: &str) -> Result<SkillText, Error> {
        let uri: SkillUri = uri.parse()?;
        let found = self.get(&uri.skill, &uri.version)?;
        let path = match &uri.file {
            Some(path) => path.as_str().to_owned(),
            None => found.described.version.skill.entry.as_str().to_owned(),
        };
        self.text(found, &path, uri.version, session).await
    }

    /// The instructions of a skill, by its short name or id.
    ///
    /// # Errors
    /// There is no such skill.
    pub async fn activate(&self, command: &str, session: &str) -> Result<SkillText, Error> {
        let found = self.get(&Reference::parse(command.trim()), &VersionSelector::Active)?;
        let path = found.described.version.skill.entry.as_str().to_owned();
        self.text(found, &path, VersionSelector::Active, session)
            .await
    }

    async fn text(
        &self,
        found: FoundSkill,
        path: &str,
        version: VersionSelector,
        session: &str,
    ) -> Result<SkillText, Error> {
        let part = self.part(found, path, session).await?;
        let FilePart { found, file, bytes } = part;
        let id = &found.described.head.id;
        let text = String::from_utf8(bytes.into()).map_err(|_| Error::NotText {
            id: id.clone(),
            path: path.to_owned(),
        })?;
        let uri = SkillUri {
            version,
            ..SkillUri::of(id, &file.path)
        };
        Ok(SkillText {
            found,
            file,
            uri,
            text,
        })
    }

    /// A file of a version, from `offset` on and `limit` bytes of it; a limit of
    /// 0 is up to the end.
    ///
    /// # Errors
    /// There is no such skill, version or file; the offset is behind the end.
    pub async fn file(
        &self,
        reference: &Reference,
        selector: &VersionSelector,
        path: &str,
        (offset, limit): (u64, u64),
        session: &str,
    ) -> Result<FilePart, Error> {
        let found = self.get(reference, selector)?;
        let mut part = self.part(found, path, session).await?;
        let size = part.bytes.len() as u64;
        if offset > size {
            return Err(Error::Parameter {
                field: "offset_bytes",
                message: format!("the file has {size} bytes, none after {offset}"),
            });
        }
        let end = if limit == 0 {
            size
        } else {
            offset.saturating_add(limit).min(size)
        };
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        part.bytes = part.bytes.slice(at(offset)..at(end));
        Ok(part)
    }

    async fn part(&self, found: FoundSkill, path: &str, session: &str) -> Result<FilePart, Error> {
        let (head, version) = (&found.described.head, &found.described.version);
        let file = version
            .file(path)
            .cloned()
            .ok_or_else(|| registry::Error::FileNotFound {
                id: head.id.clone(),
                version: version.number,
                path: path.to_owned(),
            })?;
        let bytes = self.registry.file(&head.id, version, path).await?;
        self.registry
            .count(head, version.number, UsageKind::Read, session);
        Ok(FilePart { found, file, bytes })
    }
}
