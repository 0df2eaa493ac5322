//! The Lookup service.

use std::borrow::Cow;

use http::Extensions;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Response};

use super::convert::{self, ids, info, location_of, trust_tier_of};
use super::installed::Installs;
use super::viewer::Viewer;
use super::{DEFAULT_DEPENDENTS, DEFAULT_NAMES, DEFAULT_SKILL_VERSIONS, DEFAULT_SKILLS, README};
use super::{codebase, page_size, search, similar, sources, target, tools, trust};
use ::lookup::{ListQuery, Lookup};
use ::search::SearchIndex;
use ::sync::Engine;
use ::tools::Tools;
use contract::handlers::{self, Answer, Messages, View};
use contract::{FOR_MODEL, INDEX_VERSION, NamedResource, v1};
use namespaces::VisibleSkills;
use preflight::Installer;
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
    installer: Option<Installer>,
}

impl LookupService {
    /// Creates the service over a registry, the tools that its skills unlock, its search index and
    /// its advisor.
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
            installer: None,
        }
    }

    /// Sets what each caller sees.
    #[must_use]
    pub fn with_viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = viewer;
        self
    }

    /// Adds the facts that the repositories of skills show.
    #[must_use]
    pub fn with_sources(mut self, engine: Engine) -> Self {
        self.sources = Some(engine);
        self
    }

    /// Adds what is installed on this machine.
    #[must_use]
    pub fn with_installer(mut self, installer: Installer) -> Self {
        self.installer = Some(installer);
        self
    }

    async fn installs<T>(&self, request: &Request<T>) -> Installs {
        Installs::of(self.installer.as_ref(), request.extensions()).await
    }

    /// Returns the current state of the index. Callers read it before they search, so an answer may
    /// be newer than this, never older.
    fn index_version(&self) -> Option<AsciiMetadataValue> {
        // Positions of a restored directory count from its backup, so a part of the id of the log
        // goes along: else an old answer would look current after a restore.
        let log: String = self.registry.log_id().chars().take(8).collect();
        let position = self.search.progress().position;
        format!("{log}-{position}").parse().ok()
    }
}

/// Builds an answer that was found in the index.
fn of_index<T>(version: Option<AsciiMetadataValue>, answer: T) -> Response<T> {
    let mut response = Response::new(answer);
    if let Some(version) = version {
        response.metadata_mut().insert(INDEX_VERSION, version);
    }
    response
}

impl View for LookupService {
    async fn view<'a>(&'a self, call: &Extensions) -> Cow<'a, Self> {
        let Some(VisibleSkills { registry, search }) = self.viewer.sight(call).await.seen() else {
            return Cow::Borrowed(self);
        };
        let composition = self.tools.composition();
        let composition = composition.with_skills(registry.clone(), search.clone());
        let tools = self.tools.with_skills(registry.clone(), composition);
        let advisor = self.advisor.with_skills(registry.clone(), search.clone());
        // A source says where a skill comes from, which a caller with a view may not know.
        let sources = registry.view().and(self.sources.clone());
        let lookup = Lookup::new(registry.clone());
        let installer = self.installer.as_ref();
        let installer = installer.map(|installer| installer.with_skills(registry.clone()));
        // Every part gets the registry of the caller: one over the whole store would show what the
        // caller may not see.
        Cow::Owned(Self {
            registry,
            lookup,
            tools,
            search,
            advisor,
            sources,
            installer,
            viewer: Viewer::default(),
        })
    }

    fn permits(&self, named: &NamedResource<'_>, _: &[NamedResource<'_>]) -> bool {
        // Compared with the roots where the folder is opened, for every caller: only there a link
        // is seen.
        named.setting == "analysis.roots"
    }
}

impl handlers::Lookup for LookupService {
    async fn search(&self, request: Request<v1::SearchRequest>) -> Answer<v1::SearchResponse> {
        let version = self.index_version();
        let for_model = request.metadata().contains_key(FOR_MODEL);
        let installs = self.installs(&request).await;
        let (registry, index, request) = (&self.registry, &self.search, request.into_inner());
        let found = search::search(registry, index, request, for_model, &installs).await?;
        Ok(of_index(version, found))
    }

    async fn analyze_codebase(
        &self,
        request: Request<v1::AnalyzeCodebaseRequest>,
    ) -> Answer<v1::AnalyzeCodebaseResponse> {
        codebase::analyze(&self.advisor, request).await
    }

    async fn recommend_skills(
        &self,
        request: Request<v1::RecommendSkillsRequest>,
    ) -> Answer<v1::RecommendSkillsResponse> {
        let version = self.index_version();
        let installs = self.installs(&request).await;
        let answer = codebase::recommend(&self.advisor, &self.registry, request, &installs);
        let answer = answer.await?;
        Ok(of_index(version, answer))
    }

    async fn list_skills(
        &self,
        request: Request<v1::ListSkillsRequest>,
    ) -> Answer<v1::ListSkillsResponse> {
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
        let page = self
            .lookup
            .page(query, page_size(size, DEFAULT_SKILLS), page_token);
        let page = page.await?;
        Ok(Response::new(v1::ListSkillsResponse {
            skills: page
                .heads
                .iter()
                .filter_map(|head| convert::listed(&page.catalog, head))
                .collect(),
            next_page_token: page.next.unwrap_or_default(),
            resume_token: page.resume,
        }))
    }

    async fn list_similar_skills(
        &self,
        request: Request<v1::ListSimilarSkillsRequest>,
    ) -> Answer<v1::ListSimilarSkillsResponse> {
        let version = self.index_version();
        let installs = self.installs(&request).await;
        let (registry, request) = (&self.registry, request.into_inner());
        let similar = similar::list(registry, &self.lookup, &self.search, request, &installs);
        let similar = similar.await?;
        Ok(of_index(version, similar))
    }

    async fn get_skill(
        &self,
        request: Request<v1::GetSkillRequest>,
    ) -> Answer<v1::GetSkillResponse> {
        let installs = self.installs(&request).await;
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
            DEFAULT_SKILL_VERSIONS
        } else {
            0
        };
        let found = self.lookup.with_versions(&skill, &version, newest);
        let (found, versions) = found?;
        let described = &found.described;
        let scan = self
            .registry
            .scan_of(&described.head, described.version.number);
        let scan = scan?;
        let (readme, now) = (include_readme.unwrap_or(README), self.registry.now());
        let mut skill = convert::detail(&found, readme, scan.as_deref(), now, &installs);
        skill.versions = versions.iter().map(info).collect();
        let key = described.head.id.key();
        let facts = self.sources.as_ref().map(|sources| sources.facts(&key));
        if let Some(facts) = facts.transpose()?.flatten() {
            sources::show(facts, &mut skill);
        }
        if let Some(scan) = scan.filter(|_| include_security) {
            skill.security_findings = scan.report.findings.iter().map(trust::finding).collect();
            let standing = described.head.standing(now);
            (_, skill.quality_parts) = trust::quality_parts(scan.quality.clone(), standing);
        }
        // Only on request, since it visits every skill.
        let dependents = if include_dependents {
            Some(self.lookup.dependents(&described.head.id).await?)
        } else {
            None
        };
        Ok(Response::new(v1::GetSkillResponse {
            dependent_count: dependents.as_ref().map(|found| convert::count(found.len())),
            dependents: ids(dependents.into_iter().flatten().take(DEFAULT_DEPENDENTS)),
            skill: Some(skill),
            shadowed_ids: ids(found.shadowed),
        }))
    }

    async fn read_skill(
        &self,
        request: Request<v1::ReadSkillRequest>,
    ) -> Answer<v1::ReadSkillResponse> {
        let v1::ReadSkillRequest { uri, session_id } = request.into_inner();
        let text = self.lookup.read(&uri, &session_id).await?;
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
    ) -> Answer<v1::ActivateSkillResponse> {
        let v1::ActivateSkillRequest {
            command,
            session_id,
        } = request.into_inner();
        let text = self.lookup.activate(&command, &session_id).await?;
        let described = &text.found.described;
        let number = described.version.number;
        let verdict = self.registry.verdict_of(&described.head, number)?;
        let warning = verdict.and_then(|verdict| verdict.warning("this skill"));
        Ok(Response::new(v1::ActivateSkillResponse {
            warning: warning.unwrap_or_default(),
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
    ) -> Answer<v1::RenderPromptResponse> {
        let v1::RenderPromptRequest {
            max_tokens,
            task,
            exploration_percent,
        } = request.into_inner();
        let percent = exploration_percent.map(i32::unsigned_abs);
        let prompt = self
            .advisor
            .prompt(task, percent, max_tokens.unsigned_abs());
        let prompt = prompt.await?;
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
    ) -> Answer<v1::CompleteNameResponse> {
        let v1::CompleteNameRequest {
            prefix,
            form,
            limit,
        } = request.into_inner();
        let form = convert::name_form(v1::NameForm::try_from(form).unwrap_or_default());
        let completion = self
            .lookup
            .complete(&prefix, form, page_size(limit, DEFAULT_NAMES));
        Ok(Response::new(v1::CompleteNameResponse {
            names: completion.names,
            has_more: completion.has_more,
        }))
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Answer<v1::ListFilesResponse> {
        let v1::ListFilesRequest {
            skill_id,
            version_number,
            semantic_version,
        } = request.into_inner();
        let (skill, version) = target(&skill_id, version_number, &semantic_version)?;
        let found = self.lookup.get(&skill, &version)?;
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
    ) -> Answer<v1::ReadFileResponse> {
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
        let part = self.lookup.file(&skill, &version, &path, part, &session_id);
        let part = part.await?;
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
    ) -> Answer<v1::ViewFileResponse> {
        tools::view_file(&self.tools, request).await
    }

    async fn load_skill(
        &self,
        request: Request<v1::LoadSkillRequest>,
    ) -> Answer<v1::LoadSkillResponse> {
        tools::load_skill(&self.tools, request).await
    }

    async fn load_skill_detail(
        &self,
        request: Request<v1::LoadSkillDetailRequest>,
    ) -> Answer<v1::LoadSkillDetailResponse> {
        tools::load_skill_detail(&self.tools, request).await
    }

    async fn list_loaded_skills(
        &self,
        request: Request<v1::ListLoadedSkillsRequest>,
    ) -> Answer<v1::ListLoadedSkillsResponse> {
        tools::list_loaded_skills(&self.tools, request)
    }

    async fn unload_skill(
        &self,
        request: Request<v1::UnloadSkillRequest>,
    ) -> Answer<v1::UnloadSkillResponse> {
        tools::unload_skill(&self.tools, request)
    }

    async fn list_tools(
        &self,
        request: Request<v1::ListToolsRequest>,
    ) -> Answer<v1::ListToolsResponse> {
        tools::list_tools(&self.tools, request)
    }

    async fn call_tool(
        &self,
        request: Request<v1::CallToolRequest>,
    ) -> Answer<v1::CallToolResponse> {
        tools::call_tool(&self.tools, request).await
    }

    async fn list_tool_calls(
        &self,
        request: Request<v1::ListToolCallsRequest>,
    ) -> Answer<v1::ListToolCallsResponse> {
        tools::list_tool_calls(&self.tools, request)
    }

    async fn stream_tool_call(
        &self,
        request: Request<v1::StreamToolCallRequest>,
    ) -> Answer<Messages<v1::StreamToolCallResponse>> {
        tools::stream_tool_call(&self.tools, request).await
    }
}
