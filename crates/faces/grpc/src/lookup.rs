//! The Lookup service.

use std::borrow::Cow;

use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Response, Status};

use super::convert::{self, ids, info, location_of, trust_tier_of};
use super::viewer::Viewer;
use super::{DEPENDENTS, Messages, NAMES, README, SKILLS, VERSIONS_OF_A_SKILL};
use super::{codebase, page_size, search, similar, sources, target, token, tools, trust};
use ::lookup::{ListQuery, Lookup};
use ::search::SearchIndex;
use ::sync::Engine;
use ::tools::Tools;
use contract::{FOR_MODEL, INDEX_VERSION, status, v1};
use namespaces::Seen;
use recommend::Advisor;
use registry::Registry;

/// The Lookup service over the domain.
#[derive(Debug, Clone)]
pub struct LookupService {
    registry: Registry,
    lookup: Lookup,
    tools: Tools,
    search: SearchIndex,
    advisor: Advisor,
    viewer: Viewer,
    sources: Option<Engine>,
}

impl LookupService {
    /// The service of a registry, of the tools that its skills unlock, of the index
    /// of them, and of what recommends them.
    #[must_use]
    pub fn new(registry: Registry, tools: Tools, search: SearchIndex, advisor: Advisor) -> Self {
        Self {
            lookup: Lookup::new(registry.clone()),
            registry,
            tools,
            search,
            advisor,
            viewer: Viewer::default(),
            sources: None,
        }
    }

    /// The same for callers who do not all see the same.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = viewer;
        self
    }

    /// The same with what the repositories of skills have to show.
    #[must_use]
    pub fn with_sources(mut self, engine: Engine) -> Self {
        self.sources = Some(engine);
        self
    }

    /// What a caller sees.
    async fn seen_by(&self, call: &http::Extensions) -> Cow<'_, Self> {
        let Some(Seen { registry, search }) = self.viewer.seen(call).await else {
            return Cow::Borrowed(self);
        };
        let composition = self.tools.composition();
        let composition = composition.with_skills(registry.clone(), search.clone());
        let tools = self.tools.with_skills(registry.clone(), composition);
        let advisor = self.advisor.with_skills(registry.clone(), search.clone());
        // What repositories show, they show of the store's.
        let sources = registry.view().and(self.sources.clone());
        let lookup = Lookup::new(registry.clone());
        Cow::Owned(Self {
            registry,
            lookup,
            tools,
            search,
            advisor,
            sources,
            viewer: Viewer::default(),
        })
    }

    /// The state that an answer is at least of, when it is taken before the index is asked.
    fn index_version(&self) -> Option<AsciiMetadataValue> {
        let log: String = self.registry.log_id().chars().take(8).collect();
        let position = self.search.progress().position;
        format!("{log}-{position}").parse().ok()
    }
}

/// An answer that was found in the index.
fn of_index<T>(version: Option<AsciiMetadataValue>, answer: T) -> Response<T> {
    let mut response = Response::new(answer);
    if let Some(version) = version {
        response.metadata_mut().insert(INDEX_VERSION, version);
    }
    response
}

#[tonic::async_trait]
impl v1::lookup_server::Lookup for LookupService {
    async fn search(
        &self,
        request: Request<v1::SearchRequest>,
    ) -> Result<Response<v1::SearchResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let version = this.index_version();
        let for_model = request.metadata().contains_key(FOR_MODEL);
        let request = request.into_inner();
        let found = search::search(&this.registry, &this.search, request, for_model).await?;
        Ok(of_index(version, found))
    }

    async fn analyze_codebase(
        &self,
        request: Request<v1::AnalyzeCodebaseRequest>,
    ) -> Result<Response<v1::AnalyzeCodebaseResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let analysis = codebase::analyze(&this.advisor, request).await?;
        Ok(Response::new(analysis))
    }

    async fn recommend_skills(
        &self,
        request: Request<v1::RecommendSkillsRequest>,
    ) -> Result<Response<v1::RecommendSkillsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let version = this.index_version();
        let answer = codebase::recommend(&this.advisor, &this.registry, request).await?;
        Ok(of_index(version, answer))
    }

    async fn list_skills(
        &self,
        request: Request<v1::ListSkillsRequest>,
    ) -> Result<Response<v1::ListSkillsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let location = location_of(request.get_ref().location());
        let trust_tier = trust_tier_of(request.get_ref().trust_tier());
        let v1::ListSkillsRequest {
            page_size: size,
            page_token,
            source,
            author,
            category,
            tags,
            technology,
            location: _,
            trust_tier: _,
            with_problems,
            requires,
        } = request.into_inner();
        let query = ListQuery {
            source,
            author,
            category,
            tags,
            technology,
            location,
            trust_tier,
            with_problems,
            requires,
        };
        let page = this.lookup.page(query, page_size(size, SKILLS), page_token);
        let page = page.await.map_err(status)?;
        Ok(Response::new(v1::ListSkillsResponse {
            skills: page
                .heads
                .iter()
                .filter_map(|head| convert::listed(&page.catalog, head))
                .collect(),
            next_page_token: token(page.next),
            resume_token: page.resume,
        }))
    }

    async fn list_similar_skills(
        &self,
        request: Request<v1::ListSimilarSkillsRequest>,
    ) -> Result<Response<v1::ListSimilarSkillsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let version = this.index_version();
        let request = request.into_inner();
        let similar = similar::list(&this.registry, &this.lookup, &this.search, request).await?;
        Ok(of_index(version, similar))
    }

    async fn get_skill(
        &self,
        request: Request<v1::GetSkillRequest>,
    ) -> Result<Response<v1::GetSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::GetSkillRequest {
            skill_id,
            include_readme,
            include_versions,
            include_security,
            version_number,
            semantic_version,
            include_dependents,
        } = request.into_inner();
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let newest = if include_versions {
            VERSIONS_OF_A_SKILL
        } else {
            0
        };
        let found = this.lookup.with_versions(&skill, &version, newest);
        let (found, versions) = found.map_err(status)?;
        let described = &found.described;
        let scan = this
            .registry
            .scan_of(&described.head, described.version.number);
        let scan = scan.map_err(status)?;
        let (readme, now) = (include_readme.unwrap_or(README), this.registry.now());
        let mut skill = convert::detail(&found, readme, scan.as_deref(), now);
        skill.versions = versions.iter().map(info).collect();
        let key = described.head.id.key();
        let facts = self.sources.as_ref().map(|sources| sources.facts(&key));
        if let Some(facts) = facts.transpose().map_err(status)?.flatten() {
            sources::show(facts, &mut skill);
        }
        if let Some(scan) = scan.filter(|_| include_security) {
            skill.security_findings = scan.report.findings.iter().map(trust::finding).collect();
            let standing = described.head.standing(now);
            (_, skill.quality_parts) = trust::quality_parts(scan.quality.clone(), standing);
        }
        let dependents = if include_dependents {
            Some(
                this.lookup
                    .dependents(&described.head.id)
                    .await
                    .map_err(status)?,
            )
        } else {
            None
        };
        Ok(Response::new(v1::GetSkillResponse {
            dependent_count: dependents.as_ref().map(|found| convert::count(found.len())),
            dependents: ids(dependents.into_iter().flatten().take(DEPENDENTS)),
            skill: Some(skill),
            shadowed_ids: ids(found.shadowed),
        }))
    }

    async fn read_skill(
        &self,
        request: Request<v1::ReadSkillRequest>,
    ) -> Result<Response<v1::ReadSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::ReadSkillRequest { uri, session_id } = request.into_inner();
        let text = this.lookup.read(&uri, &session_id).await.map_err(status)?;
        Ok(Response::new(v1::ReadSkillResponse {
            uri: text.uri.to_string(),
            mime_type: text.file.path.mime_type().to_owned(),
            text: text.text,
            shadowed_ids: ids(text.found.shadowed),
        }))
    }

    async fn activate_skill(
        &self,
        request: Request<v1::ActivateSkillRequest>,
    ) -> Result<Response<v1::ActivateSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::ActivateSkillRequest {
            command,
            session_id,
        } = request.into_inner();
        let text = this
            .lookup
            .activate(&command, &session_id)
            .await
            .map_err(status)?;
        let described = &text.found.described;
        Ok(Response::new(v1::ActivateSkillResponse {
            skill_id: described.head.id.to_string(),
            name: described.version.skill.name.clone(),
            location: convert::location(described.head.id.location()).into(),
            uri: text.uri.to_string(),
            version_number: described.version.number.get(),
            semantic_version: described.version.semantic.to_string(),
            content: text.text,
            shadowed_ids: ids(text.found.shadowed),
        }))
    }

    async fn render_prompt(
        &self,
        request: Request<v1::RenderPromptRequest>,
    ) -> Result<Response<v1::RenderPromptResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::RenderPromptRequest {
            max_tokens,
            task,
            exploration_percent,
        } = request.into_inner();
        let percent = exploration_percent.map(i32::unsigned_abs);
        let prompt = this
            .advisor
            .prompt(task, percent, max_tokens.unsigned_abs());
        let prompt = prompt.await.map_err(status)?;
        Ok(Response::new(v1::RenderPromptResponse {
            listed: convert::count(prompt.listed),
            left_out: convert::count(prompt.left_out),
            tokens: convert::count(prompt.tokens()),
            text: prompt.text,
            explored: prompt.explored,
            next_names: prompt.next,
        }))
    }

    async fn complete_name(
        &self,
        request: Request<v1::CompleteNameRequest>,
    ) -> Result<Response<v1::CompleteNameResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::CompleteNameRequest {
            prefix,
            form,
            limit,
        } = request.into_inner();
        let form = convert::name_form(v1::NameForm::try_from(form).unwrap_or_default());
        let completion = this.lookup.complete(&prefix, form, page_size(limit, NAMES));
        Ok(Response::new(v1::CompleteNameResponse {
            names: completion.names,
            has_more: completion.has_more,
        }))
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::ListFilesRequest {
            skill_id,
            version_number,
            semantic_version,
        } = request.into_inner();
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let found = this.lookup.get(&skill, &version).map_err(status)?;
        let (head, version) = (&found.described.head, &found.described.version);
        Ok(Response::new(v1::ListFilesResponse {
            skill_id: head.id.to_string(),
            version_number: version.number.get(),
            digest: version.digest.to_string(),
            files: version
                .files
                .iter()
                .map(|file| convert::entry(&head.id, file))
                .collect(),
        }))
    }

    async fn read_file(
        &self,
        request: Request<v1::ReadFileRequest>,
    ) -> Result<Response<v1::ReadFileResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        let v1::ReadFileRequest {
            skill_id,
            path,
            version_number,
            semantic_version,
            offset_bytes,
            limit_bytes,
            session_id,
        } = request.into_inner();
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let part = (offset_bytes.unsigned_abs(), limit_bytes.unsigned_abs());
        let part = this.lookup.file(&skill, &version, &path, part, &session_id);
        let part = part.await.map_err(status)?;
        let described = &part.found.described;
        Ok(Response::new(v1::ReadFileResponse {
            file: Some(convert::entry(&described.head.id, &part.file)),
            content: part.bytes,
            version_number: described.version.number.get(),
        }))
    }

    async fn view_file(
        &self,
        request: Request<v1::ViewFileRequest>,
    ) -> Result<Response<v1::ViewFileResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::view_file(&this.tools, request).await
    }

    async fn load_skill(
        &self,
        request: Request<v1::LoadSkillRequest>,
    ) -> Result<Response<v1::LoadSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::load_skill(&this.tools, request).await
    }

    async fn load_skill_detail(
        &self,
        request: Request<v1::LoadSkillDetailRequest>,
    ) -> Result<Response<v1::LoadSkillDetailResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::load_skill_detail(&this.tools, request).await
    }

    async fn list_loaded_skills(
        &self,
        request: Request<v1::ListLoadedSkillsRequest>,
    ) -> Result<Response<v1::ListLoadedSkillsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::list_loaded_skills(&this.tools, request)
    }

    async fn unload_skill(
        &self,
        request: Request<v1::UnloadSkillRequest>,
    ) -> Result<Response<v1::UnloadSkillResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::unload_skill(&this.tools, request)
    }

    async fn list_tools(
        &self,
        request: Request<v1::ListToolsRequest>,
    ) -> Result<Response<v1::ListToolsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::list_tools(&this.tools, request)
    }

    async fn call_tool(
        &self,
        request: Request<v1::CallToolRequest>,
    ) -> Result<Response<v1::CallToolResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::call_tool(&this.tools, request).await
    }

    async fn list_tool_calls(
        &self,
        request: Request<v1::ListToolCallsRequest>,
    ) -> Result<Response<v1::ListToolCallsResponse>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::list_tool_calls(&this.tools, request)
    }

    type StreamToolCallStream = Messages<v1::StreamToolCallResponse>;

    async fn stream_tool_call(
        &self,
        request: Request<v1::StreamToolCallRequest>,
    ) -> Result<Response<Self::StreamToolCallStream>, Status> {
        let this = self.seen_by(request.extensions()).await;
        tools::stream_tool_call(&this.tools, request).await
    }
}
