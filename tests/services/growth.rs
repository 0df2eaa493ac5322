//! An rpc that is new in the contract shows up on every face without a line of
//! Rust: here the server is given a contract that it has never seen. And no file lists rpcs
//! by hand, but for those that CONTRIBUTING names.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::{Buf as _, Bytes};
use futures_util::stream;
use gateway::{Contract, Gateway, ToolAnswer, Transport, TransportError};
use http::{Request, Response};
use mcp::McpServer;
use prost::Message as _;
use prost_reflect::prost_types::MethodDescriptorProto;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use rmcp::model::{CallToolRequestParams, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::{Value as Json, json};
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

/// The descriptors of the new contract, as any build makes them.
fn descriptors() -> Vec<u8> {
    let root = env!("CARGO_MANIFEST_DIR");
    let folders = [format!("{root}/proto"), format!("{root}/tests/growth")];
    let mut compiler = protox::Compiler::new(folders).expect("folders of proto files");
    compiler
        .include_source_info(true)
        .include_imports(true)
        .open_files(["growth.proto"])
        .expect("a contract");
    compiler.encode_file_descriptor_set()
}

/// Protobuf by descriptor: the services of this test have no generated types.
#[derive(Clone)]
struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buf)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let bytes: Bytes = buf.copy_to_bytes(buf.remaining());
        let message = DynamicMessage::decode(self.0.clone(), bytes);
        message
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

/// The services of the new contract.
async fn serve(pool: DescriptorPool, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let message = |name: &str| {
        let found = pool.get_message_by_name(&format!("growth.v1.{name}"));
        found.expect("a message")
    };
    let (add, count) = (message("AddResponse"), message("CountResponse"));
    let answer = match request.uri().path() {
        "/growth.v1.Growth/Add" => {
            let answer = tower::service_fn(move |request: tonic::Request<DynamicMessage>| {
                let add = add.clone();
                async move {
                    let request = request.into_inner();
                    let label = request.get_field_by_name("label").expect("a label");
                    let numbers = request.get_field_by_name("numbers").expect("numbers");
                    let numbers = numbers.as_list().expect("a list").iter();
                    let sum = numbers
                        .map(|number| number.as_i64().expect("a number"))
                        .sum();
                    if sum == 13 {
                        return Err(Status::failed_precondition("no sum is thirteen"));
                    }
                    let mut answer = DynamicMessage::new(add);
                    answer.set_field_by_name("label", label.into_owned());
                    answer.set_field_by_name("sum", Value::I64(sum));
                    Ok(tonic::Response::new(answer))
                }
            });
            let mut grpc = tonic::server::Grpc::new(Dynamic(message("AddRequest")));
            grpc.unary(answer, request).await
        }
        "/growth.v1.Growth/Count" => {
            let answer = tower::service_fn(move |request: tonic::Request<DynamicMessage>| {
                let count = count.clone();
                async move {
                    let to = request.get_ref().get_field_by_name("to").expect("a number");
                    let to = to.as_u32().expect("a number");
                    let numbers = (1..=to).map(move |number| {
                        let mut answer = DynamicMessage::new(count.clone());
                        answer.set_field_by_name("number", Value::U32(number));
                        Ok(answer)
                    });
                    Ok(tonic::Response::new(stream::iter(numbers)))
                }
            });
            let mut grpc = tonic::server::Grpc::new(Dynamic(message("CountRequest")));
            grpc.server_streaming(answer, request).await
        }
        other => panic!("there is no rpc {other}"),
    };
    Ok(answer)
}

fn gateway() -> Gateway {
    let descriptors = descriptors();
    let pool = DescriptorPool::decode(descriptors.as_slice()).expect("descriptors");
    let services = tower::service_fn(move |request| serve(pool.clone(), request));
    let services = services.map_err(|never: Infallible| -> TransportError { match never {} });
    let transport: Transport = BoxCloneSyncService::new(services);
    Gateway::new(
        Contract::read_set(&descriptors).expect("a contract"),
        transport,
    )
}

/// How far something is, and what was said of it.
type Progress = (f64, Option<String>);

/// A client that remembers the progress it was told of.
#[derive(Clone, Default)]
struct Client {
    progress: Arc<Mutex<Vec<Progress>>>,
}

impl ClientHandler for Client {
    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let mut progress = self.progress.lock().expect("no panic");
        progress.push((told.progress, told.message));
    }
}

fn arguments(json: &Json) -> rmcp::model::JsonObject {
    json.as_object().expect("an object").clone()
}

#[tokio::test]
async fn a_new_rpc_is_a_tool_with_its_schema_its_hints_and_its_answer() {
    let face = McpServer::new(gateway(), gateway().transport());
    let handlers = face.handlers(Some("growth")).expect("a toolset");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(async move {
        handlers()
            .serve(ours)
            .await
            .expect("a server")
            .waiting()
            .await
    });
    let me = Client::default();
    let client = me.clone().serve(theirs).await.expect("a client");

    let tools = client.list_all_tools().await.expect("tools");
    let tools: Vec<_> = tools
        .iter()
        .map(|tool| serde_json::to_value(tool).expect("JSON"))
        .collect();
    let [add, count] = tools.as_slice() else {
        panic!("two tools, not {tools:?}")
    };
    assert_eq!(
        json!([
            add["name"],
            add["title"],
            add["description"],
            add["annotations"]["readOnlyHint"],
            add["inputSchema"]
        ]),
        json!(["add", "Add numbers", "Adds numbers.", true, {
            "type": "object",
            "properties": {
                "label": {"type": "string", "minLength": 1, "description": "What the sum is called."},
                "numbers": {
                    "type": "array", "items": {"type": "integer", "format": "int64"}, "minItems": 1,
                    "description": "The numbers.",
                },
            },
            "required": ["label", "numbers"],
        }])
    );
    assert_eq!(
        json!([count["name"], count["title"]]),
        json!(["count_up", "count"])
    );

    let call = |name: &'static str, request: Json| {
        client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments(&request)))
    };
    let answer = call("add", json!({"label": "a", "numbers": [1, 2, 39]}))
        .await
        .expect("an answer");
    let answer = answer.structured_content.expect("an envelope");
    assert_eq!(
        (&answer["success"], &answer["data"]),
        (&json!(true), &json!({"label": "a", "sum": 42}))
    );

    let refused = call("add", json!({"label": "a", "numbers": [13]}))
        .await
        .expect("an answer");
    let envelope = refused.structured_content.expect("an envelope");
    assert_eq!(refused.is_error, Some(true));
    assert_eq!(
        (&envelope["success"], &envelope["error"]["message"]),
        (&json!(false), &json!("no sum is thirteen"))
    );

    let wrong = call("add", json!({"label": 1})).await.expect("an answer");
    let envelope = wrong.structured_content.expect("an envelope");
    assert_eq!(
        envelope["error"]["details"]["fields"],
        json!([
            {"field": "numbers", "message": "Required"},
            {"field": "label", "message": "Expected string, received number"},
        ])
    );

    let counted = call("count_up", json!({"to": 3})).await.expect("an answer");
    assert_eq!(
        counted.structured_content,
        Some(json!({"messages": [{"number": 1}, {"number": 2}, {"number": 3}], "left_out": 0}))
    );
    let told = me.progress.lock().expect("no panic").clone();
    let expected = [1, 2, 3].map(|n| (f64::from(n), Some(format!("{{\"number\":{n}}}"))));
    assert_eq!(told, expected);

    client.cancel().await.expect("the client ends");
    server.await.expect("no panic").expect("the server ends");
}

#[tokio::test]
async fn a_long_stream_keeps_its_end_and_says_what_it_left_out() {
    let gateway = gateway();
    let tools = gateway.contract().tools(Some("growth"));
    let count = tools
        .iter()
        .find(|tool| tool.name == "count_up")
        .expect("a tool");
    let answer: ToolAnswer = gateway
        .call_tool(
            count,
            arguments(&json!({"to": 2500})),
            gateway::Context::default(),
            None,
        )
        .await
        .expect("an answer");
    let answer = answer.structured.expect("an answer").json();
    let messages = answer["messages"].as_array().expect("messages");
    assert_eq!(
        (
            messages.len(),
            &messages[0],
            &messages[999],
            &answer["left_out"]
        ),
        (
            1000,
            &json!({"number": 1501}),
            &json!({"number": 2500}),
            &json!(1500)
        )
    );
}

/// A REST call of the new contract: status, media type, body.
async fn rest(verb: &str, path: &str, body: &str) -> (u16, String, String) {
    let stop = tokio_util::sync::CancellationToken::new();
    let (_, writable) = tokio::sync::watch::channel(true);
    let router = rest::router(&gateway(), stop, writable);
    let router = router.expect("routes");
    let request = Request::builder().method(verb).uri(path);
    let request = if body.is_empty() {
        request
    } else {
        request.header("content-type", "application/json")
    };
    let request = request
        .body(axum::body::Body::from(body.to_owned()))
        .expect("a request");
    let answer = router.oneshot(request).await.expect("an answer");
    let status = answer.status().as_u16();
    let media = answer.headers()["content-type"]
        .to_str()
        .expect("text")
        .to_owned();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20)
        .await
        .expect("a body");
    (status, media, String::from_utf8(body.into()).expect("text"))
}

#[tokio::test]
async fn a_new_rpc_is_a_route_with_its_refusals_and_its_stream() {
    let (status, media, body) =
        rest("POST", "/api/v1/sums/my/sum", r#"{"numbers": [1, 41]}"#).await;
    assert_eq!((status, media.as_str()), (200, "application/json"));
    assert_eq!(
        body.parse::<Json>().expect("JSON"),
        json!({"label": "my/sum", "sum": 42})
    );

    let (status, media, body) = rest("POST", "/api/v1/sums/my/sum", r#"{"number": [1]}"#).await;
    let problem: Json = body.parse().expect("JSON");
    assert_eq!((status, media.as_str()), (400, "application/problem+json"));
    assert_eq!(
        problem["errors"],
        json!([
            {"field": "numbers", "message": "Required"},
            {"field": "number", "message": "Unrecognized key(s) in object: 'number'"},
        ])
    );

    let (status, media, body) = rest("GET", "/api/v1/counts/2", "").await;
    assert_eq!((status, media.as_str()), (200, "text/event-stream"));
    assert_eq!(body, "data: {\"number\":1}\n\ndata: {\"number\":2}\n\n");
}

#[tokio::test]
async fn a_new_rpc_is_in_the_openapi_document() {
    let (status, _, body) = rest("GET", "/openapi.json", "").await;
    let document: Json = body.parse().expect("JSON");
    let paths: Vec<_> = document["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .cloned()
        .collect();
    assert_eq!(status, 200);
    assert!(
        paths.contains(&"/api/v1/counts/{to}".to_owned()),
        "{paths:?}"
    );
    let sums = paths
        .iter()
        .find(|path| path.starts_with("/api/v1/sums/"))
        .expect("a path");
    let operation = &document["paths"][sums]["post"];
    assert_eq!(
        json!([operation["operationId"], operation["summary"]]),
        json!(["Add", "Adds numbers"])
    );
}

#[test]
fn a_new_service_is_known_by_its_descriptors() {
    let services = contract::services(&descriptors());
    let growth = services
        .iter()
        .find(|service| service.name == "growth.v1.Growth");
    let methods = &growth.expect("the service").methods;
    let names: Vec<_> = methods.iter().map(MethodDescriptorProto::name).collect();
    assert_eq!(names, ["Add", "Count"]);
}

/// Files below these are looked through; what tests and documents of one subject say of its
/// rpcs is no list.
const ROOTS: [&str; 7] = [
    "benches",
    "build.rs",
    "crates",
    "proto",
    "src",
    "tests/golden",
    "tests/interop",
];
/// A file that names all rpcs of a service with so many lists them.
const MANY: usize = 5;

/// `get_skill` of `GetSkill`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[test]
fn the_files_that_list_rpcs_are_those_that_contributing_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let services = contract::own_services();
    let many = services
        .iter()
        .filter(|service| service.methods.len() >= MANY);
    let many: Vec<_> = many.collect();
    assert_eq!(many.len(), 5, "services with many rpcs");
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).expect("a file");
    let (_, part) = text.split_once("## To add an rpc").expect("the part");
    let (part, _) = part.split_once("## To add an error").expect("its end");
    let named: Vec<&str> = part.split('`').skip(1).step_by(2).collect();
    let mut wrong = Vec::new();
    let mut lists = 0;
    let files = ROOTS.iter().flat_map(|below| {
        let walk = walkdir::WalkDir::new(root.join(below)).into_iter();
        // What tools are installed in, and what they leave behind.
        walk.filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            !name.starts_with('.') && name != "node_modules"
        })
    });
    for file in files {
        let path = file.expect("an entry").into_path();
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let words: HashSet<&str> = text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .collect();
        let has = |rpc: &str| words.contains(rpc) || words.contains(&*snake(rpc));
        for service in &many {
            if service.methods.iter().all(|method| has(method.name())) {
                lists += 1;
                let name = path.strip_prefix(root).expect("below it");
                let (_, service) = service.name.rsplit_once('.').expect("a package");
                let name = name.to_string_lossy();
                let name = name.replace(&snake(service), "SERVICE");
                if !named.contains(&&*name) {
                    wrong.push(format!("{name} lists the rpcs of {service}"));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(lists >= 2 * many.len(), "the proto files and the services");
}
