//! The contract's calls as tools.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    ListToolsResult, MetaObject, ProgressNotificationParam, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value as Json;

use super::deferred::DeferredBody;
use super::error::protocol;
use super::handler::{Handler, TTL_MS, context};
use crate::contract::v1;
use crate::gateway::{self, Contract, JsonText, Progress, Refusal, ToolAnswer};
use model::shown;

/// Where a result says why it is an error, for programs; the text is for models.
const ERROR: &str = "repertoire.v1/error";
/// What a schema says of an argument that comes as a header as well.
const HEADER: &str = "x-mcp-header";
/// Characters of a streamed message that its progress notice repeats.
const NOTICE_CHARS: usize = 2000;

/// The tools of a set, as MCP describes them.
#[derive(Debug)]
pub(super) struct Tools {
    tools: Vec<Known>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
pub(super) struct Known {
    tool: Arc<gateway::Tool>,
    described: Tool,
    /// Some of its arguments come as headers as well.
    headers: bool,
}

impl Tools {
    pub(super) fn new(contract: &Contract, toolset: Option<&str>) -> Self {
        let tools: Vec<_> = contract
            .tools(toolset)
            .into_iter()
            .map(|tool| {
                let schema = Json::Object(tool.input.clone()).to_string();
                Known {
                    described: describe(&tool),
                    headers: schema.contains(HEADER),
                    tool,
                }
            })
            .collect();
        let by_name = tools
            .iter()
            .enumerate()
            .map(|(at, known)| (known.tool.name.clone(), at))
            .collect();
        Self { tools, by_name }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The set has such a tool.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn get(&self, name: &str) -> Option<&Known> {
        self.by_name.get(name).and_then(|at| self.tools.get(*at))
    }

    /// A tool of which arguments come as headers as well.
    pub(super) fn with_headers(&self, name: &str) -> Option<Tool> {
        let known = self.get(name).filter(|known| known.headers);
        known.map(|known| known.described.clone())
    }
}

fn describe(tool: &gateway::Tool) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title.clone())
        .read_only(tool.hints.read_only)
        .destructive(tool.hints.destructive)
        .idempotent(tool.hints.idempotent)
        // Nothing here reaches beyond the server's own skills.
        .open_world(false);
    Tool::new(
        tool.name.clone(),
        tool.description.clone(),
        Arc::new(tool.input.clone()),
    )
    .with_title(tool.title.clone())
    .with_raw_output_schema(Arc::new(tool.output.clone()))
    .with_annotations(hints)
}

impl Handler {
    /// All tools, on one page: a set has few.
    pub(super) async fn tools(&self) -> Result<ListToolsResult, ErrorData> {
        let mut listed = Vec::with_capacity(self.tools.tools.len());
        for Known {
            tool, described, ..
        } in &self.tools.tools
        {
            let mut described = described.clone();
            if tool.catalog {
                let description = format!("{}\n\n{}", tool.description, self.catalog().await?);
                described.description = Some(description.into());
            }
            listed.push(described);
        }
        if self.is_gated {
            listed.extend(self.unlocked().await?);
        }
        Ok(ListToolsResult::with_all_items(listed)
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    /// The list of skills that a description ends with.
    async fn catalog(&self) -> Result<String, ErrorData> {
        let prompt = self
            .lookup()
            .render_prompt(v1::RenderPromptRequest::default())
            .await;
        let prompt = prompt.map_err(|status| protocol(&Refusal::from(status)))?;
        Ok(prompt.into_inner().text)
    }

    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        request: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = params.arguments.unwrap_or_default();
        let Some(Known { tool, .. }) = self.tools.get(&params.name) else {
            if self.is_gated {
                let called = self.call_unlocked(&params.name, arguments, request);
                return Ok(CallToolResponse::Complete(called.await?));
            }
            let name = shown(&params.name, 64);
            return Err(ErrorData::invalid_params(
                format!("There is no tool '{name}' here; tools/list names those that are"),
                None,
            ));
        };
        if self.is_gated {
            self.loads.fill(&tool.input, &mut arguments);
        }
        let (context, progress) = (context(request), progress(request));
        let gateway = self.gateway();
        let aside = DeferredBody::of(request).filter(|_| !self.is_gated);
        let result = if let Some(aside) = aside {
            let answer = gateway.call_tool(tool, arguments, context, progress).await;
            text_result(answer.map_err(|fault| protocol(&fault))?, aside)
        } else {
            let answer = gateway.call_tool(tool, arguments, context, progress).await;
            let answer = answer.map_err(|fault| protocol(&fault))?;
            let structured = answer.structured.as_ref().map(JsonText::json);
            if self.is_gated
                && self.loads.learn(structured.as_ref())
                && let Err(error) = request.peer.notify_tool_list_changed().await
            {
                tracing::debug!(%error, "a client was not told of the tools that it unlocked");
            }
            let whole = answer.structured.map(|text| text.as_str().to_owned());
            result(answer.text.or(whole), structured, answer.refusal)
        };
        Ok(CallToolResponse::Complete(result))
    }
}

/// A result whose texts wait aside until rmcp has written the answer.
fn text_result(answer: ToolAnswer, aside: &DeferredBody) -> CallToolResult {
    let ToolAnswer {
        text,
        structured,
        refusal,
    } = answer;
    let (text, structured) = aside.leave(text, structured);
    result(Some(text), structured, refusal)
}

pub(super) fn result(
    text: Option<String>,
    structured: Option<Json>,
    refusal: Option<Refusal>,
) -> CallToolResult {
    let content = vec![ContentBlock::text(text.unwrap_or_default())];
    let mut result = match &refusal {
        Some(_) => CallToolResult::error(content),
        None => CallToolResult::success(content),
    };
    result.structured_content = structured;
    if let Some(refusal) = refusal {
        let mut meta = MetaObject::new();
        meta.insert(ERROR.to_owned(), refusal.json());
        result.meta = Some(meta);
    }
    result
}

/// Tells the client of each message of a stream, where it asked to be told.
fn progress(request: &RequestContext<RoleServer>) -> Progress {
    let Some(token) = request.meta.get_progress_token() else {
        return Box::new(|_, _| futures_util::future::ready(()).boxed());
    };
    let peer = request.peer.clone();
    Box::new(move |count, message| {
        let told: String = message.to_string().chars().take(NOTICE_CHARS).collect();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a stream of 2^52 messages does not end"
        )]
        let notice = ProgressNotificationParam::new(token.clone(), count as f64).with_message(told);
        let peer = peer.clone();
        async move {
            // A client that is gone cancels the request, which ends the stream.
            if let Err(error) = peer.notify_progress(notice).await {
                tracing::debug!(%error, "a client was not told of progress");
            }
        }
        .boxed()
    })
}
