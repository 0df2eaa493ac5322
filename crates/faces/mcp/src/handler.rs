//! The server handler: its capabilities, and the dispatch of methods.

use std::sync::{Arc, LazyLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListSkillsResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};

use super::changes::{Changes, Listener, Shows, within_limits};
use super::gated;
use super::tools::Toolset;
use contract::v1::lookup_client::LookupClient;
use gateway::{Context, Gateway, MAX_MESSAGE_BYTES, Transport};
use grpc::Viewer;
use registry::Sees;

tokio::task_local! {
    /// The caller of the request in work: its calls count against the share of that peer, and are
    /// checked against its rights.
    static CALLER: Context;
}

/// How long a client may take a list for fresh. Changes are announced at once.
pub(super) const TTL_MS: u64 = 10_000;

/// Name and capabilities of the server. rmcp asks for them with every request.
static CONFIG: LazyLock<ServerConfig> = LazyLock::new(|| {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_resources_list_changed()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_completions()
        .enable_skills_with_directory_read()
        .build();
    let server = Implementation::new("repertoire", env!("CARGO_PKG_VERSION"))
        .with_title("Repertoire")
        .with_description(env!("CARGO_PKG_DESCRIPTION"));
    ServerConfig::new(capabilities).with_server_info(server)
});

/// What all sessions of a face share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateway: Gateway,
    changes: Changes,
    viewer: Viewer,
}

impl McpServer {
    /// The face of a gateway. Its task that watches for changes begins with the
    /// first session or request, and ends with the face.
    ///
    /// `log` is the transport through which the event log is followed: one of its own, since the
    /// server's own calls must not take permits from its callers.
    #[must_use]
    pub fn new(gateway: Gateway, log: Transport) -> Self {
        Self::for_viewers(gateway, log, Viewer::default())
    }

    /// Creates the face for callers that see different skills; each is notified of changes of those
    /// that it sees.
    #[must_use]
    pub fn for_viewers(gateway: Gateway, log: Transport, viewer: Viewer) -> Self {
        let changes = Changes::new(log);
        Self {
            shared: Arc::new(Shared {
                gateway,
                changes,
                viewer,
            }),
        }
    }

    /// The gateway.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    /// Handlers with the tools of a set; `None` is all there are. Nothing where
    /// there is no such set.
    #[must_use]
    pub fn handlers(&self, toolset: Option<&str>) -> Option<impl Fn() -> Handler + Clone + use<>> {
        let tools = Arc::new(Toolset::new(self.gateway().contract(), toolset));
        if tools.is_empty() {
            return None;
        }
        let face = self.clone();
        let is_gated = toolset.is_none_or(|toolset| toolset == gated::TOOLSET);
        let shows = Shows {
            catalog: tools.has_catalog(),
            unlocked: is_gated,
        };
        let instructions = tools.instructions();
        Some(move || Handler {
            face: face.clone(),
            tools: Arc::clone(&tools),
            is_gated,
            instructions,
            loads: gated::Loads::default(),
            listener: Arc::new(Listener::new(face.shared.changes.clone(), shows)),
        })
    }
}

/// One session, or one request of the stateless era.
#[derive(Debug, Clone)]
pub struct Handler {
    face: McpServer,
    pub(super) tools: Arc<Toolset>,
    /// The tools that skills unlock are tools of their own.
    pub(super) is_gated: bool,
    instructions: &'static str,
    pub(super) loads: gated::Loads,
    pub(super) listener: Arc<Listener>,
}

impl Handler {
    pub(super) fn gateway(&self) -> &Gateway {
        self.face.gateway()
    }

    /// Returns the check of which skills the caller of a request sees; none: all.
    fn sees(&self, extensions: &rmcp::model::Extensions) -> Option<Arc<dyn Sees>> {
        let parts = extensions.get::<http::request::Parts>()?;
        self.face.shared.viewer.sees(&parts.extensions)
    }

    /// Returns a generated client that calls for the peer whose request is in work.
    pub(super) fn lookup(&self) -> LookupClient<Transport> {
        let transport = self.gateway().transport_for(caller());
        LookupClient::new(transport).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }
}

/// Returns the caller of the request in work.
pub(super) fn caller() -> Context {
    CALLER.try_with(Clone::clone).unwrap_or_default()
}

/// Returns the context of a request over HTTP.
pub(super) fn context(request: &RequestContext<RoleServer>) -> Context {
    let parts = request.extensions.get::<http::request::Parts>();
    parts.map_or_else(Context::default, Context::of)
}

/// Returns whether this handler serves the requests that follow, so that it can remember a session
/// of loaded skills; over HTTP in the newest protocol each request has a handler of its own.
pub(super) fn remembers(request: &RequestContext<RoleServer>) -> bool {
    let is_http = request.extensions.get::<http::request::Parts>().is_some();
    let version = request.protocol_version();
    !is_http || version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28)
}

/// A list of one page has no cursor that leads on.
fn only_page(params: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match params.and_then(|params| params.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params(
            "This list has one page, and no cursor",
            None,
        )),
    }
}

/// Ends work when the client cancels the request.
pub(super) fn until_cancelled<T>(
    request: &RequestContext<RoleServer>,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> impl Future<Output = Result<T, ErrorData>> {
    let caller = context(request);
    // Boxed: the future of a request is as large as that of the largest method, and is moved a
    // few times before it runs.
    let work = Box::pin(CALLER.scope(caller, work));
    async {
        match request.ct.run_until_cancelled(work).await {
            Some(done) => done,
            None => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        CONFIG.clone().with_instructions(self.instructions)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        let sessions = version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28);
        Err(mcp_transport::unknown(&request, sessions))
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(params)?;
        until_cancelled(&request, self.tools()).await
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        until_cancelled(&request, self.call(params, &request)).await
    }

    /// Asked for with every call, to hold headers against arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        // None for most tools, which spares a copy of the tool with every call.
        self.tools.with_headers(name)
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        until_cancelled(&request, self.resources(params)).await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(params)?;
        Ok(super::resources::templates())
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        until_cancelled(&request, self.resource(&params.uri)).await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        until_cancelled(&request, self.prompts(params)).await
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        until_cancelled(&request, self.prompt(params)).await
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        until_cancelled(&request, self.completion(params)).await
    }

    async fn list_skills(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        until_cancelled(&request, self.skills(params)).await
    }

    async fn get_skill(
        &self,
        params: GetSkillRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        until_cancelled(&request, self.skill(&params.uri)).await
    }

    async fn read_resource_directory(
        &self,
        params: ReadResourceDirectoryRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        until_cancelled(&request, self.directory(&params.uri)).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.supported_by(&self.get_info().capabilities);
        if let Some(uris) = &mut accepted.resource_subscriptions {
            // The acknowledgement lists what is left, so a client learns what was dropped.
            within_limits(uris);
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let sees = self.sees(&subscription.request_context().extensions);
        self.listener.stream(&subscription, sees).await;
        Ok(())
    }

    async fn on_initialized(&self, session: NotificationContext<RoleServer>) {
        let sees = self.sees(&session.extensions);
        self.listener.announce_to(session.peer, sees);
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        until_cancelled(&request, self.subscribe_to(params.uri)).await
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.listener.unsubscribe(&params.uri);
        Ok(())
    }
}
