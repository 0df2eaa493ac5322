//! Archives of versions: the same version gives the same bytes, always.

use std::io::{self, Write as _};

use bytes::Bytes;

use super::{Described, Error, Registry, UsageKind};
use executor::{Kind, Stop};
use model::{Digest, FileEntry, SkillId, VersionSelector};

/// Form of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArchiveFormat {
    /// A gzip-compressed tar.
    #[default]
    TarGz,
    /// A zip.
    Zip,
}

impl ArchiveFormat {
    /// Ending of the file's name.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::TarGz => "tar.gz",
            Self::Zip => "zip",
        }
    }

    /// Media type.
    #[must_use]
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::TarGz => "application/gzip",
            Self::Zip => "application/zip",
        }
    }
}

/// The query for an archive of a skill.
#[derive(Debug, Clone)]
pub struct ExportQuery {
    /// The version.
    pub version: VersionSelector,
    /// The format.
    pub format: ArchiveFormat,
    /// Whether to leave out the bytes: this does not count as a use of the skill.
    pub info_only: bool,
}

/// A version as an archive, with its files at the root.
#[derive(Debug, Clone)]
pub struct Archive {
    /// The version in it.
    pub of: Described,
    /// Its form.
    pub format: ArchiveFormat,
    /// Its bytes; empty where they were left out.
    pub bytes: Bytes,
    /// The number of its bytes.
    pub size: u64,
    /// Digest of its bytes.
    pub digest: Digest,
}

impl Archive {
    /// Name for the file, such as `refunds-1.2.0.tar.gz`.
    #[must_use]
    pub fn file_name(&self) -> String {
        let (head, version) = (&self.of.head, &self.of.version);
        format!(
            "{}-{}.{}",
            head.id.slug(),
            version.semantic,
            self.format.ending()
        )
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("an archive: {error}"))
}

/// Owner, times and modes are the same for every file, so that nothing but the
/// version decides the bytes.
fn tar_gz(registry: &Registry, files: &[FileEntry], stop: &Stop) -> Result<Vec<u8>, Error> {
    // 255 is `unknown`: otherwise the bytes would depend on the system that packs them.
    let packer = flate2::GzBuilder::new().mtime(0).operating_system(255);
    let mut archive = tar::Builder::new(packer.write(Vec::new(), flate2::Compression::default()));
    for file in files {
        stop.check()?;
        let content = registry.content(file)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        archive
            .append_data(&mut header, file.path.as_str(), &*content)
            .map_err(failed)?;
    }
    archive
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .map_err(failed)
}

fn zip(registry: &Registry, files: &[FileEntry], stop: &Stop) -> Result<Vec<u8>, Error> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    for file in files {
        stop.check()?;
        archive
            .start_file(file.path.as_str(), options)
            .map_err(failed)?;
        archive
            .write_all(&registry.content(file)?)
            .map_err(failed)?;
    }
    archive.finish().map(io::Cursor::into_inner).map_err(failed)
}

impl Registry {
    /// Returns a version as an archive. A query with its bytes counts as a use of the version.
    ///
    /// # Errors
    /// There is no such version, or a content of it is damaged.
    pub async fn export(&self, id: &SkillId, query: &ExportQuery) -> Result<Archive, Error> {
        let mut archive = self
            .pack(self.describe(id, &query.version)?, query.format)
            .await?;
        if query.info_only {
            archive.bytes = Bytes::new();
        } else {
            let Described { head, version, .. } = &archive.of;
            self.count(head, version.number, UsageKind::Read, "");
        }
        Ok(archive)
    }

    /// Packs a version that was found.
    pub(super) async fn pack(
        &self,
        of: Described,
        format: ArchiveFormat,
    ) -> Result<Archive, Error> {
        let (this, version) = (self.clone(), std::sync::Arc::clone(&of.version));
        admission::reserve(version.size()).await?;
        let pack = move |stop: &Stop| {
            let bytes = match format {
                ArchiveFormat::TarGz => tar_gz(&this, &version.files, stop),
                ArchiveFormat::Zip => zip(&this, &version.files, stop),
            }?;
            let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
            Ok::<_, Error>((Bytes::from(bytes), size, digest))
        };
        let packed = self.executor().run_fallible(Kind::Export, pack).await;
        let gone = |error| self.gone(&of.head.id, of.version.number, error);
        let (bytes, size, digest) = packed.map_err(gone)?;
        Ok(Archive {
            of,
            format,
            bytes,
            size,
            digest,
        })
    }
}
