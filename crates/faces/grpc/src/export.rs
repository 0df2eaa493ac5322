//! A version as an archive, in messages of some bytes.

use futures_util::stream;

use super::convert::{self, info};
use super::target;
use admission::Peer;
use contract::handlers::Messages;
use contract::v1;
use lookup::Lookup;
use model::Failure;
use registry::ExportQuery;

/// Bytes of an archive in one message.
const CHUNK_BYTES: usize = 64 * 1024;

/// The archive that a request asks for. Its bytes are the reader's until it has them all.
pub(super) async fn chunks(
    lookup: &Lookup,
    request: v1::ExportSkillRequest,
    reader: &Peer,
) -> Result<Messages<v1::ExportSkillResponse>, Failure> {
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
    let archive = lookup.export(&skill, &query).await;
    let archive = archive?;
    let kib = archive.bytes.len().div_ceil(1024);
    let kib = u32::try_from(kib).unwrap_or(u32::MAX);
    // The archive is whole in memory until its reader has it, so it is booked for that reader.
    let memory = reader.reserve(kib).await?;
    let info = v1::ArchiveInfo {
        skill_id: archive.of.head.id.to_string(),
        version: Some(info(&archive.of)),
        file_name: archive.file_name(),
        mime_type: archive.format.mime_type().to_owned(),
        digest: archive.digest.to_string(),
        size_bytes: convert::size(archive.size),
    };
    let pieces = archive.bytes.len().div_ceil(CHUNK_BYTES).max(1);
    let chunks = (0..pieces).map(move |at| {
        // The memory for its bytes is given back when the last chunk is on its way.
        let _held = &memory;
        let end = ((at + 1) * CHUNK_BYTES).min(archive.bytes.len());
        Ok(v1::ExportSkillResponse {
            info: (at == 0).then(|| info.clone()),
            chunk: archive.bytes.slice(at * CHUNK_BYTES..end),
        })
    });
    Ok(Box::pin(stream::iter(chunks)))
}
