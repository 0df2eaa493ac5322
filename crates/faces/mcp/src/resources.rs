//! Skills as resources: every file of every skill, by its `skill://` address.
//!
//! The list has the instructions of each skill; its other files are found through
//! the Skills extension, or by the addresses that the instructions give.

use base64::Engine as _;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};

use super::error::{protocol, resource};
use super::handler::{Handler, TTL_MS};
use contract::v1;
use gateway::Refusal;
use model::{Code, SkillId, SkillUri, VersionSelector, inert_line};

/// Skills on a page of a list.
pub(super) const SKILLS_PER_PAGE: i32 = 100;
/// Media type of instructions.
pub(super) const MARKDOWN: &str = "text/markdown";

/// Addresses that a client may make itself.
pub(super) const FILE_OF_ID: &str = "skill://{source}/{author}/{name}/{+path}";
pub(super) const SKILL_OF_NAME: &str = "skill://{name}";

pub(super) fn templates() -> ListResourceTemplatesResult {
    let templates = vec![
        ResourceTemplate::new(FILE_OF_ID, "skill-file")
            .with_title("A file of a skill")
            .with_description(
                "A file of the skill's active version; `SKILL.md` holds its instructions. A segment such as `@1.2.0` \
                 before the name asks for that version.",
            ),
        ResourceTemplate::new(SKILL_OF_NAME, "skill-by-name")
            .with_title("The instructions of a skill, by its short name")
            .with_description(
                "A name that several skills share leads to the project's before the user's before all others.",
            )
            .with_mime_type(MARKDOWN),
    ];
    ListResourceTemplatesResult::with_all_items(templates)
        .with_ttl_ms(TTL_MS)
        .with_cache_scope(CacheScope::Private)
}

impl Handler {
    /// Reads a page of the catalog, for lists of resources, prompts and skills.
    pub(super) async fn page(
        &self,
        params: Option<PaginatedRequestParams>,
    ) -> Result<v1::ListSkillsResponse, ErrorData> {
        let request = v1::ListSkillsRequest {
            page_size: SKILLS_PER_PAGE,
            page_token: params.and_then(|params| params.cursor).unwrap_or_default(),
            ..Default::default()
        };
        let page = self.lookup().list_skills(request).await;
        let page = page.map_err(|status| protocol(&Refusal::from(status)))?;
        Ok(page.into_inner())
    }

    pub(super) async fn resources(
        &self,
        params: Option<PaginatedRequestParams>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let page = self.page(params).await?;
        let resources = page.skills.into_iter().map(|skill| {
            // Without the author, unlike in prompts: hosts compare it with the front matter.
            let description = inert_line(&skill.description);
            Resource::new(skill.uri, inert_line(&skill.name))
                .with_description(description)
                .with_mime_type(MARKDOWN)
        });
        let mut result = ListResourcesResult::with_all_items(resources.collect());
        result.next_cursor = cursor(page.next_page_token);
        Ok(result
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    pub(super) async fn resource(&self, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.contents(uri).await;
        let contents = contents.map_err(|refusal| resource(&refusal, uri))?;
        let result = ReadResourceResult::new(vec![contents])
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private);
        Ok(ReadResourceResponse::Complete(result))
    }

    /// Reads a file as text, else as bytes.
    async fn contents(&self, uri: &str) -> Result<ResourceContents, Refusal> {
        let request = v1::ReadSkillRequest {
            uri: uri.to_owned(),
            ..Default::default()
        };
        let refusal = match self.lookup().read_skill(request).await {
            Ok(read) => {
                let v1::ReadSkillResponse {
                    mime_type, text, ..
                } = read.into_inner();
                // The address as requested, not the resolved one: clients match answers by it.
                return Ok(ResourceContents::text(text, uri).with_mime_type(mime_type));
            }
            Err(status) => Refusal::from(status),
        };
        let binary = refusal.code == Code::FileNotText.name();
        let Some(request) = binary.then(|| file_request(uri)).flatten() else {
            return Err(refusal);
        };
        let read = self.lookup().read_file(request).await?;
        let v1::ReadFileResponse { file, content, .. } = read.into_inner();
        let blob = base64::engine::general_purpose::STANDARD.encode(content);
        let mime_type = file.map(|file| file.mime_type).unwrap_or_default();
        Ok(ResourceContents::blob(blob, uri).with_mime_type(mime_type))
    }
}

/// Builds the request for the file that an address names.
fn file_request(uri: &str) -> Option<v1::ReadFileRequest> {
    let uri: SkillUri = uri.parse().ok()?;
    let mut request = v1::ReadFileRequest {
        skill_id: uri.skill.to_string(),
        path: uri.file?.as_str().to_owned(),
        ..Default::default()
    };
    select(
        uri.version,
        &mut request.version_number,
        &mut request.semantic_version,
    );
    Some(request)
}

/// Fills in the requested version.
pub(super) fn select(version: VersionSelector, number: &mut u32, semantic: &mut String) {
    match version {
        VersionSelector::Active => {}
        VersionSelector::Number(asked) => *number = asked.get(),
        VersionSelector::Semantic(asked) => *semantic = asked.to_string(),
    }
}

/// Returns the description of a skill, with its author where the skill did not come with the
/// server.
pub(super) fn described(skill: &v1::SkillMetadata) -> String {
    let description = inert_line(&skill.description);
    match skill.id.parse::<SkillId>() {
        Ok(id) if !id.is_builtin() => format!("{description} [{}]", id.namespace()),
        _ => description,
    }
}

pub(super) fn cursor(token: String) -> Option<String> {
    (!token.is_empty()).then_some(token)
}
