//! Calls by JSON.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::{self, BoxFuture, Either, OptionFuture};
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use http::{HeaderValue, Request, Response};
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage as _, Value};
use serde_json::{Map, Value as Json, json};
use tonic::body::Body;
use tonic::client::Grpc;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::answer::{Block, JsonText, Metadata, ToolAnswer, blocks, envelope};
use super::codec::DynamicCodec;
use super::parse::Wrong;
use super::{Context, Contract, Error, INDEX_VERSION, Method, Refusal, Tool};
use model::{Code, Failure};

/// A way to the services: in process, or a channel to a server.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, TransportError>;

/// A call did not reach any services.
///
/// Where a status is among its causes, the caller gets that.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(#[from] BoxError);

/// The largest request as JSON: a skill of 16 MiB in base64, with its paths.
pub const MAX_JSON_BYTES: usize = 24 * 1024 * 1024;

/// The largest answer: a file of 16 MiB.
pub const MAX_MESSAGE_BYTES: usize = 20 * 1024 * 1024;

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
    /// The state of the index that it was found in, where it was.
    index_version: Option<HeaderValue>,
}

impl Answer {
    fn new(
        contract: Contract,
        descriptor: MessageDescriptor,
        bytes: Bytes,
    ) -> Result<Self, Refusal> {
        // Here, once, so that nothing can fail when it is written, which a stream or a
        // resource does much later.
        let checked = contract.check(&descriptor, &bytes);
        checked.map_err(|error| unreadable(&error))?;
        Ok(Self {
            contract,
            descriptor,
            bytes,
            index_version: None,
        })
    }

    /// The state of the index that it was found in. None where it was not.
    #[must_use]
    pub fn index_version(&self) -> Option<&HeaderValue> {
        self.index_version.as_ref()
    }

    /// As the text of JSON.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let contract = &self.contract;
        match contract.write_text(&self.descriptor, &self.bytes, &mut text) {
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

    /// Decodes the message, to read single fields.
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

/// Called for every message of a stream, with how many there were and the message.
pub type OnProgress = Box<dyn FnMut(usize, &Json) -> BoxFuture<'static, ()> + Send>;

/// Messages of a stream that a tool's answer keeps: the last ones.
const MAX_STREAM_MESSAGES: usize = 1000;

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

    /// Returns the transport for calls in the name of the caller of a context.
    #[must_use]
    pub fn transport_for(&self, context: Context) -> Transport {
        let transport = self.transport();
        BoxCloneSyncService::new(transport.map_request(move |mut request: Request<Body>| {
            context.mark(request.extensions_mut());
            request
        }))
    }

    /// Reads a request from JSON.
    ///
    /// # Errors
    /// Keys are unknown or missing, or values of another type.
    pub fn read(&self, method: &Method, json: Map<String, Json>) -> Result<Ask, Refusal> {
        let read = self.contract.read(&method.input, json, None);
        read.map(Ask).map_err(|wrong: Wrong| {
            let names = self.contract.field_names(&method.input, &[]).join(", ");
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
        let (bytes, index_version) = self.unary(method, ask, context).await?;
        let answer = Answer::new(self.contract.clone(), method.output.clone(), bytes)?;
        Ok(Answer {
            index_version,
            ..answer
        })
    }

    async fn unary(
        &self,
        method: &Method,
        ask: Ask,
        context: Context,
    ) -> Result<(Bytes, Option<HeaderValue>), Refusal> {
        let mut grpc = self.grpc().await?;
        let answer = grpc
            .unary(context.request(ask.0), method.path.clone(), DynamicCodec)
            .await?;
        let (metadata, bytes, _) = answer.into_parts();
        let mut headers = metadata.into_headers();
        Ok((bytes, headers.remove(INDEX_VERSION)))
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
    pub async fn ask(
        &self,
        method: &str,
        request: Json,
        context: Context,
    ) -> Result<Json, Refusal> {
        let method = &*self.method(method)?;
        let Json::Object(request) = request else {
            return Err(Failure::fault("a request that is no object").into());
        };
        let ask = self.read(method, request)?;
        Ok(self.call(method, ask, context).await?.json())
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

    /// Calls a tool. `progress` is called for every message of a stream, with how many
    /// there were and the message.
    ///
    /// # Errors
    /// A fault; whatever the caller can do something about is an answer.
    pub async fn call_tool(
        &self,
        tool: &Tool,
        arguments: Map<String, Json>,
        mut context: Context,
        progress: Option<OnProgress>,
    ) -> Result<ToolAnswer, Refusal> {
        let started = Instant::now();
        let request_id = context.request_id();
        let form = tool.form(&arguments);
        let Some(form) = form else {
            return Err(Failure::fault("a tool without a form").into());
        };
        let mut index_version = None;
        let called = async {
            let method = Arc::clone(&form.method);
            let read = self
                .contract
                .read(&method.input, arguments, Some(&form.fields));
            // Only the form of the JSON is checked here, in the sentences of the tool
            // specification. The rules of the contract are checked where the message is decoded,
            // for every face.
            let refused = |wrong: Wrong| Failure::invalid(wrong).suggest(tool.takes());
            let ask = Ask(read.map_err(refused)?);
            if method.server_streaming {
                return self.collect(&method, ask, context, progress).await;
            }
            let following = form.progress.as_deref().zip(progress);
            let following =
                following.map(|(rpc, progress)| self.follow(rpc, context.clone(), progress));
            let call = std::pin::pin!(self.unary(&method, ask, context));
            // Progress never ends the call: when its stream ends, it stays pending.
            let following = std::pin::pin!(
                OptionFuture::from(following).then(|_| future::pending::<Infallible>())
            );
            // Polled first, so that it reports the call from its beginning.
            let (bytes, version) = match future::select(following, call).await {
                Either::Left((never, _)) => match never {},
                Either::Right((done, _)) => done?,
            };
            index_version = version;
            self.render(&method, &bytes)
        };
        let (data, blocks, refusal) = match called.await {
            Ok((data, blocks)) => (Some(data), blocks, None),
            Err(refusal) if refusal.is_fault() => return Err(refusal),
            Err(refusal) => (None, Vec::new(), Some(refusal)),
        };
        if form.envelope {
            let error = refusal.as_ref().map(Refusal::json);
            let (data, within) = match data {
                Some(data) => self.without_refusal(&form.method, data),
                None => (None, None),
            };
            let envelope = envelope(
                data.as_ref(),
                error.or(within).as_ref(),
                &Metadata {
                    took: started.elapsed(),
                    index_version: index_version.as_ref().and_then(|text| text.to_str().ok()),
                    request_id: &request_id,
                },
            );
            return Ok(ToolAnswer {
                blocks,
                structured: Some(envelope),
                session: None,
                refusal,
            });
        }
        // A connection remembers its session, so that an agent that loaded a skill can call its
        // tools without naming a session.
        let session = data.as_ref().and_then(|data| {
            let shape = self.contract.shape(&form.method.output)?;
            let field = shape.remembered()?;
            let members = data.members(|name| name == field.json);
            Some(members.get(&field.json)?.as_str()?.to_owned())
        });
        let refused = refusal.as_ref();
        Ok(ToolAnswer {
            session,
            blocks: refused.map_or(blocks, |refusal| vec![Block::Text(refusal.text())]),
            // Some hosts show a model the structured answer next to its text, so it would pay for
            // both.
            structured: data.filter(|_| !form.text_only),
            refusal,
        })
    }

    /// Writes an answer as JSON, and returns what a tool shows instead of its text.
    fn render(&self, method: &Method, bytes: &[u8]) -> Result<(JsonText, Vec<Block>), Refusal> {
        let mut text = String::new();
        let written = self.contract.write_text(&method.output, bytes, &mut text);
        written.map_err(|error| unreadable(&error))?;
        let data = JsonText(text);
        let shape = self.contract.shape(&method.output);
        let shown = shape.and_then(|shape| blocks(shape, &data));
        Ok((data, shown.unwrap_or_default()))
    }

    /// Splits an answer for an envelope from the refusal that it contains, if any.
    fn without_refusal(&self, method: &Method, data: JsonText) -> (Option<JsonText>, Option<Json>) {
        let shape = self.contract.shape(&method.output);
        let field = shape.and_then(|shape| shape.fields.iter().find(|field| field.refusal));
        let Some(field) = field else {
            return (Some(data), None);
        };
        let Json::Object(mut answer) = data.json() else {
            return (Some(data), None);
        };
        match answer.shift_remove(field.json.as_str()) {
            Some(error) => (Some(JsonText::of(&Json::Object(answer))), Some(error)),
            None => (Some(data), None),
        }
    }

    /// Reports every message of a stream. Its errors do not concern the call that runs next to it.
    async fn follow(&self, rpc: &Method, context: Context, mut progress: OnProgress) {
        let nothing = Ask(DynamicMessage::new(rpc.input.clone()));
        let answers = match self.stream(rpc, nothing, context).await {
            Ok(answers) => answers,
            Err(refusal) => {
                tracing::debug!(
                    code = refusal.code,
                    rpc = rpc.name,
                    "progress is not reported"
                );
                return;
            }
        };
        let mut answers = std::pin::pin!(answers.enumerate());
        while let Some((at, Ok(answer))) = answers.next().await {
            progress(at + 1, &answer.json()).await;
        }
    }

    /// All messages of a stream as one answer.
    async fn collect(
        &self,
        method: &Method,
        ask: Ask,
        context: Context,
        mut progress: Option<OnProgress>,
    ) -> Result<(JsonText, Vec<Block>), Refusal> {
        let mut answers = std::pin::pin!(self.stream(method, ask, context).await?);
        let mut last = std::collections::VecDeque::new();
        let mut count = 0;
        while let Some(answer) = answers.next().await {
            let message = answer?.json();
            count += 1;
            if let Some(progress) = &mut progress {
                progress(count, &message).await;
            }
            last.push_back(message);
            if last.len() > MAX_STREAM_MESSAGES {
                last.pop_front();
            }
        }
        let left_out = count - last.len();
        let messages = json!({"messages": last, "left_out": left_out});
        Ok((JsonText::of(&messages), Vec::new()))
    }
}

/// Builds the refusal for an answer that no server of this contract sends.
fn unreadable(error: &Error) -> Refusal {
    tonic::Status::internal(format!("the answer cannot be read: {error}")).into()
}

/// Builds the failure where no server answers. It names the cause, since its reader also runs the
/// process that could not connect.
fn unreachable(error: &TransportError) -> Failure {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_else(|| error.to_string());
    Failure::new(
        Code::ServerUnreachable,
        format!("No server answers ({cause})"),
    )
    .suggest("Check that the server is running and that its address is right")
}
