//! A handler around another: the fixtures are answered here, the rest there.
//!
//! Lists are those of the inner handler with the fixtures before its first page;
//! its capabilities get logging, which only the older scenarios still ask for.

#![expect(
    deprecated,
    reason = "subscribe, unsubscribe and setLevel are what clients before 2026-07-28 call"
)]

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    ClientCapabilities, CompleteRequestParams, CompleteResult, ContentBlock, CustomNotification,
    CustomRequest, CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetSkillRequestParams, GetSkillResult, InitializeRequestParams,
    InitializeResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListSkillsResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceDirectoryRequestParams,
    ReadResourceDirectoryResult, ReadResourceRequestParams, ReadResourceResponse, Reference,
    RequestStateCodec, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::rounds::{Answers, Step, Talk};
use crate::{answers, catalog, questions, rounds};

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

/// The fixtures around `inner`.
#[derive(Clone)]
pub(crate) struct Fixtures<H> {
    inner: H,
    shared: Arc<Shared>,
}

/// What all sessions see, whichever handler serves them.
pub(crate) struct Shared {
    codec: RequestStateCodec,
    changes: broadcast::Sender<List>,
    more_tools: AtomicBool,
    more_prompts: AtomicBool,
}

/// A list that changed.
#[derive(Clone, Copy)]
enum List {
    Tools,
    Prompts,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        let key = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        let key: Vec<u8> = key.iter().flat_map(|id| *id.as_bytes()).collect();
        Arc::new(Self {
            codec: RequestStateCodec::new(key),
            changes: broadcast::channel(16).0,
            more_tools: AtomicBool::new(false),
            more_prompts: AtomicBool::new(false),
        })
    }
}

impl<H: ServerHandler> Fixtures<H> {
    pub(crate) fn new(inner: H, shared: &Arc<Shared>) -> Self {
        let shared = Arc::clone(shared);
        Self { inner, shared }
    }

    fn capabilities(inner: ServerCapabilities) -> ServerCapabilities {
        let mut capabilities = inner;
        capabilities.logging.get_or_insert_default();
        capabilities
    }

    fn tools(&self) -> Vec<Tool> {
        let mut tools = catalog::tools();
        if self.shared.more_tools.load(Ordering::Relaxed) {
            tools.push(catalog::changing_tool());
        }
        tools
    }

    /// Puts the changing tool or prompt into its list, or takes it out.
    fn change(&self, list: List) -> CallToolResult {
        let there = match list {
            List::Tools => &self.shared.more_tools,
            List::Prompts => &self.shared.more_prompts,
        };
        there.fetch_xor(true, Ordering::Relaxed);
        let heard = self.shared.changes.send(list).unwrap_or(0);
        said(format!("{heard} heard of it"))
    }

    fn step(
        &self,
        talk: &Talk,
        state: Option<&str>,
        responses: Option<rmcp::model::InputResponses>,
        context: &Context,
    ) -> Result<Step, ErrorData> {
        let client = context.client_capabilities().unwrap_or_default();
        talk.step(&self.shared.codec, state, responses, &client)
    }
}

fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn is_first(page: Option<&PaginatedRequestParams>) -> bool {
    page.is_none_or(|page| page.cursor.is_none())
}

fn needs_sampling(context: &Context) -> Result<CallToolResult, ErrorData> {
    match context.client_capabilities() {
        Some(ClientCapabilities {
            sampling: Some(_), ..
        }) => Ok(said("The client can sample")),
        _ => Err(ErrorData::missing_required_client_capability(
            catalog::read(serde_json::json!({ "sampling": {} })),
        )),
    }
}

impl<H: ServerHandler> ServerHandler for Fixtures<H> {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        info.capabilities = Self::capabilities(info.capabilities);
        info
    }

    async fn list_tools(&self, page: Page, context: Context) -> Result<ListToolsResult, ErrorData> {
        let first = is_first(page.as_ref());
        let mut listed = self.inner.list_tools(page, context).await?;
        if first {
            listed.tools.splice(0..0, self.tools());
        }
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools()
            .into_iter()
            .find(|tool| tool.name == name)
            .or_else(|| self.inner.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(talk) = rounds::find(&request.name) {
            let step = self.step(
                talk,
                request.request_state.as_deref(),
                request.input_responses,
                &context,
            )?;
            return Ok(match step {
                Step::Ask(questions) => questions.into(),
                Step::Done(answers) => said(talk.conclusion(&answers)).into(),
            });
        }
        let none = JsonObject::new();
        if let Some(result) =
            answers::tool(&request.name, request.arguments.as_ref().unwrap_or(&none))
        {
            return Ok(result.into());
        }
        if let Some(result) = questions::call(&request, &context).await {
            return Ok(result.into());
        }
        match &*request.name {
            "test_missing_capability" => Ok(needs_sampling(&context)?.into()),
            "test_trigger_prompt_change" => Ok(self.change(List::Prompts).into()),
            "test_trigger_tool_change" => Ok(self.change(List::Tools).into()),
            catalog::CHANGING_TOOL => Ok(said("Here this time").into()),
            _ => self.inner.call_tool(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let first = is_first(page.as_ref());
        let mut listed = self.inner.list_prompts(page, context).await?;
        if first {
            let more = self
                .shared
                .more_prompts
                .load(Ordering::Relaxed)
                .then(catalog::changing_prompt);
            listed
                .prompts
                .splice(0..0, catalog::prompts().into_iter().chain(more));
        }
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(talk) = rounds::find(&request.name) {
            let step = self.step(
                talk,
                request.request_state.as_deref(),
                request.input_responses,
                &context,
            )?;
            let prompt =
                |answers: &Answers| answers::said(&[answers::text(&talk.conclusion(answers))]);
            return Ok(match step {
                Step::Ask(questions) => questions.into(),
                Step::Done(answers) => prompt(&answers).into(),
            });
        }
        let none = JsonObject::new();
        if let Some(result) =
            answers::prompt(&request.name, request.arguments.as_ref().unwrap_or(&none))
        {
            return Ok(result.into());
        }
        if request.name == catalog::CHANGING_PROMPT {
            return Ok(answers::said(&[answers::text("Here this time")]).into());
        }
        self.inner.get_prompt(request, context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        match &request.r#ref {
            Reference::Prompt(prompt)
                if catalog::prompts()
                    .iter()
                    .any(|ours| ours.name == prompt.name) =>
            {
                Ok(CompleteResult::default())
            }
            Reference::Resource(template) if template.uri.starts_with("test://") => {
                Ok(CompleteResult::default())
            }
            _ => self.inner.complete(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let first = is_first(page.as_ref());
        let mut listed = self.inner.list_resources(page, context).await?;
        if first {
            listed.resources.splice(0..0, catalog::resources());
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let first = is_first(page.as_ref());
        let mut listed = self.inner.list_resource_templates(page, context).await?;
        if first {
            listed.resource_templates.splice(0..0, catalog::templates());
        }
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match answers::contents(&request.uri) {
            Some(contents) => Ok(contents.into()),
            None => self.inner.read_resource(request, context).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        match &*request.uri {
            catalog::WATCHED => Ok(()),
            _ => self.inner.subscribe(request, context).await,
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        match &*request.uri {
            catalog::WATCHED => Ok(()),
            _ => self.inner.unsubscribe(request, context).await,
        }
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.inner.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let sink = context.sink().clone();
        let mut changes = self.shared.changes.subscribe();
        let mut inner = std::pin::pin!(self.inner.listen(context));
        loop {
            let change = tokio::select! {
                done = &mut inner => return done,
                change = changes.recv() => change,
            };
            // Refused where the client did not ask for this list: that is the sink's part.
            let _told = match change {
                Ok(List::Tools) => sink.notify_tool_list_changed().await,
                Ok(List::Prompts) => sink.notify_prompt_list_changed().await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return inner.await,
            };
        }
    }

    // The rest is the inner handler's alone.

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.initialize(request, context).await?;
        result.capabilities = Self::capabilities(result.capabilities);
        Ok(result)
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.negotiate_initialize(request)?;
        result.capabilities = Self::capabilities(result.capabilities);
        Ok(result)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.inner.discover(context).await?;
        result.capabilities = Self::capabilities(result.capabilities);
        Ok(result)
    }

    async fn ping(&self, context: Context) -> Result<(), ErrorData> {
        self.inner.ping(context).await
    }

    async fn list_skills(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.inner.list_skills(page, context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: Context,
    ) -> Result<GetSkillResult, ErrorData> {
        self.inner.get_skill(request, context).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: Context,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.inner.read_resource_directory(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        self.inner.on_custom_request(request, context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    async fn on_cancelled(
        &self,
        cancelled: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.inner.on_cancelled(cancelled, context).await;
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.inner.on_progress(progress, context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_roots_list_changed(context).await;
    }

    async fn on_custom_notification(
        &self,
        told: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.inner.on_custom_notification(told, context).await;
    }
}
