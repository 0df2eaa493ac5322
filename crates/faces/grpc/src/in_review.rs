//! What is held or blocked, as its reviewers read it.

use bytes::Bytes;
use tonic::Response;

use super::convert::{self, info};
use super::registry::RegistryService;
use super::{export, selector};
use admission::Peer;
use contract::handlers::{Answer, Messages};
use contract::v1;
use model::VersionSelector;

pub(super) async fn read(
    service: &RegistryService,
    request: v1::ReadForReviewRequest,
) -> Answer<v1::ReadForReviewResponse> {
    let v1::ReadForReviewRequest {
        skill_id,
        version_number,
        semantic_version,
        path,
    } = request;
    let (id, version) = (
        service.stored.full_id(&skill_id)?,
        selector(version_number, &semantic_version)?,
    );
    let described = service.registry.in_review(&id, &version)?;
    let (id, version) = (&described.head.id, &described.version);
    let content = match path.as_str() {
        "" => Bytes::new(),
        path => service.registry.file(id, version, path).await?,
    };
    let files = version.files.iter();
    Ok(Response::new(v1::ReadForReviewResponse {
        skill_id: id.to_string(),
        version: Some(info(&described)),
        files: files.map(|file| convert::entry(id, file)).collect(),
        content,
    }))
}

pub(super) async fn diff(
    service: &RegistryService,
    request: v1::DiffForReviewRequest,
) -> Answer<v1::DiffForReviewResponse> {
    let v1::DiffForReviewRequest {
        skill_id,
        version_number,
        semantic_version,
        from_version,
        from_semantic_version,
    } = request;
    let id = service.stored.full_id(&skill_id)?;
    let to = selector(version_number, &semantic_version)?;
    let from = selector(from_version, &from_semantic_version)?;
    let from = (from != VersionSelector::Active).then_some(from);
    let diff = service.registry.diff_in_review(&id, from, &to).await?;
    Ok(Response::new(v1::DiffForReviewResponse {
        diff: Some(convert::diff(diff)),
    }))
}

pub(super) async fn export(
    service: &RegistryService,
    request: v1::ExportForReviewRequest,
    reader: &Peer,
) -> Answer<Messages<v1::ExportForReviewResponse>> {
    let v1::ExportForReviewRequest {
        skill_id,
        version_number,
        semantic_version,
        format,
    } = request;
    let id = service.stored.full_id(&skill_id)?;
    let version = selector(version_number, &semantic_version)?;
    let format = convert::archive_format(v1::ArchiveFormat::try_from(format).unwrap_or_default());
    let archive = service.registry.export_in_review(&id, &version, format);
    let response = |info, chunk| v1::ExportForReviewResponse { info, chunk };
    export::messages(archive.await?, reader, response).await
}
