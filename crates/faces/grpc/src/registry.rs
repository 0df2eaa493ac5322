//! The Registry service.

use std::borrow::Cow;

use http::Extensions;
use tonic::{Request, Response, Streaming};

use super::bulk::Bulk;
use super::convert::{self, info};
use super::sources::Sources;
use super::viewer::{Sight, Viewer};
use super::{
    DEFAULT_VERSIONS, blocklist, caller, export, in_review, named, number, page_size, principal,
    publish, selector, sources, sync, target, time_left, trust, usage, watch,
};
use ::search::SearchIndex;
use ::sync::Engine;
use admission::Peer;
use contract::handlers::{self, Answer, ItemAuthorizer, Messages, View};
use contract::{NamedResource, v1};
use lookup::Lookup;
use model::{Reference, VersionSelector};
use namespaces::VisibleSkills;
use preflight::Installer;
use registry::{Feed, Registry, Upload};

/// The Registry service over the domain.
#[derive(Debug, Clone)]
pub struct RegistryService {
    pub(super) registry: Registry,
    /// Resolves skills to read, also in the folders around the caller.
    lookup: Lookup,
    /// Resolves skills to write, in the store alone.
    pub(super) stored: Lookup,
    pub(super) feed: Feed,
    pub(super) installer: Installer,
    pub(super) sources: Sources,
    pub(super) search: SearchIndex,
    bulk: Bulk,
    viewer: Viewer,
}

impl RegistryService {
    /// Creates the service. `feed` has the skills that the community blocks, `engine` the sources
    /// of skills.
    #[must_use]
    pub fn new(
        registry: Registry,
        feed: Feed,
        installer: Installer,
        engine: Engine,
        search: SearchIndex,
    ) -> Self {
        Self {
            lookup: Lookup::new(registry.clone()),
            stored: Lookup::new(registry.clone()),
            bulk: Bulk::new(&registry),
            feed,
            installer,
            sources: Sources::new(engine),
            search,
            registry,
            viewer: Viewer::default(),
        }
    }

    /// Sets what each caller sees.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = viewer;
        self
    }
}

impl View for RegistryService {
    async fn view<'a>(&'a self, call: &Extensions) -> Cow<'a, Self> {
        match self.viewer.sight(call).await {
            Sight::Everything => Cow::Borrowed(self),
            Sight::Part(VisibleSkills { registry, search }) => Cow::Owned(Self {
                lookup: Lookup::new(registry.clone()),
                // Writes resolve names among visible skills as well: to be refused for a hidden one
                // would show that it is there.
                stored: Lookup::new(registry.clone()),
                bulk: self.bulk.with_registry(registry.clone()),
                // Sources name skills by where they come from, hidden ones included.
                sources: self.sources.hidden(),
                registry,
                search,
                ..self.clone()
            }),
            // Reads find the folders of the caller first. Writes go to the store: a folder is
            // changed by an editor.
            Sight::Around(VisibleSkills { registry, .. }) => Cow::Owned(Self {
                lookup: Lookup::new(registry),
                ..self.clone()
            }),
        }
    }

    fn permits(&self, named: &NamedResource<'_>, all: &[NamedResource<'_>]) -> bool {
        sources::permits(self.sources.engine(), named, all)
    }
}

impl handlers::Registry for RegistryService {
    async fn publish_skill(
        &self,
        request: Request<v1::PublishSkillRequest>,
    ) -> Answer<v1::PublishSkillResponse> {
        let principal = principal(&request);
        let submission = publish::submission(request.into_inner(), principal);
        let published = self.registry.publish_submission(submission).await;
        Ok(Response::new(publish::answer(published?)))
    }

    async fn publish_skills(
        &self,
        request: Request<Streaming<v1::PublishSkillsRequest>>,
        items: ItemAuthorizer,
    ) -> Answer<Messages<v1::PublishSkillsResponse>> {
        let by = principal(&request);
        let answers = self.bulk.publish(request.into_inner(), by, items);
        Ok(Response::new(Box::pin(answers)))
    }

    async fn delete_skill(
        &self,
        request: Request<v1::DeleteSkillRequest>,
    ) -> Answer<v1::DeleteSkillResponse> {
        let caller = caller(&request, "DeleteSkill", &request.get_ref().idempotency_key);
        let v1::DeleteSkillRequest {
            skill_id,
            idempotency_key: _,
        } = request.into_inner();
        let delete = async |id| self.registry.delete(&id, &caller).await;
        let deleted = self.stored.write(&skill_id, delete).await?;
        Ok(Response::new(v1::DeleteSkillResponse {
            skill_id: deleted.id.to_string(),
            versions_deleted: deleted.versions,
            dependents: convert::ids(deleted.dependents),
        }))
    }

    async fn yank_version(
        &self,
        request: Request<v1::YankVersionRequest>,
    ) -> Answer<v1::YankVersionResponse> {
        let caller = caller(&request, "YankVersion", &request.get_ref().idempotency_key);
        let v1::YankVersionRequest {
            skill_id,
            version_number,
            semantic_version,
            reason,
            idempotency_key: _,
        } = request.into_inner();
        let version = named(version_number, &semantic_version)?;
        let yank = async |id| self.registry.yank(&id, version, &reason, &caller).await;
        let withdrawn = self.stored.write(&skill_id, yank).await?;
        Ok(Response::new(v1::YankVersionResponse {
            skill_id: withdrawn.id.to_string(),
            version: Some(convert::state(withdrawn.version)),
            active_version: number(withdrawn.active),
            dependents: convert::ids(withdrawn.dependents),
        }))
    }

    async fn unyank_version(
        &self,
        request: Request<v1::UnyankVersionRequest>,
    ) -> Answer<v1::UnyankVersionResponse> {
        let caller = caller(
            &request,
            "UnyankVersion",
            &request.get_ref().idempotency_key,
        );
        let v1::UnyankVersionRequest {
            skill_id,
            version_number,
            semantic_version,
            idempotency_key: _,
        } = request.into_inner();
        let version = named(version_number, &semantic_version)?;
        let unyank = async |id| self.registry.unyank(&id, version, &caller).await;
        let withdrawn = self.stored.write(&skill_id, unyank).await?;
        Ok(Response::new(v1::UnyankVersionResponse {
            skill_id: withdrawn.id.to_string(),
            version: Some(convert::state(withdrawn.version)),
            active_version: number(withdrawn.active),
        }))
    }

    async fn list_versions(
        &self,
        request: Request<v1::ListVersionsRequest>,
    ) -> Answer<v1::ListVersionsResponse> {
        let v1::ListVersionsRequest {
            skill_id,
            page_size: size,
            page_token,
        } = request.into_inner();
        let skill = Reference::parse(&skill_id);
        let size = page_size(size, DEFAULT_VERSIONS);
        let page = self.lookup.versions(&skill, size, &page_token);
        let page = page?;
        Ok(Response::new(v1::ListVersionsResponse {
            skill_id: page.head.id.to_string(),
            is_builtin: page.head.id.is_builtin(),
            created_at: Some(convert::time(page.head.created_at)),
            updated_at: Some(convert::time(page.head.updated_at)),
            active_version: number(page.head.active),
            versions: page.versions.iter().map(info).collect(),
            next_page_token: page.next.unwrap_or_default(),
            blocked: page.head.blocked.as_deref().map(blocklist::entry),
        }))
    }

    async fn get_version(
        &self,
        request: Request<v1::GetVersionRequest>,
    ) -> Answer<v1::GetVersionResponse> {
        let v1::GetVersionRequest {
            skill_id,
            version_number,
            semantic_version,
        } = request.into_inner();
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let read = self.lookup.instructions(&skill, &version).await;
        let (described, body) = read?;
        Ok(Response::new(v1::GetVersionResponse {
            skill_id: described.head.id.to_string(),
            version: Some(convert::version(&described, body)),
        }))
    }

    async fn diff_versions(
        &self,
        request: Request<v1::DiffVersionsRequest>,
    ) -> Answer<v1::DiffVersionsResponse> {
        let v1::DiffVersionsRequest {
            skill_id,
            from_version,
            to_version,
            from_semantic_version,
            to_semantic_version,
        } = request.into_inner();
        let (skill, to) = target(&skill_id, to_version, &to_semantic_version)?;
        let from = selector(from_version, &from_semantic_version)?;
        // Left out, it is not the active version but the one before `to`, which the domain finds.
        let from = (from != VersionSelector::Active).then_some(from);
        let diff = self.lookup.diff(&skill, from, &to).await;
        Ok(Response::new(convert::diff(diff?)))
    }

    async fn activate_version(
        &self,
        request: Request<v1::ActivateVersionRequest>,
    ) -> Answer<v1::ActivateVersionResponse> {
        let caller = caller(
            &request,
            "ActivateVersion",
            &request.get_ref().idempotency_key,
        );
        let v1::ActivateVersionRequest {
            skill_id,
            version_number,
            semantic_version,
            idempotency_key: _,
        } = request.into_inner();
        let version = named(version_number, &semantic_version)?;
        let activate = async |id| self.registry.activate(&id, version, &caller).await;
        let activated = self.stored.write(&skill_id, activate).await?;
        Ok(Response::new(v1::ActivateVersionResponse {
            skill_id: activated.id.to_string(),
            version: Some(convert::state(activated.version)),
            previous_version: number(activated.previous),
        }))
    }

    async fn set_short_name(
        &self,
        request: Request<v1::SetShortNameRequest>,
    ) -> Answer<v1::SetShortNameResponse> {
        let key = &request.get_ref().idempotency_key;
        let caller = caller(&request, "SetShortName", key);
        let v1::SetShortNameRequest {
            short_name,
            holder_id,
            skill_id,
            idempotency_key: _,
        } = request.into_inner();
        let target = match skill_id.as_str() {
            "" => None,
            id => Some(self.stored.full_id(id)?),
        };
        let give = async |from| {
            let to = target.as_ref();
            self.registry
                .give_name(&short_name, &from, to, &caller)
                .await
        };
        let moved = self.stored.write(&holder_id, give).await?;
        Ok(Response::new(v1::SetShortNameResponse {
            short_name: moved.name,
            previous_holder_id: moved.from.to_string(),
            holder_id: moved.to.map(String::from).unwrap_or_default(),
        }))
    }

    async fn get_metrics(
        &self,
        request: Request<v1::GetMetricsRequest>,
    ) -> Answer<v1::GetMetricsResponse> {
        let v1::GetMetricsRequest { skill_id } = request.into_inner();
        let usage = self.lookup.usage(&Reference::parse(&skill_id));
        let usage = usage?;
        Ok(Response::new(usage::metrics(usage)))
    }

    async fn validate_skill(
        &self,
        request: Request<v1::ValidateSkillRequest>,
    ) -> Answer<v1::ValidateSkillResponse> {
        let caller = principal(&request);
        let v1::ValidateSkillRequest {
            skill_id,
            files,
            folder,
            strict,
        } = request.into_inner();
        let upload = Upload {
            skill: skill_id,
            files: publish::files(files),
            folder,
            strict,
        };
        let candidate = self.registry.validate_upload(upload, &caller).await;
        let candidate = candidate?;
        let version = |skill: &model::Skill| skill.version.clone().unwrap_or_default();
        Ok(Response::new(v1::ValidateSkillResponse {
            valid: candidate.is_valid(),
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
    ) -> Answer<Messages<v1::ExportSkillResponse>> {
        let reader = Peer::of(request.extensions());
        export::chunks(&self.lookup, request.into_inner(), &reader).await
    }

    async fn update_blocklist(
        &self,
        request: Request<v1::UpdateBlocklistRequest>,
    ) -> Answer<v1::UpdateBlocklistResponse> {
        let caller = caller(&request, "UpdateBlocklist", "");
        blocklist::update(self, request.into_inner(), &caller).await
    }

    async fn scan_skill(
        &self,
        request: Request<v1::ScanSkillRequest>,
    ) -> Answer<v1::ScanSkillResponse> {
        trust::scan(&self.registry, &self.lookup, request.into_inner()).await
    }

    async fn list_held(
        &self,
        request: Request<v1::ListHeldRequest>,
    ) -> Answer<v1::ListHeldResponse> {
        trust::list_held(&self.registry, request.into_inner())
    }

    async fn approve_version(
        &self,
        request: Request<v1::ApproveVersionRequest>,
    ) -> Answer<v1::ApproveVersionResponse> {
        let key = &request.get_ref().idempotency_key;
        let caller = caller(&request, "ApproveVersion", key);
        trust::approve(self, request.into_inner(), &caller).await
    }

    async fn reject_version(
        &self,
        request: Request<v1::RejectVersionRequest>,
    ) -> Answer<v1::RejectVersionResponse> {
        let key = &request.get_ref().idempotency_key;
        let caller = caller(&request, "RejectVersion", key);
        trust::reject(self, request.into_inner(), &caller).await
    }

    async fn read_for_review(
        &self,
        request: Request<v1::ReadForReviewRequest>,
    ) -> Answer<v1::ReadForReviewResponse> {
        in_review::read(self, request.into_inner()).await
    }

    async fn diff_for_review(
        &self,
        request: Request<v1::DiffForReviewRequest>,
    ) -> Answer<v1::DiffForReviewResponse> {
        in_review::diff(self, request.into_inner()).await
    }

    async fn export_for_review(
        &self,
        request: Request<v1::ExportForReviewRequest>,
    ) -> Answer<Messages<v1::ExportForReviewResponse>> {
        let reader = Peer::of(request.extensions());
        in_review::export(self, request.into_inner(), &reader).await
    }

    async fn list_blocked(
        &self,
        request: Request<v1::ListBlockedRequest>,
    ) -> Answer<v1::ListBlockedResponse> {
        blocklist::list(&self.registry, request.into_inner())
    }

    async fn add_source(
        &self,
        request: Request<v1::AddSourceRequest>,
    ) -> Answer<v1::AddSourceResponse> {
        sources::add(self.sources.engine(), request).await
    }

    async fn remove_source(
        &self,
        request: Request<v1::RemoveSourceRequest>,
    ) -> Answer<v1::RemoveSourceResponse> {
        sources::remove(self.sources.engine(), request.into_inner()).await
    }

    async fn list_sources(
        &self,
        _: Request<v1::ListSourcesRequest>,
    ) -> Answer<v1::ListSourcesResponse> {
        sources::list(self.sources.shown()?)
    }

    async fn refresh_index(
        &self,
        request: Request<v1::RefreshIndexRequest>,
    ) -> Answer<v1::RefreshIndexResponse> {
        let time = time_left(&request);
        sync::refresh(self.sources.engine(), request.into_inner(), time).await
    }

    async fn force_full_sync(
        &self,
        request: Request<v1::ForceFullSyncRequest>,
    ) -> Answer<v1::ForceFullSyncResponse> {
        sync::force_full(self.sources.engine(), request.into_inner())
    }

    async fn get_sync_status(
        &self,
        request: Request<v1::GetSyncStatusRequest>,
    ) -> Answer<v1::GetSyncStatusResponse> {
        sync::get_status(self, request.into_inner())
    }

    async fn watch_sync(
        &self,
        request: Request<v1::WatchSyncRequest>,
    ) -> Answer<Messages<v1::WatchSyncResponse>> {
        sync::watch(self.sources.shown()?, request.get_ref())
    }

    async fn get_source_health(
        &self,
        request: Request<v1::GetSourceHealthRequest>,
    ) -> Answer<v1::GetSourceHealthResponse> {
        sources::health(self.sources.shown()?, request.get_ref())
    }

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Answer<Messages<v1::WatchResponse>> {
        // Subscribed before the position in the log is fixed, so that no change of a folder falls
        // between the two.
        let changes = self.viewer.changes(request.extensions()).await;
        let sees = self.viewer.sees(request.extensions());
        let answers = watch::answers(&self.registry, changes, sees, request.into_inner())?;
        Ok(Response::new(Box::pin(answers)))
    }
}
