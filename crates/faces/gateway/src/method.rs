//! The rpcs of the contract, with their routes and their appearances as tools.

use http::uri::PathAndQuery;
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ReflectMessage as _,
};

use super::Error;
use super::comment::{Comments, summary};
use super::tool::Hints;

/// An rpc.
#[derive(Debug)]
pub struct Method {
    /// Its service, such as `Lookup`.
    pub service: String,
    /// Its name, such as `GetSkill`.
    pub name: String,
    /// Its description in a sentence.
    pub summary: String,
    /// Its full description.
    pub description: String,
    /// The caller streams.
    pub client_streaming: bool,
    /// The server streams.
    pub server_streaming: bool,
    /// The action that its caller must be allowed, such as `publish`; empty where the contract does
    /// not say.
    pub action: String,
    /// The field of its request that names the skill to which that is done; `*`: it is done to
    /// every skill; empty: to no one skill.
    pub skill: String,
    /// Its routes; the first is the one to show.
    pub routes: Vec<Route>,
    pub(super) path: PathAndQuery,
    pub(super) input: MessageDescriptor,
    pub(super) output: MessageDescriptor,
    pub(super) tools: Vec<ToolOption>,
}

/// An HTTP route of an rpc (`google.api.http`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The verb, such as `GET`.
    pub verb: String,
    /// The path, such as `/api/v1/skills/{skill_id=*/*/*}`.
    pub template: String,
    /// The content of the request body.
    pub body: RouteBody,
    /// The field of the answer that is the body of the HTTP answer. None: the
    /// whole answer.
    pub response_body: Option<String>,
}

/// The content of the body of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteBody {
    /// There is none.
    None,
    /// Every field that the path does not hold.
    All,
    /// One field.
    Field(String),
}

impl Method {
    /// It changes nothing, so that a call that is made again does no harm.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        let is_get = self.routes.first().is_some_and(|route| route.verb == "GET");
        is_get || self.tools.iter().any(|tool| tool.hints.read_only)
    }

    /// Returns its path, such as `/repertoire.v1.Lookup/GetSkill`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    /// Names of its appearances as a tool.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// Its request has this field, by its proto name.
    #[must_use]
    pub fn takes(&self, field: &str) -> bool {
        self.input.get_field_by_name(field).is_some()
    }

    /// This field of its answer, by its proto name, is bytes.
    #[must_use]
    pub fn gives_bytes(&self, field: &str) -> bool {
        let field = self.output.get_field_by_name(field);
        field.is_some_and(|field| field.kind() == Kind::Bytes && !field.is_list())
    }
}

/// `repertoire.v1.ToolOption`.
#[derive(Debug, Clone)]
pub(super) struct ToolOption {
    pub(super) name: String,
    pub(super) toolsets: Vec<String>,
    pub(super) title: String,
    pub(super) fields: Vec<String>,
    pub(super) hints: Hints,
    pub(super) envelope: bool,
    pub(super) catalog: bool,
    /// Empty: the rpc's own.
    pub(super) description: String,
    pub(super) text_only: bool,
    /// Name of the rpc that reports progress; empty: none does.
    pub(super) progress: String,
}

pub(super) fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let value = message.get_field_by_name(name);
    let list = value.as_deref().and_then(|value| value.as_list());
    list.unwrap_or_default()
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

pub(super) fn is(message: &DynamicMessage, name: &str) -> bool {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_bool()) == Some(true)
}

fn inner<'a>(message: &'a DynamicMessage, name: &str) -> Vec<std::borrow::Cow<'a, DynamicMessage>> {
    use std::borrow::Cow;
    match message.get_field_by_name(name) {
        Some(Cow::Borrowed(value)) => value
            .as_list()
            .unwrap_or_default()
            .iter()
            .filter_map(|item| item.as_message().map(Cow::Borrowed))
            .collect(),
        _ => Vec::new(),
    }
}

impl ToolOption {
    fn read(option: &DynamicMessage, method: &str) -> Self {
        let or = |text: String, default: String| if text.is_empty() { default } else { text };
        Self {
            name: or(text(option, "name"), words(method, '_')),
            toolsets: texts(option, "toolsets"),
            title: or(text(option, "title"), words(method, ' ')),
            fields: texts(option, "fields"),
            hints: Hints {
                read_only: is(option, "read_only"),
                destructive: is(option, "destructive"),
                idempotent: is(option, "idempotent"),
                open_world: is(option, "open_world"),
            },
            envelope: is(option, "envelope"),
            catalog: is(option, "catalog"),
            description: text(option, "description"),
            text_only: is(option, "text_only"),
            progress: text(option, "progress"),
        }
    }
}

/// `GetSkill` is `get_skill`, or `get skill`.
pub(super) fn words(name: &str, between: char) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(between);
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

fn route(rule: &DynamicMessage) -> Option<Route> {
    let verbs = ["get", "put", "post", "delete", "patch"];
    let (verb, template) = verbs.iter().find_map(|verb| {
        let template = text(rule, verb);
        (rule.has_field_by_name(verb)).then_some((verb.to_ascii_uppercase(), template))
    })?;
    Some(Route {
        verb,
        template,
        body: match text(rule, "body").as_str() {
            "" => RouteBody::None,
            "*" => RouteBody::All,
            field => RouteBody::Field(field.to_owned()),
        },
        response_body: Some(text(rule, "response_body")).filter(|field| !field.is_empty()),
    })
}

/// Name of the action of an `AccessOption`: `ACTION_PUBLISH` is `publish`.
fn action(access: &DynamicMessage) -> String {
    let field = access.descriptor().get_field_by_name("action");
    let kind = field.as_ref().map(prost_reflect::FieldDescriptor::kind);
    let number = field.and_then(|field| access.get_field(&field).as_enum_number());
    let value = kind
        .as_ref()
        .and_then(Kind::as_enum)
        .and_then(|actions| actions.get_value(number?));
    let name = value.map(|value| value.name().to_ascii_lowercase());
    let name = name.unwrap_or_default();
    name.trim_start_matches("action_").to_owned()
}

/// The options by which the contract speaks of its rpcs.
struct RpcOptions {
    tool: ExtensionDescriptor,
    http: ExtensionDescriptor,
    access: Option<ExtensionDescriptor>,
}

impl RpcOptions {
    fn method(&self, method: &MethodDescriptor, comments: &Comments) -> Result<Method, Error> {
        let service = method.parent_service();
        let path = format!("/{}/{}", service.full_name(), method.name());
        let description = comments.of(&service.parent_file(), method.path());
        let options = method.options();
        let rule = options.get_extension(&self.http);
        let mut routes = Vec::new();
        if let Some(rule) = rule.as_message() {
            routes.extend(route(rule));
            let more = inner(rule, "additional_bindings");
            routes.extend(more.iter().filter_map(|rule| route(rule)));
        }
        let access = self.access.as_ref();
        let access = access.map(|access| options.get_extension(access));
        let access = access.as_ref().and_then(|access| access.as_message());
        let tools = options.get_extension(&self.tool);
        let tools = tools.as_list().unwrap_or_default().iter();
        Ok(Method {
            service: service.name().to_owned(),
            name: method.name().to_owned(),
            summary: summary(&description).to_owned(),
            description,
            client_streaming: method.is_client_streaming(),
            server_streaming: method.is_server_streaming(),
            action: access.map(action).unwrap_or_default(),
            skill: match access {
                None => String::new(),
                Some(access) if is(access, "every_skill") => "*".to_owned(),
                Some(access) => text(access, "skill"),
            },
            routes,
            path: PathAndQuery::try_from(path.as_str()).map_err(|_| Error::Unknown(path))?,
            input: method.input(),
            output: method.output(),
            tools: tools
                .filter_map(|tool| tool.as_message())
                .map(|tool| ToolOption::read(tool, method.name()))
                .collect(),
        })
    }
}

pub(super) fn extension(pool: &DescriptorPool, name: &str) -> Result<ExtensionDescriptor, Error> {
    let extension = pool.get_extension_by_name(name);
    extension.ok_or_else(|| Error::Unknown(name.to_owned()))
}

/// The rpcs of all services, in the order of the proto files.
pub(super) fn methods(pool: &DescriptorPool, comments: &Comments) -> Result<Vec<Method>, Error> {
    let options = RpcOptions {
        tool: extension(pool, "repertoire.v1.tool")?,
        http: extension(pool, "google.api.http")?,
        access: pool.get_extension_by_name("repertoire.v1.access"),
    };
    let services = pool.services();
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    methods
        .map(|method| options.method(&method, comments))
        .collect()
}
