//! Calls by JSON.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, Request, Response};
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage as _, Value};
use serde_json::{Map, Value as Json, json};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::answer::{JsonText, ToolAnswer, envelope};
use super::codec::DynamicCodec;
use super::parse::Wrong;
use super::{Contract, Error, Method, Refusal, Tool};
use admission::Peer;
use model::{Code, Failure};

/// What a call goes through: services in process, or a channel to a server.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, TransportError>;

/// A call did not reach any services.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TransportError(#[from] BoxError);

/// The largest request as JSON: a skill of 16 MiB in base64, with its paths.
pub const MAX_JSON_BYTES: usize = 24 * 1024 * 1024;

/// The largest answer: a file of 16 MiB.
pub const MAX_MESSAGE_BYTES: usize = 20 * 1024 * 1024;

/// Headers of a caller that go on to the services: the deadline, the trace, the
/// name of the call.
const PASSED_ON: [&str; 4] = ["grpc-timeout", "traceparent", "tracestate", REQUEST_ID];
const REQUEST_ID: &str = "x-request-id";

/// What comes with a call.
#[derive(Debug, Clone, Default)]
pub struct Context {
    headers: HeaderMap,
    /// Whose call it is: the services hold it against that peer's share.
    peer: Option<Peer>,
}

impl Context {
    /// What a caller's HTTP request says that concerns a call.
    #[must_use]
    pub fn of(request: &http::request::Parts) -> Self {
        let mut headers = HeaderMap::new();
        for name in PASSED_ON {
            let value = request.headers.get(name);
            if let Some(value) = value.filter(|value| value.len() <= 256) {
                headers.insert(name, value.clone());
            }
        }
        Self {
            headers,
            peer: request.extensions.get().cloned(),
        }
    }

    /// A request of generated code, with what comes with the call.
    #[must_use]
    pub fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        *request.metadata_mut() = MetadataMap::from_headers(self.headers.clone());
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        request
    }

    /// Name of the call: the caller's, else a new one, which goes with the call.
    pub fn request_id(&mut self) -> String {
        let given = self.headers.get(REQUEST_ID);
        if let Some(id) = given.and_then(|id| id.to_str().ok()) {
            return id.to_owned();
        }
        let id = uuid::Uuid::new_v4().to_string();
        if let Ok(value) = id.parse() {
            self.headers.insert(REQUEST_ID, value);
        }
        id
    }
}

/// Calls the methods of a contract. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    contract: Contract,
    transport: Transport,
}

/// A request that was read from JSON.
#[derive(Debug)]
pub struct Ask(DynamicMessage);

/// An answer, or a message of one that streams.
#[derive(Debug, Clone)]
pub struct Answer {
    contract: Contract,
    descriptor: MessageDescriptor,
    /// They are such a message: see `new`.
    bytes: Bytes,
}

impl Answer {
    fn new(
        contract: Contract,
        descriptor: MessageDescriptor,
        bytes: Bytes,
    ) -> Result<Self, Refusal> {
        let checked = contract.check(&descriptor, &bytes);
        checked.map_err(|error| unreadable(&error))?;
        Ok(Self {
            contract,
            descriptor,
            bytes,
        })
    }

    /// As the text of JSON.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        match self
            .contract
            .write_text(&self.descriptor, &self.bytes, &mut text)
        {
            Ok(()) => text,
            // Never, since the bytes were checked.
            Err(_) => "null".to_owned(),
        }
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        let written = self.contract.write(&self.descriptor, &self.bytes);
        // Never nothing, since the bytes were checked.
        written.unwrap_or_default()
    }

    /// Unpacked, for a look at its fields.
    fn message(&self) -> DynamicMessage {
        DynamicMessage::decode(self.descriptor.clone(), self.bytes.clone())
            .unwrap_or_else(|_| DynamicMessage::new(self.descriptor.clone()))
    }

    /// The bytes of a field, by its proto name; empty where it has none.
    #[must_use]
    pub fn bytes(&self, field: &str) -> Bytes {
        match self.message().get_field_by_name(field).as_deref() {
            Some(Value::Bytes(bytes)) => bytes.clone(),
            Some(Value::String(text)) => Bytes::copy_from_slice(text.as_bytes()),
            _ => Bytes::new(),
        }
    }

    /// A fact of the answer, by the proto name of its field: of the answer itself,
    /// else of a message right inside it. None where there is no such field, or
    /// it is empty.
    #[must_use]
    pub fn fact(&self, field: &str) -> Option<String> {
        let of = |message: &DynamicMessage| {
            let field = message.descriptor().get_field_by_name(field)?;
            Some(match &*message.get_field(&field) {
                Value::String(text) => text.clone(),
                Value::I64(number) if *number > 0 => number.to_string(),
                _ => String::new(),
            })
        };
        let message = self.message();
        let inside = || {
            message.fields().find_map(|(_, value)| match value {
                Value::Message(message) => of(message),
                _ => None,
            })
        };
        of(&message).or_else(inside).filter(|text| !text.is_empty())
    }
}

/// Told of every message of a stream: how many there were, and the message.
pub type Progress = Box<dyn FnMut(usize, &Json) -> BoxFuture<'static, ()> + Send>;

/// Messages of a stream that a tool's answer keeps: the last ones.
const KEPT: usize = 1000;

impl Gateway {
    /// Calls of a contract through a transport.
    #[must_use]
    pub fn new(contract: Contract, transport: Transport) -> Self {
        Self {
            contract,
            transport,
        }
    }

    /// The contract.
    #[must_use]
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// What calls go through, for clients of generated code.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport.clone()
    }

    /// The same for the calls of a peer.
    #[must_use]
    pub fn transport_for(&self, peer: Option<Peer>) -> Transport {
        let transport = self.transport();
        let Some(peer) = peer else {
            return transport;
        };
        BoxCloneSyncService::new(transport.map_request(move |mut request: Request<Body>| {
            request.extensions_mut().insert(peer.clone());
            request
        }))
    }

    /// Reads a request from JSON.
    ///
    /// # Errors
    /// Keys are unknown or missing, or values of another type.
    pub fn read(&self, method: &Method, json: Map<String, Json>) -> Result<Ask, Refusal> {
        self.read_only(method, json, None)
    }

    fn read_only(
        &self,
        method: &Method,
        json: Map<String, Json>,
        only: Option<&[String]>,
    ) -> Result<Ask, Refusal> {
        let read = self.contract.read(&method.input, json, only);
        read.map(Ask).map_err(|wrong: Wrong| {
            let all = self.contract.field_names(&method.input, &[]);
            let names = only.unwrap_or(&all).join(", ");
            let takes = match names.as_str() {
                "" => "It takes no arguments".to_owned(),
                names => format!("It takes: {names}"),
            };
            Failure::invalid(wrong).suggest(takes).into()
        })
    }

    /// Calls a method that answers once.
    ///
    /// # Errors
    /// The call is refused.
    pub async fn call(
        &self,
        method: &Method,
        ask: Ask,
        context: Context,
    ) -> Result<Answer, Refusal> {
        let bytes = self.unary(method, ask, context).await?;
        Answer::new(self.contract.clone(), method.output.clone(), bytes)
    }

    async fn unary(&self, method: &Method, ask: Ask, context: Context) -> Result<Bytes, Refusal> {
        let mut grpc = self.grpc().await?;
        let answer = grpc
            .unary(context.request(ask.0), method.path.clone(), DynamicCodec)
            .await?;
        Ok(answer.into_inner())
    }

    /// A method by its name, such as `GetVersion`.
    ///
    /// # Errors
    /// The contract has no such method.
    pub fn method(&self, name: &str) -> Result<Arc<Method>, Refusal> {
        let mut methods = self.contract.methods().iter();
        let method = methods.find(|method| method.name == name).cloned();
        method.ok_or_else(|| Failure::fault(format!("the contract has no rpc {name}")).into())
    }

    /// Calls a method by its name, such as `GetVersion`.
    ///
    /// # Errors
    /// The call is refused, or the contract has no such method.
    pub async fn ask(&self, method: &str, request: Json) -> Result<Json, Refusal> {
        let method = &*self.method(method)?;
        let Json::Object(request) = request else {
            return Err(Failure::fault("a request that is no object").into());
        };
        let ask = self.read(method, request)?;
        Ok(self.call(method, ask, Context::default()).await?.json())
    }

    /// Calls a method that streams its answer. Dropping the stream ends the call.
    ///
    /// # Errors
    /// The call is refused; once it runs, its stream ends with the refusal.
    pub async fn stream(
        &self,
        method: &Method,
        ask: Ask,
        context: Context,
    ) -> Result<impl Stream<Item = Result<Answer, Refusal>> + Send + use<>, Refusal> {
        let mut grpc = self.grpc().await?;
        let answers = grpc
            .server_streaming(context.request(ask.0), method.path.clone(), DynamicCodec)
            .await?;
        let (contract, output) = (self.contract.clone(), method.output.clone());
        Ok(answers
            .into_inner()
            .map(move |bytes| Answer::new(contract.clone(), output.clone(), bytes?)))
    }

    async fn grpc(&self) -> Result<Grpc<Transport>, Refusal> {
        let mut grpc =
            Grpc::new(self.transport.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        match grpc.ready().await {
            Ok(()) => Ok(grpc),
            Err(error) => Err(unreachable(&error).into()),
        }
    }

    /// Calls a tool. `progress` is told of every message of a stream: how many
    /// there were, and the message.
    ///
    /// # Errors
    /// A fault; whatever the caller can do something about is an answer.
    pub async fn call_tool(
        &self,
        tool: &Tool,
        arguments: Map<String, Json>,
        mut context: Context,
        progress: Progress,
    ) -> Result<ToolAnswer, Refusal> {
        let started = Instant::now();
        let request_id = context.request_id();
        let form = tool.form(&arguments);
        let Some(form) = form else {
            return Err(Failure::fault("a tool without a form").into());
        };
        let called = async {
            let method = Arc::clone(&form.method);
            let ask = self.read_only(&method, arguments, Some(&form.fields))?;
            if method.server_streaming {
                self.collect(&method, ask, context, progress).await
            } else {
                self.tell(&method, &self.unary(&method, ask, context).await?)
            }
        };
        let (data, text, refusal) = match called.await {
            Ok((data, text)) => (Some(data), text, None),
            Err(refusal) if refusal.is_fault() => return Err(refusal),
            Err(refusal) => (None, None, Some(refusal)),
        };
        if form.envelope {
            let envelope = envelope(
                data.as_ref(),
                refusal.as_ref(),
                started.elapsed(),
                &request_id,
            );
            return Ok(ToolAnswer {
                text,
                structured: Some(envelope),
                refusal,
            });
        }
        let told = refusal.as_ref().map(Refusal::text);
        Ok(ToolAnswer {
            text: told.or(text),
            structured: data,
            refusal,
        })
    }

    /// An answer in its form, and what a tool shows instead of its text.
    fn tell(&self, method: &Method, bytes: &[u8]) -> Result<(JsonText, Option<String>), Refusal> {
        let mut text = String::new();
        let written = self.contract.write_text(&method.output, bytes, &mut text);
        written.map_err(|error| unreadable(&error))?;
        let data = JsonText(text);
        let shape = self.contract.shape(&method.output);
        let shown = shape.and_then(|shape| shape.fields.iter().find(|field| field.text));
        let shown = shown.and_then(|field| {
            let text = data.json().get(&field.json)?.as_str()?.to_owned();
            Some(text)
        });
        Ok((data, shown))
    }

    /// All messages of a stream as one answer.
    async fn collect(
        &self,
        method: &Method,
        ask: Ask,
        context: Context,
        mut progress: Progress,
    ) -> Result<(JsonText, Option<String>), Refusal> {
        let mut answers = std::pin::pin!(self.stream(method, ask, context).await?);
        let mut kept = std::collections::VecDeque::new();
        let mut count = 0;
        while let Some(answer) = answers.next().await {
            let message = answer?.json();
            count += 1;
            progress(count, &message).await;
            kept.push_back(message);
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
        let left_out = count - kept.len();
        let messages = json!({"messages": kept, "left_out": left_out});
        Ok((JsonText::of(&messages), None))
    }
}

/// A server of another contract, or none at all.
fn unreadable(error: &Error) -> Refusal {
    tonic::Status::internal(format!("the answer cannot be read: {error}")).into()
}

/// No server answers. Its cause is for whoever runs the bridge, who is also the
/// one to read the message.
fn unreachable(error: &TransportError) -> Failure {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_else(|| error.to_string());
    Failure::new(
        Code::ServerUnreachable,
        format!("No server answers ({cause})"),
    )
    .suggest("See that the server runs, and that its address is right")
}
