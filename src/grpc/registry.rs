//! The Registry service.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

use super::convert::{self, info};
use super::status::refusal;
use super::{
    caller, number, page_size, principal, publish, reference, selector, status, token, watch,
};
use crate::contract::v1;
use crate::lookup::{Lookup, Resolved};
use crate::model::{Failure, SkillId, VersionNumber};
use crate::registry::{Registry, UsageKind};
use crate::skill_md;

/// Items of one bulk stream in work at once.
const BULK_ITEMS: usize = 64;
/// Bytes of all bulk streams in work at once, in KiB.
const BULK_KIB: u32 = 64 * 1024;
/// Archives made at once; each takes up to twice 16 MiB.
const EXPORTS: usize = 8;
/// Bytes of an archive in one message.
const CHUNK: usize = 64 * 1024;

/// The Registry service over the domain.
#[derive(Debug, Clone)]
pub struct RegistryService {
    registry: Registry,
    lookup: Lookup,
    bulk: Arc<Semaphore>,
    exports: Arc<Semaphore>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl RegistryService {
    /// The service of a registry.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self {
            lookup: Lookup::new(registry.clone()),
            registry,
            bulk: Arc::new(Semaphore::new(BULK_KIB as usize)),
            exports: Arc::new(Semaphore::new(EXPORTS)),
        }
    }

    fn id(&self, skill_id: &str) -> Result<SkillId, Status> {
        let Resolved { head, shadowed: _ } =
            self.lookup.resolve(&reference(skill_id)).map_err(status)?;
        Ok(head.id.clone())
    }
}

/// The number of a request; its rules keep it from being 0.
fn version_number(number: u32) -> VersionNumber {
    VersionNumber::new(number).unwrap_or(VersionNumber::FIRST)
}

#[tonic::async_trait]
impl v1::registry_server::Registry for RegistryService {
    type PublishSkillsStream = Answers<v1::PublishSkillsResponse>;
    type ExportSkillStream = Answers<v1::ExportSkillResponse>;
    type WatchStream = Answers<v1::WatchResponse>;

    async fn publish_skill(
        &self,
        request: Request<v1::PublishSkillRequest>,
    ) -> Result<Response<v1::PublishSkillResponse>, Status> {
        let principal = principal(&request);
        let publication = publish::read(&self.registry, &self.lookup, request.into_inner())
            .await
            .map_err(status)?;
        let answer = publish::publish(&self.registry, publication, principal)
            .await
            .map_err(status)?;
        Ok(Response::new(answer))
    }

    async fn publish_skills(
        &self,
        request: Request<Streaming<v1::PublishSkillsRequest>>,
    ) -> Result<Response<Self::PublishSkillsStream>, Status> {
        let principal = principal(&request);
        let (registry, lookup, bulk) = (
            self.registry.clone(),
            self.lookup.clone(),
            Arc::clone(&self.bulk),
        );
        let reader = registry.clone();
        let answers = request
            .into_inner()
            // Room for an item's bytes is taken before the next one is read.
            .then(move |item| {
                let bulk = Arc::clone(&bulk);
                async move {
                    let item = item?;
                    let bytes = prost::Message::encoded_len(&item);
                    let kib = u32::try_from(bytes / 1024 + 1)
                        .unwrap_or(u32::MAX)
                        .min(BULK_KIB);
                    let room = bulk.acquire_many_owned(kib).await;
                    room.map(|room| (item, room))
                        .map_err(|error| status(Failure::fault(error)))
                }
            })
            .map(move |item| {
                let (registry, lookup) = (reader.clone(), lookup.clone());
                async move {
                    let (item, room) = item?;
                    let read = match publish::item(item) {
                        Ok(request) => publish::read(&registry, &lookup, request).await,
                        Err(failure) => Err(failure),
                    };
                    Ok::<_, Status>((read, room))
                }
            })
            // Reading goes on side by side; publishing begins in the order of the
            // items, which keeps versions of one skill in order.
            .buffered(BULK_ITEMS)
            .enumerate()
            .map(move |(index, item)| {
                let (registry, principal) = (registry.clone(), principal.clone());
                async move {
                    use v1::publish_skills_response::Result as Item;
                    let (read, _room) = item?;
                    let published = match read {
                        Ok(publication) => {
                            publish::publish(&registry, publication, principal).await
                        }
                        Err(failure) => Err(failure),
                    };
                    let result = match published {
                        Ok(answer) => Item::Published(answer),
                        Err(failure) => Item::Refused(refusal(failure)),
                    };
                    Ok(v1::PublishSkillsResponse {
                        index: index as u64,
                        result: Some(result),
                    })
                }
            })
            .buffered(BULK_ITEMS);
        Ok(Response::new(Box::pin(answers)))
    }

    async fn delete_skill(
        &self,
        request: Request<v1::DeleteSkillRequest>,
    ) -> Result<Response<v1::DeleteSkillResponse>, Status> {
        let caller = caller(&request, &request.get_ref().idempotency_key);
        let v1::DeleteSkillRequest {
            skill_id,
            idempotency_key: _,
        } = request.into_inner();
        // A repeated delete finds no skill; its answer is under the id as written.
        let id = match skill_id.parse() {
            Ok(id) => id,
            Err(_) => self.id(&skill_id)?,
        };
        let deleted = self.registry.delete(&id, &caller).await.map_err(status)?;
        Ok(Response::new(v1::DeleteSkillResponse {
            skill_id: deleted.id.to_string(),
            versions_deleted: deleted.versions,
        }))
    }

    async fn yank_version(
        &self,
        request: Request<v1::YankVersionRequest>,
    ) -> Result<Response<v1::YankVersionResponse>, Status> {
        let caller = caller(&request, &request.get_ref().idempotency_key);
        let v1::YankVersionRequest {
            skill_id,
            version_number: version,
            reason,
            idempotency_key: _,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let withdrawn = self
            .registry
            .yank(&id, version_number(version), &reason, &caller)
            .await
            .map_err(status)?;
        let described = self
            .registry
            .describe(&id, &withdrawn.number.into())
            .map_err(status)?;
        Ok(Response::new(v1::YankVersionResponse {
            skill_id: withdrawn.id.to_string(),
            version: Some(info(&described)),
            active_version: number(withdrawn.active),
        }))
    }

    async fn unyank_version(
        &self,
        request: Request<v1::UnyankVersionRequest>,
    ) -> Result<Response<v1::UnyankVersionResponse>, Status> {
        let caller = caller(&request, &request.get_ref().idempotency_key);
        let v1::UnyankVersionRequest {
            skill_id,
            version_number: version,
            idempotency_key: _,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let withdrawn = self
            .registry
            .unyank(&id, version_number(version), &caller)
            .await
            .map_err(status)?;
        let described = self
            .registry
            .describe(&id, &withdrawn.number.into())
            .map_err(status)?;
        Ok(Response::new(v1::UnyankVersionResponse {
            skill_id: withdrawn.id.to_string(),
            version: Some(info(&described)),
            active_version: number(withdrawn.active),
        }))
    }

    async fn list_versions(
        &self,
        request: Request<v1::ListVersionsRequest>,
    ) -> Result<Response<v1::ListVersionsResponse>, Status> {
        let v1::ListVersionsRequest {
            skill_id,
            page_size: size,
            page_token,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let page = self
            .registry
            .list_versions(&id, page_size(size, 50), &page_token)
            .map_err(status)?;
        Ok(Response::new(v1::ListVersionsResponse {
            skill_id: page.head.id.to_string(),
            is_builtin: page.head.id.is_builtin(),
            created_at: Some(convert::time(page.head.created_at)),
            updated_at: Some(convert::time(page.head.updated_at)),
            active_version: number(page.head.active),
            versions: page.versions.iter().map(info).collect(),
            next_page_token: token(page.next),
        }))
    }

    async fn get_version(
        &self,
        request: Request<v1::GetVersionRequest>,
    ) -> Result<Response<v1::GetVersionResponse>, Status> {
        let v1::GetVersionRequest {
            skill_id,
            version_number,
            semantic_version,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let selector = selector(version_number, &semantic_version)?;
        let described = self.registry.describe(&id, &selector).map_err(status)?;
        let entry = described.version.skill.entry.as_str();
        let skill_md = self
            .registry
            .file(&id, &described.version, entry)
            .await
            .map_err(status)?;
        let text = String::from_utf8_lossy(&skill_md);
        Ok(Response::new(v1::GetVersionResponse {
            skill_id: described.head.id.to_string(),
            version: Some(convert::version(
                &described,
                skill_md::body(&text).to_owned(),
            )),
        }))
    }

    async fn diff_versions(
        &self,
        request: Request<v1::DiffVersionsRequest>,
    ) -> Result<Response<v1::DiffVersionsResponse>, Status> {
        let v1::DiffVersionsRequest {
            skill_id,
            from_version,
            to_version,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let (from, to) = (
            VersionNumber::new(from_version),
            VersionNumber::new(to_version),
        );
        let diff = self.registry.diff(&id, from, to).await.map_err(status)?;
        Ok(Response::new(convert::diff(diff)))
    }

    async fn activate_version(
        &self,
        request: Request<v1::ActivateVersionRequest>,
    ) -> Result<Response<v1::ActivateVersionResponse>, Status> {
        let caller = caller(&request, &request.get_ref().idempotency_key);
        let v1::ActivateVersionRequest {
            skill_id,
            version_number: version,
            idempotency_key: _,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let activated = self
            .registry
            .activate(&id, version_number(version), &caller)
            .await
            .map_err(status)?;
        let described = self
            .registry
            .describe(&id, &activated.number.into())
            .map_err(status)?;
        Ok(Response::new(v1::ActivateVersionResponse {
            skill_id: activated.id.to_string(),
            version: Some(info(&described)),
            previous_version: number(activated.previous),
        }))
    }

    async fn get_metrics(
        &self,
        request: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<v1::GetMetricsResponse>, Status> {
        let v1::GetMetricsRequest { skill_id } = request.into_inner();
        let head = self
            .lookup
            .resolve(&reference(&skill_id))
            .map_err(status)?
            .head;
        let usage = self.registry.usage(&head).map_err(status)?;
        let mut answer = v1::GetMetricsResponse {
            skill_id: head.id.to_string(),
            ..Default::default()
        };
        for (number, counts) in usage {
            let version = self
                .registry
                .version(&head, &number.into())
                .map_err(status)?;
            answer.total_loads += counts.loads;
            answer.total_reads += counts.reads;
            answer.versions.push(v1::VersionMetrics {
                version_number: number.get(),
                semantic_version: version.semantic.to_string(),
                loads: counts.loads,
                reads: counts.reads,
                distinct_sessions: counts.sessions,
                last_used_at: counts.last_used_at.map(convert::time),
            });
        }
        Ok(Response::new(answer))
    }

    async fn validate_skill(
        &self,
        request: Request<v1::ValidateSkillRequest>,
    ) -> Result<Response<v1::ValidateSkillResponse>, Status> {
        let v1::ValidateSkillRequest {
            skill_id,
            files,
            folder,
            strict,
        } = request.into_inner();
        let bundle =
            publish::bundle(&self.lookup, &skill_id, files, folder, strict).map_err(status)?;
        let candidate = self.registry.validate(bundle).await.map_err(status)?;
        let version = |skill: &crate::model::Skill| skill.version.clone().unwrap_or_default();
        Ok(Response::new(v1::ValidateSkillResponse {
            valid: candidate.skill.is_some() && candidate.id.is_some(),
            problems: candidate.problems.into_iter().map(Into::into).collect(),
            skill_id: candidate.id.map(String::from).unwrap_or_default(),
            digest: candidate.digest.to_string(),
            definition: candidate
                .skill
                .map(|skill| convert::definition(&skill, &version(&skill))),
        }))
    }

    async fn export_skill(
        &self,
        request: Request<v1::ExportSkillRequest>,
    ) -> Result<Response<Self::ExportSkillStream>, Status> {
        let v1::ExportSkillRequest {
            skill_id,
            version_number,
            semantic_version,
            format,
            info_only,
        } = request.into_inner();
        let id = self.id(&skill_id)?;
        let selector = selector(version_number, &semantic_version)?;
        let format =
            convert::archive_format(v1::ArchiveFormat::try_from(format).unwrap_or_default());
        let room = Arc::clone(&self.exports).acquire_owned().await;
        let room = room.map_err(|error| status(Failure::fault(error)))?;
        let archive = self
            .registry
            .export(&id, &selector, format)
            .await
            .map_err(status)?;
        let (head, version) = (&archive.of.head, &archive.of.version);
        if !info_only {
            self.registry
                .count(head, version.number, UsageKind::Read, "");
        }
        let info = v1::ArchiveInfo {
            skill_id: head.id.to_string(),
            version: Some(info(&archive.of)),
            file_name: archive.file_name(),
            mime_type: archive.format.mime_type().to_owned(),
            digest: archive.digest.to_string(),
            size_bytes: convert::size(archive.bytes.len() as u64),
        };
        let pieces = if info_only {
            1
        } else {
            archive.bytes.len().div_ceil(CHUNK)
        };
        let chunks = (0..pieces).map(move |at| {
            // The room is given back when the last chunk is on its way.
            let _held = &room;
            let end = ((at + 1) * CHUNK).min(archive.bytes.len());
            Ok(v1::ExportSkillResponse {
                info: (at == 0).then(|| info.clone()),
                chunk: if info_only {
                    bytes::Bytes::new()
                } else {
                    archive.bytes.slice(at * CHUNK..end)
                },
            })
        });
        Ok(Response::new(Box::pin(stream::iter(chunks))))
    }

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let answers = watch::answers(&self.registry, request.into_inner())?;
        Ok(Response::new(Box::pin(answers)))
    }
}
