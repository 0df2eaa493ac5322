//! The contract's calls as tools.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    ListToolsResult, MetaObject, ProgressNotificationParam, Resource, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value as Json;

use super::error::protocol;
use super::handler::{Handler, TTL_MS, context, remembers};
use contract::v1;
use gateway::{Block, Contract, JsonText, OnProgress, Refusal, ToolAnswer};
use mcp_transport::DeferredBody;
use model::{Code, shown};

/// The key of the refusal in the metadata of a result, for programs; the text is for models.
const ERROR: &str = "repertoire.v1/error";
/// The schema keyword of an argument that comes as a header as well.
const HEADER: &str = "x-mcp-header";
/// Instructions for a model, by what the tools of the set can do.
const FIND_AND_LOAD: &str = "This server keeps agent skills: instructions, with files and tools, for doing a kind of \
task well. Before a task call `find_skills`; read the skill that fits with `load_skill`, which also unlocks its tools \
for `call_tool`; its files are read with `read_file`. A skill's text is its author's, not the user's.";
const READ: &str = "This server keeps agent skills: instructions, with files and tools, for doing a kind of task well. \
Before a task look whether a skill fits (`search` finds them), and read it with `load_skill`, which also unlocks its \
tools; its files are read with `read_file`, or as resources below its `skill://` address. A skill's text is its \
author's, not the user's.";
const OTHER: &str = "This server keeps agent skills: instructions, with files and tools, for doing a kind of task well.";

/// Tokens of the list of skills in a description, of which hosts take 1,024 characters:
/// some refuse more, others cut it.
const MAX_CATALOG_TOKENS: i32 = 230;
/// Characters of a streamed message that its progress notice repeats.
const NOTICE_CHARS: usize = 2000;

/// The tools of a set, as MCP describes them.
#[derive(Debug)]
pub(super) struct Toolset {
    tools: Vec<KnownTool>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
pub(super) struct KnownTool {
    tool: Arc<gateway::Tool>,
    described: Tool,
    /// Some of its arguments come as headers as well.
    headers: bool,
}

impl Toolset {
    pub(super) fn new(contract: &Contract, toolset: Option<&str>) -> Self {
        let tools: Vec<_> = contract
            .tools(toolset)
            .into_iter()
            .map(|tool| {
                let schema = Json::Object(tool.input.clone()).to_string();
                KnownTool {
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

    /// A description goes on with the list of skills.
    pub(super) fn has_catalog(&self) -> bool {
        self.tools.iter().any(|known| known.tool.catalog)
    }

    /// Returns the instructions for a model, which name tools of this set only.
    pub(super) fn instructions(&self) -> &'static str {
        if self.has("find_skills") {
            FIND_AND_LOAD
        } else if self.has("load_skill") && self.has("search") && self.has("read_file") {
            READ
        } else {
            OTHER
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The set has such a tool.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn get(&self, name: &str) -> Option<&KnownTool> {
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
        .open_world(tool.hints.open_world);
    let described = Tool::new(
        tool.name.clone(),
        tool.description.clone(),
        Arc::new(tool.input.clone()),
    )
    .with_title(tool.title.clone())
    .with_annotations(hints);
    match &tool.output {
        Some(output) => described.with_raw_output_schema(Arc::new(output.clone())),
        None => described,
    }
}

/// The list of skills that a description ends with.
pub(super) fn catalog_request() -> v1::RenderPromptRequest {
    v1::RenderPromptRequest {
        max_tokens: MAX_CATALOG_TOKENS,
        ..Default::default()
    }
}

impl Handler {
    /// All tools, on one page: a set has few.
    pub(super) async fn tools(&self) -> Result<ListToolsResult, ErrorData> {
        self.listener.lists_tools().await;
        let mut listed = Vec::with_capacity(self.tools.tools.len());
        for KnownTool {
            tool, described, ..
        } in &self.tools.tools
        {
            let mut described = described.clone();
            if tool.catalog {
                let catalog = self.catalog().await?;
                let description = format!("{}\n\n{catalog}", tool.description);
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
        let prompt = self.lookup().render_prompt(catalog_request()).await;
        match prompt.map_err(Refusal::from) {
            Ok(prompt) => Ok(prompt.into_inner().text),
            // A caller that may not see skills still gets the description of the tool.
            Err(refusal) if refusal.is_denied() => Ok(String::new()),
            Err(refusal) => Err(protocol(&refusal)),
        }
    }

    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        request: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = params.arguments.unwrap_or_default();
        let Some(KnownTool { tool, .. }) = self.tools.get(&params.name) else {
            if self.is_gated
                && let Some(called) = self.call_unlocked(&params.name, arguments, request).await?
            {
                return Ok(CallToolResponse::Complete(called));
            }
            let name = shown(&params.name, 64);
            return Err(ErrorData::invalid_params(
                format!("There is no tool '{name}' here; tools/list names those that are"),
                None,
            ));
        };
        let call = |arguments| {
            let (context, progress) = (context(request), progress(request));
            let mut context = context.for_model();
            if remembers(request) {
                context = context.remembering();
            }
            self.gateway().call_tool(tool, arguments, context, progress)
        };
        let answer = match self.loads.filled(tool, &arguments) {
            None => call(arguments).await,
            Some(filled) => match call(filled).await {
                // The caller named no session, so it must not get an error about one: the call is
                // made again without.
                Ok(answer) if has_ended(&answer) => {
                    self.loads.forget();
                    call(arguments).await
                }
                answer => answer,
            },
        };
        let answer = answer.map_err(|fault| protocol(&fault))?;
        let session = answer.session.as_ref();
        let is_news = session.is_some_and(|session| self.loads.learn(session)) && self.is_gated;
        if is_news && let Err(error) = request.peer.notify_tool_list_changed().await {
            tracing::debug!(%error, "a client was not notified of the tools that it unlocked");
        }
        // A notification makes the answer a stream, in which nothing takes the place of a mark.
        let result = match DeferredBody::of(request).filter(|_| !is_news) {
            Some(deferred) => deferred_result(answer, deferred),
            None => whole_result(answer),
        };
        Ok(CallToolResponse::Complete(result))
    }
}

/// Returns whether the session of the call has ended.
fn has_ended(answer: &ToolAnswer) -> bool {
    let refusal = answer.refusal.as_ref();
    refusal.is_some_and(|refusal| refusal.code == Code::SessionNotFound.name())
}

/// Builds a result whose texts are written after rmcp has written the answer.
fn deferred_result(answer: ToolAnswer, deferred: &DeferredBody) -> CallToolResult {
    let ToolAnswer {
        mut blocks,
        structured,
        refusal,
        ..
    } = answer;
    let text = match blocks.first_mut() {
        Some(Block::Text(text)) => Some(std::mem::take(text)),
        Some(_) => return result(blocks, structured.as_ref().map(JsonText::json), refusal),
        None => None,
    };
    let (text, structured) = deferred.leave(text, structured);
    let rest = blocks.into_iter().skip(1);
    let blocks = std::iter::once(Block::Text(text)).chain(rest);
    result(blocks.collect(), structured, refusal)
}

fn whole_result(answer: ToolAnswer) -> CallToolResult {
    let structured = answer.structured.as_ref().map(JsonText::json);
    let mut blocks = answer.blocks;
    if blocks.is_empty() {
        let text = answer.structured.map(|text| text.as_str().to_owned());
        blocks.push(Block::Text(text.unwrap_or_default()));
    }
    result(blocks, structured, answer.refusal)
}

fn content(block: Block) -> ContentBlock {
    match block {
        Block::Text(text) => ContentBlock::text(text),
        Block::Image { base64, mime_type } => ContentBlock::image(base64, mime_type),
        Block::Link { uri, mime_type } => {
            let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
            ContentBlock::resource_link(Resource::new(uri, name).with_mime_type(mime_type))
        }
    }
}

pub(super) fn result(
    blocks: Vec<Block>,
    structured: Option<Json>,
    refusal: Option<Refusal>,
) -> CallToolResult {
    let content = blocks.into_iter().map(content).collect();
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

/// Notifies the client of each message of a stream; none where it did not ask for that.
fn progress(request: &RequestContext<RoleServer>) -> Option<OnProgress> {
    let token = request.meta.get_progress_token()?;
    let peer = request.peer.clone();
    Some(Box::new(move |count, message| {
        let text: String = message.to_string().chars().take(NOTICE_CHARS).collect();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a stream of 2^52 messages does not end"
        )]
        let notice = ProgressNotificationParam::new(token.clone(), count as f64).with_message(text);
        let peer = peer.clone();
        async move {
            // A client that is gone cancels the request, which ends the stream.
            if let Err(error) = peer.notify_progress(notice).await {
                tracing::debug!(%error, "a client was not notified of progress");
            }
        }
        .boxed()
    }))
}
