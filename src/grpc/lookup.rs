//! The Lookup service.

use tonic::{Request, Response, Status};

use super::convert::{self, ids, info};
use super::{Codebases, codebase, page_size, reference, search, selector, token, tools};
use crate::contract::{status, v1};
use ::lookup::{EXPLORATION_PERCENT, ListQuery, Lookup, Task};
use ::search::{SearchIndex, SearchQuery};
use ::tools::Tools;
use executor::Kind;
use model::{Location, TrustTier};
use registry::Registry;

/// Skills that are looked for to fit a task.
const FITTING: usize = 400;
/// Versions that come with a skill.
const VERSIONS: usize = 20;

/// The Lookup service over the domain.
#[derive(Debug, Clone)]
pub struct LookupService {
    registry: Registry,
    lookup: Lookup,
    tools: Tools,
    search: SearchIndex,
    codebases: Codebases,
}

impl LookupService {
    /// The service of a registry, of the tools that its skills unlock, of the index
    /// of them, and of the codebases that may be read.
    #[must_use]
    pub fn new(
        registry: Registry,
        tools: Tools,
        search: SearchIndex,
        codebases: Codebases,
    ) -> Self {
        Self {
            lookup: Lookup::new(registry.clone()),
            registry,
            tools,
            search,
            codebases,
        }
    }
}

#[tonic::async_trait]
impl v1::lookup_server::Lookup for LookupService {
    async fn search(
        &self,
        request: Request<v1::SearchRequest>,
    ) -> Result<Response<v1::SearchResponse>, Status> {
        let found = search::search(&self.registry, &self.search, request.into_inner()).await?;
        Ok(Response::new(found))
    }

    async fn analyze_codebase(
        &self,
        request: Request<v1::AnalyzeCodebaseRequest>,
    ) -> Result<Response<v1::AnalyzeCodebaseResponse>, Status> {
        let analysis = codebase::analyze(&self.codebases, &self.registry, request).await?;
        Ok(Response::new(analysis))
    }

    async fn recommend_skills(
        &self,
        request: Request<v1::RecommendSkillsRequest>,
    ) -> Result<Response<v1::RecommendSkillsResponse>, Status> {
        let (registry, index) = (&self.registry, &self.search);
        let answer = codebase::recommend(&self.codebases, registry, index, request).await?;
        Ok(Response::new(answer))
    }

    async fn list_skills(
        &self,
        request: Request<v1::ListSkillsRequest>,
    ) -> Result<Response<v1::ListSkillsResponse>, Status> {
        let v1::ListSkillsRequest {
            page_size: size,
            page_token,
            source,
            author,
            category,
            tags,
            technology,
            location,
            trust_tier,
        } = request.into_inner();
        let query = ListQuery {
            source,
            author,
            category,
            tags,
            technology,
            location: match v1::Location::try_from(location).unwrap_or_default() {
                v1::Location::Unspecified => None,
                v1::Location::Project => Some(Location::Project),
                v1::Location::User => Some(Location::User),
                v1::Location::Global => Some(Location::Global),
            },
            trust_tier: match v1::TrustTier::try_from(trust_tier).unwrap_or_default() {
                v1::TrustTier::Unspecified => None,
                v1::TrustTier::Official => Some(TrustTier::Official),
                v1::TrustTier::Verified => Some(TrustTier::Verified),
                v1::TrustTier::Community => Some(TrustTier::Community),
                v1::TrustTier::Unverified => Some(TrustTier::Unverified),
            },
        };
        let (lookup, size) = (self.lookup.clone(), page_size(size, 100));
        let page = if query.walks() {
            let list = move |_: &_| lookup.list(&query, size, &page_token);
            self.registry
                .executor()
                .run_fallible(Kind::Read, list)
                .await
        } else {
            lookup.list(&query, size, &page_token)
        };
        let page = page.map_err(status)?;
        Ok(Response::new(v1::ListSkillsResponse {
            skills: page
                .heads
                .iter()
                .filter_map(|head| convert::metadata(&page.catalog, head))
                .collect(),
            next_page_token: token(page.next),
            resume_token: page.resume,
        }))
    }

    async fn get_skill(
        &self,
        request: Request<v1::GetSkillRequest>,
    ) -> Result<Response<v1::GetSkillResponse>, Status> {
        let v1::GetSkillRequest {
            skill_id,
            include_readme,
            include_versions,
            // Nothing is scanned yet: the status says so.
            include_security: _,
            version_number,
            semantic_version,
        } = request.into_inner();
        let selector = selector(version_number, &semantic_version)?;
        let found = self
            .lookup
            .get(&reference(&skill_id), &selector)
            .map_err(status)?;
        let mut skill = convert::detail(&found, include_readme.unwrap_or(true));
        if include_versions {
            let page = self
                .registry
                .list_versions(&found.described.head.id, VERSIONS, "")
                .map_err(status)?;
            skill.versions = page.versions.iter().map(info).collect();
        }
        Ok(Response::new(v1::GetSkillResponse {
            skill: Some(skill),
            shadowed_ids: ids(found.shadowed),
        }))
    }

    async fn read_skill(
        &self,
        request: Request<v1::ReadSkillRequest>,
    ) -> Result<Response<v1::ReadSkillResponse>, Status> {
        let v1::ReadSkillRequest { uri, session_id } = request.into_inner();
        let text = self.lookup.read(&uri, &session_id).await.map_err(status)?;
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
        let v1::ActivateSkillRequest {
            command,
            session_id,
        } = request.into_inner();
        let text = self
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
        let v1::RenderPromptRequest {
            max_tokens,
            task,
            exploration_percent,
        } = request.into_inner();
        let max_tokens = max_tokens.unsigned_abs();
        let lookup = self.lookup.clone();
        let executor = self.registry.executor();
        let prompt = if task.trim().is_empty() {
            let render = move |_: &_| lookup.prompt(max_tokens);
            executor.run(Kind::Read, render).await.map_err(status)?
        } else {
            let query = SearchQuery {
                text: task,
                limit: FITTING,
                ..SearchQuery::default()
            };
            let fitting = search::run(&self.registry, &self.search, query).await?.hits;
            let percent = exploration_percent.map(i32::unsigned_abs);
            let task = Task {
                fitting: fitting.into_iter().map(|hit| hit.head).collect(),
                exploration_percent: percent.unwrap_or(EXPLORATION_PERCENT),
            };
            let render = move |_: &_| lookup.prompt_for(&task, max_tokens);
            let rendered = executor.run_fallible(Kind::Read, render);
            rendered.await.map_err(status)?
        };
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
        let v1::CompleteNameRequest {
            prefix,
            form,
            limit,
        } = request.into_inner();
        let form = convert::name_form(v1::NameForm::try_from(form).unwrap_or_default());
        let completion = self.lookup.complete(&prefix, form, page_size(limit, 100));
        Ok(Response::new(v1::CompleteNameResponse {
            names: completion.names,
            has_more: completion.has_more,
        }))
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Result<Response<v1::ListFilesResponse>, Status> {
        let v1::ListFilesRequest {
            skill_id,
            version_number,
            semantic_version,
        } = request.into_inner();
        let selector = selector(version_number, &semantic_version)?;
        let found = self
            .lookup
            .get(&reference(&skill_id), &selector)
            .map_err(status)?;
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
        let v1::ReadFileRequest {
            skill_id,
            path,
            version_number,
            semantic_version,
            offset_bytes,
            limit_bytes,
            session_id,
        } = request.into_inner();
        let selector = selector(version_number, &semantic_version)?;
        let part = (offset_bytes.unsigned_abs(), limit_bytes.unsigned_abs());
        let part = self
            .lookup
            .file(&reference(&skill_id), &selector, &path, part, &session_id)
            .await
            .map_err(status)?;
        let described = &part.found.described;
        Ok(Response::new(v1::ReadFileResponse {
            file: Some(convert::entry(&described.head.id, &part.file)),
            content: part.bytes,
            version_number: described.version.number.get(),
        }))
    }

    async fn load_skill(
        &self,
        request: Request<v1::LoadSkillRequest>,
    ) -> Result<Response<v1::LoadSkillResponse>, Status> {
        tools::load_skill(&self.tools, request).await
    }

    async fn load_skill_detail(
        &self,
        request: Request<v1::LoadSkillDetailRequest>,
    ) -> Result<Response<v1::LoadSkillDetailResponse>, Status> {
        tools::load_skill_detail(&self.tools, request).await
    }

    async fn list_loaded_skills(
        &self,
        request: Request<v1::ListLoadedSkillsRequest>,
    ) -> Result<Response<v1::ListLoadedSkillsResponse>, Status> {
        tools::list_loaded_skills(&self.tools, request)
    }

    async fn unload_skill(
        &self,
        request: Request<v1::UnloadSkillRequest>,
    ) -> Result<Response<v1::UnloadSkillResponse>, Status> {
        tools::unload_skill(&self.tools, request)
    }

    async fn list_tools(
        &self,
        request: Request<v1::ListToolsRequest>,
    ) -> Result<Response<v1::ListToolsResponse>, Status> {
        tools::list_tools(&self.tools, request)
    }

    async fn call_tool(
        &self,
        request: Request<v1::CallToolRequest>,
    ) -> Result<Response<v1::CallToolResponse>, Status> {
        tools::call_tool(&self.tools, request).await
    }

    async fn list_tool_calls(
        &self,
        request: Request<v1::ListToolCallsRequest>,
    ) -> Result<Response<v1::ListToolCallsResponse>, Status> {
        tools::list_tool_calls(&self.tools, request)
    }

    type StreamToolCallStream = tools::Updates;

    async fn stream_tool_call(
        &self,
        request: Request<v1::StreamToolCallRequest>,
    ) -> Result<Response<Self::StreamToolCallStream>, Status> {
        tools::stream_tool_call(&self.tools, request).await
    }
}
