//! Streams a version as an archive.

use bytes::Bytes;
use futures_util::stream;
use tonic::Response;

use super::convert::{self, info};
use super::target;
use admission::Peer;
use contract::handlers::{Answer, Messages};
use contract::v1;
use lookup::Lookup;
use registry::{Archive, ExportQuery};

/// Bytes of an archive in one message.
const CHUNK_BYTES: usize = 64 * 1024;

/// Streams the archive that a request asks for.
pub(super) async fn chunks(
    lookup: &Lookup,
    request: v1::ExportSkillRequest,
    reader: &Peer,
) -> Answer<Messages<v1::ExportSkillResponse>> {
    let v1::ExportSkillRequest {
        skill_id,
        version_number,
        semantic_version,
        format,
        info_only,
    } = request;
    let format = v1::ArchiveFormat::try_from(format).unwrap_or_default();
    let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
    let query = ExportQuery {
        version,
        format: convert::archive_format(format),
        info_only,
    };
    let archive = lookup.export(&skill, &query).await?;
    let response = |info, chunk| v1::ExportSkillResponse { info, chunk };
    messages(archive, reader, response).await
}

/// Streams an archive. Its memory is booked for the reader until the last chunk is sent.
pub(super) async fn messages<T: Send + 'static>(
    archive: Archive,
    reader: &Peer,
    message: impl Fn(Option<v1::ArchiveInfo>, Bytes) -> T + Send + 'static,
) -> Answer<Messages<T>> {
    let kib = archive.bytes.len().div_ceil(1024);
    let kib = u32::try_from(kib).unwrap_or(u32::MAX);
    // The whole archive stays in memory until its reader has it. A slow reader must use up its
    // own share of the memory, not everybody's.
    let memory = reader.reserve(kib).await?;
    let info = v1::ArchiveInfo {
        skill_id: archive.of.head.id.to_string(),
        version: Some(info(&archive.of)),
        file_name: archive.file_name(),
        mime_type: archive.format.mime_type().to_owned(),
        digest: archive.digest.to_string(),
        size_bytes: convert::size(archive.size),
    };
    // One message at least: with `info_only` there are no bytes, only the description.
    let pieces = archive.bytes.len().div_ceil(CHUNK_BYTES).max(1);
    let chunks = (0..pieces).map(move |at| {
        // Captured, so that the permit is released when the stream is dropped.
        let _held = &memory;
        let end = ((at + 1) * CHUNK_BYTES).min(archive.bytes.len());
        let info = (at == 0).then(|| info.clone());
        Ok(message(info, archive.bytes.slice(at * CHUNK_BYTES..end)))
    });
    Ok(Response::new(Box::pin(stream::iter(chunks))))
}
