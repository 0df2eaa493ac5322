//! Handing out files, by address, by name and by path.

use std::str::FromStr as _;

use bytes::Bytes;

use super::{Error, FoundSkill, Lookup};
use model::{FileEntry, FilePath, Reference, SkillUri, VersionSelector};
use registry::UsageKind;

/// A file as text.
#[derive(Debug, Clone)]
pub struct SkillText {
    /// The version it belongs to.
    pub found: FoundSkill,
    /// The file.
    pub file: FileEntry,
    /// Canonical address of the file; with the version where the caller asked for one.
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
    /// Returns a file of a skill as text, by its address.
    ///
    /// # Errors
    /// The address is none, leads nowhere, or to a file that is not text.
    pub async fn read(&self, uri: &str, session: &str) -> Result<SkillText, Error> {
        let uri = self.address(uri)?;
        let (found, path) = self.at(&uri)?;
        self.text(found, &path, uri.version, session).await
    }

    /// Parses an address, which may lack its scheme, or have a short name before the path of a
    /// file.
    ///
    /// # Errors
    /// The address is none.
    pub fn address(&self, text: &str) -> Result<SkillUri, Error> {
        let text = if text.contains("://") {
            text.trim().to_owned()
        } else {
            // An address means the same with and without its scheme.
            format!("skill://{}", bare(text))
        };
        let read = text.parse::<SkillUri>();
        let is_known = |uri: &SkillUri| {
            let catalog = self.registry.catalog();
            Self::find_among(&catalog, &uri.skill).is_some()
        };
        if read.as_ref().is_ok_and(is_known) {
            return Ok(read?);
        }
        // Second, since `refunds/docs/api.md` has the form of an id: a file of a short name must
        // not hide a skill.
        let by_name = text.split_once("://").and_then(|(scheme, rest)| {
            let (name, path) = rest.split_once('/')?;
            let named: SkillUri = format!("{scheme}://{name}").parse().ok()?;
            let file = FilePath::from_str(path).ok()?;
            is_known(&named).then_some(SkillUri {
                file: Some(file),
                ..named
            })
        });
        by_name.map_or_else(|| Ok(read?), Ok)
    }

    /// Returns the version that an address leads to, and the path of its file.
    fn at(&self, uri: &SkillUri) -> Result<(FoundSkill, String), Error> {
        let found = self.get(&uri.skill, &uri.version)?;
        let path = match &uri.file {
            Some(path) => path.as_str().to_owned(),
            None => found.described.version.skill.entry.as_str().to_owned(),
        };
        Ok((found, path))
    }

    /// Returns the instructions of a skill, by its short name or id.
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

    /// Returns `limit` bytes of a file of a version from `offset` on; a limit of 0 is up to the
    /// end.
    ///
    /// # Errors
    /// There is no such skill, version or file; the offset is beyond the end.
    pub async fn file(
        &self,
        reference: &Reference,
        selector: &VersionSelector,
        path: &str,
        (offset, limit): (u64, u64),
        session: &str,
    ) -> Result<FilePart, Error> {
        let (found, path) = if is_address(path) {
            self.at(&self.address(path)?)?
        } else {
            (self.get(reference, selector)?, path.to_owned())
        };
        let mut part = self.part(found, &path, session).await?;
        let size = part.bytes.len();
        let start = usize::try_from(offset).ok().filter(|start| *start <= size);
        let start = start.ok_or_else(|| Error::Parameter {
            field: "offset_bytes",
            message: format!("the file has {size} bytes, none after {offset}"),
        })?;
        let end = match usize::try_from(limit) {
            Ok(0) | Err(_) => size,
            Ok(limit) => start.saturating_add(limit).min(size),
        };
        part.bytes = part.bytes.slice(start..end);
        Ok(part)
    }

    async fn part(&self, found: FoundSkill, path: &str, session: &str) -> Result<FilePart, Error> {
        let (head, version) = (&found.described.head, &found.described.version);
        let file = version.file(path).or_else(|| version.file(bare(path)));
        let no_file = || registry::Error::no_file(&head.id, version, path);
        let file = file.cloned().ok_or_else(no_file)?;
        let bytes = self.registry.file(&head.id, version, file.path.as_str());
        let bytes = bytes.await?;
        self.registry
            .count(head, version.number, UsageKind::Read, session);
        Ok(FilePart { found, file, bytes })
    }
}

/// Returns whether a path is an address, which names its skill itself.
#[must_use]
pub fn is_address(path: &str) -> bool {
    path.contains("://")
}

/// Returns a path without a leading `/` or `./`.
fn bare(path: &str) -> &str {
    let mut path = path.trim();
    while let Some(rest) = path.strip_prefix("./").or_else(|| path.strip_prefix('/')) {
        path = rest;
    }
    path
}
