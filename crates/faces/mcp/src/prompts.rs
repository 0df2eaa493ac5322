//! Skills as prompts: a person picks one, its instructions enter the talk.

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, Role,
};

use serde_json::Value as Json;

use super::error::protocol;
use super::handler::{Handler, TTL_MS};
use super::resources::{cursor, described};
use contract::v1;
use gateway::Refusal;
use model::{inert_line, shown};

/// The argument of every prompt.
pub(super) const REQUEST: &str = "request";

impl Handler {
    pub(super) async fn prompts(
        &self,
        params: Option<PaginatedRequestParams>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let page = self.page(params).await?;
        let prompts = page.skills.into_iter().map(|skill| {
            let argument = PromptArgument::new(REQUEST)
                .with_description("What to do with the skill")
                .with_required(false);
            let description = described(&skill);
            Prompt::new(skill.short_name, Some(description), Some(vec![argument]))
                .with_title(inert_line(&skill.name))
        });
        let mut result = ListPromptsResult::with_all_items(prompts.collect());
        result.next_cursor = cursor(page.next_page_token);
        Ok(result
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    /// Returns the instructions, byte for byte, and after them the request of the user; before
    /// them what the security scan warns of.
    pub(super) async fn prompt(
        &self,
        params: GetPromptRequestParams,
    ) -> Result<GetPromptResponse, ErrorData> {
        let mut arguments = params.arguments.unwrap_or_default();
        let wanted = match arguments.remove(REQUEST) {
            None => String::new(),
            Some(Json::String(wanted)) => wanted,
            Some(_) => {
                return Err(ErrorData::invalid_params(
                    format!("{REQUEST}: Expected string, received another type"),
                    None,
                ));
            }
        };
        if let Some(name) = arguments.keys().next() {
            let name = shown(name, 64);
            return Err(ErrorData::invalid_params(
                format!("Unrecognized key(s) in object: '{name}'"),
                None,
            ));
        }
        let request = v1::ActivateSkillRequest {
            command: params.name,
            ..Default::default()
        };
        let read = self.lookup().activate_skill(request).await;
        let skill = read.map_err(|status| protocol(&Refusal::from(status)))?;
        let skill = skill.into_inner();
        // Messages of their own: the author's text and the others' words must stay apart.
        let texts = [skill.warning, skill.content, wanted]
            .into_iter()
            .enumerate();
        let texts = texts.filter(|(at, text)| *at == 1 || !text.is_empty());
        let messages = texts.map(|(_, text)| PromptMessage::new_text(Role::User, text));
        let result = GetPromptResult::new(messages.collect())
            .with_description(format!("{} {}", skill.skill_id, skill.semantic_version));
        Ok(GetPromptResponse::Complete(result))
    }
}
