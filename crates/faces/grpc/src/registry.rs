//! The Registry service.

use std::borrow::Cow;

use tonic::{Request, Response, Status, Streaming};

use super::bulk::Bulk;
use super::convert::{self, info};
use super::viewer::Viewer;
use super::{
    Messages, VERSIONS, access, blocklist, caller, export, named, number, page_size, principal,
    publish, selector, sources, sync, target, time_left, token, trust, usage, watch,
};
use ::access::Action;
use ::search::SearchIndex;
use ::sync::Engine;
use admission::Peer;
use contract::{status, v1};
use lookup::Lookup;
use model::{Reference, VersionSelector};
use namespaces::Seen;
use preflight::Installer;
use registry::{Feed, Registry, Upload};

/// The Registry service over the domain.
#[derive(Debug, Clone)]
pub struct RegistryService {
    pub(super) registry: Registry,
    pub(super) lookup: Lookup,
    pub(super) feed: Feed,
    pub(super) installer: Installer,
    pub(super) engine: Engine,
    pub(super) search: SearchIndex,
    bulk: Bulk,
    viewer: Viewer,
}

impl RegistryService {
    /// The service of a registry, of a feed of skills to block, of what is installed on this
    /// machine, of the sources of skills, and of the index of them.
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
            bulk: Bulk::new(&registry),
            feed,
            installer,
            engine,
            search,
            registry,
            viewer: Viewer::default(),
        }
    }

    /// The same for callers who do not all see the same.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = viewer;
        self
    }

    /// What a caller sees of the store. Where skills lie around it as well, what it reads is
    /// looked up in both ([`Viewer::lookup`]), and what it writes is of the store.
    async fn seen_by(&self, call: &http::Extensions) -> Cow<'_, Self> {
        let Some(Seen { registry, search }) = self.viewer.view(call).await else {
            return Cow::Borrowed(self);
        };
        Cow::Owned(Self {
            lookup: Lookup::new(registry.clone()),
            bulk: self.bulk.with_registry(registry.clone()),
            registry,
            search,
            ..self.clone()
        })
    }

    /// Sources tell of skills by where they come from, so who does not see all skills is told
    /// of none.
    async fn require_sources(&self, call: &http::Extensions) -> Result<(), Status> {
        if self.viewer.view(call).await.is_none() {
            return Ok(());
        }
        Err(status(sources::untold()))
    }
}

#[tonic::async_trait]
impl v1::registry_server::Registry for RegistryService {
    type PublishSkillsStream = Messages<v1::PublishSkillsResponse>;
    type ExportSkillStream = Messages<v1::ExportSkillResponse>;
    type WatchStream = Messages<v1::WatchResponse>;
    type WatchSyncStream = Messages<v1::WatchSyncResponse>;

    async fn publish_skill(
        &self,
        request: Request<v1::PublishSkillRequest>,
    ) -> Result<Response<v1::PublishSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let principal = principal(&request);
        let submission = publish::submission(request.into_inner(), principal);
        let published = this.registry.publish_submission(submission).await;
        Ok(Response::new(publish::answer(published.map_err(status)?)))
    }

    async fn publish_skills(
        &self,
        request: Request<Streaming<v1::PublishSkillsRequest>>,
    ) -> Result<Response<Self::PublishSkillsStream>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let access = access(&request);
        let authorizer = this.viewer.authorizer(&access, Action::Publish);
        let by = access.caller.principal.clone();
        let answers = this.bulk.publish(request.into_inner(), by, authorizer);
        Ok(Response::new(Box::pin(answers)))
    }

    async fn delete_skill(
        &self,
        request: Request<v1::DeleteSkillRequest>,
    ) -> Result<Response<v1::DeleteSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let caller = caller(&request, "DeleteSkill", &request.get_ref().idempotency_key);
        let v1::DeleteSkillRequest {
            skill_id,
            idempotency_key: _,
        } = request.into_inner();
        let delete = async |id| this.registry.delete(&id, &caller).await;
        let deleted = self
            .lookup
            .write(&skill_id, &caller, delete)
            .await
            .map_err(status)?;
        Ok(Response::new(v1::DeleteSkillResponse {
            skill_id: deleted.id.to_string(),
            versions_deleted: deleted.versions,
            dependents: convert::ids(deleted.dependents),
        }))
    }

    async fn yank_version(
        &self,
        request: Request<v1::YankVersionRequest>,
    ) -> Result<Response<v1::YankVersionResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let caller = caller(&request, "YankVersion", &request.get_ref().idempotency_key);
        let v1::YankVersionRequest {
            skill_id,
            version_number,
            semantic_version,
            reason,
            idempotency_key: _,
        } = request.into_inner();
        let version = named(version_number, &semantic_version)?;
        let yank = async |id| this.registry.yank(&id, version, &reason, &caller).await;
        let withdrawn = self
            .lookup
            .write(&skill_id, &caller, yank)
            .await
            .map_err(status)?;
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
    ) -> Result<Response<v1::UnyankVersionResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
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
        let unyank = async |id| this.registry.unyank(&id, version, &caller).await;
        let withdrawn = self
            .lookup
            .write(&skill_id, &caller, unyank)
            .await
            .map_err(status)?;
        Ok(Response::new(v1::UnyankVersionResponse {
            skill_id: withdrawn.id.to_string(),
            version: Some(convert::state(withdrawn.version)),
            active_version: number(withdrawn.active),
        }))
    }

    async fn list_versions(
        &self,
        request: Request<v1::ListVersionsRequest>,
    ) -> Result<Response<v1::ListVersionsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let lookup = this.viewer.lookup(request.extensions(), &this.lookup).await;
        let v1::ListVersionsRequest {
            skill_id,
            page_size: size,
            page_token,
        } = request.into_inner();
        let (skill, size) = (Reference::parse(&skill_id), page_size(size, VERSIONS));
        let page = lookup.versions(&skill, size, &page_token);
        let page = page.map_err(status)?;
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
        let this = self.seen_by(request.extensions()).await;
        let lookup = this.viewer.lookup(request.extensions(), &this.lookup).await;
        let v1::GetVersionRequest {
            skill_id,
            version_number,
            semantic_version,
        } = request.into_inner();
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let read = lookup.instructions(&skill, &version).await;
        let (described, body) = read.map_err(status)?;
        Ok(Response::new(v1::GetVersionResponse {
            skill_id: described.head.id.to_string(),
            version: Some(convert::version(&described, body)),
        }))
    }

    async fn diff_versions(
        &self,
        request: Request<v1::DiffVersionsRequest>,
    ) -> Result<Response<v1::DiffVersionsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let lookup = this.viewer.lookup(request.extensions(), &this.lookup).await;
        let v1::DiffVersionsRequest {
            skill_id,
            from_version,
            to_version,
            from_semantic_version,
            to_semantic_version,
        } = request.into_inner();
        let (skill, to) = target(&skill_id, to_version, &to_semantic_version)?;
        let from = selector(from_version, &from_semantic_version)?;
        let from = (from != VersionSelector::Active).then_some(from);
        let diff = lookup.diff(&skill, from, &to).await;
        Ok(Response::new(convert::diff(diff.map_err(status)?)))
    }

    async fn activate_version(
        &self,
        request: Request<v1::ActivateVersionRequest>,
    ) -> Result<Response<v1::ActivateVersionResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
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
        let activate = async |id| this.registry.activate(&id, version, &caller).await;
        let activated = self
            .lookup
            .write(&skill_id, &caller, activate)
            .await
            .map_err(status)?;
        Ok(Response::new(v1::ActivateVersionResponse {
            skill_id: activated.id.to_string(),
            version: Some(convert::state(activated.version)),
            previous_version: number(activated.previous),
        }))
    }

    async fn get_metrics(
        &self,
        request: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<v1::GetMetricsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let lookup = this.viewer.lookup(request.extensions(), &this.lookup).await;
        let v1::GetMetricsRequest { skill_id } = request.into_inner();
        let usage = lookup.usage(&Reference::parse(&skill_id));
        let usage = usage.map_err(status)?;
        Ok(Response::new(usage::metrics(usage)))
    }

    async fn validate_skill(
        &self,
        request: Request<v1::ValidateSkillRequest>,
    ) -> Result<Response<v1::ValidateSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
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
        let candidate = this.registry.validate_upload(upload, &caller).await;
        let candidate = candidate.map_err(status)?;
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
    ) -> Result<Response<Self::ExportSkillStream>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let lookup = this.viewer.lookup(request.extensions(), &this.lookup).await;
        let reader = Peer::of(request.extensions());
        let chunks = export::chunks(&lookup, request.into_inner(), &reader).await?;
        Ok(Response::new(chunks))
    }

    async fn update_blocklist(
        &self,
        request: Request<v1::UpdateBlocklistRequest>,
    ) -> Result<Response<v1::UpdateBlocklistResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        // Whoever may put skills on the list cannot take them off.
        if request.get_ref().action() == v1::BlocklistAction::Remove {
            access(&request).require(Action::Review).map_err(status)?;
        }
        let caller = caller(&request, "UpdateBlocklist", "");
        let updated = blocklist::update(&this, request.into_inner(), &caller);
        Ok(Response::new(updated.await?))
    }

    async fn scan_skill(
        &self,
        request: Request<v1::ScanSkillRequest>,
    ) -> Result<Response<v1::ScanSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let lookup = this.viewer.lookup(request.extensions(), &this.lookup).await;
        let scanned = trust::scan(&this.registry, &lookup, request.into_inner());
        Ok(Response::new(scanned.await?))
    }

    async fn list_held(
        &self,
        request: Request<v1::ListHeldRequest>,
    ) -> Result<Response<v1::ListHeldResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let page = trust::list_held(&this.registry, request.into_inner())?;
        Ok(Response::new(page))
    }

    async fn approve_version(
        &self,
        request: Request<v1::ApproveVersionRequest>,
    ) -> Result<Response<v1::ApproveVersionResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let key = &request.get_ref().idempotency_key;
        let caller = caller(&request, "ApproveVersion", key);
        let approved = trust::approve(&this, request.into_inner(), &caller).await?;
        Ok(Response::new(approved))
    }

    async fn reject_version(
        &self,
        request: Request<v1::RejectVersionRequest>,
    ) -> Result<Response<v1::RejectVersionResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let key = &request.get_ref().idempotency_key;
        let caller = caller(&request, "RejectVersion", key);
        let rejected = trust::reject(&this, request.into_inner(), &caller).await?;
        Ok(Response::new(rejected))
    }

    async fn list_blocked(
        &self,
        request: Request<v1::ListBlockedRequest>,
    ) -> Result<Response<v1::ListBlockedResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let page = blocklist::list(&this.registry, request.into_inner())?;
        Ok(Response::new(page))
    }

    async fn add_source(
        &self,
        request: Request<v1::AddSourceRequest>,
    ) -> Result<Response<v1::AddSourceResponse>, Status> {
        let added = sources::add(&self.engine, request.into_inner()).await?;
        Ok(Response::new(added))
    }

    async fn remove_source(
        &self,
        request: Request<v1::RemoveSourceRequest>,
    ) -> Result<Response<v1::RemoveSourceResponse>, Status> {
        let removed = sources::remove(&self.engine, request.into_inner()).await?;
        Ok(Response::new(removed))
    }

    async fn list_sources(
        &self,
        request: Request<v1::ListSourcesRequest>,
    ) -> Result<Response<v1::ListSourcesResponse>, Status> {
        self.require_sources(request.extensions()).await?;
        Ok(Response::new(sources::list(&self.engine)?))
    }

    async fn refresh_index(
        &self,
        request: Request<v1::RefreshIndexRequest>,
    ) -> Result<Response<v1::RefreshIndexResponse>, Status> {
        let time = time_left(&request);
        let synced = sync::refresh(&self.engine, request.into_inner(), time).await?;
        Ok(Response::new(synced))
    }

    async fn force_full_sync(
        &self,
        request: Request<v1::ForceFullSyncRequest>,
    ) -> Result<Response<v1::ForceFullSyncResponse>, Status> {
        let begun = sync::force_full(&self.engine, request.into_inner())?;
        Ok(Response::new(begun))
    }

    async fn get_sync_status(
        &self,
        request: Request<v1::GetSyncStatusRequest>,
    ) -> Result<Response<v1::GetSyncStatusResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        if !request.get_ref().sync_id.is_empty() {
            self.require_sources(request.extensions()).await?;
        }
        let found = sync::get_status(&this, request.into_inner())?;
        Ok(Response::new(found))
    }

    async fn watch_sync(
        &self,
        request: Request<v1::WatchSyncRequest>,
    ) -> Result<Response<Self::WatchSyncStream>, Status> {
        self.require_sources(request.extensions()).await?;
        let steps = sync::watch(&self.engine, request.get_ref())?;
        Ok(Response::new(steps))
    }

    async fn get_source_health(
        &self,
        request: Request<v1::GetSourceHealthRequest>,
    ) -> Result<Response<v1::GetSourceHealthResponse>, Status> {
        self.require_sources(request.extensions()).await?;
        let health = sources::health(&self.engine, request.get_ref())?;
        Ok(Response::new(health))
    }

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let changes = this.viewer.changes(request.extensions()).await;
        let sees = this.viewer.sees(request.extensions());
        let answers = watch::answers(&this.registry, changes, sees, request.into_inner())?;
        Ok(Response::new(Box::pin(answers)))
    }
}
